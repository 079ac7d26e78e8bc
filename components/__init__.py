"""The user interface, built with Gradio. It accesses the model only through gpt's public names."""
