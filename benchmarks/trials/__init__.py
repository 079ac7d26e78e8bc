"""What the app must stand, each a function of a scale (1: the figures of docs/benchmarks.md) that returns a Result."""
