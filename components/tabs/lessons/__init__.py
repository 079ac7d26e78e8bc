"""Lessons: the twenty parts of a GPT, one screen each: a sentence, an interactive figure, the code, a question."""
