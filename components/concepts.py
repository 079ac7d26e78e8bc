"""The model's concepts: naming them, and turning them up or down for all tabs.

The strengths are part of the edits to the document, so they affect everything that continues or reads the text.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from torch import Tensor

from components.errors import PageError
from components.i18n import spoken, t
from components.labels import marked, percent, quoted, shortened
from components.state.session import Session
from components.state.snapshot import Snapshot
from components.state.text import AtPosition
from gpt import Edits, Generation, LoadedModel, SamplingParams, Steering
from gpt.analysis.causes import Ablation, predict_without
from gpt.analysis.concepts import NO_ACTIVITY, NONE, Concepts, trace_activity
from gpt.analysis.tracing import trace_text
from gpt.background import run_with_progress
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


@dataclass(frozen=True, eq=False)
class Unsteered(AtPosition):
    """A comparison of the text with and without steering.

    settings: the settings of both continuations. logits: unsteered logits after the position, (vocab_size,). goes_on:
    the unsteered continuation. steered: the steered continuation. absent: concepts that are turned down but are not
    active anywhere up to the position.
    """

    settings: SamplingParams
    logits: Tensor
    goes_on: str
    steered: str
    absent: tuple[Place, ...] = ()


@dataclass(frozen=True)
class SteeringState:
    """State of the steering controls.

    chosen: the slider's concept. all_shown: whether all offered concepts are shown. measured: the last comparison.
    """

    chosen: Place | None = None
    all_shown: bool = False
    measured: Unsteered | None = None


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


def wanted(s: Snapshot) -> Hashable:
    """Return a key for the comparison missing at the selected position, or None if none is needed."""
    if s.text is None or s.text.n_read == 0 or s.generating or not turned(s.text.document):
        return None
    position, found, settings = s.text.at(s.selection), s.state(SteeringState).measured, continuation_settings(s)
    if found is not None and found.belongs_to(s.text, position) and found.settings == settings:
        return None
    return "unsteered", s.text.version, position, settings


def continuation_settings(s: Snapshot) -> SamplingParams:
    """Return the settings of both continuations, with a fixed seed."""
    return replace(s.settings.sampling(), seed=GOES_ON_SEED)


def measure(session: Session) -> Iterator[None]:
    """Measure the prediction and the continuation without steering, and store the comparison."""
    s = session.snapshot()
    if s.text is None or wanted(s) is None:
        return
    text, position = s.text, s.text.at(s.selection)
    loaded, edits, ids = text.loaded, text.document.edits, text.ids[: position + 1]
    settings = continuation_settings(s)
    with session.lock.reading():
        held = text.document.held_after(position)
    found = yield from run_with_progress(lambda _: _unsteered(loaded, ids, held, edits, settings), lambda *_: None)
    session.change(SteeringState, measured=Unsteered(text.version, position, settings, *found))
    yield


def _unsteered(
    loaded: LoadedModel, ids: Sequence[int], held: str, edits: Edits | None, settings: SamplingParams
) -> tuple[Tensor, str, str, tuple[Place, ...]]:
    """Return the unsteered logits, the unsteered and the steered continuation, and the absent concepts."""
    plain = replace(edits or Edits(), steering=())
    with threads_for(len(ids) * multiplications_per_token(loaded.model)):
        logits = keep_only(predict_without(loaded.model, ids, Ablation(), plain), loaded.tokenizer.ids_after(held))
        without, steered = (
            "".join(
                step.text for step in Generation(loaded, ids, edits=each, held=held).steps(settings, GOES_ON_TOKENS)
            )
            for each in (plain, edits)
        )
        return logits, without, steered, absent(loaded, ids, edits or Edits())


def absent(loaded: LoadedModel, ids: Sequence[int], edits: Edits) -> tuple[Place, ...]:
    """Return the concepts that the edits turn down but that are not active in the text."""
    down = [(each.layer, each.concept[0]) for each in edits.steering if each.concept and each.concept[1] < 0]
    if not down or loaded.concepts is None:
        return ()
    others = tuple(each for each in edits.steering if each.concept is None or each.concept[1] > 0)
    trace = trace_text(loaded.model, ids, replace(edits, steering=others))
    active = {layer: trace_activity(loaded.concepts, trace, layer).amax(dim=0) for layer, _ in down}
    return tuple((layer, feature) for layer, feature in down if active[layer][feature] == 0)


def unsteered(s: Snapshot) -> Unsteered | None:
    """Return the comparison at the selected position, or None if it has not been measured or nothing is turned up."""
    found = s.state(SteeringState).measured
    if s.text is None or s.text.n_read == 0 or found is None or not turned(s.text.document):
        return None
    return found if found.belongs_to(s.text, s.text.at(s.selection)) else None


def unsteered_probabilities(s: Snapshot) -> Tensor | None:
    """Return the unsteered distribution (vocab_size,) after the selected position, under the sampling settings."""
    found = s.cached(unsteered)
    if s.text is None or found is None:
        return None
    return s.stages(found.logits, s.text.ids[: found.position + 1]).final


def steer_data(s: Snapshot) -> dict[str, Any]:
    """Return the data for the `steer` widget: chips, the chosen concept's slider, and what it changes."""
    concepts, state = concepts_of(s), s.state(SteeringState)
    if concepts is None or not concepts.offered or s.text is None:
        return {"chips": []}
    loaded, strengths = s.text.loaded, turned(s.text.document)
    offered = [(each.layer, each.feature) for each in concepts.offered]
    shown = offered if state.all_shown else offered[:N_CHIPS]
    shown += [place for place in strengths if place not in shown]
    chips = [{"place": place, "name": concept_name(loaded, place), "on": place in strengths} for place in shown]
    data: dict[str, Any] = {"chips": chips, "more": "", "slider": None, "note": "", "labels": steer_labels()}
    if strengths or state.all_shown:
        data["more"] = t("concepts.less" if state.all_shown else "concepts.more")
    if state.chosen in shown and state.chosen in strengths:
        data |= slider_data(s, state.chosen)
    return data | comparison(s)


def slider_data(s: Snapshot, place: Place) -> dict[str, Any]:
    """Return the data for a concept's slider, with a note if turning the concept down has changed nothing."""
    assert s.text is not None
    found, value = s.cached(unsteered), turned(s.text.document).get(place, 0.0)
    data = {"note": "", **slider_of(s.text.loaded, place, value)}
    if found is not None and place in found.absent and value < 0:
        name = quoted_concept(s.text.loaded, place)
        data["note"] = t("concepts.absent", name=name)
    return data


def slider_of(loaded: LoadedModel, place: Place, value: float) -> dict[str, Any]:
    """Return the data for a concept's slider, set to the given strength."""
    name = concept_name(loaded, place)
    return {"slider": {"place": place, "name": name, "value": value, "min": NO_ACTIVITY, "max": LIMIT, "step": STEP}}


def turned_names(s: Snapshot) -> list[str]:
    """Name the concepts that are turned up or down."""
    if s.text is None:
        return []
    loaded, strengths = s.text.loaded, turned(s.text.document)
    return [
        t(f"concepts.{'up' if x > 0 else 'down'}", name=concept_name(loaded, place)) for place, x in strengths.items()
    ]


def comparison(s: Snapshot) -> dict[str, Any]:
    """Return the continuations with and without steering. The old ones stay visible until the new ones are ready."""
    if s.text is None or not turned(s.text.document):
        return {"texts": []}
    if (found := s.cached(unsteered)) is None or found.settings != continuation_settings(s):
        return {}
    names = turned_names(s)
    rows = [
        (t("concepts.without"), f"{marked(found.goes_on).strip()} …"),
        (
            t("concepts.with", names=t("list.and").join(names)),
            f"{marked(found.steered).strip()} …",
        ),
    ]
    return {"texts": rows}


def steer_labels() -> dict[str, str]:
    """Return the labels for the `steer` widget."""
    names = ("question", "weaker", "stronger", "reset", "strength", "weakened")
    return {name: t(f"concepts.{name}") for name in names}


def risen_sentence(s: Snapshot, now: Tensor) -> str:
    """Return a sentence naming the token whose probability steering has raised most; "" until it has been measured.

    now: the steered distribution, (vocab_size,).
    """
    before = s.cached(unsteered_probabilities)
    if s.text is None or before is None:
        return ""
    token = int((now - before).argmax())
    p, q = percent(before[token].item()), percent(now[token].item())
    return "" if p == q else t("concepts.risen", token=quoted(s.text.tokenizer, token), before=p, after=q)
