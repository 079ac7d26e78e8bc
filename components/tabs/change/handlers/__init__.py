"""Event handlers for the "Change it" tab."""
