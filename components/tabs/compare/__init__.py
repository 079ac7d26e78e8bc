"""The Compare tab: two continuations of one prompt or two, side by side, and beam search."""
