"""Figures of the panels: numbers in, a plotly figure out."""
