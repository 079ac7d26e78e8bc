"""Models on disk, on the hub and in memory: names, loading, checkpoints, the shared registry."""
