"""Event handlers for the Compare tab."""
