"""Models on disk, on the hub and in memory: checkpoints, downloads, loading, the registry of shared models."""
