"""Kinds of goals of challenges."""
