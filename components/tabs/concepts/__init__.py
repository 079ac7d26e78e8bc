"""Concepts, in Why?: what the model thinks of at each word, where else it does, and what that does."""
