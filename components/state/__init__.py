"""The state of one visitor: session, settings and locks. Independent of gradio."""
