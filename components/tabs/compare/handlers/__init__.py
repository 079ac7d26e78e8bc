"""The event handlers of the Compare tab."""
