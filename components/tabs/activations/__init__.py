"""The Activations tab: activation functions, and the pre-activations of the model."""
