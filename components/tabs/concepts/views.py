"""Views for the Concepts tab."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np

from components.concepts import (
    Place,
    Rows,
    comparison,
    concept_name,
    concept_tokens,
    concepts_of,
    quoted_concept,
    risen_sentence,
    slider_data,
    steer_labels,
    turned,
    unsteered_probabilities,
)
from components.i18n import t
from components.labels import bar_label, listed, marked, percent, quoted
from components.next_tokens import best
from components.render import View
from components.state.snapshot import Snapshot
from components.state.typed_text import shown_tokens
from components.tabs.concepts.state import choices
from components.widgets.encoding import to_base64
from components.widgets.predictions import Bar, predictions_data
from gpt.analysis.concepts import Snippet

MAX_FEATURES = 10
MAX_BARS = 9
N_EXAMPLES = 5  # tokens quoted in the sentence about a feature
FULL = 255  # the darkest tint


def layer_of(s: Snapshot) -> int | None:
    """Return the layer whose features are listed."""
    concepts, layer = concepts_of(s), s.cached(choices).layer
    if concepts is None:
        return None
    return layer if layer in concepts.dictionaries else max(concepts.dictionaries)


def places_of(s: Snapshot) -> list[Place]:
    """Return the features found by the search, or the strongest ones at the selected token."""
    state, concepts, layer = s.cached(choices), concepts_of(s), s.cached(layer_of)
    if state.query:
        return list(state.found)
    shown = state.shown
    if s.text is None or concepts is None or layer is None or shown is None or shown.text.version != s.text.version:
        return []
    activity, at = shown.by_layer[layer], s.text.at(s.selection) - shown.first
    if not 0 <= at < len(activity):
        return []
    return [(layer, feature) for feature in concepts.dictionaries[layer].strongest(activity[at], MAX_FEATURES)]


def features(s: Snapshot) -> dict[str, Any]:
    """Show the text and the listed features, shading the text by each feature's activity."""
    state = s.cached(choices)
    if s.text is None or concepts_of(s) is None:
        return {"tokens": [], "features": []}
    position, shown = s.text.at(s.selection), state.shown
    tokens = [marked(piece) for piece in shown_tokens(s.text.tokenizer, s.text.ids)]
    data: dict[str, Any] = {
        "tokens": tokens,
        "selected": position,
        "features": [],
        "chosen": state.chosen,
        "labels": {name: t(f"concepts.{name}") for name in ("text", "list")},
    }
    if shown is None or shown.text.version != s.text.version:
        return data
    places, at = s.cached(places_of), position - shown.first
    listed = [*places, state.chosen] if state.chosen is not None and state.chosen not in places else places
    if state.query:
        values = [float(_along(s, place).max()) for place in places]
    else:
        values = [float(shown.by_layer[place[0]][at, place[1]]) for place in places]
        values = [value / max(values) for value in values]
    data["features"] = [_feature(s, place, value) for place, value in zip(places, values, strict=True)]
    data["tints"] = {
        ".".join(map(str, place)): to_base64(np.round(FULL * _along(s, place)).astype(np.uint8)) for place in listed
    }
    data["first"] = shown.first
    return data


def _feature(s: Snapshot, place: Place, value: float) -> dict[str, Any]:
    """Return one row of the list. `value` is the length of its bar, 0 to 1."""
    assert s.text is not None
    name = concept_name(s.text.loaded, place)
    says = t("concepts.feature", name=name, layer=place[0])
    return {"place": place, "name": name, "value": round(value, 3), "says": says}


def _along(s: Snapshot, place: Place) -> np.ndarray:
    """Return the activity of a feature along the text, relative to its natural strength, 0 to 1."""
    shown, concepts = s.cached(choices).shown, concepts_of(s)
    assert shown is not None
    assert concepts is not None
    layer, feature = place
    values: np.ndarray = concepts.dictionaries[layer].relative(shown.by_layer[layer], feature).cpu().numpy()
    return values


def lead(s: Snapshot) -> dict[str, Any]:
    """Name the concepts that are active at the selected token."""
    concepts, state = concepts_of(s), s.cached(choices)
    if s.text is None:
        return {"text": t("error.no_text")}
    if concepts is None:
        return {"text": t("concepts.none")}
    if state.query:
        key = "concepts.found" if state.found else "concepts.not_found"
        return {"text": t(key, query=state.query, n=len(state.found))}
    places, position = s.cached(places_of), s.text.at(s.selection)
    if position == 0:
        return {"text": t("concepts.first")}
    if not places:
        return {"text": ""}
    token = quoted(s.text.tokenizer, s.text.ids[position])
    name = quoted_concept(s.text.loaded, places[0])
    return {"text": t("concepts.lead", token=token, name=name)}


def evidence(s: Snapshot) -> dict[str, Any]:
    """Show snippets from other texts that strongly activate the chosen feature."""
    place, concepts = s.cached(choices).chosen, concepts_of(s)
    if s.text is None or concepts is None or place is None or place[0] not in concepts.dictionaries:
        return {"snippets": []}
    pieces = concepts.snippets(*place, s.text.tokenizer)
    return {"snippets": [_snippet(s, each) for each in pieces], "name": t("concepts.snippets")}


def _snippet(s: Snapshot, snippet: Snippet) -> list[tuple[str, float]]:
    assert s.text is not None
    ids = [token for token in snippet.ids if token not in s.text.tokenizer.special_ids]
    tint = snippet.tint[len(snippet.ids) - len(ids) :]
    first, *others = shown_tokens(s.text.tokenizer, ids)
    words = [first.lstrip(" "), *others]
    return [(marked(word).replace("\n", " "), round(level, 3)) for word, level in zip(words, tint, strict=True)]


def title(s: Snapshot) -> dict[str, Any]:
    """Return the name of the chosen feature."""
    place = s.cached(choices).chosen
    if s.text is None or place is None or concepts_of(s) is None:
        return {"text": ""}
    return {"text": t("concepts.title", name=concept_name(s.text.loaded, place))}


def about(s: Snapshot) -> dict[str, Any]:
    """Describe how often and on which words the chosen feature is active, and which words it makes likelier."""
    place, concepts = s.cached(choices).chosen, concepts_of(s)
    if s.text is None or concepts is None or place is None:
        return {"text": ""}
    share = float(concepts.dictionaries[place[0]].share[place[1]])
    joined = {rows: listed(concept_tokens(s.text.loaded, place, rows)[:N_EXAMPLES]) for rows in get_args(Rows)}
    values = {"layer": place[0], "n": round(1000 * share) or t("concepts.under_one")}
    return {"text": t("concepts.about", **values, **joined)}


def slider(s: Snapshot) -> dict[str, Any]:
    """Show the chosen feature's slider, and how the text continues with and without the turned-up concepts."""
    place = s.cached(choices).chosen
    if s.text is None or place is None or concepts_of(s) is None:
        return {"chips": []}
    on = place in turned(s.text.document)
    chip = {"place": place, "name": t("concepts.off" if on else "concepts.on"), "on": on}
    return {"chips": [chip], "labels": steer_labels()} | slider_data(s, place) | comparison(s)


def bars(s: Snapshot) -> dict[str, Any]:
    """Show the next-token probabilities with the turned-up concepts, in front of those without them."""
    name = t("concepts.bars")
    if s.text is None or s.text.n_read == 0 or s.cached(choices).chosen is None:
        return predictions_data(name, "", [])
    position, tokenizer = s.text.at(s.selection), s.text.tokenizer
    now = s.stages(s.text.document.logits(position), s.text.ids[: position + 1]).final
    plain = s.cached(unsteered_probabilities)
    final, before = now.numpy(), (now if plain is None else plain).numpy()
    listed = []
    for i in best(np.maximum(final, before), before, MAX_BARS).tolist():
        key = "bars.row.one" if plain is None else "bars.row.steered"
        says = t(key, token=quoted(tokenizer, i), before=percent(before[i]), after=percent(final[i]))
        listed.append(Bar(bar_label(tokenizer, i), float(before[i]), float(final[i]), says, {"token": i}))
    listed.sort(key=lambda bar: -bar.after)
    return predictions_data(name, risen_sentence(s, now).strip(), listed)


VIEWS = (
    View("concepts-features", features),
    View("concepts-lead", lead),
    View("concepts-title", title),
    View("concepts-about", about),
    View("concepts-evidence", evidence),
    View("concepts-slider", slider),
    View("concepts-bars", bars),
)
