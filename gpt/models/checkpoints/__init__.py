"""Models on disk: read checkpoints in many layouts, and write them in our own format, Hugging Face's or GGUF."""
