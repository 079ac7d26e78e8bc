"""The Train tab: live training of a tiny GPT, and the effect of size, data and compute on the loss."""
