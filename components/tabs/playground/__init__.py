"""The Playground tab: type a prompt, watch the model write, see what it expected and where it looked."""
