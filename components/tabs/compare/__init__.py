"""The Compare tab: two continuations side by side, from one prompt or two, and beam search."""
