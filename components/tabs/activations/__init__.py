"""The Activations tab: activation functions and the model's pre-activations."""
