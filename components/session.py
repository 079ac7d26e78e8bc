"""What one visitor has open: the document and what is selected in it. Never shared with another visitor."""

from __future__ import annotations

from dataclasses import dataclass, field

from components.playground.views import Look, Meter
from components.settings import LIMITS, sampling_params
from gpt import Generation, LoadedModel
from gpt.generate import FinishReason

EXAMPLE_PROMPT = "Once upon a time, there was a little girl named Lily. She"
EXAMPLE_LENGTH = 40
EXAMPLE_SEED = 10


@dataclass
class Session:
    """Mutable on purpose: a running stream sees a new selection at its next token.

    prompt: the text that the document started from. meter: of the last run.
    """

    document: Generation | None
    prompt: str = EXAMPLE_PROMPT
    look: Look = field(default_factory=Look)
    meter: Meter | None = None
    finish_reason: FinishReason | None = None


def example(loaded: LoadedModel) -> Generation:
    """A finished text, made once at start-up, so that nobody meets an empty page. Never changed afterwards."""
    document = Generation(loaded, EXAMPLE_PROMPT)
    params = sampling_params(temperature=LIMITS["temperature"].default, seed=EXAMPLE_SEED)
    for _ in document.steps(params, EXAMPLE_LENGTH):
        pass
    document.read()
    return document
