"""The Write tab: a prompt, the generated text, next-token probabilities and attention."""
