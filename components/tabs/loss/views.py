"""Views for the Loss tab."""

from __future__ import annotations

from typing import Any

import numpy as np

from components import text_views
from components.frame import short_name
from components.i18n import t
from components.labels import listed, percent, quoted
from components.render import Lines, View
from components.state.snapshot import Message, Snapshot
from components.tabs.loss.state import LossState, ScoredText
from components.text_views import token_lines
from components.widgets.sentence import sentence_data
from components.widgets.tokens import shade_value


def headline_sentence(scored: ScoredText) -> str:
    """State the loss, the perplexity and the bits per byte of the whole text."""
    score = scored.result.score
    return t(
        "loss.headline",
        loss=f"{score.loss:.4f}",
        perplexity=f"{score.perplexity:,.2f}",
        bits=f"{score.bits_per_byte:.3f}",
    )


def explanation(scored: ScoredText) -> str:
    """Explain the numbers and how the text was read."""
    result, block_size = scored.result, scored.loaded.model.config.block_size
    n = len(result.ids)
    choices, vocab_size = result.score.perplexity, scored.loaded.model.config.vocab_size
    text = t(
        "loss.says" if choices <= vocab_size else "loss.misled",
        model=short_name(scored.loaded.name),
        choices=f"{choices:,.0f}",
        vocab_size=f"{vocab_size:,}",
    )
    text += t("loss.counted", n=f"{n:,}", bytes=f"{result.score.n_bytes:,}")
    if result.n_windows == 1:
        text += t("loss.fits", limit=f"{block_size:,}")
    else:
        text += t(
            "loss.windows",
            limit=f"{block_size:,}",
            n=f"{result.n_windows:,}",
            stride=f"{result.stride:,}",
            least=f"{max(1, block_size - result.stride):,}",
        )
    return text + (t("loss.repaired") if scored.repaired else "")


def token_sentence(scored: ScoredText, selected: int) -> str:
    """Describe the selected token: its probability, and the most likely tokens in its place."""
    tokenizer, result = scored.loaded.tokenizer, scored.result
    name = quoted(tokenizer, result.ids[selected])
    if selected == 0:
        return t("loss.token.first", token=name)
    loss = result.losses[selected - 1]
    expected = listed(f"{quoted(tokenizer, i)} {percent(p)}" for i, p in loss.top)
    return t(
        "loss.token",
        token=name,
        p=percent(loss.probability),
        rank=f"{loss.rank:,}",
        total=f"{scored.loaded.model.config.vocab_size:,}",
        bits=f"{loss.surprisal:.2f}",
        nats=f"{loss.nats:.2f}",
        expected=expected,
    )


def strip_labels() -> dict[str, str]:
    """Return the labels for the token strip, which is shaded by surprisal."""
    named = text_views.strip_labels(t("strip.empty"))
    return named | {"surprisal": t("loss.surprisal"), "bits": t("loss.bits")}


def strip(s: Snapshot) -> dict[str, Any]:
    """Show the text, shaded by surprisal, with the probability and rank of each token after the first."""
    state, labels = s.state(LossState), strip_labels()
    if state.scored is None:
        return {"lines": Lines(), "doc": "", "selected": -1, "shade": "", "labels": labels}
    result = state.scored.result
    statistics = [(None, None), *((loss.probability, loss.rank) for loss in result.losses)]
    return {
        "lines": token_lines(state.scored.loaded.tokenizer, result.ids, statistics, n_prompt=1),
        "doc": str(state.scored.run),
        "selected": state.selected,
        "shade": shade_value(np.array([0.0, *(loss.surprisal for loss in result.losses)])),
        "labels": labels,
    }


def headline(s: Snapshot) -> dict[str, Any]:
    scored = s.state(LossState).scored
    return {"text": "" if scored is None else headline_sentence(scored)}


def summary(s: Snapshot) -> dict[str, Any]:
    scored = s.state(LossState).scored
    return {"text": "" if scored is None else explanation(scored)}


def token(s: Snapshot) -> dict[str, Any]:
    state = s.state(LossState)
    return {"text": "" if state.scored is None else token_sentence(state.scored, state.selected)}


def status(s: Snapshot) -> dict[str, Any]:
    job = s.state(LossState).job
    progress = s.progress or (None if job is None else job.progress or Message("loss.loading"))
    return sentence_data(progress)


def notice(s: Snapshot) -> dict[str, Any]:
    return sentence_data(s.state(LossState).notice)


VIEWS = (
    View("loss-headline", headline),
    View("loss-says", summary),
    View("loss-strip", strip),
    View("loss-token", token),
    View("loss-status", status),
    View("loss-notice", notice),
)
