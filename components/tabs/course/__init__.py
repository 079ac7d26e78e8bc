"""The Build tab: the course in which a person writes a GPT, checked and opened in the page."""
