"""The "Change it" tab in Why?: edits to the model and their effect on the text."""
