"""The tab Causes, in Why?: attribution of one prediction to tokens, layers, parts and heads."""
