"""A class: a page that others follow, a sequence of stops, short links with a QR code, and progress as a code.

Its scripts, in this folder too, load only where one of these is used.
"""
