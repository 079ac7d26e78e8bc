"""Event handlers for Write."""
