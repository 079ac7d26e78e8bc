"""The Ray Serve application that generates text with replicas of the models."""
