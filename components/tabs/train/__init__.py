"""The Train tab: a tiny GPT learns while the visitor watches; and what size, data and compute do to the loss."""
