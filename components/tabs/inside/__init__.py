"""The Inside tab: how the model computed the text, from queries, keys and values to neurons and embeddings."""
