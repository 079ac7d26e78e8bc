"""Event handlers for the Write tab."""
