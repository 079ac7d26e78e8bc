"""The tab Write: a prompt, the generated text, next-token probabilities and attention."""
