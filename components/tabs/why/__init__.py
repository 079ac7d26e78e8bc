"""The Why tab: one prediction, and what it comes from: tokens, layers, parts, heads."""
