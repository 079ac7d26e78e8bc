"""The event handlers of Write."""
