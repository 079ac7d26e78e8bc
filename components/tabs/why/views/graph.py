"""The concept flow from words through features in two layers to the token, and the prediction without parts of it."""

from __future__ import annotations

from typing import Any

from components.concepts import concept_name, quoted_concept
from components.i18n import t
from components.labels import bar_label, percent, quoted, signed
from components.render import View
from components.state.snapshot import Snapshot
from components.tabs.why.predictions import ERROR, node_key, word_key
from components.tabs.why.state import Explanation, WhyState
from components.tabs.why.views.flow import MAX_NAMED, four_digits
from components.words import word_name
from gpt.analysis.concept_graph import ConceptGraph, FeatureNode


def paths(s: Snapshot) -> dict[str, Any]:
    """Return the data for the `paths` widget, without columns if there is no graph."""
    state, shown = s.state(WhyState), s.state(WhyState).shown
    if state.by != "concepts" or shown is None or shown.graph is None:
        return {"columns": []}
    graph, off = shown.graph, shown.graph_off
    first, last = graph.layers
    words = [_node(s, shown, word_key(word), float(sum(graph.to_early[i]))) for i, word in enumerate(graph.words)]
    early, late = ([_feature(s, shown, node) for node in nodes] for nodes in (graph.early, graph.late))
    others = t("why.paths.others")
    rest = {"key": None, "name": others, "adds": graph.others, "off": False, "says": _says(s, others, graph.others)}
    late += [_node(s, shown, ERROR, graph.error), rest]
    edges = [[0, i, j, _size(graph.to_early[i, j])] for i in range(len(words)) for j in range(len(early))]
    edges += [[1, i, j, _size(graph.to_late[i, j])] for i in range(len(early)) for j in range(len(graph.late))]
    before, after = _probabilities(s, shown)
    return {
        "columns": [
            {"title": t("why.paths.words"), "nodes": words},
            {"title": t("why.paths.layer", layer=first), "nodes": early},
            {"title": t("why.paths.layer", layer=last), "nodes": late},
        ],
        "edges": edges,
        "target": bar_label(shown.traced.loaded.tokenizer, graph.token),
        "before": four_digits(before),
        "after": None if after is None else four_digits(after),
        "says": _sentence(s, shown, off, before, after),
        "labels": {
            "name": t("why.paths.name", token=quoted(shown.traced.loaded.tokenizer, graph.token)),
            "all": t("why.flow.all"),
        },
    }


def _size(adds: Any) -> float:
    return round(float(adds), 4)


def _node(s: Snapshot, shown: Explanation, key: str, adds: float) -> dict[str, Any]:
    name = node_name(s, shown, key)
    return {
        "key": key,
        "name": name,
        "adds": adds,
        "off": key in shown.graph_off,
        "says": _says(s, name, adds),
    }


def _feature(s: Snapshot, shown: Explanation, node: FeatureNode) -> dict[str, Any]:
    name = concept_name(shown.traced.loaded, (node.layer, node.places[0][0]))
    return _node(s, shown, node_key(node), node.adds) | {"name": name}


def _says(s: Snapshot, name: str, adds: float) -> str:
    return t("why.paths.adds", name=name, adds=signed(adds, 1))


def node_name(s: Snapshot, shown: Explanation, key: str) -> str:
    """Name a part of the graph for a sentence."""
    assert shown.graph is not None
    loaded, graph = shown.traced.loaded, shown.graph
    if key == ERROR:
        return t("why.paths.error")
    for word in graph.words:
        if word_key(word) == key:
            return word_name(loaded.tokenizer, shown.prediction.previous, word)
    node = next(each for each in (*graph.early, *graph.late) if node_key(each) == key)
    return quoted_concept(loaded, (node.layer, node.places[0][0]))


def _probabilities(s: Snapshot, shown: Explanation) -> tuple[float, float | None]:
    """Return the token's probability with everything on, and without the parts that are off.

    The second is None if nothing is off or it has not been computed.
    """
    graph, ids = shown.graph, shown.prediction.previous
    assert graph is not None
    before = s.stages(shown.prediction.logits, ids).final[graph.token].item()
    if shown.graph_without is None:
        return before, None
    off = {position for word in graph.words if word_key(word) in shown.graph_off for position in word}
    kept = [token for position, token in enumerate(ids) if position not in off]
    return before, s.stages(shown.graph_without, kept).final[graph.token].item()


def _sentence(s: Snapshot, shown: Explanation, off: frozenset[str], before: float, after: float | None) -> str:
    assert shown.graph is not None
    if not off:
        return t("why.paths.hint", share=percent(_named_share(shown.graph)))
    if after is None:
        return t("why.flow.busy")
    names = [node_name(s, shown, key) for key in sorted(off)]
    parts = t("why.flow.and").join(names)
    if len(names) > MAX_NAMED:
        parts = t("why.flow.parts", n=len(names))
    p, q = percent(before), percent(after)
    key = "why.flow.without" if p != q else "why.flow.same"
    token = quoted(shown.traced.loaded.tokenizer, shown.graph.token)
    return t(key, parts=parts, token=token, before=p, after=q)


def _named_share(graph: ConceptGraph) -> float:
    """Return the fraction of the logit that the listed features in the later layer contribute."""
    named = sum(node.adds for node in graph.late)
    return max(0.0, min(1.0, named / graph.logit)) if graph.logit > 0 else 0.0


def status(s: Snapshot) -> dict[str, Any]:
    """Explain why there is no graph."""
    state, shown = s.state(WhyState), s.state(WhyState).shown
    if state.by != "concepts" or shown is None or shown.graph is not None or not shown.graph_known:
        return {"text": ""}
    key = "concepts.none" if shown.traced.loaded.concepts is None else "why.paths.long"
    return {"text": t(key)}


VIEWS = (View("why-paths", paths), View("why-no-paths", status))
