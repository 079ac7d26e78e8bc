"""What a person sees. Knows gradio; reaches the model only through gpt's public names."""
