"""The beam search in the Compare tab: the tree, the best text, and the finished texts."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Sequence
from typing import Any

from components import kit
from components.api.arguments import checked_text
from components.errors import NothingToShow
from components.i18n import t
from components.labels import decimal, marked, token_text
from components.parts import Lines, Part
from components.state.admission import Admission
from components.state.adoption import adopt as adopt_document
from components.state.adoption import load_with_progress
from components.state.jobs import Job, run_steps
from components.state.session import Session
from components.state.snapshot import Message
from components.tabs.compare.columns import prompts
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


panel = kit.Panel("beams")


@panel.state
class Beams:
    """search: the latest search, which grows in place. depth: number of steps shown while it runs. chosen: selected
    candidate; None for the best one.
    """

    width: int = kit.setting(3, low=1, high=8)
    penalty: float = kit.setting(1.0, low=-2, high=3, step=0.1)
    length: int = kit.setting(10, low=1, high=40)
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
    search, candidate = session.state(Beams).search, sent.get("candidate")
    if search is not None and type(candidate) is int and 0 <= candidate < len(search.candidates):
        session.change(Beams, chosen=candidate)


def adopt(session: Session) -> None:
    """Open the chosen candidate in Write, its tokens marked as chosen by hand; branches of the same prompt are kept."""
    search, candidate = session.state(Beams).search, picked(session.state(Beams))
    if search is None or candidate is None:
        return
    searched = search.document
    document = Generation(searched.loaded, searched.prompt_ids, held=searched.held)
    with session.lock.changing():
        own = session.document
        if own is not None and own.loaded is searched.loaded and own.edits == searched.edits:
            document = own.copy() if own.prompt_ids == searched.prompt_ids else document
    document.append(*search.ids(candidate), after=len(searched.ids) - 1)
    prompt = plain_text(document.tokenizer, document.prompt_ids) + searched.held
    adopt_document(session, document, prompt, Message("beams.adopted"))
    session.tab = "playground"


def found(s: Any) -> BeamSearch:
    search: BeamSearch | None = s[Beams].search
    if search is None:
        raise NothingToShow
    return search


def shown(state: Any) -> list[Candidate]:
    """Return the search's candidates; while it runs, those of the steps shown."""
    candidates: list[Candidate] = list(state.search.candidates)
    return candidates if state.job is None else [each for each in candidates if each.depth <= state.depth]


def best(candidates: Sequence[Candidate]) -> int | None:
    """Return the last candidate of the best finished text, or the likeliest active candidate if none has finished."""
    if finished := [each for each in candidates if each.outcome == "finished"]:
        return max(finished, key=lambda each: each.score).number
    depth = candidates[-1].depth if candidates else 0
    return next((each.number for each in candidates if each.depth == depth and each.outcome == "kept"), None)


def picked(state: Any) -> int | None:
    """Return the clicked candidate or, by default, the best one; None if there are no candidates."""
    if state.search is None or not state.search.candidates:
        return None
    return best(state.search.candidates) if state.chosen is None else state.chosen


def text(search: BeamSearch, number: int) -> str:
    """Quote the new tokens up to a candidate, with visible line breaks."""
    written = "".join(token_text(search.document.tokenizer, i) for i in search.ids(number))
    return f"“{marked(written)}”"


def tree(s: Any) -> dict[str, Any]:
    search, candidates = found(s), shown(s[Beams])
    lines = Lines()
    for each in candidates:
        numbers = [float(f"{value:.6g}") for value in (each.log_probability, each.total, each.score)]
        parent, name = -1 if each.parent is None else each.parent, token_text(search.document.tokenizer, each.token_id)
        lines.append(to_json([parent, name, each.depth, *numbers, each.outcome]))
    root = "".join(token_text(search.document.tokenizer, i) for i in search.document.ids[-MAX_ROOT_CHARS:])
    return {
        "search": f"{id(search):x}",
        "root": root if len(root) <= MAX_ROOT_CHARS else f"…{root[1 - MAX_ROOT_CHARS :]}",
        "chosen": s[Beams].chosen,
        "best": best(candidates),
        "done": search.done and len(candidates) == len(search.candidates),
        "lines": lines,
    }


def best_sentence(s: Any) -> str:
    search, number = found(s), best(shown(s[Beams]))
    if number is None:
        return ""
    candidate = search.candidates[number]
    values = {"text": text(search, number), "total": decimal(candidate.total)}
    if candidate.outcome != "finished":
        return t("beams.unfinished", **values)
    return t("beams.best", n=candidate.depth, score=decimal(candidate.score, 3), **values)


def status(s: Any) -> str | Message:
    if s.progress is not None:
        return s.progress
    search = found(s)
    if s[Beams].job is not None:
        return t("beams.running", n=s[Beams].depth, total=search.max_depth)
    sentence = t(
        "beams.status",
        model=short_name(search.document.loaded.name),
        n=search.candidates[-1].depth if search.candidates else 0,
        candidates=len(search.candidates),
        dropped=sum(each.outcome == "pruned" for each in search.candidates),
    )
    return sentence if search.done else sentence + t("beams.status.stopped")


def chosen_sentence(s: Any) -> str:
    search, number = found(s), picked(s[Beams])
    if number is None or s[Beams].job is not None:
        return ""
    candidate = search.candidates[number]
    outcome = t(f"beams.outcome.{candidate.outcome}")
    values = {"text": text(search, number), "n": candidate.depth, "total": decimal(candidate.total)}
    return t("beams.chosen", outcome=outcome, **values)


def finished(s: Any) -> dict[str, Any]:
    search = found(s)
    if s[Beams].job is not None or not search.finished:
        raise NothingToShow
    rows = [[t(key) for key in ("beams.table.text", "beams.table.tokens", "beams.total", "beams.score")]]
    for beam in search.finished:
        total = search.candidates[beam.candidate].total
        rows.append([text(search, beam.candidate), str(len(beam.ids)), decimal(total), decimal(beam.score, 3)])
    return {"rows": rows}


def beam_search() -> Part:
    named = ("width", "penalty")
    sliders = [kit.slider(getattr(Beams, name), f"beams.{name}", info=f"beams.{name}.info") for name in named]
    sliders.append(kit.slider(Beams.length, "length", info="length.info"))
    buttons = kit.job_buttons("beams", "beams.search", search, Beams, answer="beams-tree", ends=True)

    def can_adopt(s: Any) -> bool:
        return s[Beams].job is None and picked(s[Beams]) is not None

    return kit.column(
        kit.section(
            kit.question("beams.question"),
            kit.caption("beams.lead"),
            kit.row(*sliders, buttons, classes="gb-compare-run"),
            kit.says("beams-notice", lambda s: s[Beams].notice, kind="notice"),
            beams("beams-tree", draw=tree, on=choose),
            kit.says("beams-says", best_sentence),
            kit.says("beams-status", status, kind="status"),
            kit.row(
                kit.says("beams-chosen", chosen_sentence, kind="caption"),
                kit.button("beams-adopt", "beams.adopt", adopt, enabled=can_adopt),
                classes="gb-compare-chosen",
            ),
        ),
        kit.section(kit.question("beams.table.question"), table("beams-table", draw=finished)),
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
    """Return the tree (data: `beams/beams.js`). A click, Enter or Space raises `.select` with {"candidate": number}."""
    nothing = {"search": "", "root": "", "chosen": None, "best": None, "done": True, "lines": Lines()}
    return widget("beams", name, template=_TEMPLATE, empty=nothing, **wired)
