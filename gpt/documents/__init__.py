"""Documents: a text with branches, the model's activations for it, and everything computed from both."""
