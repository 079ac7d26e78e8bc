"""Draw NumPy arrays as plotly figures, without depending on gradio or torch."""
