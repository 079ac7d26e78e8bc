"""The Change it tab in Why?: edits of the model and their effect on the text."""
