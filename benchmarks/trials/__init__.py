"""Load and failure tests. Each is a function of a scale (1 gives the figures in docs/benchmarks.md)."""
