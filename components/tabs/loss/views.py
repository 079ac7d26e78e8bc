"""What the Loss tab says of a text that was read: values for its widgets, no components."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from components import legacy
from components.frame import short_name
from components.i18n import Language, t
from components.labels import percent, quoted
from components.widgets.tokens import header, shade_value
from gpt import LoadedModel
from gpt.experiments.text_loss import TextScore


class Reading(NamedTuple):
    """A text, what a model made of it, and the token that is looked at.

    repaired: halves of surrogate pairs in the text became U+FFFD.
    """

    loaded: LoadedModel
    result: TextScore
    selected: int
    repaired: bool = False


def most_surprising(result: TextScore) -> int:
    """The position of the token with the largest loss."""
    return 1 + max(range(len(result.losses)), key=lambda i: result.losses[i].surprisal)


def strip(reading: Reading) -> str:
    """The text, each token with its probability and rank; the first has none."""
    result = reading.result
    known = [(None, None), *((loss.probability, loss.rank) for loss in result.losses)]
    doc = header(doc=f"{id(result):x}")
    return doc + legacy.token_lines(reading.loaded.tokenizer, result.ids, known, n_prompt=1)


def shading(reading: Reading) -> str:
    """Surprisal in bits, as the tint of the strip."""
    return shade_value(np.array([0.0, *(loss.surprisal for loss in reading.result.losses)]))


def headline(reading: Reading, language: Language) -> str:
    """The three numbers of the whole text."""
    score = reading.result.score
    return t(
        "loss.headline",
        language,
        loss=f"{score.loss:.4f}",
        perplexity=f"{score.perplexity:,.2f}",
        bits=f"{score.bits_per_byte:.3f}",
    )


def says(reading: Reading, language: Language) -> str:
    """What the numbers mean, and how the text was read."""
    result, block_size = reading.result, reading.loaded.model.config.block_size
    n = len(result.ids)
    choices, vocab_size = result.score.perplexity, reading.loaded.model.config.vocab_size
    text = t(
        "loss.says" if choices <= vocab_size else "loss.misled",
        language,
        model=short_name(reading.loaded.name, language),
        choices=f"{choices:,.0f}",
        vocab_size=f"{vocab_size:,}",
    )
    text += t("loss.counted", language, n=f"{n:,}", bytes=f"{result.score.n_bytes:,}")
    if result.n_windows == 1:
        text += t("loss.fits", language, limit=f"{block_size:,}")
    else:
        text += t(
            "loss.windows",
            language,
            limit=f"{block_size:,}",
            n=f"{result.n_windows:,}",
            stride=f"{result.stride:,}",
            least=f"{max(1, block_size - result.stride):,}",
        )
    return text + (t("loss.repaired", language) if reading.repaired else "")


def token(reading: Reading, language: Language) -> str:
    """The selected token: how likely it was, and what was expected in its place."""
    tokenizer, result = reading.loaded.tokenizer, reading.result
    name = quoted(tokenizer, result.ids[reading.selected])
    if reading.selected == 0:
        return t("loss.token.first", language, token=name)
    loss = result.losses[reading.selected - 1]
    expected = ", ".join(f"{quoted(tokenizer, i)} {percent(p)}" for i, p in loss.top)
    return t(
        "loss.token",
        language,
        token=name,
        p=percent(loss.probability),
        rank=f"{loss.rank:,}",
        total=f"{reading.loaded.model.config.vocab_size:,}",
        bits=f"{loss.surprisal:.2f}",
        nats=f"{loss.nats:.2f}",
        expected=expected,
    )
