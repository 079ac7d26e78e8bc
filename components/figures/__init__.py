"""Draw charts from NumPy arrays as plotly figures. Independent of gradio and torch."""
