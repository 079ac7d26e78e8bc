"""What the beam search shows: values for its widgets, no components."""

from __future__ import annotations

from components.frame import short_name
from components.i18n import Language, t
from components.labels import decimal, token_text, visible
from components.tabs.compare.memory import Memory
from components.widgets import beams as tree
from components.widgets.table import table_value
from gpt.documents.beam_search import BeamSearch, Candidate

ROOT = 9  # characters at the root of the tree: the end of the text that it goes on from


def tree_words(language: Language) -> dict[str, str]:
    """The words in the tree."""
    named = {key: t(f"beams.{key}", language) for key in ("empty", "keys", "step", "fate", "token", "total", "score")}
    fates = {key: t(f"beams.fate.{key}", language) for key in ("kept", "pruned", "finished", "best")}
    return named | fates | {"name": t("beams.tree.name", language)}


def begin(search: BeamSearch) -> str:
    """The tree before the first step."""
    tokenizer = search.document.loaded.tokenizer
    before = "".join(token_text(tokenizer, token_id) for token_id in search.document.ids[-ROOT:])
    return tree.header(f"{id(search):x}", before if len(before) <= ROOT else f"…{before[1 - ROOT :]}")


def whole(search: BeamSearch) -> str:
    """The tree as it stands."""
    return begin(search) + step_lines(search, search.candidates)


def step_lines(search: BeamSearch, candidates: list[Candidate]) -> str:
    """What the candidates of a step add to the tree."""
    tokenizer = search.document.loaded.tokenizer
    lines = [
        tree.candidate_line(
            each.parent,
            token_text(tokenizer, each.token_id),
            each.depth,
            each.log_probability,
            each.total,
            each.score,
            each.fate,
        )
        for each in candidates
    ]
    return "".join(lines) + tree.step_line(best(search), done=search.done)


def best(search: BeamSearch) -> int | None:
    """The candidate with which the best whole text ends; before there is one, the likeliest that goes on."""
    if search.finished:
        return search.best.candidate
    newest = [each for each in search.candidates if each.depth == search.candidates[-1].depth and each.fate == "kept"]
    return newest[0].number if newest else None


def text(search: BeamSearch, number: int) -> str:
    """What the new tokens up to a candidate say, quoted; line breaks as marks."""
    tokenizer = search.document.loaded.tokenizer
    written = "".join(token_text(tokenizer, token_id) for token_id in search.ids(number))
    return f"“{' '.join(map(visible, written.split(' ')))}”"


def status(search: BeamSearch, language: Language, *, stopped: bool) -> str:
    """How much was looked at."""
    said = t(
        "beams.status",
        language,
        model=short_name(search.document.loaded.name, language),
        n=search.candidates[-1].depth if search.candidates else 0,
        candidates=len(search.candidates),
        dropped=sum(each.fate == "pruned" for each in search.candidates),
    )
    return said + (t("beams.status.stopped", language) if stopped else "")


def says(search: BeamSearch, language: Language) -> str:
    """The best text, in words."""
    number = best(search)
    if number is None:
        return ""
    found = search.candidates[number]
    values = {"text": text(search, number), "total": decimal(found.total, 2)}
    if not search.finished:
        return t("beams.unfinished", language, **values)
    return t("beams.best", language, n=found.depth, score=decimal(found.score, 3), **values)


def finished(search: BeamSearch, language: Language) -> str:
    """The whole texts, the best first."""
    if not search.finished:
        return ""
    keys = ("beams.table.text", "beams.table.tokens", "beams.total", "beams.score")
    rows = [[t(key, language) for key in keys]]
    for beam in search.finished:
        total = search.candidates[beam.candidate].total
        rows.append([text(search, beam.candidate), str(len(beam.ids)), decimal(total, 2), decimal(beam.score, 3)])
    return table_value(rows)


def chosen(memory: Memory, language: Language) -> str:
    """The way that would become the document."""
    search, number = memory.search, picked(memory)
    if search is None or number is None:
        return ""
    found = search.candidates[number]
    return t(
        "beams.chosen",
        language,
        text=text(search, number),
        n=found.depth,
        fate=t(f"beams.fate.{found.fate}", language),
        total=decimal(found.total, 2),
    )


def picked(memory: Memory) -> int | None:
    """The candidate that was clicked, else the best; None where there is none."""
    if memory.search is None or not memory.search.candidates:
        return None
    return best(memory.search) if memory.chosen is None else memory.chosen
