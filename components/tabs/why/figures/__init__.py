"""Figures of the tab: numbers in, a plotly figure out."""
