"""The model's concepts: naming them, and turning them up or down for all tabs.

The strengths are part of the edits to the document, so they affect everything that continues or reads the text.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from components.errors import NothingToShow, PageError
from components.i18n import spoken, t
from components.labels import percent, quoted, shortened
from components.state.reads import Computed
from components.state.session import Session
from components.state.snapshot import Snapshot
from gpt import Edits, Generation, LoadedModel, SamplingParams, Steering
from gpt.analysis.concepts import NO_ACTIVITY, NONE, Concepts, trace_activity
from gpt.analysis.saliency import Ablation, predict_without
from gpt.analysis.tracing import trace_text
from gpt.background import threads_for
from gpt.inference.packed_weights import multiplications_per_token

Feature = tuple[int, int]  # (layer, feature index)
Rows = Literal["tokens", "promotes"]
N_WORDS = 3  # words that describe a feature without a name
LIMIT, STEP = 4.0, 0.25  # greatest strength and step, in multiples of the natural strength; the least is NO_ACTIVITY
CENTRE = 50  # of a slider from 0 to 100: the model as it is
USUAL = 1.5  # default strength for a concept
MAX_QUERY_CHARS = 40  # maximum number of characters that a message quotes from a search
GOES_ON_TOKENS, GOES_ON_SEED = 40, 1
# A text with ideas babbles if its loss under the model as it is exceeds that of the text without them by more than
# SURPRISE nats per token, or if more than REPEATS of its words have occurred in it before.
SURPRISE, REPEATS = 2.0, 0.4
WORD = re.compile(r"[\u3400-\u9fff]|\w+|\W")  # a Chinese character counts as a word


class Continuations(NamedTuple):
    """A text continued without and with the ideas, and the difference of their losses under the model as it is."""

    plain: str
    steered: str
    surprise: float  # nats per token


def model_of(s: Snapshot) -> LoadedModel | None:
    return s.loaded if s.text is None else s.text.loaded


def concepts_of(s: Snapshot) -> Concepts | None:
    """Return the concepts of the text's model, or of the loaded model if there is no text."""
    loaded = model_of(s)
    return None if loaded is None else loaded.concepts


def turned(document: Generation | None) -> dict[Feature, float]:
    """Return the strength of each concept that is turned up or down in a document."""
    edits = (document.edits if document is not None else None) or Edits()
    return {(each.layer, each.concept[0]): each.concept[1] for each in edits.steering if each.concept is not None}


def kept_edits(session: Session, loaded: LoadedModel) -> Edits | None:
    """Return the edits for the session's next document. If the model stays the same, concepts stay turned up."""
    document = session.document
    return document.edits if document is not None and document.loaded is loaded else None


def concept_name(loaded: LoadedModel, place: Feature) -> str:
    """Return a feature's name or, if it has none, the quoted tokens on which it is strongest."""
    assert loaded.concepts is not None
    named = loaded.concepts.by_place.get(place)
    if named is not None:
        return named.names.get(spoken()) or named.names["en"]
    return " ".join(_words(loaded, place)) or t("concepts.unused")


def shared_name(loaded: LoadedModel, layer: int, feature: int) -> Hashable:
    """Return a key for features that a reader can't tell apart: their name, or their words in any order and case."""
    assert loaded.concepts is not None
    named = loaded.concepts.by_place.get((layer, feature))
    return frozenset(map(str.casefold, _words(loaded, (layer, feature)))) if named is None else named.names["en"]


def _words(loaded: LoadedModel, place: Feature) -> list[str]:
    """Return the tokens that describe a feature; if most of them are words, without punctuation marks."""
    tokens = concept_tokens(loaded, place)
    words = [token for token in tokens if any(map(str.isalnum, token))]
    are_words = sum(token in words for token in tokens[:N_WORDS]) > N_WORDS / 2
    return (words if are_words else tokens)[:N_WORDS]


def quoted_concept(loaded: LoadedModel, place: Feature) -> str:
    name = concept_name(loaded, place)
    return name if name.startswith("“") else f"“{name}”"


def concept_tokens(loaded: LoadedModel, place: Feature, rows: Rows = "tokens") -> list[str]:
    """Return the quoted tokens on which a feature is strongest, or, for "promotes", the ones it promotes most."""
    assert loaded.concepts is not None
    ids = getattr(loaded.concepts.dictionaries[place[0]], rows)[place[1]].tolist()
    return list(dict.fromkeys(quoted(loaded.tokenizer, i) for i in ids if i != NONE))


def usual_strength(loaded: LoadedModel, place: Feature) -> float:
    named = None if loaded.concepts is None else loaded.concepts.by_place.get(place)
    return USUAL if named is None or named.strength is None else named.strength


def found_concept(loaded: LoadedModel, query: str) -> Feature:
    """Find a feature by "layer.number" or by a word. Raises ValueError if none matches."""
    if loaded.concepts is None:
        raise PageError("error.no_concepts", model=loaded.name)
    if place := re.fullmatch(r"(\d{1,4})\.(\d{1,7})", query, re.ASCII):
        return int(place[1]), int(place[2])
    if not (found := loaded.concepts.search(loaded.tokenizer, query, 1)):
        raise PageError("concepts.not_found", query=shortened(query, MAX_QUERY_CHARS))
    return found[0]


def turn(session: Session, sent: dict[str, Any]) -> None:
    """Turn the concepts up or down to where the sliders of the `steer` widget are. sent: unchecked, see `strengths`."""
    document = session.document
    if document is None or (concepts := document.loaded.concepts) is None:
        return
    steer(session, [concepts.steering(*place, strength) for place, strength in strengths(sent).items()])


def strengths(sent: dict[str, Any]) -> dict[Feature, float]:
    """Return the strength of each slider that isn't in the centre.

    sent (unchecked): {"on": [[layer, feature, position], ...]}. A position is between 0, where nothing is left of a
    concept, and 100, the greatest strength.
    """
    found: dict[Feature, float] = {}
    rows = sent.get("on")
    for each in rows if isinstance(rows, list) else ():
        match each:
            case [int(layer), int(feature), int() | float() as position] if position != CENTRE:
                away = max(-1.0, min(1.0, position / CENTRE - 1))
                found[layer, feature] = away * (LIMIT if away > 0 else -NO_ACTIVITY)
    return found


def position_of(strength: float) -> float:
    """Return the position of a slider, 0 to 100, for a strength."""
    return round(CENTRE * (1 + strength / (LIMIT if strength > 0 else -NO_ACTIVITY)), 2)


def steer(session: Session, steering: Sequence[Steering]) -> None:
    """Replace the steering of the session's document, and read its text again."""
    with session.lock.changing():
        if (document := session.document) is not None:
            document.edit(replace(document.edits or Edits(), steering=tuple(steering)))
            document.read()


def continuation_settings(s: Any) -> SamplingParams:
    """Return the settings of continuations that are compared, with a fixed seed."""
    return replace(s.settings.sampling(), seed=GOES_ON_SEED)


def turned_now(s: Snapshot) -> dict[Feature, float]:
    return turned(None if s.text is None else s.text.document)


def is_steered(s: Any) -> bool:
    return s.text is not None and s.text.n_read > 0 and bool(turned(s.text.document))


@Computed
def unsteered(s: Any) -> tuple[Tensor, tuple[Feature, ...]] | None:
    """Predict the token after the selected position without steering; None if nothing is turned up or down.

    Returns the logits, (vocab_size,), and the concepts that are turned down but are not active up to the position.
    """
    if not is_steered(s):
        return None
    loaded, document, ids = s.text.loaded, s.text.document, s.text.ids[: s.position + 1]
    with threads_for(len(ids) * multiplications_per_token(loaded.model)):
        logits = predict_without(loaded.model, ids, Ablation(), replace(document.edits, steering=()))
        return document.possible(s.position, logits), absent(loaded, ids, document.edits)


@Computed
def continuations(s: Any) -> Continuations | None:
    """Continue the text up to the selected position without and with steering; None if nothing is turned up or down."""
    if not is_steered(s):
        return None
    loaded, document, ids = s.text.loaded, s.text.document, s.text.ids[: s.position + 1]
    edits, held = document.edits, document.held_after(s.position)
    settings, as_it_is = continuation_settings(s), replace(edits, steering=())
    with threads_for(len(ids) * multiplications_per_token(loaded.model)):
        plain, steered = (Generation(loaded, ids, edits=each, held=held) for each in (as_it_is, edits))
        without, with_them = (
            "".join(step.text for step in each.steps(settings, GOES_ON_TOKENS)) for each in (plain, steered)
        )
        before, after = (loss_of(loaded, ids, each.ids[len(ids) :], as_it_is) for each in (plain, steered))
        return Continuations(without, with_them, after - before)


@torch.inference_mode()
def loss_of(loaded: LoadedModel, ids: Sequence[int], written: Sequence[int], edits: Edits | None = None) -> float:
    """Return the mean loss of the tokens written after a text, in nats per token; 0 if there are none."""
    known = torch.tensor([*ids, *written][-loaded.model.config.block_size - 1 :], device=loaded.model.device)
    count = min(len(written), len(known) - 1)
    if count <= 0:
        return 0.0
    return float(cross_entropy(loaded.model(known[None, :-1], edits=edits)[0, -count:].float(), known[-count:]))


def absent(loaded: LoadedModel, ids: Sequence[int], edits: Edits) -> tuple[Feature, ...]:
    """Return the concepts that the edits turn down, but that are not active in the text."""
    down = [(each.layer, each.concept[0]) for each in edits.steering if each.concept and each.concept[1] < 0]
    if not down or loaded.concepts is None:
        return ()
    others = tuple(each for each in edits.steering if each.concept is None or each.concept[1] > 0)
    trace = trace_text(loaded.model, ids, replace(edits, steering=others))
    active = {layer: trace_activity(loaded.concepts, trace, layer).amax(dim=0) for layer, _ in down}
    return tuple((layer, feature) for layer, feature in down if active[layer][feature] == 0)


def unsteered_probabilities(s: Any) -> Tensor | None:
    """Return the distribution without steering, (vocab_size,), under the sampling settings, if it is known."""
    found = s.ready(unsteered)
    return None if found is None else s.stages(found[0], s.text.ids[: s.position + 1]).final


def has_desk(s: Any) -> bool:
    concepts = concepts_of(s)
    return s.text is not None and concepts is not None and bool(concepts.offered)


def steer_data(s: Any) -> dict[str, Any]:
    if not s.watch(has_desk):
        raise NothingToShow
    loaded, on = s.watch(model_of), s.watch(turned_now)
    offered = [(each.layer, each.feature) for each in loaded.concepts.offered]
    return sliders(loaded, [*offered, *on], on) | comparison(s)


def sliders(loaded: LoadedModel, places: Iterable[Feature], on: dict[Feature, float]) -> dict[str, Any]:
    """Return the sliders of concepts. on: strengths that aren't 0."""
    rows = [(*place, concept_name(loaded, place), position_of(on.get(place, 0.0))) for place in dict.fromkeys(places)]
    return {"sliders": rows}


def turned_names(s: Any) -> list[str]:
    on = turned_now(s)
    ways = {place: "concepts.up" if strength > 0 else "concepts.down" for place, strength in on.items()}
    return [t(way, name=concept_name(s.text.loaded, place)) for place, way in ways.items()]


def comparison(s: Any) -> dict[str, Any]:
    """Return the continuations with and without steering; the old ones stay visible until the new ones are ready."""
    if not s.watch(is_steered):
        return {"texts": [], "babbles": False, "note": "", "stale": False}
    if (found := s.ready(continuations)) is None:
        return {"stale": True}
    labels = t("concepts.without"), t("concepts.with", names=t("list.and").join(turned_names(s)))
    texts = list(zip(labels, marked_differences(found.plain, found.steered), strict=True))
    babbles = found.surprise > SURPRISE or repeated(found.steered) > REPEATS
    notes = [t("concepts.babbles")] if babbles else []
    _, silent = s.ready(unsteered) or (None, ())
    notes += [t("concepts.absent", name=quoted_concept(s.text.loaded, place)) for place in silent]
    return {"texts": texts, "babbles": babbles, "note": " ".join(notes), "stale": False}


def repeated(text: str) -> float:
    """Return the share of a text's words that have occurred in it before."""
    words = [word.casefold() for word in WORD.findall(text) if word[0].isalnum()]
    return 1 - len(set(words)) / len(words) if words else 0.0


def marked_differences(plain: str, steered: str) -> tuple[list[tuple[str, bool]], list[tuple[str, bool]]]:
    """Split two texts into pieces, each with whether the other text lacks it there."""
    words: list[list[str]] = [WORD.findall(f"{text.strip()} …") for text in (plain, steered)]
    both: tuple[list[tuple[str, bool]], list[tuple[str, bool]]] = [], []
    for kind, *ends in difflib.SequenceMatcher(str.isspace, words[0], words[1], autojunk=False).get_opcodes():
        for pieces, each, start, end in zip(both, words, ends[::2], ends[1::2], strict=True):
            if start < end:
                pieces.append(("".join(each[start:end]), kind != "equal"))
    return both


def risen_sentence(s: Any, now: Tensor) -> str:
    """Name the token whose probability steering raised most; "" until measured. now: with steering, (vocab_size,)."""
    before = s.cached(unsteered_probabilities)
    if s.text is None or before is None:
        return ""
    token = int((now - before).argmax())
    p, q = percent(before[token].item()), percent(now[token].item())
    return "" if p == q else t("concepts.risen", token=quoted(s.text.tokenizer, token), before=p, after=q)
