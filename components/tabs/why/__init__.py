"""The Why tab: attribution of one prediction to tokens, layers, parts and heads."""
