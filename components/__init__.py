"""The user interface. Uses gradio, and the model only through gpt's public names."""
