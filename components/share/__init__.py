"""Sharing a text: as a link that opens it, as files, and as the program that generates it."""
