"""Tools for classes: pages that follow another page, sequences of stops, and short links with QR codes.

The scripts in this folder load only when one of these is used.
"""
