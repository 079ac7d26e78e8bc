"""Views of the edits and their effect on the predictions."""

from __future__ import annotations

from typing import Any

import numpy as np

from components.figures.bars import divergence_bars
from components.i18n import t
from components.labels import percent, placed, quoted, token_text, visible
from components.render import View
from components.state.snapshot import Snapshot
from components.tabs.change.effect import Effect
from components.tabs.change.experiments import summary
from components.tabs.change.state import ChangeState, selected_position
from components.widgets.chart import chart_data
from components.widgets.predictions import Bar, predictions_data
from components.widgets.sentence import sentence_data
from components.widgets.switches import LABELS, switches_data
from gpt import Edits
from gpt.documents.edit_text import format_edits
from gpt.tokenizer import Vocabulary

MAX_BARS = 8
WINDOW = 128  # positions in the chart


def lead(s: Snapshot) -> dict[str, Any]:
    """Summarise the current edits."""
    if s.text is None:
        return {"text": t("error.no_text")}
    caption = summary(s.edits, s.text.config)
    return {"text": t("change.now", changes=caption) if caption else t("change.nothing")}


def notice(s: Snapshot) -> dict[str, Any]:
    """Explain why switches were rejected, or which edits the model does not support."""
    state = s.state(ChangeState)
    if state.notice is not None:
        return sentence_data(state.notice)
    if state.dropped is None:
        return {"text": ""}
    changes = summary(state.dropped.edits, state.dropped.config)
    return {"text": t("change.dropped", changes=changes)}


def status(s: Snapshot) -> dict[str, Any]:
    """Show the progress, or describe the chosen experiment."""
    state = s.state(ChangeState)
    progress = s.progress if state.writing is not None else None
    if state.costing is not None:
        progress = state.costing.progress
    if progress is not None:
        return sentence_data(progress)
    if s.generating:
        return {"text": t("change.waits")}
    return {"text": t(f"change.try.{state.experiment}.says") if state.experiment else ""}


def switches(s: Snapshot) -> dict[str, Any]:
    """Show a switch for each head and branch, set according to the edits."""
    labels = {key: t(f"change.switches.{key}") for key in LABELS}
    if s.text is None:
        return switches_data(0, 0, labels=labels)
    state, config, edits = s.state(ChangeState), s.text.config, s.edits.fitting(s.text.config)
    costs = state.costs if state.costs is not None and state.costs.text is state.text else None
    return switches_data(
        config.n_layer,
        config.n_head,
        format_edits(Edits(edits.head_scale, edits.attn_scale, edits.mlp_scale)),
        labels=labels,
        answered=state.n_switched,
        costs=None if costs is None else costs.bits,
        measured=0 if costs is None else costs.n_tokens,
        selected=None if s.selection.head is None else (s.selection.layer, s.selection.head),
    )


def bars(s: Snapshot) -> dict[str, Any]:
    """Plot the most probable next tokens at the selected position, before and after the edits, on a shared axis."""
    effect, title = s.state(ChangeState).effect, t("change.bars.question")
    if effect is None or s.text is None:
        return predictions_data(title, "", [])
    position = selected_position(s, effect.text)
    tokenizer, ids = effect.text.loaded.tokenizer, effect.text.ids
    before, after = probabilities(s, effect, position)
    order = np.argsort(-np.maximum(before, after), kind="stable")[:MAX_BARS].tolist()
    follower = ids[position + 1] if position + 1 < len(ids) else None
    if follower is not None and follower not in order:
        order[-1] = follower
    order.sort(key=lambda i: -after[i])
    listed = [
        Bar(visible(token_text(tokenizer, i)), before[i], after[i], _bar_name(tokenizer, i, before, after), {})
        for i in order
    ]
    where = t("change.bars.after_token", token=quoted(tokenizer, ids[position]))
    chosen = -1 if follower is None else order.index(follower)
    return predictions_data(title, where, listed, chosen=chosen)


def probabilities(s: Snapshot, effect: Effect, position: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the next-token probabilities of the unedited and the edited model after a position, (vocab_size,) each."""
    ids = effect.text.ids[: position + 1]
    before, after = (s.stages(logits, ids).final.numpy() for logits in effect.logits(position))
    return before, after


def _bar_name(tokenizer: Vocabulary, token_id: int, before: np.ndarray, after: np.ndarray) -> str:
    return f"{quoted(tokenizer, token_id)}: {percent(before[token_id])} → {percent(after[token_id])}"


def next_token_change(s: Snapshot) -> dict[str, Any]:
    """Name the token whose probability changed the most."""
    effect = s.state(ChangeState).effect
    if effect is None or s.text is None:
        return {"text": ""}
    position = selected_position(s, effect.text)
    tokenizer = effect.text.loaded.tokenizer
    before, after = probabilities(s, effect, position)
    token = quoted(tokenizer, effect.text.ids[position])
    changes = summary(effect.edits, effect.text.config)
    best, now = int(before.argmax()), int(after.argmax())
    if not changes:
        best_name = quoted(tokenizer, best)
        return {"text": t("change.bars.same", token=token, best=best_name, p=percent(before[best]))}
    most = int(np.abs(after - before).argmax())
    caption = t(
        "change.bars.says",
        changes=changes,
        token=token,
        most=quoted(tokenizer, most),
        before=percent(before[most]),
        after=percent(after[most]),
        bits=_bits(effect.bits[position]),
    )
    if best != now:
        caption += t("change.bars.best", old=quoted(tokenizer, best), new=quoted(tokenizer, now))
    return {"text": caption}


def divergence(s: Snapshot) -> dict[str, Any]:
    """Plot the divergence of the predictions at each position."""
    state = s.state(ChangeState)
    if state.effect is None or s.text is None:
        return chart_data(None, "")
    return divergence_chart(state.effect, selected_position(s, state.effect.text), _note(state))


def divergence_chart(effect: Effect, position: int, note: str = "") -> dict[str, Any]:
    """Plot the divergence; for a long text, only in a window around the selected position."""
    tokenizer, n = effect.text.loaded.tokenizer, effect.text.n_read
    if not summary(effect.edits, effect.text.config):
        return chart_data(None, t("change.divergence.nothing"))
    first, end = window(n, position)
    figure = divergence_bars(
        {"": effect.bits[first:end]},
        [token_text(tokenizer, i) for i in effect.text.ids[first:end]],
        selected=position - first,
        first=first,
        bits_title=t("change.bits"),
    )
    if effect.bits.max() <= 0:
        return chart_data(figure, t("change.divergence.none"), note)
    most = int(effect.bits.argmax())
    caption = t(
        "change.divergence.says",
        mean=_bits(effect.bits.mean()),
        most=_bits(effect.bits[most]),
        token=placed(quoted(tokenizer, effect.text.ids[most]), most),
    )
    if not np.isnan(effect.before):
        caption += t("change.divergence.cost", before=f"{effect.before:.2f}", after=f"{effect.after:.2f}")
    if first > 0 or end < n:
        caption += t("change.window", start=first, end=end - 1, n=f"{n:,}")
    return chart_data(figure, caption, note or t("change.divergence.note"))


def window(n: int, position: int) -> tuple[int, int]:
    """Return the range of positions to plot, (start, end): up to WINDOW positions around the selected one."""
    end = min(n, max(position + WINDOW // 2, WINDOW))
    return max(0, end - WINDOW), end


def _note(state: ChangeState) -> str:
    """Return a note that the charts still show the previous text while new texts are generated."""
    return t("change.before") if state.writing is not None else ""


def _bits(value: float) -> str:
    """Format a number of bits without rounding a nonzero value to zero."""
    value = float(value)
    if 0 < value < 0.001:
        return "< 0.001"
    return f"{value:.1f}" if value >= 9.95 else f"{value:.2f}" if value >= 0.0995 else f"{value:.3f}"


VIEWS = (
    View("change-lead", lead),
    View("change-notice", notice),
    View("change-status", status),
    View("change-switches", switches),
    View("change-bars", bars),
    View("change-says", next_token_change),
    View("change-bars-note", lambda s: {"text": _note(s.state(ChangeState))}),
    View("change-divergence", divergence),
)
