"""The beam search in the Compare tab: the tree, the best text, and the finished texts."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Sequence
from typing import Any

from components.api.arguments import checked_text
from components.i18n import t
from components.kit import Panel, button, caption, column, question, row, says, section, setting, slider
from components.labels import decimal, marked, token_text
from components.parts import Lines, Part
from components.state.admission import Admission
from components.state.adoption import adopt as adopt_document
from components.state.adoption import load_with_progress
from components.state.jobs import Job, run_steps
from components.state.session import Session
from components.state.snapshot import Message
from components.tabs.compare.columns import prompts, run_and_stop
from components.text_views import short_name
from components.widgets.simple import table
from components.widgets.widget import to_json, widget
from gpt import Generation
from gpt.documents.beam_search import BeamSearch, Candidate
from gpt.inference.admission import AdmissionQueue
from gpt.tokenizer import plain_text

STEP_SECONDS = 0.2  # minimum time between two steps shown, so that the tree grows visibly
SEARCHES = AdmissionQueue(4)  # a running search keeps all beams' keys and values in memory
MAX_ROOT_CHARS = 9  # maximum length of the root's label


panel = Panel("beams")


@panel.state
class Beams:
    """What was chosen and found.

    Attributes:
        search: The latest search, which grows in place.
        depth: Number of steps shown while it runs.
        chosen: Selected candidate; None for the best one.
    """

    width: int = setting(3, low=1, high=8)
    penalty: float = setting(1.0, low=-2, high=3, step=0.1)
    length: int = setting(10, low=1, high=40)
    begun: bool = False
    search: BeamSearch | None = None
    depth: int = 0
    chosen: int | None = None
    job: Job | None = None
    notice: Message | Exception | None = None


def search(session: Session) -> Iterator[None]:
    session.change(Beams, begun=True)
    yield from run_steps(session, Beams, lambda job: _steps(session))


def _steps(session: Session) -> Generator[None]:
    state = session.state(Beams)
    prompt = checked_text("prompt", prompts(session)[0])
    loaded = yield from load_with_progress(session, session.model)
    found = BeamSearch(Generation(loaded, prompt), state.width, state.length, length_penalty=state.penalty)
    notice = None if prompt else Message("prompt.started_empty")
    session.change(Beams, search=found, chosen=None, depth=0, notice=notice)
    due = 0.0
    with SEARCHES.enter() as place:
        yield from Admission(session, place)
        try:
            while not found.done:
                found.step()
                if time.perf_counter() >= due:
                    due = time.perf_counter() + STEP_SECONDS
                    yield from _show_step(session)
        finally:
            found.release()
    while session.state(Beams).depth < found.candidates[-1].depth:
        time.sleep(max(0.0, due - time.perf_counter()))
        due = time.perf_counter() + STEP_SECONDS
        yield from _show_step(session)


def _show_step(session: Session) -> Iterator[None]:
    session.change(Beams, depth=session.state(Beams).depth + 1)
    yield


def choose(session: Session, sent: dict[str, Any]) -> None:
    """Select the clicked candidate. `sent` is an unvalidated browser payload."""
    found, candidate = session.state(Beams).search, sent.get("candidate")
    if found is not None and type(candidate) is int and 0 <= candidate < len(found.candidates):
        session.change(Beams, chosen=candidate)


def adopt(session: Session) -> None:
    """Make the selected candidate the document, with its tokens marked as chosen by hand, and open Write."""
    state = session.state(Beams)
    candidate = picked(state)
    if state.search is None or candidate is None:
        return
    searched = state.search.document
    document = _document(searched, session)
    document.append(*state.search.ids(candidate), after=len(searched.ids) - 1)
    prompt = plain_text(document.tokenizer, document.prompt_ids) + searched.held
    adopt_document(session, document, prompt, Message("beams.adopted"))
    session.tab = "playground"


def _document(searched: Generation, session: Session) -> Generation:
    """Return a document with the search's prompt.

    If the visitor's document has the same prompt, returns a copy of it, including its branches.
    """
    with session.changing():
        own = session.document
        same = own is not None and own.loaded is searched.loaded and own.edits == searched.edits
        if own is not None and same and own.prompt_ids == searched.prompt_ids:
            return own.copy()
    return Generation(searched.loaded, searched.prompt_ids, held=searched.held)


def root_text(search: BeamSearch) -> str:
    tokenizer = search.document.loaded.tokenizer
    before = "".join(token_text(tokenizer, token_id) for token_id in search.document.ids[-MAX_ROOT_CHARS:])
    return before if len(before) <= MAX_ROOT_CHARS else f"…{before[1 - MAX_ROOT_CHARS :]}"


def shown(state: Any) -> list[Candidate]:
    """Return the search's candidates; while it runs, those of the steps shown."""
    candidates = [] if state.search is None else list(state.search.candidates)
    return [each for each in candidates if each.depth <= state.depth] if state.job is not None else candidates


def tree_lines(search: BeamSearch, candidates: Sequence[Candidate]) -> Lines:
    tokenizer = search.document.loaded.tokenizer
    lines = Lines()
    for each in candidates:
        numbers = [float(f"{value:.6g}") for value in (each.log_probability, each.total, each.score)]
        parent = -1 if each.parent is None else each.parent
        lines.append(to_json([parent, token_text(tokenizer, each.token_id), each.depth, *numbers, each.outcome]))
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
    caption = t(
        "beams.status",
        model=short_name(search.document.loaded.name),
        n=search.candidates[-1].depth if search.candidates else 0,
        candidates=len(search.candidates),
        dropped=sum(each.outcome == "pruned" for each in search.candidates),
    )
    return caption + (t("beams.status.stopped") if stopped else "")


def best_sentence(search: BeamSearch, candidates: Sequence[Candidate]) -> str:
    number = best(candidates)
    if number is None:
        return ""
    found = search.candidates[number]
    values = {"text": text(search, number), "total": decimal(found.total, 2)}
    if found.outcome != "finished":
        return t("beams.unfinished", **values)
    return t("beams.best", n=found.depth, score=decimal(found.score, 3), **values)


def finished_rows(search: BeamSearch) -> list[list[str]]:
    if not search.finished:
        return []
    keys = ("beams.table.text", "beams.table.tokens", "beams.total", "beams.score")
    rows = [[t(key) for key in keys]]
    for beam in search.finished:
        total = search.candidates[beam.candidate].total
        rows.append([text(search, beam.candidate), str(len(beam.ids)), decimal(total, 2), decimal(beam.score, 3)])
    return rows


def chosen_sentence(s: Any) -> str:
    search, number = s[Beams].search, picked(s[Beams])
    if search is None or number is None or s[Beams].job is not None:
        return ""
    found = search.candidates[number]
    return t(
        "beams.chosen",
        text=text(search, number),
        n=found.depth,
        outcome=t(f"beams.outcome.{found.outcome}"),
        total=decimal(found.total, 2),
    )


def picked(state: Any) -> int | None:
    """Return the clicked candidate or, by default, the best one; None if there are no candidates."""
    if state.search is None or not state.search.candidates:
        return None
    return best(state.search.candidates) if state.chosen is None else state.chosen


def tree(s: Any) -> dict[str, Any]:
    state, found = s[Beams], s[Beams].search
    if found is None:
        return {"search": "", "root": "", "chosen": None, "best": None, "done": True, "lines": Lines()}
    candidates = shown(state)
    return {
        "search": f"{id(found):x}",
        "root": root_text(found),
        "chosen": state.chosen,
        "best": best(candidates),
        "done": found.done and len(candidates) == len(found.candidates),
        "lines": tree_lines(found, candidates),
    }


def summary(s: Any) -> str:
    state = s[Beams]
    return "" if state.search is None else best_sentence(state.search, shown(state))


def status(s: Any) -> str | Message:
    state = s[Beams]
    if s.progress is not None:
        return s.progress
    if state.search is None:
        return ""
    if state.job is not None:
        return t("beams.running", n=state.depth, total=state.search.max_depth)
    return status_sentence(state.search, stopped=not state.search.done)


def finished(s: Any) -> dict[str, Any]:
    state = s[Beams]
    return {"rows": [] if state.search is None or state.job is not None else finished_rows(state.search)}


def can_adopt(s: Any) -> bool:
    return s[Beams].job is None and picked(s[Beams]) is not None


def beam_search() -> Part:
    sliders = [
        slider(Beams.width, "beams.width", info="beams.width.info"),
        slider(Beams.penalty, "beams.penalty", info="beams.penalty.info"),
        slider(Beams.length, "beams.length", info="beams.length.info"),
    ]
    return column(
        section(
            question("beams.question"),
            caption("beams.lead"),
            row(
                *sliders,
                run_and_stop("beams-search", "beams.search", search, "beams-stop", Beams, answer="beams-tree"),
                classes="gb-compare-run",
            ),
            says("beams-notice", lambda s: s[Beams].notice, kind="notice"),
            beams("beams-tree", draw=tree, on=choose),
            says("beams-says", summary),
            says("beams-status", status, kind="status"),
            row(
                says("beams-chosen", chosen_sentence, kind="caption"),
                button("beams-adopt", "beams.adopt", adopt, enabled=can_adopt),
                classes="gb-compare-chosen",
            ),
        ),
        section(question("beams.table.question"), table("beams-table", draw=finished)),
    )


_TEMPLATE = """<figure class="gb-beams">
<p class="gb-empty"></p>
<div class="gb-beams-scroll gb-sideways">
<div class="gb-beams-stage" role="group"><svg aria-hidden="true"></svg></div>
</div>
<ul class="gb-beams-legend"></ul>
<div class="gb-tip" role="tooltip" hidden></div>
</figure>"""


def beams(name: str, **wired: Any) -> Part:
    """Return the tree. A click, Enter or Space on a candidate raises `.select` with the payload {"candidate": number}.

    View data: see `beams/beams.js`.
    """
    return widget("beams", name, template=_TEMPLATE, **wired)
