"""The first screen: the text of the box, what comes next and why, and the attention of the selected head."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from components.causes import causes_sentence
from components.i18n import t
from components.labels import percent, quoted, token_text, visible
from components.next_tokens import best
from components.render import Lines, View
from components.state.selection import NEWEST
from components.state.snapshot import Snapshot
from components.state.typed_text import offered_text, shown_tokens
from components.tabs.playground.state import ReasonState
from components.text_views import attention_heatmap, head_name, place_after
from components.widgets.chart import chart_data
from components.widgets.composer import box_line, composer_data
from components.widgets.predictions import Bar, predictions_data
from gpt import Stages, distribution

MAX_BARS = 20
MAX_ARCS = 8
N_SPOKEN = 3  # tokens
MIN_ARC_WEIGHT = 0.02  # of the attention of the selected position


def box(s: Snapshot) -> dict[str, Any]:
    """The text of the box, the token that may come next, and what the selected position attends to."""
    placeholder = "chat.placeholder" if s.chat else "prompt.placeholder"
    labels = {"name": t("prompt.text", s.language), "placeholder": t(placeholder, s.language)}
    lines, edited = Lines(), 0.0 if s.typed is None else s.typed.edited
    if s.text is None:
        return composer_data(lines, labels, unwritten=s.unwritten, generating=s.generating, edited=edited)
    document, statistics = s.text.document, s.token_statistics.of(s.text.document)
    tokenizer, ids = s.text.tokenizer, s.text.ids
    pieces, special = shown_tokens(tokenizer, ids), tokenizer.special_ids
    for position, (token_id, piece) in enumerate(zip(ids, pieces, strict=True)):
        measured = statistics[position] if document.origin(position).kind == "sampled" else None
        lines.append(box_line(piece, None if measured is None else measured.probability, control=token_id in special))
    typed = s.typed and s.typed.at(s.text)
    stages = s.cached(stages_of)
    is_last = s.position == len(ids) - 1
    ghost = "" if stages is None or not is_last else offered_text(tokenizer, ids, int(stages.final.argmax()))
    return composer_data(
        lines,
        labels,
        unwritten=s.unwritten,
        selected=s.text.framed(s.selection),
        ghost=ghost,
        arcs=s.cached(attended),
        generating=s.generating,
        typed=typed.text if typed is not None and typed.text != "".join(pieces) else None,
        n_after=0 if typed is None else typed.n_after,
        edited=edited,
    )


def box_inputs(s: Snapshot) -> Hashable:
    return s.text, s.typed, s.chat, s.selection, s.settings.sampling(), s.generating, s.language


def stages_of(s: Snapshot) -> Stages | None:
    """The distribution after the selected position; None before the model has read a token."""
    if s.text is None or s.text.n_read == 0:
        return None
    position = s.text.at(s.selection)
    previous = s.text.ids[: position + 1]
    return distribution(s.text.document.logits(position), s.settings.sampling(), previous_ids=previous)


def attended(s: Snapshot) -> list[tuple[int, float]]:
    """The positions that the selected head attends to most at the selected position, with their weights."""
    if s.text is None or s.text.n_read == 0:
        return []
    position = s.text.at(s.selection)
    row = s.text.document.attn_weights(s.selection.layer, s.selection.head)[position, : position + 1]
    weights = row.float().cpu().numpy()
    most = np.argsort(-weights, kind="stable")[:MAX_ARCS]
    return [(int(i), float(weights[i])) for i in most if weights[i] >= MIN_ARC_WEIGHT]


def bars(s: Snapshot) -> dict[str, Any]:
    """The most probable tokens after the selected one, before and after the sampling settings."""
    stages, chosen = s.cached(stages_of), _chosen(s)
    title = t("bars.question" if chosen is None else "bars.question.chosen", s.language)
    if s.text is None or stages is None:
        return predictions_data(title, "", [])
    document, tokenizer, position = s.text.document, s.text.tokenizer, s.text.at(s.selection)
    raw, final = stages.raw.cpu().numpy(), stages.final.cpu().numpy()
    ids = best(final, raw, MAX_BARS)
    if chosen is not None and chosen not in ids:
        ids[-1] = chosen
    listed = []
    for i in ids.tolist():
        says = t("bars.row", s.language, token=quoted(tokenizer, i), before=percent(raw[i]), after=percent(final[i]))
        listed.append(Bar(visible(token_text(tokenizer, i)), float(raw[i]), float(final[i]), says, {"token": i}))
    text = t("bars.position", s.language, token=quoted(tokenizer, document.ids[position]))
    removed = int((~stages.kept).sum())
    if chosen is not None:
        text += t("bars.says.chosen", s.language, chosen=quoted(tokenizer, chosen), p=percent(final[chosen]))
    if removed:
        text += t("bars.says.removed", s.language, removed=f"{removed:,}", total=f"{len(raw):,}")
    marked = -1 if chosen is None else int(np.flatnonzero(ids == chosen)[0])
    return predictions_data(title, text, listed, place_after(document, position), chosen=marked)


def why(s: Snapshot) -> dict[str, Any]:
    """What the prediction depends on; until that is measured, what the selected head attends to."""
    if s.text is None or not (arcs := s.cached(attended)):
        return {"text": ""}
    if measured := s.cached(measured_reason):
        return {"text": measured}
    tokenizer = s.text.tokenizer
    targets = t("list.and", s.language).join(f"{quoted(tokenizer, s.text.ids[i])} ({percent(w)})" for i, w in arcs[:2])
    head = head_name(s.selection.head, s.language)
    return {"text": t("reason.attention", s.language, layer=s.selection.layer, head=head, targets=targets)}


def measured_reason(s: Snapshot) -> str:
    """The token and the head that the prediction depends on most; "" before it is measured."""
    reason, stages = s.state(ReasonState).reason, s.cached(stages_of)
    if s.text is None or stages is None or reason is None or not reason.belongs_to(s.text, s.text.at(s.selection)):
        return ""
    sentence = causes_sentence(reason.causes, reason.token, s.text.ids, s.text.tokenizer, s.language)
    is_raw = percent(float(stages.final[reason.token])) != percent(reason.causes.probability)
    return sentence + (t("reason.raw", s.language) if is_raw else "")


def spoken(s: Snapshot) -> dict[str, Any]:
    """What screen readers say once a text that a person has changed or selected rests."""
    stages, reason = s.cached(stages_of), s.cached(measured_reason)
    is_first = s.last_action is None and s.throughput is None and s.selection.position == NEWEST
    if s.text is None or stages is None or not reason or is_first or s.generating or s.unwritten is not None:
        return {"text": ""}
    tokenizer = s.text.tokenizer
    likeliest = [
        (quoted(tokenizer, int(i)), percent(float(stages.final[i]))) for i in stages.final.topk(N_SPOKEN).indices
    ]
    token = quoted(tokenizer, s.text.ids[s.text.at(s.selection)])
    listed = ", ".join(f"{name} {p}" for name, p in likeliest)
    return {"text": t("bars.spoken", s.language, token=token, likeliest=listed) + reason}


def heatmap(s: Snapshot) -> dict[str, Any]:
    """The attention weights of the selected head."""
    if s.text is None or s.text.n_read == 0:
        return chart_data(None, "")
    return attention_heatmap(s.text, s.selection, s.language)


def _chosen(s: Snapshot) -> int | None:
    """The token that follows the selected one in the text."""
    if s.text is None or s.text.n_read == 0:
        return None
    after = s.text.at(s.selection) + 1
    return s.text.ids[after] if after < len(s.text.ids) else None


def reason_inputs(s: Snapshot) -> tuple[Any, ...]:
    return s.text, s.selection, s.state(ReasonState), s.settings.sampling(), s.language


def spoken_inputs(s: Snapshot) -> tuple[Any, ...]:
    return *reason_inputs(s), s.unwritten, s.generating, s.last_action, s.throughput is None


VIEWS = (
    View("box", box_inputs, box),
    View("bars", lambda s: (s.text, s.selection.position, s.settings.sampling(), s.language), bars),
    View("reason", reason_inputs, why),
    View("spoken", spoken_inputs, spoken),
    View("heatmap", lambda s: (s.text, s.selection, s.language), heatmap),
)
