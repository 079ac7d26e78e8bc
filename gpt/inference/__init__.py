"""Concurrent inference: engine, admission queue, packed weights, CPU threads."""
