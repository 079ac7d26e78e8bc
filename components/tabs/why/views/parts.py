"""The parts' contributions to the logit, the heads' roles, and the selected head's attention."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from components.figures.bars import layer_bars, signed_bars
from components.figures.maps import head_map as heads_figure
from components.figures.style import Figure
from components.i18n import t
from components.labels import decimal, listed, percent, quoted, signed
from components.render import View
from components.state.selection import Selection
from components.state.snapshot import Snapshot
from components.tabs.why.predictions import Prediction, TracedText
from components.tabs.why.state import WhyState
from components.tabs.why.views.tokens import MAX_BARS, short
from components.text_views import head_name
from components.widgets.chart import chart_data
from gpt import Edits
from gpt.analysis.attribution import Attribution
from gpt.analysis.heads import HeadRoles

MAX_PARTS = 12  # parts with their own bar; the rest share one
SMALLEST_REST = 0.005  # a smaller remainder would be written as 0.00
MAX_NAMED_HEADS = 3  # heads named in a sentence


def parts_bars(
    traced: TracedText,
    prediction: Prediction,
    found: Attribution,
    against: int | None,
    by_layer: bool,
) -> dict[str, Any]:
    """Plot each part's contribution to the logit, with the sum in the caption."""
    tokenizer = traced.loaded.tokenizer
    heads, mlp = found.heads.cpu().numpy(), found.mlp.cpu().numpy()
    biases = found.attn_bias.sum().item() + found.norm_bias
    outside = {"embedding": found.embedding, "position": found.position, "biases": biases}
    rest = "rounding" if (traced.edits or Edits()) == Edits() else "edits"
    if abs(found.rest) >= SMALLEST_REST:
        outside[rest] = found.rest
    if by_layer:
        figure = layer_bars(
            heads.sum(axis=1),
            mlp,
            [(t(f"why.part.{name}.short"), value) for name, value in outside.items()],
            attention_name=t("why.parts.attention"),
            feed_forward_name=t("why.parts.mlp"),
            layer_title=t("attention.layer"),
            value_title=t("why.parts.logit"),
        )
    else:
        ends = [(t(f"why.part.{name}"), value) for name, value in outside.items()]
        figure = _sorted_parts(ends, heads, mlp)
    key = "why.parts.sum" if against is None else "why.parts.difference"
    caption = t(
        f"{key}.rest" if rest in outside else key,
        part=t(f"why.part.{rest}"),
        rest=signed(found.rest),
        embedding=signed(found.embedding),
        position=signed(found.position),
        heads=signed(heads.sum()),
        mlp=signed(mlp.sum()),
        biases=signed(biases),
        total=signed(found.total),
        token=quoted(tokenizer, prediction.token),
        against="" if against is None else quoted(tokenizer, against),
    )
    note = t("why.parts.frozen", scale=f"{found.scale:.2f}")
    cap = traced.loaded.model.config.logit_softcap
    if cap is not None:
        note += t("why.parts.capped", cap=f"{cap:g}")
    return chart_data(figure, caption, note)


def _sorted_parts(ends: list[tuple[str, float]], heads: np.ndarray, mlp: np.ndarray) -> Figure:
    """Plot the largest parts individually and the rest combined, so that the bars add up."""
    named: list[tuple[str, float, tuple[int, int] | None]] = [(name, value, None) for name, value in ends]
    named += [(t("why.part.mlp", layer=i), float(value), None) for i, value in enumerate(mlp)]
    for (layer, head), value in np.ndenumerate(heads):
        name = t("why.part.head", layer=layer, head=head)
        named.append((name, float(value), (layer, head)))
    named.sort(key=lambda part: -abs(part[1]))
    shown, others = named[:MAX_PARTS], named[MAX_PARTS:]
    if others:
        rest = t("why.part.rest", n=len(others))
        shown.append((rest, sum(value for _, value, _ in others), None))
    names, values, places = zip(*shown, strict=True)
    return signed_bars(names, np.array(values), [signed(value) for value in values], heads=places)


def heads_map(found: Attribution, selection: Selection) -> dict[str, Any]:
    """Plot a map of each head's contribution."""
    heads = found.heads.cpu().numpy()
    order = np.argsort(-heads, axis=None, kind="stable")
    ends = (_heads_named(heads, places, signed) for places in (order[:1], order[-1:]))
    caption = t("why.heads.says", **dict(zip(("most", "least"), ends, strict=True)))
    return _map(heads, True, selection, t("why.parts.logit"), caption)


def roles_map(roles: HeadRoles, n: int, role: str, selection: Selection) -> dict[str, Any]:
    """Plot a map of each head's score for one role, or nothing if the role cannot be measured on the text."""
    scores = getattr(roles, role).cpu().numpy()
    if np.isnan(scores).all():
        return chart_data(None, "")
    order = np.argsort(-scores, axis=None, kind="stable")[:MAX_NAMED_HEADS]
    caption = t("why.roles.says", most=_heads_named(scores, order, decimal), n=n)
    return _map(scores, False, selection, t("why.roles.scale"), caption)


def role_sentence(roles: HeadRoles, role: str) -> str:
    """Explain how the role is measured, or why it cannot be."""
    missing = np.isnan(getattr(roles, role).cpu().numpy()).all()
    return t("why.roles.none" if missing else f"why.role.{role}.is")


def head_bars(traced: TracedText, prediction: Prediction, selection: Selection) -> dict[str, Any]:
    """Plot the selected head's attention from the position, or the layer's average if no head is selected."""
    tokenizer, ids = traced.loaded.tokenizer, traced.ids
    weights = (
        traced.trace.layers[selection.layer].attn_weights[0, :, prediction.position - traced.first].float()
    )  # (nh, S)
    row = (
        (weights.mean(dim=0) if selection.head is None else weights[selection.head])[: prediction.position + 1]
        .cpu()
        .numpy()
    )
    most = np.argsort(-row, kind="stable")[:MAX_BARS].tolist()
    shares = [percent(float(row[i])) for i in most]
    figure = signed_bars([f"{short(tokenizer, ids[i])} {i}" for i in most], row[most], shares)
    caption = t(
        "attention.says",
        layer=selection.layer,
        head=head_name(selection.head),
        token=quoted(tokenizer, ids[prediction.position]),
        targets=listed(f"{quoted(tokenizer, ids[i])} ({percent(float(row[i]))})" for i in most[:2]),
    )
    return chart_data(figure, caption)


def _map(values: np.ndarray, diverging: bool, selection: Selection, title: str, caption: str) -> dict[str, Any]:
    figure = heads_figure(
        values,
        diverging=diverging,
        selected=(selection.layer, selection.head),
        layer_title=t("attention.layer"),
        head_title=t("attention.head"),
        value_title=title,
    )
    return chart_data(figure, caption)


def _heads_named(values: np.ndarray, places: np.ndarray, written: Callable[[float], str]) -> str:
    """Name heads with their values for a sentence."""
    found = [(*np.unravel_index(place, values.shape), values.flat[place]) for place in places]
    return listed(f"{t('why.part.head', layer=layer, head=head)} ({written(value)})" for layer, head, value in found)


def parts(s: Snapshot) -> dict[str, Any]:
    state, shown = s.state(WhyState), s.state(WhyState).shown
    if shown is None or shown.attribution is None:
        return chart_data(None, "")
    by_layer = state.order == "layer"
    return parts_bars(shown.traced, shown.prediction, shown.attribution, shown.against, by_layer)


def heads(s: Snapshot) -> dict[str, Any]:
    shown = s.state(WhyState).shown
    if shown is None or shown.attribution is None:
        return chart_data(None, "")
    return heads_map(shown.attribution, fitting(s))


def role_says(s: Snapshot) -> dict[str, Any]:
    state = s.state(WhyState)
    measured = state.measured_roles
    return {"text": "" if measured is None else role_sentence(measured.roles, state.role)}


def roles(s: Snapshot) -> dict[str, Any]:
    state = s.state(WhyState)
    measured = state.measured_roles
    if measured is None:
        return chart_data(None, "")
    return roles_map(measured.roles, measured.n_tokens, state.role, fitting(s))


def head(s: Snapshot) -> dict[str, Any]:
    shown = s.state(WhyState).shown
    if shown is None:
        return chart_data(None, "")
    return head_bars(shown.traced, shown.prediction, fitting(s))


def fitting(s: Snapshot) -> Selection:
    """Return the selection, clamped to the layers and heads of the shown text's model."""
    shown = s.state(WhyState).shown
    return s.selection if shown is None else s.selection.clamped_to(shown.traced.model.config, position=0)


VIEWS = (
    View("why-parts", parts),
    View("why-heads", heads),
    View("why-role-says", role_says),
    View("why-roles", roles),
    View("why-head", head),
)
