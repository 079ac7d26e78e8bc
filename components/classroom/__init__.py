"""Tools for classes: pages that follow another page, sequences of stops, short links with QR codes, and progress codes.

The scripts in this folder load only when one of these is used.
"""
