"""The answer: what a prediction depends on, as a sentence and as a flow from words through heads or concepts."""

from __future__ import annotations

from collections.abc import Container, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from components.causes import Fall, Falls, causes_of, causes_sentence, falls_of, head_sentence
from components.concepts import concept_name, quoted_concept, shared_name
from components.i18n import t
from components.labels import layer_head_name, percent, quoted, signed
from components.state.reads import Pending
from components.state.session import Session
from components.state.typed_text import word_name, words_of
from components.tabs.why import explained
from components.tabs.why.explained import Chosen, Explained, about, explanation, latest, predict, short, tab
from gpt import GPTConfig
from gpt.analysis.concept_graph import ConceptGraph, FeatureNode, concept_graph
from gpt.analysis.saliency import Ablation, Causes, predict_without
from gpt.background import threads_for
from gpt.inference.packed_weights import multiplications_per_token
from gpt.sampling import keep_only

FLOW_HEADS = 5
FLOW_WORDS = 6
MAX_GRADIENT_BYTES = 2**29
MIN_WEIGHT = 0.005  # smallest attention weight that is drawn
MAX_NAMED = 3  # parts named in a sentence
ERROR = "error"  # key of the reconstruction error in the later layer


@tab.computed
@about
def causes(s: Any, e: Explained) -> Causes:
    p = e.prediction
    return causes_of(e.model, e.tokenizer, p.previous, p.token, e.edits, held=p.held)


def falls(s: Any) -> Falls:
    return falls_of(s[causes], s[explanation].prediction.previous, s.settings.sampling())


def is_expected(s: Any) -> bool:
    """Return whether what is missing will be computed."""
    return s.text is not None and s.text.n_read > 0 and not s.generating


def because(s: Any) -> str:
    """Name the word and the head whose removal lowers the probability the most; meanwhile, state the probability."""
    try:
        found, e = s.cached(falls), s[explanation]
    except Pending:
        if not is_expected(s):
            raise
        prediction, config = predict(s.text, s.position, explained.question_of(s).token), s.text.config
        p = percent(prediction.probabilities(s.settings.sampling())[prediction.token].item())
        name = quoted(s.text.tokenizer, prediction.token)
        return t("why.because.busy", token=name, p=p, heads=config.n_layer * config.n_head)
    token = e.prediction.token
    sentence = causes_sentence(found, token, e.prediction.previous, e.tokenizer)
    return sentence + head_sentence(found, token, e.tokenizer)


# The flow, through heads or through concepts. Its parts can be switched off.


@dataclass(frozen=True, eq=False)
class CauseFlow:
    """Words, in text order, and heads. weights: each head's attention from the last token, (heads, words)."""

    words: Sequence[Fall]
    heads: Sequence[Fall]
    weights: np.ndarray


def cause_flow(e: Explained, falls: Falls) -> CauseFlow | None:
    """Return the heads and words whose removal lowers the probability the most, or None if there are no heads."""
    if not falls.heads:
        return None
    p = percent(falls.probability)
    heads = [fall for i, fall in enumerate(falls.heads[:FLOW_HEADS]) if i < 2 or percent(fall.probability) != p]
    words = sorted(falls.words[:FLOW_WORDS], key=lambda fall: fall.place)
    n = e.prediction.position + 1
    rows = [e.trace.layers[layer].attn_weights[0, head, e.column, :n] for layer, head in (fall.place for fall in heads)]
    weights = torch.stack(rows).float().cpu().numpy()
    of_words = [weights[:, fall.place].sum(axis=1) for fall in words]
    return CauseFlow(words, heads, np.stack(of_words, axis=1) if words else weights[:, :0])


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


def flow(s: Any) -> CauseFlow | ConceptGraph | None:
    if s[Chosen].by == "concepts":
        found: ConceptGraph | None = s[graph]
        return found
    return cause_flow(s[explanation], s.cached(falls))


def word_key(word: Sequence[int]) -> str:
    return f"word {word[0]}"


def head_key(place: Sequence[int]) -> str:
    layer, head = place
    return f"head {layer}.{head}"


def read_key(head: Sequence[int], word: Sequence[int]) -> str:
    return f"{head_key(head)} {word_key(word)}"


def node_key(node: FeatureNode) -> str:
    feature, position = node.places[0]
    return f"{node.layer}.{feature} {position}"


def words_in(found: CauseFlow | ConceptGraph) -> list[Sequence[int]]:
    return list(found.words) if isinstance(found, ConceptGraph) else [fall.place for fall in found.words]


def parts(e: Explained, found: CauseFlow | ConceptGraph) -> dict[str, str]:
    """Return the name of each part that can be switched off, for a sentence, by its key."""
    words = {word_key(word): word_name(e.tokenizer, e.prediction.previous, word) for word in words_in(found)}
    if isinstance(found, ConceptGraph):
        nodes = (*found.early, *found.late)
        concepts = {node_key(node): quoted_concept(e.loaded, (node.layer, node.places[0][0])) for node in nodes}
        return words | concepts | {ERROR: t("why.paths.error")}
    heads = {head_key(fall.place): layer_head_name(fall.place) for fall in found.heads}
    reads = {
        f"{head} {word}": t("why.flow.read", head=of_head, token=of_word)
        for head, of_head in heads.items()
        for word, of_word in words.items()
    }
    return words | heads | reads


def hidden_by(found: CauseFlow | ConceptGraph, off: Container[str]) -> frozenset[int]:
    return frozenset(position for word in words_in(found) if word_key(word) in off for position in word)


def off_of(s: Any, e: Explained, found: CauseFlow | ConceptGraph) -> list[str]:
    prediction, off = s[Chosen].off
    return [key for key in parts(e, found) if key in off] if prediction == e.prediction else []


def switch(session: Session, sent: dict[str, Any]) -> None:
    """Toggle a part of the flow. `sent` contains its "key", or "all" to switch everything on."""
    s, e = session.snapshot(), latest(session)
    known = s[graph if s[Chosen].by == "concepts" else causes]
    found = None if e is None or known is None else flow(s)
    if e is None or found is None:
        return
    clicked = {key for key in parts(e, found) if key == sent.get("key")}
    prediction, before = s[Chosen].off
    before = before if prediction == e.prediction else frozenset()  # keys of both flows, heads and concepts
    off = before - parts(e, found).keys() if sent.get("all") is True else before ^ clicked
    if len(hidden_by(found, off)) <= e.prediction.position:  # at least one token must remain
        session.change(Chosen, off=(e.prediction, off))


@tab.computed
@about
def without(s: Any, e: Explained) -> Tensor:
    """Return the logits without the parts that are off, (vocab_size,)."""
    found, ids, model = flow(s), e.prediction.previous, e.model
    assert found is not None
    off = off_of(s, e, found)
    hidden = hidden_by(found, off)
    if isinstance(found, ConceptGraph):
        off_nodes = (node for node in (*found.early, *found.late) if node_key(node) in off)
        features = frozenset((node.layer, *place) for node in off_nodes for place in node.places)
        ablation = Ablation(hidden, features=features, error=ERROR in off)
    else:
        places = [fall.place for fall in found.heads]
        reads = [(head, word) for head in places for word in words_in(found) if read_key(head, word) in off]
        hidden_heads = frozenset((layer, head) for layer, head in places if head_key((layer, head)) in off)
        hidden_reads = frozenset((layer, head, i) for (layer, head), word in reads for i in word)
        ablation = Ablation(hidden, hidden_heads, hidden_reads)
    with threads_for(len(ids) * multiplications_per_token(model)):
        return keep_only(predict_without(model, ids, ablation, e.edits, e.loaded.concepts), e.possible)


def draw_flow(s: Any) -> dict[str, Any]:
    """Return the data for the `ribbons` widget, without columns if the flow is not known yet or there is none."""
    try:
        found = s.cached(flow)
    except Pending:
        return {"columns": [], "is_pending": is_expected(s)}
    if found is None:
        return {"columns": [], "is_pending": False}
    e = s[explanation]
    ids, token, off = e.prediction.previous, e.prediction.token, off_of(s, e, found)
    before, p = e.prediction.probabilities(s.settings.sampling())[token].item(), None
    if off:
        with suppress(Pending):
            hidden = hidden_by(found, off)
            p = s.stages(s[without], [each for i, each in enumerate(ids) if i not in hidden]).final
    drawn = _concept_columns(e, found) if isinstance(found, ConceptGraph) else _head_columns(e, found, before)
    return drawn | {
        "off": off,
        "target": short(e.tokenizer, token),
        "before": shortened_number(before),
        "after": None if p is None else shortened_number(p[token].item()),
        "says": flow_says(e, found, off, before, p),
    }


def _node(key: str | None, name: str, adds: float, says: str = "", **more: Any) -> dict[str, Any]:
    """Return a node. adds: how much goes through it. key: None for one that can't be switched off."""
    return {"key": key, "name": name, "adds": round(float(adds), 4), "says": says} | more


def _head_columns(e: Explained, found: CauseFlow, before: float) -> dict[str, Any]:
    """Return nodes for words and heads; what goes through a head is how far the probability falls without it."""
    p, falls = percent(before), np.array([1 - fall.probability / before for fall in found.heads])
    reads = np.where(found.weights < MIN_WEIGHT, 0, found.weights) * falls[:, None]
    rest = falls - reads.sum(axis=1)
    words, heads = [], []
    edges: list[tuple[Any, ...]] = []
    for i, fall in enumerate(found.words):
        ids = [e.prediction.previous[position] for position in fall.place]
        name, after = e.tokenizer.decode(ids).strip() or short(e.tokenizer, ids[0]), fall.probability
        says = t("why.flow.token.off", token=name, before=p, after=percent(after))
        words.append(_node(word_key(fall.place), name, reads[:, i].sum(), says, number=shortened_number(after)))
    for h, fall in enumerate(found.heads):
        (layer, head), after = fall.place, fall.probability
        says = t("why.flow.head.off", layer=layer, head=head, before=p, after=percent(after))
        more = {"number": shortened_number(after), "short": t("why.flow.head.short", layer=layer, head=head)}
        heads.append(_node(head_key(fall.place), layer_head_name(fall.place), falls[h], says, **more))
        for i, word in enumerate(found.words):
            share = percent(float(found.weights[h, i]))
            says = t("why.flow.read.off", layer=layer, head=head, token=words[i]["name"], p=share)
            edges.append((0, i, h, round(float(reads[h, i]), 4), read_key(fall.place, word.place), says))
        edges.append((0, len(found.words), h, round(max(0.0, float(rest[h])), 4), None, ""))
    words.append(_node(None, t("why.flow.others"), rest.sum()))
    columns = [{"title": t("why.flow.tokens"), "nodes": words}, {"title": t("why.flow.heads"), "nodes": heads}]
    return {"by": "heads", "name": t("why.flow.name", token=e.token_name), "columns": columns, "edges": edges}


def _concept_columns(e: Explained, found: ConceptGraph) -> dict[str, Any]:
    """Return nodes for words and the concepts of two layers; what goes through one is what it adds to the logit."""
    names, (first, last) = parts(e, found), found.layers

    def node(key: str, name: str, adds: float) -> dict[str, Any]:
        return _node(key, name, adds, t("why.paths.adds", name=names[key], adds=signed(adds, 1)))

    def feature(each: FeatureNode) -> dict[str, Any]:
        return node(node_key(each), concept_name(e.loaded, (each.layer, each.places[0][0])), each.adds)

    def between(column: int, sizes: Tensor) -> list[tuple[Any, ...]]:
        places = np.ndenumerate(sizes.cpu().numpy())
        return [(column, i, j, round(max(0.0, float(size)), 4), None, "") for (i, j), size in places]

    others, others_name = found.others, t("why.paths.others")
    rest = _node(None, others_name, others, t("why.paths.adds", name=others_name, adds=signed(others, 1)))
    keys = [word_key(word) for word in found.words]
    words = [node(key, names[key], float(sum(found.to_early[i]))) for i, key in enumerate(keys)]
    late = [*map(feature, found.late), node(ERROR, names[ERROR], found.error), rest]
    return {
        "by": "concepts",
        "name": t("why.paths.name", token=e.token_name),
        "columns": [
            {"title": t("why.paths.words"), "nodes": words},
            {"title": t("why.paths.layer", layer=first), "nodes": [*map(feature, found.early)]},
            {"title": t("why.paths.layer", layer=last), "nodes": late},
        ],
        "edges": [*between(0, found.to_early), *between(1, found.to_late)],
    }


def flow_says(
    e: Explained, found: CauseFlow | ConceptGraph, off: Sequence[str], before: float, p: Tensor | None
) -> str:
    """Describe the prediction without the parts that are off, which are counted if there are many.

    before: the probability with everything on. p: of each token without the parts; None while it is computed.
    """
    if not off and isinstance(found, ConceptGraph):
        share = sum(node.adds for node in found.late) / found.logit if found.logit > 0 else 0.0
        return t("why.paths.hint", share=percent(max(0.0, min(1.0, share))))
    if not off and isinstance(found, CauseFlow):
        same = {percent(each) for each in (before, *(fall.probability for fall in (*found.words, *found.heads)))}
        return t("why.flow.hint") if len(same) > 1 else t("why.flow.none", token=e.token_name, p=same.pop())
    if p is None:
        return t("why.flow.busy")
    names, token, best = parts(e, found), e.prediction.token, int(p.argmax())
    named = t("list.and").join(names[key] for key in off)
    if len(off) > MAX_NAMED:
        named = t("why.flow.parts", n=len(off))
    was, now = percent(before), percent(p[token].item())
    key = "why.flow.same" if was == now else "why.flow.without"
    says = t(key, parts=named, token=e.token_name, before=was, after=now)
    if best != token:
        says += t("why.flow.best", best=quoted(e.tokenizer, best), p=percent(p[best].item()))
    return says


def shortened_number(p: float) -> float:
    """Round a probability to seven significant digits: with fewer, the page's whole percent could differ from ours."""
    return float(f"{p:.7g}")


def no_paths(s: Any) -> str:
    if s[Chosen].by != "concepts" or s[graph] is not None:
        return ""
    return t("concepts.none" if s[explanation].loaded.concepts is None else "why.paths.long")
