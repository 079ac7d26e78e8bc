"""The Shapes tab: parameters, memory and compute of a configuration."""
