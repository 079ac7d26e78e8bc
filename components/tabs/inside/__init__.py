"""The Inside tab: activations of the forward pass, from queries, keys and values to neurons and embeddings."""
