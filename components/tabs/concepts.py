"""The Concepts tab in Why?: the concepts active at each word, where else they are active, and what they do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
import torch
from torch import Tensor

from components import concepts
from components.concepts import Feature, Rows, concept_name, concept_tokens, concepts_of, model_of, quoted_concept
from components.errors import NothingToShow
from components.i18n import t
from components.kit import Tab, card, choice, column, columns, question, says, section, setting, text_box, title_row
from components.labels import listed, marked, quoted
from components.next_tokens import best, no_bars, token_bars
from components.state.session import Session
from components.state.typed_text import shown_tokens
from components.text_views import snippet_words
from components.widgets.simple import features, predictions, snippets, steer
from components.widgets.widget import to_base64
from gpt.analysis.concepts import trace_activity
from gpt.analysis.tracing import trace_window
from gpt.background import threads_for
from gpt.inference.packed_weights import multiplications_per_token

MAX_TOKENS = 256  # maximum tokens in the window around the selected token
MAX_FOUND = 12
MAX_FEATURES = 10
MAX_BARS = 9
N_EXAMPLES = 5  # tokens quoted in the sentence about a feature
FULL = 255  # the darkest tint

tab = Tab("concepts")


@tab.state
class Chosen:
    """layer: whose features are listed; None for the last one. feature: the open one, and the name of its model."""

    layer: int | None = setting(None, lambda s: {layer: str(layer) for layer in layers(s)})
    search: str = setting("", most=concepts.MAX_QUERY_CHARS)
    feature: tuple[str, Feature] | None = None


@dataclass(frozen=True, eq=False)
class Activities:
    """Feature activity on a text's tokens, starting at position `first`: (T, n_features) for each layer."""

    first: int
    by_layer: dict[int, Tensor]
    n_bytes: int


def window_of(s: Any) -> int:
    """Return where the window of at most MAX_TOKENS tokens around the selected one begins, in steps of a quarter."""
    quarter = MAX_TOKENS // 4
    return max(0, min((s.position // quarter - 1) * quarter, s.text.n_read - MAX_TOKENS))


@tab.computed
@torch.inference_mode()
def activities(s: Any) -> Activities:
    text = s.text_read()
    if text.loaded.concepts is None:
        raise NothingToShow("concepts.none")
    loaded, ids, first = text.loaded, text.ids[: text.n_read], s.watch(window_of)
    stop = min(len(ids), first + MAX_TOKENS)
    with threads_for(len(ids) * multiplications_per_token(loaded.model)):
        trace = trace_window(loaded.model, ids, first, stop, text.document.edits)
        layers = loaded.concepts.dictionaries
        by_layer = {layer: trace_activity(loaded.concepts, trace, layer, first=first) for layer in layers}
    return Activities(first, by_layer, sum(each.nbytes for each in by_layer.values()))


def layers(s: Any) -> list[int]:
    known = concepts_of(s)
    return [] if known is None else sorted(known.dictionaries)


def layer_of(s: Any) -> int | None:
    known, layer = layers(s), s[Chosen].layer
    return layer if layer in known else max(known, default=None)


def open_feature(s: Any) -> Any:
    """Return the open feature's place, or None. What describes it is on the page only if there is one."""
    loaded, feature = model_of(s), s[Chosen].feature
    return feature[1] if loaded is not None and feature is not None and feature[0] == loaded.name else None


def pick(session: Session, sent: dict[str, Any]) -> None:
    """Select a token in all tabs, or open a feature. sent: "index" or "place", both unchecked."""
    if "index" in sent:
        session.select(position=sent["index"])
        return
    s = session.snapshot()
    match sent.get("place"):
        case [int(layer), int(number)] if layer in layers(s):
            loaded: Any = model_of(s)
            if 0 <= number < len(loaded.concepts.dictionaries[layer].bias):
                session.change(Chosen, feature=(loaded.name, (layer, number)))


def listed_places(s: Any) -> list[Feature]:
    """Return the features found by the search, or the strongest ones at the selected token."""
    known, query, layer, found = concepts_of(s), s[Chosen].search, layer_of(s), s.ready(activities)
    if known is None or layer is None or s.text is None:
        return []
    if query:
        return known.search(s.text.tokenizer, query, MAX_FOUND)
    if found is None:
        return []
    activity = found.by_layer[layer][s.position - found.first]
    return [(layer, number) for number in known.dictionaries[layer].strongest(activity, MAX_FEATURES)]


def active_features(s: Any) -> dict[str, Any]:
    """Show the text and the listed features, shading the text by each feature's activity."""
    known, chosen, found = concepts_of(s), open_feature(s), s.ready(activities)
    if s.text is None or known is None:
        raise NothingToShow("concepts.none")
    tokens = [marked(piece) for piece in shown_tokens(s.text.tokenizer, s.text.ids)]
    data = {"tokens": tokens, "selected": s.position, "features": [], "chosen": chosen}
    if found is None:
        return data
    places = s.cached(listed_places)
    tints = {}
    for place in [*places, chosen] if chosen is not None else places:
        layer, number = place  # the activity along the text, relative to the feature's natural strength, 0 to 1
        tints[place] = known.dictionaries[layer].relative(found.by_layer[layer], number).cpu().numpy()
    if s[Chosen].search:
        values = [float(tints[place].max()) for place in places]
    else:
        values = [float(found.by_layer[layer][s.position - found.first, number]) for layer, number in places]
        values = [value / max(values) for value in values]  # lengths of the bars, 0 to 1
    for place, value in zip(places, values, strict=True):
        name = concept_name(s.text.loaded, place)
        spoken = t("concepts.feature", name=name, layer=place[0])
        data["features"].append({"place": place, "name": name, "value": round(value, 3), "says": spoken})
    levels = {place: np.round(FULL * tint).astype(np.uint8) for place, tint in tints.items()}
    return data | {
        "tints": {f"{layer}.{number}": to_base64(level) for (layer, number), level in levels.items()},
        "first": found.first,
    }


def lead(s: Any) -> str:
    if s.text is None:
        return t("error.no_text")
    if concepts_of(s) is None:
        return t("concepts.none")
    places = s.cached(listed_places)
    if query := s[Chosen].search:
        return t("concepts.found" if places else "concepts.not_found", query=query, n=len(places))
    if s.position == 0:
        return t("concepts.first")
    if not places:
        return ""
    token, name = quoted(s.text.tokenizer, s.text.ids[s.position]), quoted_concept(s.text.loaded, places[0])
    return t("concepts.lead", token=token, name=name)


def title(s: Any) -> str:
    return t("concepts.title", name=concept_name(s.text_read().loaded, open_feature(s)))


def about(s: Any) -> str:
    place, known = open_feature(s), s.text_read().loaded.concepts
    share = float(known.dictionaries[place[0]].share[place[1]])
    joined = {rows: listed(concept_tokens(s.text.loaded, place, rows)[:N_EXAMPLES]) for rows in get_args(Rows)}
    return t("concepts.about", layer=place[0], n=round(1000 * share) or t("concepts.under_one"), **joined)


def evidence(s: Any) -> dict[str, Any]:
    place, known = open_feature(s), s.text_read().loaded.concepts
    pieces = known.snippets(*place, s.text.tokenizer)
    words = [snippet_words(s.text.tokenizer, each.ids, each.tint) for each in pieces]
    return {"snippets": words, "name": t("concepts.snippets")}


def strength(s: Any) -> dict[str, Any]:
    on = concepts.turned(s.text_read().document)
    return concepts.sliders(s.text.loaded, [open_feature(s), *on], on) | concepts.comparison(s)


def bars(s: Any) -> dict[str, Any]:
    name = t("bars.question")
    if s.text is None or s.text.n_read == 0:
        return no_bars(name)
    position, tokenizer = s.position, s.text.tokenizer
    now = s.stages(s.text.document.logits(position), s.text.ids[: position + 1]).final
    plain = concepts.unsteered_probabilities(s)
    final, before = now.numpy(), (now if plain is None else plain).numpy()
    ids = sorted(best(np.maximum(final, before), before, MAX_BARS).tolist(), key=lambda i: -final[i])
    says = "bars.row.one" if plain is None else "bars.row.steered"
    return token_bars(name, tokenizer, ids, before, final, says, text=concepts.risen_sentence(s, now).strip())


def has_concepts(s: Any) -> bool:
    return concepts_of(s) is not None


tab.cards(
    card(
        "concepts-text",
        title_row(
            question("concepts.tab.question"),
            choice(
                Chosen.layer,
                "concepts.layer",
                labelled=True,
                value=layer_of,
                show=lambda s: has_concepts(s) and not s[Chosen].search,  # which covers all layers
            ),
            text_box(
                Chosen.search,
                "concepts.search",
                one_line=True,
                placeholder="concepts.search.placeholder",
                show=has_concepts,
            ),
        ),
        says("concepts-lead", lead),
        features("concepts-features", draw=active_features, on=pick, on_input=pick, answer="concepts-detail"),
        says("concepts-how", lambda s: t("concepts.how") if has_concepts(s) else "", kind="caption"),
    ),
    card(
        "concepts-chosen",
        section(
            says("concepts-title", title, kind="question"),
            says("concepts-about", about, kind="caption"),
            columns(
                column(snippets("concepts-evidence", draw=evidence), grow=3, min_width=320),
                column(
                    steer("concepts-slider", draw=strength, on=concepts.turn),
                    predictions("concepts-bars", draw=bars, selectable=False),
                    grow=2,
                ),
            ),
            name="concepts-detail",
            show=lambda s: open_feature(s) is not None,
        ),
        classes="",
    ),
)
