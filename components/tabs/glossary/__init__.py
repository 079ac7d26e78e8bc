"""The Words tab: each technical word of the page with its definition."""
