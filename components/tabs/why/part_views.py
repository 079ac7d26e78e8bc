"""What the Why tab shows of the parts of the model: values for its widgets, no components."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from plotly.graph_objects import Figure

from components.i18n import Language, t
from components.labels import decimal, percent, quoted, signed
from components.state.selection import Selection
from components.tabs.why.figures import part_bars
from components.tabs.why.part_figures import head_map as heads_figure
from components.tabs.why.part_figures import layer_bars
from components.tabs.why.reading import Prediction, Reading
from components.tabs.why.views import BARS, short
from components.text_views import head_name
from components.widgets.chart import chart_value
from gpt.analysis.attribution import Attribution
from gpt.analysis.heads import HeadRoles

PARTS = 12  # parts of the model that are named; the others are one bar
NAMED = 3  # heads in a sentence


def parts(
    reading: Reading, asked: Prediction, found: Attribution, against: int | None, by_layer: bool, language: Language
) -> str:
    """What each part adds to the logit, with the sum in words."""
    tokenizer = reading.loaded.tokenizer
    heads, mlp = found.heads.cpu().numpy(), found.mlp.cpu().numpy()
    biases = found.attn_bias.sum().item() + found.norm_bias
    outside = {"embedding": found.embedding, "position": found.position, "biases": biases}
    if by_layer:
        figure = layer_bars(
            heads.sum(axis=1),
            mlp,
            [(t(f"why.part.{name}.short", language), value) for name, value in outside.items()],
            attention_name=t("why.parts.attention", language),
            feed_forward_name=t("why.parts.mlp", language),
            layer_title=t("attention.layer", language),
            value_title=t("why.parts.logit", language),
        )
    else:
        ends = [(t(f"why.part.{name}", language), value) for name, value in outside.items()]
        figure = _sorted_parts(ends, heads, mlp, language)
    said = t(
        "why.parts.sum" if against is None else "why.parts.difference",
        language,
        embedding=signed(found.embedding),
        position=signed(found.position),
        heads=signed(heads.sum()),
        mlp=signed(mlp.sum()),
        biases=signed(biases),
        total=signed(found.total),
        token=quoted(tokenizer, asked.token),
        against="" if against is None else quoted(tokenizer, against),
    )
    return chart_value(figure, said, t("why.parts.frozen", language, scale=f"{found.scale:.2f}"))


def _sorted_parts(ends: list[tuple[str, float]], heads: np.ndarray, mlp: np.ndarray, language: Language) -> Figure:
    """The largest parts, and all others as one, so that the bars add up."""
    named: list[tuple[str, float, tuple[int, int] | None]] = [(name, value, None) for name, value in ends]
    named += [(t("why.part.mlp", language, layer=i), float(value), None) for i, value in enumerate(mlp)]
    for (layer, head), value in np.ndenumerate(heads):
        name = t("why.part.head", language, layer=layer, head=head)
        named.append((name, float(value), (layer, head)))
    named.sort(key=lambda part: -abs(part[1]))
    shown, others = named[:PARTS], named[PARTS:]
    if others:
        rest = t("why.part.rest", language, n=len(others))
        shown.append((rest, sum(value for _, value, _ in others), None))
    names, values, places = zip(*shown, strict=True)
    return part_bars(names, np.array(values), [signed(value) for value in values], heads=places)


def head_map(found: Attribution, look: Selection, language: Language) -> str:
    """What each head adds."""
    heads = found.heads.cpu().numpy()
    order = np.argsort(-heads, axis=None, kind="stable")
    ends = (_heads_named(heads, places, language, signed) for places in (order[:1], order[-1:]))
    said = t("why.heads.says", language, **dict(zip(("most", "least"), ends, strict=True)))
    return _map(heads, True, look, t("why.parts.logit", language), said, language)


def roles_map(roles: HeadRoles, n: int, role: str, look: Selection, language: Language) -> str:
    """How much each head plays one role; a sentence alone where the text has nothing to measure it at."""
    scores = getattr(roles, role).cpu().numpy()
    if np.isnan(scores).all():
        return ""
    order = np.argsort(-scores, axis=None, kind="stable")[:NAMED]
    said = t("why.roles.says", language, most=_heads_named(scores, order, language, decimal), n=n)
    return _map(scores, False, look, t("why.roles.scale", language), said, language)


def role_says(roles: HeadRoles, role: str, language: Language) -> str:
    """How the role is measured, or that it cannot be."""
    missing = np.isnan(getattr(roles, role).cpu().numpy()).all()
    return t("why.roles.none" if missing else f"why.role.{role}.is", language)


def head_bars(reading: Reading, asked: Prediction, look: Selection, language: Language) -> str:
    """Where the selected head looks from the position; the average of the layer's heads where none is selected."""
    tokenizer, ids = reading.loaded.tokenizer, reading.ids
    weights = reading.trace.layers[look.layer].attn_weights[0, :, asked.position - reading.first].float()  # (nh, S)
    row = (weights.mean(dim=0) if look.head is None else weights[look.head])[: asked.position + 1].cpu().numpy()
    most = np.argsort(-row, kind="stable")[:BARS].tolist()
    shares = [percent(float(row[i])) for i in most]
    figure = part_bars([f"{short(tokenizer, ids[i])} {i}" for i in most], row[most], shares)
    said = t(
        "attention.says",
        language,
        layer=look.layer,
        head=head_name(look.head, language),
        token=quoted(tokenizer, ids[asked.position]),
        targets=", ".join(f"{quoted(tokenizer, ids[i])} ({percent(float(row[i]))})" for i in most[:2]),
    )
    return chart_value(figure, said)


def _map(values: np.ndarray, diverging: bool, look: Selection, title: str, said: str, language: Language) -> str:
    figure = heads_figure(
        values,
        diverging=diverging,
        selected=(look.layer, look.head),
        layer_title=t("attention.layer", language),
        head_title=t("attention.head", language),
        value_title=title,
    )
    return chart_value(figure, said)


def _heads_named(values: np.ndarray, places: np.ndarray, language: Language, written: Callable[[float], str]) -> str:
    """Heads with their numbers, for a sentence."""
    found = [(*np.unravel_index(place, values.shape), values.flat[place]) for place in places]
    return ", ".join(
        f"{t('why.part.head', language, layer=layer, head=head)} ({written(value)})" for layer, head, value in found
    )
