"""What the events of the Compare tab do to the session."""
