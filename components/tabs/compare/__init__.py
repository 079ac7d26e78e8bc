"""The Compare tab: two continuations of one prompt side by side, and beam search."""
