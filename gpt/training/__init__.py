"""Training a GPT: from the command line (`python -m gpt.training`), and live while a visitor watches (`live_run`)."""
