"""Documents: texts with branches, their activations, and computations on them."""
