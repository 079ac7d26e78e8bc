"""The Loss tab: the loss on a text, token by token."""
