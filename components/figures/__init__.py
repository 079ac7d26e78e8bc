"""Charts as plotly figures: NumPy arrays in, Figure out. Independent of gradio and torch."""
