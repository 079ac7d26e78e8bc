"""Programs that make the bundled assets; run from a checkout, as in `python -m tools.concepts`."""
