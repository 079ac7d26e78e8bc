"""Models on disk, on the hub and in memory: checkpoints, downloads, loading, and the registry of shared models."""
