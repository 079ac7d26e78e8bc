"""The Causes tab in Why?: attributes one prediction to tokens, layers, parts and heads."""
