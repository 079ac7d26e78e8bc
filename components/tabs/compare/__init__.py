"""The Compare tab: two continuations side by side, of one prompt or two, and beam search."""
