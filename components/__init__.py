"""The user interface. It uses gradio, and accesses the model only through gpt's public names."""
