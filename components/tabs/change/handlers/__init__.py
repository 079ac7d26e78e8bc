"""Event handlers of Change it."""
