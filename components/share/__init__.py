"""Sharing of a text: as a link that opens it, as files, and as the program that writes it."""
