"""The Challenges tab: a hunt for the heads that copy, and goals that the app checks on the visitor's own model."""
