"""The tab Change it, in Why?: edits of the model and their effect on the text."""
