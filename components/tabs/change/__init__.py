"""Change it: a part of the model switched off, scaled or replaced for one call, and what becomes of the text."""
