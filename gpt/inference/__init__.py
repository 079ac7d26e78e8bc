"""Inference for many users at once: engine, admission queue, packed weights and CPU threads."""
