"""Event handlers for Change it."""
