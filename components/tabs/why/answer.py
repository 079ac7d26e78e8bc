"""The answer: what a prediction depends on, as a sentence and as a flow from words through heads or concepts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from components.causes import Falls, causes_of, causes_sentence, falls_of, head_sentence
from components.concepts import concept_name, quoted_concept, shared_name
from components.i18n import t
from components.labels import bar_label, layer_head_name, percent, quoted, signed
from components.state.reads import Pending
from components.state.session import Session
from components.state.typed_text import word_name, words_of
from components.tabs.why.explained import Chosen, Explained, about, explained, latest, predict, question_of, short, tab
from gpt import GPTConfig
from gpt.analysis.causes import Ablation, Causes, predict_without
from gpt.analysis.concept_graph import ConceptGraph, FeatureNode, Removed, concept_graph, logits_without
from gpt.background import threads_for
from gpt.inference.packed_weights import multiplications_per_token
from gpt.sampling import keep_only

FLOW_HEADS = 5
FLOW_WORDS = 6
MAX_GRADIENT_BYTES = 2**29
MIN_WEIGHT = 0.005  # smallest attention weight that is drawn
MAX_NAMED = 3  # parts named in a sentence
ERROR = "error"  # key of the reconstruction error in the later layer


# The main reason, as a sentence


@tab.computed
@about
def causes(s: Any, e: Explained) -> Causes:
    """Measure the words and heads that the prediction depends on."""
    p = e.prediction
    return causes_of(e.model, e.tokenizer, p.previous, p.token, e.edits, held=p.held)


def falls(s: Any) -> Falls:
    """Return how far the explained token's probability falls without each word and head."""
    return falls_of(s[causes], s[explained].prediction.previous, s.settings.sampling())


def is_pending(s: Any) -> bool:
    try:
        s.cached(falls)
    except Pending:
        return s.text is not None and s.text.n_read > 0 and not s.generating
    return False


def because(s: Any) -> str:
    """Name the word and the head whose removal lowers the probability the most; meanwhile, state the probability."""
    if is_pending(s):
        prediction, config = predict(s.text, s.position, question_of(s).token), s.text.config
        p = percent(prediction.probabilities(s.settings.sampling())[prediction.token].item())
        name = quoted(s.text.tokenizer, prediction.token)
        return t("why.because.busy", token=name, p=p, heads=config.n_layer * config.n_head)
    found, e = s.cached(falls), s[explained]
    token = e.prediction.token
    sentence = causes_sentence(found, token, e.prediction.previous, e.tokenizer)
    return sentence + head_sentence(found, token, e.tokenizer)


# The flow through heads


@dataclass(frozen=True, eq=False)
class CauseFlow:
    """Heads and words that a prediction depends on.

    heads: each head, with the probability without it. words: each word's positions, in text order, with the
    probability without the word. weights: each head's attention from the last token, (heads, words).
    """

    heads: tuple[tuple[tuple[int, int], float], ...]
    words: tuple[tuple[range, float], ...]
    weights: np.ndarray

    def word_at(self, position: int) -> range | None:
        """Return the shown word that begins at a position."""
        return next((word for word, _ in self.words if word.start == position), None)


def cause_flow(e: Explained, falls: Falls) -> CauseFlow | None:
    """Return the heads and words whose removal lowers the probability the most, or None if there are no heads."""
    if not falls.heads:
        return None
    p = percent(falls.probability)
    shown = [fall for i, fall in enumerate(falls.heads[:FLOW_HEADS]) if i < 2 or percent(fall.probability) != p]
    heads = tuple(((fall.place[0], fall.place[1]), fall.probability) for fall in shown)
    words = sorted(
        ((range(fall.place[0], fall.place[-1] + 1), fall.probability) for fall in falls.words[:FLOW_WORDS]),
        key=lambda word: word[0].start,
    )
    n = e.prediction.position + 1
    rows = [e.trace.layers[layer].attn_weights[0, head, e.column, :n] for (layer, head), _ in heads]
    weights = torch.stack(rows).float().cpu().numpy()
    of_words = [weights[:, word.start : word.stop].sum(axis=1) for word, _ in words]
    return CauseFlow(heads, tuple(words), np.stack(of_words, axis=1) if words else weights[:, :0])


def off_of(s: Any, e: Explained) -> Ablation:
    """Return what is switched off in the flow."""
    prediction, off = s[Chosen].off
    return off if prediction == e.prediction else Ablation()


def switch(session: Session, sent: dict[str, Any]) -> None:
    """Toggle a token, a head or a head's input in the flow.

    `sent` contains "part", a field of `Ablation`, and "place", an element of it, or "all" to switch everything on.
    """
    s, e = session.snapshot(), latest(session)
    off = None if e is None else _switched(s, e, sent)
    if e is not None and off is not None:
        session.change(Chosen, off=(e.prediction, off))


def _switched(s: Any, e: Explained, sent: dict[str, Any]) -> Ablation | None:
    """Return the ablation after a click, or None if nothing changes."""
    if sent.get("all") is True:
        return Ablation()
    part, place = sent.get("part"), sent.get("place")
    if s[causes] is None or not isinstance(place, list) or any(type(each) is not int for each in place):
        return None
    flow, off = cause_flow(e, falls_of(s[causes], e.prediction.previous, s.settings.sampling())), off_of(s, e)
    heads = () if flow is None else [head for head, _ in flow.heads]
    match part, place:
        case "heads", [*head] if tuple(head) in heads:
            off = replace(off, heads=off.heads ^ {tuple(head)})
        case "tokens", [position] if flow and (word := flow.word_at(position)):
            off = replace(off, tokens=off.tokens ^ {*word})
        case "reads", [*head, position] if flow and tuple(head) in heads and (word := flow.word_at(position)):
            off = replace(off, reads=off.reads ^ {(*head, each) for each in word})
        case _:
            return None
    return off if len(off.tokens) <= e.prediction.position else None  # at least one token must remain


@tab.computed
@about
def without(s: Any, e: Explained) -> Tensor:
    """Return the logits without the parts that are off, (vocab_size,)."""
    previous = e.prediction.previous
    with threads_for(len(previous) * multiplications_per_token(e.model)):
        logits = predict_without(e.model, previous, off_of(s, e), e.edits)
    return keep_only(logits, e.possible)


def draw_flow(s: Any) -> dict[str, Any]:
    """Return the data for the `ribbons` widget, without heads if the causes are not known yet or there are none."""
    if s[Chosen].by == "concepts":
        return {"heads": [], "is_pending": False}
    pending = is_pending(s)
    known = None if pending else s.cached(falls)
    found = None if known is None else cause_flow(s[explained], known)
    if known is None or found is None:
        return {"heads": [], "is_pending": pending}
    e = s[explained]
    off = off_of(s, e)
    p = None if off == Ablation() else _probabilities_without(s, e, off)
    reads = [(*head, word.start) for head, _ in found.heads for word, _ in found.words]
    return {
        "tokens": [[word.start, _word(e, word), shortened_number(p)] for word, p in found.words],
        "heads": [[*head, shortened_number(p)] for head, p in found.heads],
        "weights": [[round(float(w), 6) if w >= MIN_WEIGHT else 0 for w in row] for row in found.weights],
        "n_head": e.model.config.n_head,
        "target": short(e.tokenizer, e.prediction.token),
        "before": shortened_number(known.probability),
        "after": None if p is None else shortened_number(p[e.prediction.token].item()),
        "off": {
            "tokens": [[word.start] for word, _ in found.words if word.start in off.tokens],
            "heads": [list(head) for head, _ in found.heads if head in off.heads],
            "reads": [list(read) for read in reads if read in off.reads],
        },
        "says": _flow_says(e, off, known.probability, p, [p for _, p in (*found.words, *found.heads)]),
        "name": e.token_name,
    }


def _probabilities_without(s: Any, e: Explained, off: Ablation) -> Tensor | None:
    """Return the probability of each token without the parts that are off, or None while it is being computed."""
    try:
        logits = s[without]
    except Pending:
        return None
    kept = [token for i, token in enumerate(e.prediction.previous) if i not in off.tokens]
    return s.stages(logits, kept).final


def _word(e: Explained, word: range) -> str:
    ids = e.prediction.previous
    return e.tokenizer.decode([ids[position] for position in word]).strip() or short(e.tokenizer, ids[word.start])


def _flow_says(e: Explained, off: Ablation, whole: float, p: Tensor | None, each: Sequence[float]) -> str:
    """Describe the prediction without the parts that are off.

    whole: the probability with everything on. each: the probability without each of the parts shown.
    """
    if off == Ablation():
        same = {percent(p) for p in (whole, *each)}
        return t("why.flow.hint") if len(same) > 1 else t("why.flow.none", token=e.token_name, p=same.pop())
    if p is None:
        return t("why.flow.busy")
    text = _without_says(e, _parts_off(e, off), whole, p[e.prediction.token].item())
    best = int(p.argmax())
    if best != e.prediction.token:
        text += t("why.flow.best", best=quoted(e.tokenizer, best), p=percent(p[best].item()))
    return text


def _without_says(e: Explained, parts: Sequence[str], before: float, after: float) -> str:
    """Compare the probabilities with and without parts, which are counted if there are many."""
    named = t("why.flow.parts", n=len(parts)) if len(parts) > MAX_NAMED else t("why.flow.and").join(parts)
    p, q = percent(before), percent(after)
    key = "why.flow.without" if p != q else "why.flow.same"
    return t(key, parts=named, token=e.token_name, before=p, after=q)


def _parts_off(e: Explained, off: Ablation) -> list[str]:
    ids = e.prediction.previous
    names = {word.start: word_name(e.tokenizer, ids, word) for word in words_of(e.tokenizer, ids)}
    read = [(place, names[place[2]]) for place in sorted(off.reads) if place[2] in names]
    return [
        *(name for start, name in names.items() if start in off.tokens),
        *(layer_head_name(head) for head in sorted(off.heads)),
        *(t("why.flow.read", head=layer_head_name(place[:2]), token=name) for place, name in read),
    ]


def shortened_number(p: float) -> float:
    """Round a probability to seven significant digits: with fewer, the page's whole percent could differ from ours."""
    return float(f"{p:.7g}")


# The flow through concepts


def longest_gradient(config: GPTConfig) -> int:
    """Return the largest number of tokens for which a backward pass fits into memory."""
    heads, neurons = config.n_head * config.head_size, (5 if config.gated else 3) * config.ff_size
    per_token = 4 * config.n_layer * (8 * config.n_embd + 4 * heads + neurons)
    return MAX_GRADIENT_BYTES // per_token


@tab.computed
@about
def graph(s: Any, e: Explained) -> ConceptGraph | None:
    """Return the concept graph, or None if the model has no concepts or the text is too long for a gradient."""
    ids, concepts = e.prediction.previous, e.loaded.concepts
    if concepts is None or not 1 < len(ids) <= longest_gradient(e.model.config):
        return None
    name = partial(shared_name, e.loaded)
    return concept_graph(e.model, concepts, ids, e.prediction.token, words_of(e.tokenizer, ids), name, e.edits)


def word_key(word: Sequence[int]) -> str:
    return f"word {word[0]}"


def node_key(node: FeatureNode) -> str:
    feature, position = node.places[0]
    return f"{node.layer}.{feature} {position}"


def graph_off_of(s: Any, e: Explained) -> frozenset[str]:
    """Return the keys of the graph's parts that are switched off."""
    prediction, off = s[Chosen].graph_off
    return off if prediction == e.prediction else frozenset()


def switch_part(session: Session, sent: dict[str, Any]) -> None:
    """Toggle a part of the concept graph. `sent` contains "node", its key, or "all" to switch everything on."""
    s, e = session.snapshot(), latest(session)
    found: ConceptGraph | None = s[graph]
    if e is None or found is None:
        return
    keys = {*map(word_key, found.words), *map(node_key, (*found.early, *found.late)), ERROR}
    clicked = {key for key in keys if key == sent.get("node")}
    off = frozenset[str]() if sent.get("all") is True else graph_off_of(s, e) ^ clicked
    session.change(Chosen, graph_off=(e.prediction, off))


def _positions_off(found: ConceptGraph, off: frozenset[str]) -> frozenset[int]:
    return frozenset(position for word in found.words if word_key(word) in off for position in word)


@tab.computed
@about
def graph_without(s: Any, e: Explained) -> Tensor:
    """Return the logits without the parts of the graph that are off, (vocab_size,)."""
    found, off, ids, concepts = s[graph], graph_off_of(s, e), e.prediction.previous, e.loaded.concepts
    assert concepts is not None
    off_nodes = (node for node in (*found.early, *found.late) if node_key(node) in off)
    nodes = frozenset((node.layer, *place) for node in off_nodes for place in node.places)
    with threads_for(len(ids) * multiplications_per_token(e.model)):
        logits = logits_without(
            e.model, concepts, ids, Removed(_positions_off(found, off), nodes, ERROR in off), e.edits
        )
    return keep_only(logits, e.possible)


def draw_paths(s: Any) -> dict[str, Any]:
    """Return the data for the `ribbons` widget, without columns if there is no graph."""
    if s[Chosen].by != "concepts":
        return {"columns": [], "is_pending": False}
    try:
        found: ConceptGraph | None = s[graph]
    except Pending:
        return {"columns": [], "is_pending": True}
    if found is None:
        return {"columns": [], "is_pending": False}
    e = s[explained]
    off = graph_off_of(s, e)
    first, last = found.layers

    def node(key: str | None, name: str, adds: float, said: str = "") -> dict[str, Any]:
        says = t("why.paths.adds", name=said or name, adds=signed(adds, 1))
        return {"key": key, "name": name, "adds": adds, "off": key in off, "says": says}

    def feature(each: FeatureNode) -> dict[str, Any]:
        place = (each.layer, each.places[0][0])
        return node(node_key(each), concept_name(e.loaded, place), each.adds, quoted_concept(e.loaded, place))

    words = [
        node(word_key(word), word_name(e.tokenizer, e.prediction.previous, word), float(sum(found.to_early[i])))
        for i, word in enumerate(found.words)
    ]
    early, late = (list(map(feature, nodes)) for nodes in (found.early, found.late))
    late += [node(ERROR, t("why.paths.error"), found.error), node(None, t("why.paths.others"), found.others)]
    edges = [[0, i, j, _size(found.to_early[i, j])] for i in range(len(words)) for j in range(len(early))]
    edges += [[1, i, j, _size(found.to_late[i, j])] for i in range(len(early)) for j in range(len(found.late))]
    before, after = _probabilities(s, e, found, off)
    return {
        "columns": [
            {"title": t("why.paths.words"), "nodes": words},
            {"title": t("why.paths.layer", layer=first), "nodes": early},
            {"title": t("why.paths.layer", layer=last), "nodes": late},
        ],
        "edges": edges,
        "target": bar_label(e.tokenizer, found.token),
        "before": shortened_number(before),
        "after": None if after is None else shortened_number(after),
        "says": _paths_say(e, found, off, before, after),
        "name": e.token_name,
    }


def _size(adds: Any) -> float:
    return round(float(adds), 4)


def _part_name(e: Explained, found: ConceptGraph, key: str) -> str:
    """Name a part of the graph for a sentence."""
    if key == ERROR:
        return t("why.paths.error")
    for word in found.words:
        if word_key(word) == key:
            return word_name(e.tokenizer, e.prediction.previous, word)
    node = next(each for each in (*found.early, *found.late) if node_key(each) == key)
    return quoted_concept(e.loaded, (node.layer, node.places[0][0]))


def _probabilities(s: Any, e: Explained, found: ConceptGraph, off: frozenset[str]) -> tuple[float, float | None]:
    """Return the token's probability with everything on, and without the parts that are off.

    The second is None if nothing is off or it is being computed.
    """
    ids = e.prediction.previous
    before = s.stages(e.prediction.logits, ids).final[found.token].item()
    try:
        logits = s[graph_without] if off else None
    except Pending:
        logits = None
    if logits is None:
        return before, None
    hidden = _positions_off(found, off)
    kept = [token for position, token in enumerate(ids) if position not in hidden]
    return before, s.stages(logits, kept).final[found.token].item()


def _paths_say(e: Explained, found: ConceptGraph, off: frozenset[str], before: float, after: float | None) -> str:
    if not off:
        return t("why.paths.hint", share=percent(_named_share(found)))
    if after is None:
        return t("why.flow.busy")
    return _without_says(e, [_part_name(e, found, key) for key in sorted(off)], before, after)


def _named_share(found: ConceptGraph) -> float:
    """Return the fraction of the logit that the listed features in the later layer contribute."""
    named = sum(node.adds for node in found.late)
    return max(0.0, min(1.0, named / found.logit)) if found.logit > 0 else 0.0


def no_paths(s: Any) -> str:
    if s[Chosen].by != "concepts" or s[graph] is not None:
        return ""
    return t("concepts.none" if s[explained].loaded.concepts is None else "why.paths.long")
