"""The Causes tab in Why?, which attributes a prediction to tokens, layers, parts and heads."""
