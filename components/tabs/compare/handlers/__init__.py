"""Event handlers of the Compare tab."""
