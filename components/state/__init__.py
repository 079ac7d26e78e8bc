"""What one visitor has open: the session, its settings and its locks. No gradio."""
