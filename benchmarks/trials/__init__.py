"""What the app must stand, each a function of a scale (1: the figures of the README) that returns a Result."""
