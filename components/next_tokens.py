"""Next-token bars, shared by all tabs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from torch import Tensor

from components.i18n import is_exact, t
from components.labels import bar_label, percent, quoted
from gpt import Generation, SamplingParams, distribution
from gpt.tokenizer import Vocabulary


def token_bars(
    title: str,
    tokenizer: Vocabulary,
    ids: Sequence[int],
    before: np.ndarray,
    after: np.ndarray,
    says: str = "bars.row.settings",
    *,
    text: str = "",
    chosen: int | None = None,
    others: str = "",
    label: Callable[[Vocabulary, int], str] = bar_label,
    sends: dict[str, object] | None = None,
) -> dict[str, Any]:
    """Return the data for the list of next tokens, drawn by `predictions`.

    title: also the list's name. before, after: the probabilities of all tokens, (vocab_size,); the former are pale.
    says: key of the sentence for one bar, with the values `token`, `before` and `after`. text: the sentence beside the
    title. chosen: the token that follows in the text. others: the line below the first bars. sends: what a click on a
    bar sends besides its token; None if it sends nothing.
    """

    def bar(i: int) -> list[object]:
        name = t(says, token=quoted(tokenizer, i), before=percent(before[i]), after=percent(after[i]))
        sent = {} if sends is None else {"token": i}
        return [label(tokenizer, i), float(f"{before[i]:.4g}"), float(f"{after[i]:.4g}"), name, sent]

    at = ids.index(chosen) if chosen in ids else -1
    listed = [bar(i) for i in ids]
    return no_bars(title) | {"text": text, "bars": listed, "common": sends or {}, "chosen": at, "others": others}


def no_bars(title: str = "") -> dict[str, Any]:
    return {"title": title, "text": "", "bars": [], "common": {}, "chosen": -1, "others": ""}


def with_chosen(ids: list[int], chosen: int | None) -> list[int]:
    return ids if chosen is None or chosen in ids else [*ids[:-1], chosen]


def at_one(logits: Tensor) -> Tensor:
    """Return next-token probabilities at temperature 1, on the CPU, (vocab_size,).

    Label them so wherever they are shown; for probabilities under the sampling settings, use `Snapshot.stages`.
    """
    return distribution(logits, SamplingParams()).final


def held_sentence(document: Generation, position: int) -> str:
    """Return the share of the tokens that cannot follow typed white space, if exact numbers are shown; else ""."""
    if not is_exact() or not document.held_after(position):
        return ""
    return t("bars.says.held", share=percent(document.impossible_share(position)))


def best(final: np.ndarray, raw: np.ndarray, most: int) -> np.ndarray:
    """Return the top `most` ids by final and then raw probability, without sorting the whole vocabulary."""
    count = min(most, len(raw))
    ids = np.arange(len(raw))
    if count < len(raw):
        ids = np.argpartition(-final, count)[:count]
        if raw is not final:
            ids = np.union1d(ids, np.argpartition(-raw, count)[:count])
    return ids[np.lexsort((ids, -raw[ids], -final[ids]))][:count]


def best_of_both(before: Tensor, after: Tensor, n: int) -> list[int]:
    """Return the n - 3 most likely tokens of one prediction, (vocab_size,), and the 3 most likely of another."""
    counted = zip((before, after), (n - 3, 3), strict=True)
    return list(dict.fromkeys(i for one, k in counted for i in one.topk(min(k, len(one))).indices.tolist()))
