"""The kinds of challenge goals."""
