"""Teaching a class: pages that follow another page, sequences of stops, short links with a QR code, and progress codes.

The scripts in this folder load only when one of these is used.
"""
