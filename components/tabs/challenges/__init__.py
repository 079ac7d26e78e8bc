"""The Challenges tab: goals that visitors reach by editing a text or the model, each checked by running the model."""
