"""Charts as plotly figures: NumPy arrays in, Figure out. Without gradio and torch."""
