"""The experiments: activations, shapes, loss."""
