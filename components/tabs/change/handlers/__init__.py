"""The event handlers of Change it."""
