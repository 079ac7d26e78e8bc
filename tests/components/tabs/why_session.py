"""Shared by the tests of Causes: a text, and the model's predictions in it."""

from __future__ import annotations

from components.state.text import Text
from components.tabs.why import predictions
from gpt import Generation, get_model

TEXT = "Lily saw a dog. The dog saw Lily. Then Lily and the dog ran to the park and played. Lily saw a cat. The cat"


def read_text():
    made = Generation(get_model(), TEXT)
    made.read()
    return made


def traced(document, position, before=None):
    return predictions.trace_around(Text.of(document), position, before)


def predicted(document, position, token=None):
    return predictions.predict(Text.of(document), position, token)
