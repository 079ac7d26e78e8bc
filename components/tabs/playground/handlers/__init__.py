"""What the events of the Playground do to the session."""
