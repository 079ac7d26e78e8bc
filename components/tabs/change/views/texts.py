"""Views of both texts side by side, and of the comparison as a program."""

from __future__ import annotations

from typing import Any, Literal

from components.i18n import is_exact, t
from components.labels import placed, quoted
from components.render import Lines, View
from components.state.selection import NEWEST
from components.state.snapshot import Snapshot
from components.tabs.change.effect import ReadText
from components.tabs.change.experiments import summary
from components.tabs.change.program import DEFAULT_LENGTH, DEFAULT_PARAMS, program
from components.tabs.change.state import ChangeState, WrittenPair, is_stale, selected_position, written_pair
from components.text_views import strip_labels, token_lines

NOWHERE = -1  # divergence index of identical texts


def original(s: Snapshot) -> dict[str, Any]:
    """Show the measured text, or the unedited model's text during generation."""
    state, pair = s.state(ChangeState), written_pair(s)
    if pair is not None and pair.read is None:
        shown = {"doc": pair.original.key, "lines": pair.original.lines, "selected": NEWEST}
    elif state.text is not None and s.text is not None:
        lines = text_lines(state.text)
        shown = {"doc": repr(state.text.source), "lines": lines, "selected": selected_position(s, state.text)}
    else:
        shown = {"doc": "", "lines": Lines(), "selected": NEWEST}
    return shown | {"parted": _divergence_index(pair), "labels": side_labels("original")}


def edited(s: Snapshot) -> dict[str, Any]:
    """Show the edited model's text."""
    pair, labels = written_pair(s), side_labels("edited")
    doc, lines = ("", Lines()) if pair is None else (pair.edited.key, pair.edited.lines)
    return {"doc": doc, "lines": lines, "selected": NEWEST, "parted": _divergence_index(pair), "labels": labels}


def side_labels(side: Literal["original", "edited"]) -> dict[str, str]:
    """Return the labels of the token strip on one side."""
    return strip_labels(t("change.edited.empty")) | {"name": t(f"change.{side}")}


def text_lines(text: ReadText) -> Lines:
    """Return the lines of the token strip, with the unedited model's statistics for each token."""
    tokens = text.statistics.tokens
    statistics: list[tuple[float | None, int | None]] = [(None, None), *((t.probability, t.rank) for t in tokens)]
    statistics += [(None, None)] * (len(text.ids) - len(statistics))
    return token_lines(text.loaded.tokenizer, text.ids, statistics, text.n_prompt)


def first_difference(s: Snapshot) -> dict[str, Any]:
    """Describe the first difference between the generated texts."""
    pair = written_pair(s)
    if pair is None or pair.read is None:
        return {"text": ""}
    changes = summary(pair.edits, pair.read.config) or t("change.no_edit")
    index = pair.divergence_index
    seed = t("change.seed", seed=pair.params.seed) if is_exact() else ""
    if index is None:
        return {"text": t("change.parted.never", changes=changes) + seed}
    left, right = (quoted(pair.read.loaded.tokenizer, text.ids[index]) for text in (pair.original, pair.edited))
    values = {"changes": changes, "original": placed(left, index), "edited": right}
    return {"text": t("change.parted", **values) + seed}


def stale(s: Snapshot) -> dict[str, Any]:
    """Name the outdated edits used to generate the edited model's text."""
    pair = written_pair(s)
    if pair is None or pair.read is None or not is_stale(s):
        return {"text": ""}
    changes = summary(pair.edits, pair.read.config) or t("change.no_edit")
    return {"text": t("change.stale", changes=changes)}


def own(s: Snapshot) -> dict[str, Any]:
    """Point out that the text differs from Write's."""
    text = s.state(ChangeState).text
    return {"text": t("change.own") if text is not None and text.own and s.text is not None else ""}


def code(s: Snapshot) -> str:
    """Return the comparison as a Python program."""
    text, pair = s.state(ChangeState).text, written_pair(s)
    if text is None or s.text is None:
        return ""
    params, length = (DEFAULT_PARAMS, DEFAULT_LENGTH) if pair is None else (pair.params, pair.length)
    return program(text, s.edits.fitting(text.config), params, length)


def _divergence_index(pair: WrittenPair | None) -> int:
    index = None if pair is None else pair.divergence_index
    return NOWHERE if index is None else index


VIEWS = (
    View("change-original", original),
    View("change-edited", edited),
    View("change-parted", first_difference),
    View("change-stale", stale),
    View("change-own", own),
)
