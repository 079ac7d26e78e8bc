"""Next-token bars, shared by all tabs."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from components.figures.bars import next_token_bars
from components.i18n import Language, t
from components.labels import token_text
from gpt import Generation


class NextTokens(NamedTuple):
    """Next tokens as bars.

    ids: token ids, most likely first. chosen: the token that follows in the text, if any. content: see `Figure`.
    """

    ids: np.ndarray
    chosen: int | None
    content: dict[str, Any]


def next_tokens(
    document: Generation, position: int, raw: np.ndarray, final: np.ndarray, most: int, language: Language
) -> NextTokens:
    """Return bars for the `most` likeliest tokens after a position, always including the one that follows in the text.

    raw, final: probabilities before and after the sampling settings, (vocab_size,).
    """
    ids = best(final, raw, most)
    chosen = document.ids[position + 1] if position + 1 < len(document.ids) else None
    if chosen is not None and chosen not in ids:
        ids[-1] = chosen
    content = next_token_bars(
        [token_text(document.loaded.tokenizer, token_id) for token_id in ids.tolist()],
        raw[ids],
        final[ids],
        chosen=None if chosen is None else int(np.flatnonzero(ids == chosen)[0]),
        before_name=t("bars.before", language),
        after_name=t("bars.after", language),
        chosen_name=t("bars.chosen", language),
    )
    return NextTokens(ids, chosen, content)


def best(final: np.ndarray, raw: np.ndarray, most: int) -> np.ndarray:
    """Return the top `most` ids by final and then raw probability, without sorting the whole vocabulary."""
    count = min(most, len(raw))
    ids = np.arange(len(raw))
    if count < len(raw):
        ids = np.union1d(np.argpartition(-final, count)[:count], np.argpartition(-raw, count)[:count])
    return ids[np.lexsort((ids, -raw[ids], -final[ids]))][:count]
