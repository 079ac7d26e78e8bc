"""Views for the beam search: the tree, the best text and the finished texts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from components.frame import short_name
from components.i18n import t
from components.labels import decimal, marked, token_text
from components.render import Draw, Lines, View
from components.state.snapshot import Snapshot
from components.tabs.compare.state import BeamState, CompareState
from components.tabs.compare.views.columns import run_notice
from components.widgets import beams as widget
from components.widgets.sentence import sentence_data
from gpt.documents.beam_search import BeamSearch, Candidate

MAX_ROOT_CHARS = 9  # maximum length of the root's label


def tree_labels() -> dict[str, str]:
    """Return the labels of the tree."""
    named = {key: t(f"beams.{key}") for key in ("empty", "hint", "keys", "step", "outcome", "token", "total", "score")}
    outcomes = {key: t(f"beams.outcome.{key}") for key in ("kept", "pruned", "finished", "best")}
    return named | outcomes | {"name": t("beams.tree.name")}


def root_text(search: BeamSearch) -> str:
    """Return the label of the tree's root, which is the end of the text."""
    tokenizer = search.document.loaded.tokenizer
    before = "".join(token_text(tokenizer, token_id) for token_id in search.document.ids[-MAX_ROOT_CHARS:])
    return before if len(before) <= MAX_ROOT_CHARS else f"…{before[1 - MAX_ROOT_CHARS :]}"


def shown(state: BeamState) -> list[Candidate]:
    """Return the search's candidates; while it runs, those of the steps shown."""
    candidates = [] if state.search is None else list(state.search.candidates)
    return [each for each in candidates if each.depth <= state.depth] if state.busy else candidates


def tree_lines(search: BeamSearch, candidates: Sequence[Candidate]) -> Lines:
    """Return a line for each candidate, and the index of the last candidate in the best text so far."""
    tokenizer = search.document.loaded.tokenizer
    lines = Lines(
        widget.candidate_line(
            each.parent,
            token_text(tokenizer, each.token_id),
            each.depth,
            each.log_probability,
            each.total,
            each.score,
            each.outcome,
        )
        for each in candidates
    )
    if lines:
        done = search.done and len(candidates) == len(search.candidates)
        lines.append(widget.step_line(best(candidates), done=done))
    return lines


def best(candidates: Sequence[Candidate]) -> int | None:
    """Return the last candidate of the best finished text, or the likeliest active candidate if none has finished."""
    if finished := [each for each in candidates if each.outcome == "finished"]:
        return max(finished, key=lambda each: each.score).number
    depth = candidates[-1].depth if candidates else 0
    return next((each.number for each in candidates if each.depth == depth and each.outcome == "kept"), None)


def text(search: BeamSearch, number: int) -> str:
    """Quote the new tokens up to a candidate, with visible line breaks."""
    tokenizer = search.document.loaded.tokenizer
    written = "".join(token_text(tokenizer, token_id) for token_id in search.ids(number))
    return f"“{marked(written)}”"


def status_sentence(search: BeamSearch, *, stopped: bool) -> str:
    """Describe the size of the search."""
    caption = t(
        "beams.status",
        model=short_name(search.document.loaded.name),
        n=search.candidates[-1].depth if search.candidates else 0,
        candidates=len(search.candidates),
        dropped=sum(each.outcome == "pruned" for each in search.candidates),
    )
    return caption + (t("beams.status.stopped") if stopped else "")


def best_sentence(search: BeamSearch, candidates: Sequence[Candidate]) -> str:
    """Quote the best text."""
    number = best(candidates)
    if number is None:
        return ""
    found = search.candidates[number]
    values = {"text": text(search, number), "total": decimal(found.total, 2)}
    if found.outcome != "finished":
        return t("beams.unfinished", **values)
    return t("beams.best", n=found.depth, score=decimal(found.score, 3), **values)


def finished_rows(search: BeamSearch) -> list[list[str]]:
    """List the finished texts, best first."""
    if not search.finished:
        return []
    keys = ("beams.table.text", "beams.table.tokens", "beams.total", "beams.score")
    rows = [[t(key) for key in keys]]
    for beam in search.finished:
        total = search.candidates[beam.candidate].total
        rows.append([text(search, beam.candidate), str(len(beam.ids)), decimal(total, 2), decimal(beam.score, 3)])
    return rows


def chosen_sentence(state: BeamState) -> str:
    """Describe the candidate that would become the document."""
    search, number = state.search, picked(state)
    if search is None or number is None:
        return ""
    found = search.candidates[number]
    return t(
        "beams.chosen",
        text=text(search, number),
        n=found.depth,
        outcome=t(f"beams.outcome.{found.outcome}"),
        total=decimal(found.total, 2),
    )


def picked(state: BeamState) -> int | None:
    """Return the clicked candidate or, by default, the best one; None if there are no candidates."""
    if state.search is None or not state.search.candidates:
        return None
    return best(state.search.candidates) if state.chosen is None else state.chosen


def tree(s: Snapshot) -> dict[str, Any]:
    state, labels = s.state(BeamState), tree_labels()
    found = state.search
    if found is None:
        return {"search": "", "root": "", "chosen": None, "lines": Lines(), "labels": labels}
    return {
        "search": f"{id(found):x}",
        "root": root_text(found),
        "chosen": state.chosen,
        "lines": tree_lines(found, shown(state)),
        "labels": labels,
    }


def summary(s: Snapshot) -> dict[str, Any]:
    state = s.state(BeamState)
    return {"text": "" if state.search is None else best_sentence(state.search, shown(state))}


def status(s: Snapshot) -> dict[str, Any]:
    """Show the search's progress or size."""
    state = s.state(BeamState)
    if s.progress is not None:
        return sentence_data(s.progress)
    if state.search is None:
        return {"text": ""}
    if state.busy:
        return {"text": t("beams.running", n=state.depth, total=state.search.max_depth)}
    return {"text": status_sentence(state.search, stopped=not state.search.done)}


def chosen(s: Snapshot) -> dict[str, Any]:
    return {"text": "" if s.state(BeamState).busy else chosen_sentence(s.state(BeamState))}


def finished(s: Snapshot) -> dict[str, Any]:
    state = s.state(BeamState)
    return {"rows": [] if state.search is None or state.busy else finished_rows(state.search)}


def _view(name: str, draw: Draw) -> View:
    """Return a view that is drawn only while this part is open."""
    return View(name, draw, shown=lambda s: s.state(CompareState).part == "beams")


VIEWS = (
    _view("beams-tree", tree),
    _view("beams-says", summary),
    _view("beams-status", status),
    _view("beams-chosen", chosen),
    _view("beams-table", finished),
    _view("beams-notice", partial(run_notice, BeamState)),
)
