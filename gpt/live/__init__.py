"""A small GPT that learns while somebody watches: tasks, texts, runs in the background, their queue."""
