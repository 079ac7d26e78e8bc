"""The handlers of the Change tab."""
