"""The Causes tab in Why?: the answer, and the evidence for it from tokens, layers, parts and heads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from components.causes import Falls
from components.figures.bars import layer_bars, signed_bars
from components.figures.maps import head_map
from components.figures.style import Figure
from components.i18n import t
from components.kit import (
    caption,
    card,
    choice,
    column,
    columns,
    fold,
    picture,
    question,
    row,
    says,
    section,
    title_row,
)
from components.labels import decimal, decimals, layer_head_name, listed, percent, quoted, shortened, signed
from components.parts import Part, select
from components.state.session import Session
from components.state.text import Selection
from components.tabs.why import answer
from components.tabs.why.answer import falls, longest_gradient
from components.tabs.why.explained import (
    MAX_NAME_CHARS,
    Chosen,
    Explained,
    TracedText,
    about,
    against,
    choose_against,
    choose_position,
    choose_token,
    explained,
    lead,
    others,
    question_of,
    short,
    tab,
    token,
    tokens,
    traced,
)
from components.tabs.why.lens import lens_sections
from components.text_views import attention_sentence, text_strip, token_lines
from components.widgets.chart import Drawing
from components.widgets.tokens import shade_value
from components.widgets.widget import widget
from gpt import Edits, GPTConfig
from gpt.analysis.attribution import Attribution, direct_logit_attribution
from gpt.analysis.heads import HeadRoles, head_roles, repeated_random_ids
from gpt.analysis.saliency import input_x_gradient
from gpt.analysis.tracing import trace_text
from gpt.tokenizer import start_ids

_RIBBONS = """<figure class="gb-ribbons" hidden>
<figcaption><p aria-live="polite"></p><button type="button" hidden></button></figcaption>
<svg role="group"></svg>
</figure>"""


def ribbons(name: str, **wired: Any) -> Part:
    """Return the flow; it is hidden if there are no columns.

    It is a single Tab stop; arrow keys move within it, and Enter and Space click.

    `.select` has the payload {"key": key} to switch a part, or {"all": true} to switch everything on. View data: `Flow`
    (see `ribbons.js`).
    """
    empty = {"columns": [], "is_pending": False}
    return widget("ribbons", name, template=_RIBBONS, empty=empty, **wired)


__all__ = ["tab"]

MAX_ROLE_BYTES = 2**26
MAX_BARS = 10  # tokens in the text that get a bar
MAX_PARTS = 12  # parts with their own bar; the rest share one
SMALLEST_REST = 0.005  # a smaller remainder would be written as 0.00
MAX_NAMED_HEADS = 3  # heads named in a sentence


# The text, shaded by how much the prediction depends on each token


@tab.computed
@about
def gradient(s: Any, e: Explained) -> np.ndarray | None:
    """Return each token's influence in nats, input x gradient, (N,), or None if the text is too long."""
    ids = e.prediction.previous
    if len(ids) > longest_gradient(e.model.config):
        return None
    return input_x_gradient(e.model, ids, e.prediction.token).float().cpu().numpy()


def sizes(s: Any) -> np.ndarray | None:
    """Return each token's influence by the chosen method, or None if there is none."""
    found: np.ndarray | None = s[gradient] if s[Chosen].method == "gradient" else fall_sizes(s.cached(falls))
    return found


def fall_sizes(falls: Falls) -> np.ndarray:
    """Return how far the probability falls without each token's word, (N,)."""
    sizes = np.zeros(1 + max((fall.place[-1] for fall in falls.all_words), default=0))
    for fall in falls.all_words:
        sizes[[*fall.place]] = max(0.0, falls.probability - fall.probability)
    return sizes


def shade(sizes: np.ndarray | None) -> str:
    """Encode each token's share of the sum of absolute influences, (N,)."""
    if sizes is None:
        return shade_value(np.zeros(1))
    return shade_value(np.abs(sizes) / max(np.abs(sizes).sum(), 1e-12))


def strip(s: Any) -> dict[str, Any]:
    e = s[explained]
    ids = e.text.ids
    return {
        "lines": token_lines(e.tokenizer, ids, [(None, None)] * len(ids), e.text.document.n_prompt),
        "doc": str(e.text.version[0]),
        "selected": e.prediction.position,
        "shade": shade(sizes(s)),
    }


@about
def method_says(s: Any, e: Explained) -> str:
    return t(f"why.method.{s[Chosen].method}.says", token=e.token_name)


@about
def influence(s: Any, e: Explained) -> Drawing:
    if s[Chosen].method == "hidden":
        found = s.cached(falls)
        return fall_bars(e, found) if found.all_words else None
    values = s[gradient]
    return None if values is None else influence_bars(e, values)


def fall_bars(e: Explained, falls: Falls) -> Drawing:
    ids = e.prediction.previous
    order = sorted(falls.all_words, key=lambda fall: -abs(fall.probability - falls.probability))[:MAX_BARS]
    order.sort(key=lambda fall: fall.probability)
    names = [shortened(e.tokenizer.decode([ids[i] for i in fall.place]).strip(" "), MAX_NAME_CHARS) for fall in order]
    values = np.array([fall.probability for fall in order])
    sentence = t("why.hidden.says", token=e.token_name, p=percent(falls.probability))
    if falls.all_words[0].place[0] > 0:
        sentence += t("why.influence.window", n=sum(len(fall.place) for fall in falls.all_words))
    return signed_bars(names, values, [percent(value) for value in values]), sentence


def influence_bars(e: Explained, values: np.ndarray) -> Drawing:
    """Plot the tokens with the largest gradient influence, positive or negative, largest first."""
    order, digits = np.argsort(-np.abs(values), kind="stable")[:MAX_BARS], decimals(values)
    figure = signed_bars(
        [f"{short(e.tokenizer, e.ids[i])} {i}" for i in order],
        values[order],
        [signed(values[i], digits) for i in order],
    )

    def name(i: int) -> str:
        value = t("why.nats", value=signed(values[i], digits))
        return f"{quoted(e.tokenizer, e.ids[i])} ({value})"

    upward, downward = int(values.argmax()), int(values.argmin())
    sentence = ""
    if round(float(values[upward]), digits) > 0:
        sentence += t("why.influence.says", token=e.token_name, most=name(upward))
    if round(float(values[downward]), digits) < 0:
        sentence += t("why.influence.against", token=e.token_name, least=name(downward))
    return figure, sentence


@about
def trouble(s: Any, e: Explained) -> str:
    if s[Chosen].method == "hidden":
        return "" if s.cached(falls).all_words else t("why.influence.one")
    limit = longest_gradient(e.model.config)
    is_long = s[gradient] is None
    return t("why.influence.long", limit=f"{limit:,}", n=f"{e.prediction.position + 1:,}") if is_long else ""


def text_section() -> Part:
    select_token = lambda session, sent: choose_position(session, sent.get("index"))  # noqa: E731
    return section(
        title_row(question("why.text.question"), choice(Chosen.method, "why.method")),
        says("why-method-says", method_says, kind="caption"),
        says("why-trouble", trouble, kind="notice"),
        columns(
            column(
                text_strip("why-strip", empty="page", shade="influence", on=select_token, draw=strip),
                grow=3,
                min_width=320,
            ),
            column(picture("why-influence", influence), grow=2),
        ),
    )


# The parts of the logit


@tab.computed
@about
def attribution(s: Any, e: Explained) -> Attribution:
    """Split the token's logit, or its difference from another token's, into the contributions of the parts."""
    other = question_of(s).against
    return direct_logit_attribution(e.model, e.trace, e.column, e.prediction.token, against=other, edits=e.edits)


@about
def parts_bars(s: Any, e: Explained) -> Drawing:
    found: Attribution = s[attribution]
    other = question_of(s).against
    heads, mlp = found.heads.cpu().numpy(), found.mlp.cpu().numpy()
    biases = found.attn_bias.sum().item() + found.norm_bias
    outside = {"embedding": found.embedding, "position": found.position, "biases": biases}
    rest = "rounding" if (e.edits or Edits()) == Edits() else "edits"
    if abs(found.rest) >= SMALLEST_REST:
        outside[rest] = found.rest
    if s[Chosen].order == "layer":
        figure = layer_bars(
            {t("why.parts.attention"): heads.sum(axis=1), t("why.parts.mlp"): mlp},
            [(t(f"why.part.{name}.short"), value) for name, value in outside.items()],
        )
    else:
        ends = [(t(f"why.part.{name}"), value) for name, value in outside.items()]
        figure = _sorted_parts(ends, heads, mlp)
    key = "why.parts.sum" if other is None else "why.parts.difference"
    sentence = t(
        f"{key}.rest" if rest in outside else key,
        part=t(f"why.part.{rest}"),
        rest=signed(found.rest),
        embedding=signed(found.embedding),
        position=signed(found.position),
        heads=signed(heads.sum()),
        mlp=signed(mlp.sum()),
        biases=signed(biases),
        total=signed(found.total),
        token=e.token_name,
        against="" if other is None else quoted(e.tokenizer, other),
    )
    note = t("why.parts.frozen", scale=f"{found.scale:.2f}")
    cap = e.model.config.logit_softcap
    if cap is not None:
        note += t("why.parts.capped", cap=f"{cap:g}")
    return figure, sentence, note


def _sorted_parts(ends: list[tuple[str, float]], heads: np.ndarray, mlp: np.ndarray) -> Figure:
    """Plot the largest parts individually and the rest combined, so that the bars add up."""
    named: list[tuple[str, float, tuple[int, int] | None]] = [(name, value, None) for name, value in ends]
    named += [(t("why.part.mlp", layer=i), float(value), None) for i, value in enumerate(mlp)]
    for (layer, head), value in np.ndenumerate(heads):
        name = layer_head_name((layer, head))
        named.append((name, float(value), (layer, head)))
    named.sort(key=lambda part: -abs(part[1]))
    shown, others = named[:MAX_PARTS], named[MAX_PARTS:]
    if others:
        rest = t("why.part.rest", n=len(others))
        shown.append((rest, sum(value for _, value, _ in others), None))
    names, values, places = zip(*shown, strict=True)
    return signed_bars(names, np.array(values), [signed(value) for value in values], heads=places)


def choose_bar(session: Session, sent: dict[str, Any]) -> None:
    """Select the head whose bar was clicked. Other bars are ignored."""
    place = sent.get("customdata")
    if isinstance(place, list) and len(place) == 2 and all(type(each) is int for each in place):
        session.select(layer=place[0], head=place[1])


@about
def heads_map(s: Any, e: Explained) -> Drawing:
    heads = s[attribution].heads.cpu().numpy()
    order = np.argsort(-heads, axis=None, kind="stable")
    most, least = (_heads_named(heads, places, signed) for places in (order[:1], order[-1:]))
    return _map(s, heads, True, t("why.parts.logit")), t("why.heads.says", most=most, least=least)


def _heads_named(values: np.ndarray, places: np.ndarray, written: Callable[[float], str]) -> str:
    found = [(*np.unravel_index(place, values.shape), values.flat[place]) for place in places]
    return listed(f"{layer_head_name((layer, head))} ({written(value)})" for layer, head, value in found)


def _map(s: Any, values: np.ndarray, diverging: bool, title: str) -> Figure:
    selection = fitting(s, s[explained])
    return head_map(
        values,
        diverging=diverging,
        selected=(selection.layer, selection.head),
        title=title,
    )


def fitting(s: Any, e: Explained) -> Selection:
    """Return the selection, clamped to the layers and heads of the explained text's model."""
    return s.selection.clamped_to(e.model.config, position=0)


def choose_head(session: Session, sent: dict[str, Any]) -> None:
    session.select(layer=sent.get("y"), head=sent.get("x"))


def parts_section() -> Part:
    compared = select("why-against", choices=others, label="why.against", value=against, on=choose_against, beside=True)
    return section(
        title_row(question("why.parts.question"), compared, choice(Chosen.order, "why.order")),
        caption("why.parts.says"),
        columns(
            column(picture("why-parts", parts_bars, clickable=True, on=choose_bar)),
            column(picture("why-heads", heads_map, clickable=True, on=choose_head)),
        ),
    )


# The roles of the heads


@tab.computed
def roles_of_text(s: Any) -> tuple[HeadRoles, int]:
    """Measure all heads' roles on the text, or on the beginning of a long text. Returns the number of tokens, too."""
    return roles_in(s[traced], s[traced].ids)


@tab.computed
def roles_of_noise(s: Any) -> tuple[HeadRoles, int]:
    """Measure all heads' roles on a fixed sequence of random tokens, repeated once."""
    found: TracedText = s[traced]
    config, start = found.model.config, next(iter(start_ids(found.loaded.tokenizer)), None)
    length = min(50, longest_roles(config) // 2)
    ids = repeated_random_ids(config, torch.Generator().manual_seed(0), length=length, start=start)
    return roles_in(found, ids)


def roles_in(found: TracedText, ids: Sequence[int]) -> tuple[HeadRoles, int]:
    ids = ids[: longest_roles(found.model.config)]
    return head_roles(trace_text(found.model, ids, found.edits), ids), len(ids)


def longest_roles(config: GPTConfig) -> int:
    """Return the largest number of tokens for which all attention weights fit into memory."""
    return max(2, int((MAX_ROLE_BYTES / (4 * config.n_layer * config.n_head)) ** 0.5))


def roles(s: Any) -> tuple[np.ndarray, int]:
    """Return each head's score for the chosen role, (n_layer, n_head), and the number of tokens that it is based on.

    The scores are NaN if the role cannot be measured.
    """
    found, n = s[roles_of_noise if s[Chosen].sample == "noise" else roles_of_text]
    return getattr(found, s[Chosen].role).cpu().numpy(), n


def role_says(s: Any) -> str:
    scores, _ = roles(s)
    return t("why.roles.none" if np.isnan(scores).all() else f"why.role.{s[Chosen].role}.is")


def roles_map(s: Any) -> Drawing:
    """Plot a map of each head's score for one role, or nothing if the role cannot be measured."""
    scores, n = roles(s)
    if np.isnan(scores).all():
        return None
    order = np.argsort(-scores, axis=None, kind="stable")[:MAX_NAMED_HEADS]
    sentence = t("why.roles.says", most=_heads_named(scores, order, decimal), n=n)
    return _map(s, scores, False, t("why.roles.scale")), sentence


@about
def head_bars(s: Any, e: Explained) -> Drawing:
    """Plot the selected head's attention from the position, or the layer's average if no head is selected."""
    selection, position = fitting(s, e), e.prediction.position
    weights = e.trace.layers[selection.layer].attn_weights[0, :, e.column, : position + 1].float()  # (n_head, N)
    of_head = (weights.mean(dim=0) if selection.head is None else weights[selection.head]).cpu().numpy()
    most = np.argsort(-of_head, kind="stable")[:MAX_BARS].tolist()
    shares = [percent(float(of_head[i])) for i in most]
    figure = signed_bars([f"{short(e.tokenizer, e.ids[i])} {i}" for i in most], of_head[most], shares)
    return figure, attention_sentence(e.text, position, selection, of_head)


def roles_section() -> Part:
    heads = section(
        question("why.roles.question"),
        row(choice(Chosen.role, "why.role"), choice(Chosen.sample, "why.sample"), classes="gb-why-switches"),
        says("why-role-says", role_says, kind="caption"),
        picture("why-roles", roles_map, clickable=True, on=choose_head),
        grow=1,
    )
    selected = section(question("why.head.question"), caption("why.head.says"), picture("why-head", head_bars), grow=1)
    return row(heads, selected, classes="gb-cards gb-why-cards")


# The cards


def waits(s: Any) -> str:
    return t("why.waits") if s.generating and s.text is not None else ""


tab.cards(
    card(
        "why-answer",
        title_row(
            question("why.question"),
            choice(Chosen.by, "why.by", show=lambda s: s.text is not None and s.text.loaded.concepts is not None),
            select("why-token", choices=tokens, label="why.token", value=token, on=choose_token, beside=True),
        ),
        says("why-because", answer.because),
        ribbons("why-flow", on=answer.switch, draw=answer.draw_flow, classes=("dark", "gb-stage")),
        says("why-no-paths", answer.no_paths, kind="notice"),
        says("why-lead", lead, kind="caption"),
        says("why-status", waits, kind="status"),
        classes="gb-card gb-why-lead",
    ),
    card(
        "why-more",
        fold("why-evidence", "why.evidence", text_section(), *lens_sections(), parts_section(), roles_section()),
        classes="",
    ),
)
