"""Training: the command `python -m gpt.training`, and live runs in a background thread (`gpt.training.live_run`)."""
