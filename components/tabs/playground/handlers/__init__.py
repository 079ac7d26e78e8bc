"""Event handlers of Write."""
