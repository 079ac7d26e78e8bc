"""The Change tab: edits of the model and their effect on the text."""
