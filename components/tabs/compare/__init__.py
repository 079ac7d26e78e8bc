"""Compare: one prompt, two ways on from it side by side, or all that a beam search weighs."""
