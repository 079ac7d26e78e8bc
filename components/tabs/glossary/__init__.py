"""The Words tab: every technical term on the page, with its definition."""
