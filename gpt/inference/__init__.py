"""Inference for several users at once: engine, admission queue, packed weights, CPU threads."""
