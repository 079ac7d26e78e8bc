"""The Concepts tab in Why?: the concepts active at each word, where else they are active, and what they do."""
