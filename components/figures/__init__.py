"""Charts as plotly figures: numpy in, Figure out. No gradio, no torch."""
