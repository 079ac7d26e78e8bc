"""The user interface. It uses gradio, and reaches the model only through gpt's public names."""
