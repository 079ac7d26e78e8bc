"""The Words tab: every technical term of the page with its definition."""
