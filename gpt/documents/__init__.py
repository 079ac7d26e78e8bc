"""The text a person steers: its branches, what the model made of each, and what can be told of it."""
