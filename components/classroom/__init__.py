"""A class: a page that others follow, a sequence of stops, short links with a QR code, and progress as a code.

The scripts in this folder load only once one of these is used.
"""
