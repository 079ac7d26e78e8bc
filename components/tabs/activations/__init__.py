"""The Activations tab: GELU, ReLU and the pre-activations of the running model."""
