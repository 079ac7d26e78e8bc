"""Load and failure tests. Each takes a scale; 1 runs the full test, as in docs/benchmarks.md."""
