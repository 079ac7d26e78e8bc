"""The event handlers of the Change tab."""
