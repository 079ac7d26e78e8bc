"""The Loss tab: the loss of a text, token by token."""
