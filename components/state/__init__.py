"""One visitor's state: session, settings and locks. Independent of gradio."""
