"""Lessons: the twenty systems of a GPT, one screen each: a sentence, a picture to play with, the code, a question."""
