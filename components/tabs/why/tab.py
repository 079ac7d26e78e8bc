"""The Causes tab in Why?: the answer, and the evidence for it from tokens, layers, parts and heads."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch

from components import kit
from components.causes import Falls
from components.figures.bars import layer_bars, signed_bars
from components.figures.maps import head_map
from components.figures.style import Figure
from components.i18n import is_exact, t
from components.labels import decimal, decimals, layer_head_name, listed, percent, quoted, shortened, signed
from components.parts import Part
from components.state.session import Session
from components.state.text import Selection
from components.tabs.why import answer, explained
from components.tabs.why.answer import falls, longest_gradient
from components.tabs.why.explained import MAX_NAME_CHARS, Chosen, Explained, about, question_of, short, tokens
from components.tabs.why.explained import tab as tab
from components.tabs.why.lens import lens_sections
from components.text_views import attention_sentence, text_strip, token_lines
from components.widgets.chart import Drawing
from components.widgets.tokens import shade_value
from components.widgets.widget import widget
from gpt import Edits
from gpt.analysis.attribution import Attribution, direct_logit_attribution
from gpt.analysis.heads import HeadRoles, head_roles, repeated_random_ids
from gpt.analysis.saliency import input_x_gradient
from gpt.analysis.tracing import trace_text
from gpt.tokenizer import start_ids

# The flow; it is hidden without columns. It is a single Tab stop; arrow keys move within it, and Enter and Space click.
# `.select` has the payload {"key": key} to switch a part, or {"all": true} to switch everything on.
ribbons = partial(
    widget,
    "ribbons",
    template="""<figure class="gb-ribbons" hidden>
<figcaption><p aria-live="polite"></p><button type="button" class="gb-button" hidden></button></figcaption>
<svg role="group"></svg>
</figure>""",
    empty={"columns": [], "is_pending": False},
)
NOTHING = -1  # value of the `against` menu if no token is chosen
MAX_ROLE_BYTES = 2**26
MAX_BARS = 10  # tokens in the text that get a bar
MAX_PARTS = 12  # parts with their own bar; the rest share one
SMALLEST_REST = 0.005  # a smaller remainder would be written as 0.00
MAX_NAMED_HEADS = 3  # heads named in a sentence


def token(s: Any) -> int | None:
    return None if kit.no_text(s) else s[explained.explanation].prediction.token


def choose_token(session: Session, token: object) -> None:
    """Explain another token after this position. While the text grows, `token` may be an outdated choice."""
    s = session.snapshot()
    if s.text is not None and type(token) is int and 0 <= token < s.text.config.vocab_size:
        session.change(Chosen, question=explained.Question(s.text, s.position, token))


def lead(s: Any) -> str:
    if s.text is None or s.text.n_read == 0:
        return t("error.no_text")
    e = s[explained.explanation]
    p, prediction = e.prediction.probabilities(s.settings.sampling()), e.prediction
    sentence = t(
        "why.lead.exact" if is_exact() else "why.lead",
        here=quoted(e.tokenizer, e.text.ids[prediction.position]),
        position=prediction.position,
        token=e.token_name,
        p=percent(p[prediction.token].item()),
        rank=f"{prediction.rank:,}",
        total=f"{e.model.config.vocab_size:,}",
    )
    if prediction.follows:
        sentence += t("why.lead.follows")
    if prediction.rank > 1:
        best = prediction.best[0]
        sentence += t("why.lead.best", best=quoted(e.tokenizer, best), p=percent(p[best].item()))
    return sentence


@tab.computed
@about
def gradient(s: Any, e: Explained) -> np.ndarray | None:
    """Return each token's influence in nats, input x gradient, (N,), or None if the text is too long."""
    ids = e.prediction.previous
    if len(ids) > longest_gradient(e.model.config):
        return None
    return input_x_gradient(e.model, ids, e.prediction.token).float().cpu().numpy()


def sizes(s: Any) -> np.ndarray:
    """Return each token's influence by the chosen method, (N,), or (1,) zeros if there is none."""
    if s[Chosen].method == "gradient":
        return np.zeros(1) if s[gradient] is None else np.abs(s[gradient])
    found = s.cached(falls)
    sizes = np.zeros(1 + max((fall.place[-1] for fall in found.all_words), default=0))
    for fall in found.all_words:
        sizes[[*fall.place]] = max(0.0, found.probability - fall.probability)
    return sizes


@about
def strip(s: Any, e: Explained) -> dict[str, Any]:
    ids, found = e.text.ids, sizes(s)
    return {
        "lines": token_lines(e.tokenizer, ids, n_prompt=e.text.document.n_prompt),
        "doc": str(e.text.version[0]),
        "selected": e.prediction.position,
        "shade": shade_value(found / max(found.sum(), 1e-12)),
    }


@about
def influence(s: Any, e: Explained) -> Drawing:
    if s[Chosen].method == "hidden":
        found = s.cached(falls)
        return fall_bars(e, found) if found.all_words else None
    return None if s[gradient] is None else influence_bars(e, s[gradient])


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
    order, digits = np.argsort(-np.abs(values), kind="stable")[:MAX_BARS], decimals(values)
    names, numbers = [f"{short(e.tokenizer, e.ids[i])} {i}" for i in order], [signed(values[i], digits) for i in order]

    def name(i: int) -> str:
        value = t("why.nats", value=signed(values[i], digits))
        return f"{quoted(e.tokenizer, e.ids[i])} ({value})"

    upward, downward = int(values.argmax()), int(values.argmin())
    sentence = ""
    if round(float(values[upward]), digits) > 0:
        sentence += t("why.influence.says", token=e.token_name, most=name(upward))
    if round(float(values[downward]), digits) < 0:
        sentence += t("why.influence.against", token=e.token_name, least=name(downward))
    return signed_bars(names, values[order], numbers), sentence


@about
def trouble(s: Any, e: Explained) -> str:
    if s[Chosen].method == "hidden":
        return "" if s.cached(falls).all_words else t("why.influence.one")
    limit, n = longest_gradient(e.model.config), e.prediction.position + 1
    return t("why.influence.long", limit=f"{limit:,}", n=f"{n:,}") if s[gradient] is None else ""


def text_section() -> Part:
    def method_says(s: Any, e: Explained) -> str:
        return t(f"why.method.{s[Chosen].method}.says", token=e.token_name)

    select_token = lambda session, sent: session.select(position=sent.get("index"))  # noqa: E731
    return kit.section(
        kit.title_row(kit.question("why.text.question"), kit.choice(Chosen.method, "why.method")),
        kit.says("why-method-says", about(method_says), kind="caption"),
        kit.says("why-trouble", trouble, kind="notice"),
        kit.columns(
            kit.column(
                text_strip("why-strip", empty="page", shade="influence", on=select_token, draw=strip),
                grow=3,
                min_width=320,
            ),
            kit.column(kit.picture("why-influence", influence), grow=2),
        ),
    )


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
    outside = {"embedding": found.embedding, "position": found.position}
    outside["biases"] = found.attn_bias.sum().item() + found.norm_bias
    rest = "rounding" if (e.edits or Edits()) == Edits() else "edits"
    shown = outside | ({rest: found.rest} if abs(found.rest) >= SMALLEST_REST else {})
    if s[Chosen].order == "layer":
        figure = layer_bars(
            {t("why.parts.attention"): heads.sum(axis=1), t("flow.short.out"): mlp},
            [(t(f"why.part.{name}.short"), value) for name, value in shown.items()],
        )
    else:
        figure = _sorted_parts({t(f"why.part.{name}"): value for name, value in shown.items()}, heads, mlp)
    key = "why.parts.sum" if other is None else "why.parts.difference"
    numbers = outside | {"rest": found.rest, "heads": heads.sum(), "mlp": mlp.sum(), "total": found.total}
    sentence = t(
        f"{key}.rest" if rest in shown else key,
        part=t(f"why.part.{rest}"),
        token=e.token_name,
        against="" if other is None else quoted(e.tokenizer, other),
        **{name: signed(number) for name, number in numbers.items()},
    )
    note, cap = t("why.parts.frozen", scale=f"{found.scale:.2f}"), e.model.config.logit_softcap
    return figure, sentence, note if cap is None else note + t("why.parts.capped", cap=f"{cap:g}")


def _sorted_parts(outside: dict[str, float], heads: np.ndarray, mlp: np.ndarray) -> Figure:
    """Plot the largest parts individually and the rest combined, so that the bars add up."""
    named: list[tuple[str, float, tuple[int, ...] | None]] = [(name, value, None) for name, value in outside.items()]
    named += [(t("why.part.mlp", layer=i), float(value), None) for i, value in enumerate(mlp)]
    named += [(layer_head_name(place), float(value), place) for place, value in np.ndenumerate(heads)]
    named.sort(key=lambda part: -abs(part[1]))
    shown, others = named[:MAX_PARTS], named[MAX_PARTS:]
    if others:
        shown.append((t("why.part.rest", n=len(others)), sum(value for _, value, _ in others), None))
    names, values, places = zip(*shown, strict=True)
    return signed_bars(names, np.array(values), [signed(value) for value in values], heads=places)


def choose_bar(session: Session, sent: dict[str, Any]) -> None:
    """Select the head whose bar was clicked. Other bars are ignored."""
    place = sent.get("customdata")
    if isinstance(place, list) and len(place) == 2:
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
    return head_map(values, diverging=diverging, selected=selected_head(s), title=title)


def selected_head(s: Any) -> tuple[int, int | None]:
    """Return the selected layer and head, clamped to those of the text's model."""
    selection = s.selection.clamped_to(s.text.config, position=0)
    return selection.layer, selection.head


def choose_head(session: Session, sent: dict[str, Any]) -> None:
    session.select(layer=sent.get("y"), head=sent.get("x"))


def others(s: Any) -> list[tuple[str, int]]:
    if kit.no_text(s):
        return []
    return [(t("why.against.none"), NOTHING), *(each for each in tokens(s) if each[1] != token(s))]


def choose_against(session: Session, token: object) -> None:
    s, e = session.snapshot(), explained.latest(session)
    if e is not None and type(token) is int:
        other = token if 0 <= token < e.model.config.vocab_size else None
        session.change(Chosen, question=explained.Question(s.text, s.position, e.prediction.token, other))


def parts_section() -> Part:
    def against(s: Any) -> int:
        other = question_of(s).against
        return NOTHING if other is None else other

    compared = partial(kit.select, "why-against", "why.against", choices=others, value=against)
    return kit.section(
        kit.title_row(
            kit.question("why.parts.question"),
            compared(on=choose_against, beside=True),
            kit.choice(Chosen.order, "why.order"),
        ),
        kit.caption("why.parts.says"),
        kit.columns(
            kit.column(kit.picture("why-parts", parts_bars, clickable=True, on=choose_bar)),
            kit.column(kit.picture("why-heads", heads_map, clickable=True, on=choose_head)),
        ),
    )


@tab.computed
def roles(s: Any) -> tuple[HeadRoles, int]:
    """Return all heads' roles, measured on the text's beginning or on fixed random tokens, and the number of tokens."""
    text = s.text_read()
    model, config, ids = text.loaded.model, text.config, text.ids[: text.n_read]
    longest = max(2, int((MAX_ROLE_BYTES / (4 * config.n_layer * config.n_head)) ** 0.5))
    if s[Chosen].sample == "noise":
        start, length = next(iter(start_ids(text.tokenizer)), None), min(50, longest // 2)
        ids = repeated_random_ids(config, torch.Generator().manual_seed(0), length=length, start=start)
    ids = ids[:longest]
    return head_roles(trace_text(model, ids, text.document.edits), ids), len(ids)


def scores(s: Any) -> np.ndarray:
    """Return each head's score for the chosen role, (n_layer, n_head). They are NaN if it cannot be measured."""
    return getattr(s[roles][0], s[Chosen].role).cpu().numpy()


def role_says(s: Any) -> str:
    return t("why.roles.none" if np.isnan(scores(s)).all() else f"why.role.{s[Chosen].role}.is")


def roles_map(s: Any) -> Drawing:
    """Plot a map of each head's score for one role, or nothing if the role cannot be measured."""
    found, n = scores(s), s[roles][1]
    if np.isnan(found).all():
        return None
    order = np.argsort(-found, axis=None, kind="stable")[:MAX_NAMED_HEADS]
    sentence = t("why.roles.says", most=_heads_named(found, order, decimal), n=n)
    return _map(s, found, False, t("why.roles.scale")), sentence


@about
def head_bars(s: Any, e: Explained) -> Drawing:
    """Plot the selected head's attention from the position, or the layer's average if no head is selected."""
    (layer, head), position = selected_head(s), e.prediction.position
    weights = e.trace.layers[layer].attn_weights[0, :, e.column, : position + 1].float()  # (n_head, N)
    of_head = (weights.mean(dim=0) if head is None else weights[head]).cpu().numpy()
    most = np.argsort(-of_head, kind="stable")[:MAX_BARS].tolist()
    shares = [percent(float(of_head[i])) for i in most]
    figure = signed_bars([f"{short(e.tokenizer, e.ids[i])} {i}" for i in most], of_head[most], shares)
    return figure, attention_sentence(e.text, position, Selection(layer=layer, head=head), of_head)


def roles_section() -> Part:
    heads = kit.section(
        kit.question("why.roles.question"),
        kit.row(
            kit.choice(Chosen.role, "why.role"),
            kit.choice(Chosen.sample, "prompt.text"),
            classes="gb-why-switches",
        ),
        kit.says("why-role-says", role_says, kind="caption"),
        kit.picture("why-roles", roles_map, clickable=True, on=choose_head),
        grow=1,
    )
    selected = kit.question("why.head.question"), kit.caption("why.head.says"), kit.picture("why-head", head_bars)
    return kit.row(heads, kit.section(*selected, grow=1), classes="gb-cards gb-why-cards")


def waits(s: Any) -> str:
    return t("panel.waits") if s.generating and s.text is not None else ""


tab.cards(
    kit.card(
        "why-answer",
        kit.title_row(
            kit.question("why.question"),
            kit.choice(Chosen.by, "why.by", show=lambda s: s.text is not None and s.text.loaded.concepts is not None),
            kit.select("why-token", choices=tokens, label="why.token", value=token, on=choose_token, beside=True),
        ),
        kit.says("why-because", answer.because),
        ribbons("why-flow", on=answer.switch, draw=answer.draw_flow, classes=("dark", "gb-stage")),
        kit.says("why-no-paths", answer.no_paths, kind="notice"),
        kit.says("why-lead", lead, kind="caption"),
        kit.says("why-status", waits, kind="status"),
        classes="gb-card gb-why-lead",
    ),
    kit.card(
        "why-more",
        kit.fold("why-evidence", "why.evidence", text_section(), *lens_sections(), parts_section(), roles_section()),
        classes="",
    ),
)
