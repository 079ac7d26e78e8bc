"""The event handlers of the Playground."""
