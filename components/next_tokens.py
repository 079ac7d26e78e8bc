"""Next-token bars, shared by all tabs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor

from components.figures.bars import next_token_bars, next_token_end
from components.i18n import is_exact, t
from components.labels import bar_label, percent, quoted, token_text
from components.widgets.simple import Bar
from gpt import Generation, SamplingParams, Stages, distribution
from gpt.tokenizer import Vocabulary


class NextTokens(NamedTuple):
    """The likeliest next tokens, which are shown as bars.

    ids: token ids, most likely first, (n,). chosen: the token that follows in the text, if any. labels: the tokens'
    texts. raw, final: their probabilities at temperature 1 and under the sampling settings, (n,).
    """

    ids: np.ndarray
    chosen: int | None
    labels: list[str]
    raw: np.ndarray
    final: np.ndarray

    @property
    def end(self) -> float:
        """The end of the bars' axis, for charts that share a scale."""
        return next_token_end(self.raw, self.final)

    def figure(self, end: float = 0.0) -> dict[str, Any]:
        """Return the bars (see `Figure`). end: the end of the axis; defaults to the bars' own."""
        return next_token_bars(
            self.labels,
            self.raw,
            self.final,
            chosen=None if self.chosen is None else int(np.flatnonzero(self.ids == self.chosen)[0]),
            before_name=t("bars.before"),
            after_name=t("bars.after"),
            chosen_name=t("bars.chosen"),
            end=end,
        )


def next_tokens(document: Generation, position: int, stages: Stages, most: int) -> NextTokens:
    """Return the `most` likeliest tokens after a position, always including the one that follows in the text."""
    raw, final = stages.raw.numpy(), stages.final.numpy()
    ids = best(final, raw, most)
    chosen = document.ids[position + 1] if position + 1 < len(document.ids) else None
    if chosen is not None and chosen not in ids:
        ids[-1] = chosen
    labels = [token_text(document.loaded.tokenizer, token_id) for token_id in ids.tolist()]
    return NextTokens(ids, chosen, labels, raw[ids], final[ids])


def token_bars(
    tokenizer: Vocabulary,
    ids: Iterable[int],
    before: np.ndarray,
    after: np.ndarray,
    says: str,
    *,
    label: Callable[[Vocabulary, int], str] = bar_label,
    sends: bool = True,
) -> list[Bar]:
    """Return bars for the list of next tokens. before, after: the probabilities of all tokens, (vocab_size,).

    says: key of the sentence for one bar, with the values `token`, `before` and `after`. sends: whether a click on a
    bar sends its token.
    """

    def bar(i: int) -> Bar:
        name = t(says, token=quoted(tokenizer, i), before=percent(before[i]), after=percent(after[i]))
        return Bar(label(tokenizer, i), float(before[i]), float(after[i]), name, {"token": i} if sends else {})

    return [bar(i) for i in ids]


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
        ids = np.union1d(np.argpartition(-final, count)[:count], np.argpartition(-raw, count)[:count])
    return ids[np.lexsort((ids, -raw[ids], -final[ids]))][:count]


def best_of_both(before: Tensor, after: Tensor, n: int) -> list[int]:
    """Return the ids of the n - 3 most likely tokens in one prediction and the 3 most likely in another.

    before, after: (vocab_size,).
    """
    counted = zip((before, after), (n - 3, 3), strict=True)
    return list(dict.fromkeys(i for one, k in counted for i in one.topk(min(k, len(one))).indices.tolist()))
