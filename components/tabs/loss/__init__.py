"""The Loss tab: the loss of a text by token."""
