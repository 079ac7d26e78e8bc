"""The model's concepts: naming them, and turning them up or down for all tabs.

The strengths are part of the edits to the document, so they affect everything that continues or reads the text.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from torch import Tensor

from components.errors import PageError
from components.i18n import spoken, t
from components.labels import marked, percent, quoted, shortened
from components.state.reads import Computed
from components.state.session import Session
from components.state.snapshot import Snapshot
from gpt import Edits, Generation, LoadedModel, SamplingParams, Steering
from gpt.analysis.causes import Ablation, predict_without
from gpt.analysis.concepts import NO_ACTIVITY, NONE, Concepts, trace_activity
from gpt.analysis.tracing import trace_text
from gpt.inference.packed_weights import multiplications_per_token
from gpt.inference.threads import threads_for
from gpt.sampling import keep_only

Place = tuple[int, int]  # (layer, feature index)
Rows = Literal["tokens", "promotes"]
N_CHIPS = 4  # concepts on the first screen
N_WORDS = 3  # words that describe a feature without a name
LIMIT, STEP = 4.0, 0.25  # slider maximum and step, in multiples of the natural strength; the minimum is NO_ACTIVITY
USUAL = 1.5  # default strength for a concept
MAX_QUERY_CHARS = 40  # maximum number of characters that a message quotes from a search
GOES_ON_TOKENS, GOES_ON_SEED = 22, 1


@dataclass(frozen=True)
class SteeringState:
    """State of the steering controls.

    chosen: the slider's concept. all_shown: whether all offered concepts are shown.
    """

    chosen: Place | None = None
    all_shown: bool = False


def model_of(s: Snapshot) -> LoadedModel | None:
    """Return the text's model, or the loaded model if there is no text."""
    return s.loaded if s.text is None else s.text.loaded


def concepts_of(s: Snapshot) -> Concepts | None:
    """Return the concepts of the text's model, or of the loaded model if there is no text."""
    loaded = model_of(s)
    return None if loaded is None else loaded.concepts


def turned(document: Generation | None) -> dict[Place, float]:
    """Return the strength of each concept that is turned up or down in a document."""
    edits = (document.edits if document is not None else None) or Edits()
    return {(each.layer, each.concept[0]): each.concept[1] for each in edits.steering if each.concept is not None}


def kept_edits(session: Session, loaded: LoadedModel) -> Edits | None:
    """Return the edits for the session's next document. If the model stays the same, concepts stay turned up."""
    document = session.document
    return document.edits if document is not None and document.loaded is loaded else None


def concept_name(loaded: LoadedModel, place: Place) -> str:
    """Return a feature's name or, if it has none, the quoted tokens on which it is strongest.

    If most of these tokens are words, punctuation marks are left out.
    """
    assert loaded.concepts is not None
    named = loaded.concepts.of(*place)
    if named is not None:
        return named.names.get(spoken()) or named.names["en"]
    return " ".join(_words(loaded, place)) or t("concepts.unused")


def shared_name(loaded: LoadedModel, layer: int, feature: int) -> Hashable:
    """Return a key that is equal for features that a reader can't tell apart.

    This is their name, or, if they have none, their words in any order and case.
    """
    assert loaded.concepts is not None
    named = loaded.concepts.of(layer, feature)
    return frozenset(map(str.casefold, _words(loaded, (layer, feature)))) if named is None else named.names["en"]


def _words(loaded: LoadedModel, place: Place) -> list[str]:
    """Return the words that describe an unnamed feature."""
    tokens = concept_tokens(loaded, place)
    words = [token for token in tokens if any(map(str.isalnum, token))]
    are_words = len([token for token in tokens[:N_WORDS] if token in words]) > N_WORDS / 2
    return (words if are_words else tokens)[:N_WORDS]


def quoted_concept(loaded: LoadedModel, place: Place) -> str:
    """Return a feature's quoted name for use inside a sentence."""
    name = concept_name(loaded, place)
    return name if name.startswith("“") else f"“{name}”"


def concept_tokens(loaded: LoadedModel, place: Place, rows: Rows = "tokens") -> list[str]:
    """Return the quoted tokens on which a feature is strongest, or, for "promotes", the ones it promotes most."""
    assert loaded.concepts is not None
    ids = getattr(loaded.concepts.dictionaries[place[0]], rows)[place[1]].tolist()
    return list(dict.fromkeys(quoted(loaded.tokenizer, i) for i in ids if i != NONE))


def usual_strength(loaded: LoadedModel, place: Place) -> float:
    """Return the default strength for turning up a feature."""
    named = None if loaded.concepts is None else loaded.concepts.of(*place)
    return USUAL if named is None or named.strength is None else named.strength


def found_concept(loaded: LoadedModel, query: str) -> Place:
    """Find a feature by "layer.number" or by a word. Raises ValueError if none matches."""
    if loaded.concepts is None:
        raise PageError("error.no_concepts", model=loaded.name)
    if place := re.fullmatch(r"(\d{1,4})\.(\d{1,7})", query, re.ASCII):
        return int(place[1]), int(place[2])
    if not (found := loaded.concepts.search(loaded.tokenizer, query, 1)):
        raise PageError("concepts.not_found", query=shortened(query, MAX_QUERY_CHARS))
    return found[0]


def turn(session: Session, sent: dict[str, Any]) -> None:
    """Turn a concept up or down, or choose it for the slider.

    sent (unchecked): {"place", "strength"} sets a strength, where 0 leaves the model unchanged; {"place"} turns the
    concept on or off; {"more": True} toggles between all concepts and the first few; {"reset": True} turns all off.
    """
    document = session.document
    if document is None or (concepts := document.loaded.concepts) is None:
        return
    if sent.get("more") is True:
        session.change(SteeringState, all_shown=not session.state(SteeringState).all_shown)
        return
    strengths = turned(document)
    if sent.get("reset") is True:
        strengths = {}
    else:
        match sent.get("place"):
            case [int(layer), int(feature)]:
                place = layer, feature
            case _:
                return
        strength = sent.get("strength")
        if not isinstance(strength, int | float):
            strength = 0.0 if place in strengths else usual_strength(document.loaded, place)
        strengths = {**strengths, place: on_slider(strength)}
        session.change(SteeringState, chosen=place)
    steer(session, [concepts.steering(*place, strength) for place, strength in strengths.items() if strength])


def on_slider(strength: float) -> float:
    """Clamp a strength to the range of the slider."""
    return max(NO_ACTIVITY, min(LIMIT, float(strength)))


def steer(session: Session, steering: Sequence[Steering]) -> None:
    """Replace the steering of the session's document, and read its text again."""
    with session.changing():
        if (document := session.document) is not None:
            document.edit(replace(document.edits or Edits(), steering=tuple(steering)))
            document.read()


def continuation_settings(s: Any) -> SamplingParams:
    """Return the settings of continuations that are compared, with a fixed seed."""
    return replace(s.settings.sampling(), seed=GOES_ON_SEED)


def is_steered(s: Any) -> bool:
    """Return whether the model has read a text with a concept turned up or down."""
    return s.text is not None and s.text.n_read > 0 and bool(turned(s.text.document))


@Computed
def unsteered(s: Any) -> tuple[Tensor, tuple[Place, ...]] | None:
    """Predict the token after the selected position without steering; None if nothing is turned up or down.

    Returns the logits, (vocab_size,), and the concepts that are turned down but are not active up to the position.
    """
    if not is_steered(s):
        return None
    loaded, edits, ids, held = s.text.loaded, s.text.document.edits, s.text.ids[: s.position + 1], _held(s)
    with threads_for(len(ids) * multiplications_per_token(loaded.model)):
        logits = predict_without(loaded.model, ids, Ablation(), replace(edits, steering=()))
        return keep_only(logits, loaded.tokenizer.ids_after(held)), absent(loaded, ids, edits)


@Computed
def continuations(s: Any) -> tuple[str, str] | None:
    """Continue the text up to the selected position without and with steering; None if nothing is turned up or down."""
    if not is_steered(s):
        return None
    loaded, edits, ids, held = s.text.loaded, s.text.document.edits, s.text.ids[: s.position + 1], _held(s)
    settings = continuation_settings(s)
    with threads_for(len(ids) * multiplications_per_token(loaded.model)):
        plain, steered = (
            "".join(
                step.text for step in Generation(loaded, ids, edits=each, held=held).steps(settings, GOES_ON_TOKENS)
            )
            for each in (replace(edits, steering=()), edits)
        )
        return plain, steered


def _held(s: Any) -> str:
    """Return the spaces that the prediction after the selected position begins with."""
    return str(s.text.document.held_after(s.position))


def absent(loaded: LoadedModel, ids: Sequence[int], edits: Edits) -> tuple[Place, ...]:
    """Return the concepts that the edits turn down but that are not active in the text."""
    down = [(each.layer, each.concept[0]) for each in edits.steering if each.concept and each.concept[1] < 0]
    if not down or loaded.concepts is None:
        return ()
    others = tuple(each for each in edits.steering if each.concept is None or each.concept[1] > 0)
    trace = trace_text(loaded.model, ids, replace(edits, steering=others))
    active = {layer: trace_activity(loaded.concepts, trace, layer).amax(dim=0) for layer, _ in down}
    return tuple((layer, feature) for layer, feature in down if active[layer][feature] == 0)


def unsteered_probabilities(s: Any) -> Tensor | None:
    """Return the unsteered distribution (vocab_size,) after the selected position, under the sampling settings.

    None if nothing is turned up or down, or until it has been computed.
    """
    found = s.ready(unsteered)
    return None if found is None else s.stages(found[0], s.text.ids[: s.position + 1]).final


def steer_data(s: Any) -> dict[str, Any]:
    """Return the data for the `steer` widget: chips, the chosen concept's slider, and what it changes."""
    concepts, state = concepts_of(s), s.state(SteeringState)
    if concepts is None or not concepts.offered or s.text is None:
        return {"chips": []}
    loaded, strengths = s.text.loaded, turned(s.text.document)
    offered = [(each.layer, each.feature) for each in concepts.offered]
    shown = offered if state.all_shown else offered[:N_CHIPS]
    shown += [place for place in strengths if place not in shown]
    chips = [{"place": place, "name": concept_name(loaded, place), "on": place in strengths} for place in shown]
    data: dict[str, Any] = {"chips": chips, "more": "", "slider": None, "note": ""}
    if strengths or state.all_shown:
        data["more"] = t("concepts.less" if state.all_shown else "concepts.more")
    if state.chosen in shown and state.chosen in strengths:
        data |= slider_data(s, state.chosen)
    return data | comparison(s)


def slider_data(s: Any, place: Place) -> dict[str, Any]:
    """Return the data for a concept's slider, with a note if turning the concept down has changed nothing."""
    assert s.text is not None
    found, value = s.ready(unsteered), turned(s.text.document).get(place, 0.0)
    data = {"note": "", **slider_of(s.text.loaded, place, value)}
    if found is not None and place in found[1] and value < 0:
        name = quoted_concept(s.text.loaded, place)
        data["note"] = t("concepts.absent", name=name)
    return data


def slider_of(loaded: LoadedModel, place: Place, value: float) -> dict[str, Any]:
    """Return the data for a concept's slider, set to the given strength."""
    name = concept_name(loaded, place)
    return {"slider": {"place": place, "name": name, "value": value, "min": NO_ACTIVITY, "max": LIMIT, "step": STEP}}


def turned_names(s: Any) -> list[str]:
    """Name the concepts that are turned up or down."""
    if s.text is None:
        return []
    loaded, strengths = s.text.loaded, turned(s.text.document)
    return [
        t(f"concepts.{'up' if x > 0 else 'down'}", name=concept_name(loaded, place)) for place, x in strengths.items()
    ]


def comparison(s: Any) -> dict[str, Any]:
    """Return the continuations with and without steering. The old ones stay visible until the new ones are ready."""
    if not is_steered(s):
        return {"texts": []}
    if (found := s.ready(continuations)) is None:
        return {}
    labels = t("concepts.without"), t("concepts.with", names=t("list.and").join(turned_names(s)))
    return {"texts": [(label, f"{marked(text).strip()} …") for label, text in zip(labels, found, strict=True)]}


def risen_sentence(s: Any, now: Tensor) -> str:
    """Return a sentence naming the token whose probability steering has raised most; "" until it has been measured.

    now: the steered distribution, (vocab_size,).
    """
    before = s.cached(unsteered_probabilities)
    if s.text is None or before is None:
        return ""
    token = int((now - before).argmax())
    p, q = percent(before[token].item()), percent(now[token].item())
    return "" if p == q else t("concepts.risen", token=quoted(s.text.tokenizer, token), before=p, after=q)
