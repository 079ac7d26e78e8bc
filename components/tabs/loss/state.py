"""State of the Loss tab."""

from __future__ import annotations

from dataclasses import dataclass

from components.state.jobs import Job
from gpt import LoadedModel
from gpt.experiments.text_loss import TextScore

EXAMPLES = {  # keyed by the model's language
    "en": {
        "turn": "Once upon a time, there was a little girl named Lily. She loved to play with her red ball in the "
        "park. One day, her ball rolled into the central bank and raised the interest rates.",
        "shuffled": "ball red her with play to loved She. Lily named girl little a was there, time a upon Once. park "
        "the in",
        "repeat": "The cat sat. The dog ran. The cat sat. The dog ran. The cat sat. The dog ran.",
    },
    "zh": {
        "turn": "白日依山尽，黄河入海流。\n欲穷千里目，央行又加息。",
        "shuffled": "海依山白尽日流，河入黄。\n目穷千层楼欲，上更一里。",
        "repeat": "春眠不觉晓，处处闻啼鸟。\n春眠不觉晓，处处闻啼鸟。",
    },
}
FIRST_EXAMPLE = EXAMPLES["en"]["turn"]
STRIDES = (1, 2, 4, 8)  # divisors of the context length, which give the stride between windows
HALF = 2


@dataclass(frozen=True, eq=False)
class ScoredText:
    """A text and its losses.

    Attributes:
        run: Number of the run that scored it; 0 for the example.
        parts: Divisor of the context length (see `handlers.stride_of`).
        repaired: Whether lone surrogates were replaced with U+FFFD.
    """

    loaded: LoadedModel
    result: TextScore
    text: str
    run: int = 0
    parts: int = HALF
    repaired: bool = False


@dataclass(frozen=True, eq=False)
class LossState:
    """State of the Loss tab.

    Attributes:
        text, parts: Values of the text box and the stride control.
        scored, selected: The displayed text and the selected position in it.
        run: Number of texts scored so far.
        notice: The latest error.
    """

    text: str = FIRST_EXAMPLE
    parts: int = HALF
    scored: ScoredText | None = None
    selected: int = 0
    run: int = 0
    job: Job | None = None
    notice: ValueError | None = None

    @property
    def busy(self) -> bool:
        return self.job is not None
