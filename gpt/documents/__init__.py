"""Documents: a text with branches, its activations, and the computations on them."""
