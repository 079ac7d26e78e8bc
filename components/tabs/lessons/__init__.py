"""Lessons: the twenty parts of a GPT, one screen each, with a sentence, an interactive figure, code and a question."""
