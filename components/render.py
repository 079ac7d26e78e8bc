"""Rendering: draws what has changed and sends it to the browser as one frame.

A View is data for a browser widget or the page's script. It is a pure function of a snapshot, drawn again only if
something that it read has changed (see `components.state.reads`). So opening a tab, changing the language or a
selection, and generating a token are the same operation.

Each of them fails alone: an error is logged and counted, the page shows a sentence in place of the view, and the rest
of the frame is drawn.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from components.errors import PageError, message_of
from components.i18n import speaking, t
from components.monitoring import count_error
from components.parts import Lines
from components.state.admission import ANALYSES
from components.state.reads import Computed, Pending, Reads, Result, Seen, is_ready, is_same, value_of
from components.state.session import Session
from components.state.snapshot import Snapshot
from components.widgets.widget import to_json
from gpt.background import threads_for

FOLLOWING_SECONDS = 0.4  # shortest pause between two rounds of computing while a text is written
PAUSE_FACTOR = 3  # shortest pause, as a multiple of the round's duration
POLL_SECONDS = 0.02
Draw = Callable[[Any], Any]  # a function of a snapshot that records what is read from it
Page = Any  # the source of frames: a Session, or a session as its followers see it


@dataclass(frozen=True)
class View:
    """Data for a widget, or for the page's script, which listens for its changed fields.

    name: shared with the widget. draw: returns JSON-compatible fields; the browser keeps fields that are left
    out. It does not run the model. shown: whether the widget is on the page; otherwise it is not drawn.
    """

    name: str
    draw: Draw
    shown: Callable[[Snapshot], bool] | None = None


def is_own(s: Snapshot) -> bool:
    """Return whether a visitor's own page is drawn: not the page's HTML, nor a page that follows another one."""
    return bool(s.id)


@dataclass(frozen=True)
class Sent:
    """What the browser has received for a view: what it was drawn from, and a digest of each field, or its lines."""

    seen: Seen
    fields: dict[str, int | Lines]


class Renderer:
    """Draws frames from each tab's views; the key "" means every tab.

    properties: for each of gradio's components passed to `Events.show`, the function that returns its properties.
    """

    def __init__(self) -> None:
        self.views: dict[str, list[View]] = {"": [View("properties", self._properties)]}
        self.properties: list[Draw] = []
        self._initial: dict[Hashable, Sent] = {}

    def add(self, tab: str, views: Iterable[View]) -> None:
        self.views.setdefault(tab, []).extend(views)

    def shown(self, s: Snapshot) -> list[View]:
        return s.cached(self._shown)

    def _shown(self, s: Snapshot) -> list[View]:
        views = [*self.views[""], *self.views.get(s.tab, ())]
        return [view for view in views if view.shown is None or view.shown(s)]

    def missing(self, session: Page, s: Snapshot) -> list[Computed[Any]]:
        """Return the results that shown views have read but that do not exist yet or are out of date."""
        sent = session.sent
        read = (key for view in self.shown(s) if view.name in sent for key in sent[view.name].seen)
        results = dict.fromkeys(key for key in read if isinstance(key, Computed))
        able = (each for each in results if each.while_writing or not s.generating)
        return [each for each in able if not is_ready(s, each)]

    def wanted(self, session: Page, s: Snapshot) -> tuple[Hashable, ...] | None:
        """Return a key for everything that has to be computed for the open tab, or None if nothing is missing.

        If something is missing, the page triggers `tick`.
        """
        computed = tuple((each, *value_of(s, each)) for each in self.missing(session, s))
        return (s.tab, computed) if computed else None

    def build(self, session: Session) -> str:
        """Return the frame that is part of the page's HTML, drawn from the initial session.

        Gradio's components are built with this session's properties, so a newly loaded page does not overwrite what a
        person has clicked.
        """
        session.sent, session.frame_number = {}, 0
        changes("properties", self._properties, session.snapshot(), session.sent)
        frame = self.frame(session)
        self._initial = dict(session.sent)
        return frame or ""

    def start(self, session: Session) -> None:
        """Reset to the state after `build`, because the browser has reloaded the page."""
        session.sent, session.frame_number = dict(self._initial), 1
        session.handled.clear()

    def frame(self, session: Page) -> str | None:
        """Return what has changed in the open tab since the last frame, as JSON, or None if nothing has.

        If the browser missed a frame (`session.seen_frame`), everything is included.
        """
        spoken = speaking(session.language, exact=session.numbers)
        with spoken, session.render_lock, session.lock.reading():
            is_whole, session.seen_frame = session.seen_frame is not None, None
            if is_whole:
                session.sent = {}
            s, sent = session.snapshot(), session.sent
            views: dict[str, str] = {}
            for view in self.shown(s):
                if new := changes(view.name, view.draw, s, sent):
                    views[view.name] = _object(new)
            wanted = self.wanted(session, s) if is_own(s) else None
            if wanted != sent.get("wanted"):  # sent again whenever something else is missing
                sent["wanted"] = wanted
                views["wanted"] = to_json({"tab": None if wanted is None else s.tab})
            if not views and not is_whole:
                return None
            base = None if is_whole else session.frame_number
            session.frame_number += 1
            return _object({"n": to_json(session.frame_number), "base": to_json(base), "views": _object(views)})

    def _properties(self, s: Any) -> dict[str, Any]:
        """Return the properties of gradio's components by number. Each fails alone."""
        drawn: dict[str, Any] = {}
        for number, draw in enumerate(self.properties):
            try:
                drawn[str(number)] = draw(s)
            except Exception as problem:
                count_error("drawing", problem)
        return drawn


def changes(name: str, draw: Draw, s: Snapshot, sent: dict[Any, Any]) -> dict[str, str]:
    """Return the fields of a view that differ from those sent last, as JSON, and record them in `sent`.

    There are two more fields. failed: a sentence if it could not be drawn. waiting: whether it waits for a result, and
    shows the last one. An error is logged and counted, unless it is the result of something computed, which is a
    sentence for the visitor.
    """
    before: Sent | None = sent.get(name)
    if before is not None and is_same(before.seen, s):
        return {}
    reads, fields = Reads(s), dict[str, str | Lines]()
    reads.seen |= {"language": s.language, "numbers": s.numbers}  # texts depend on them
    failed, is_waiting = "", False
    try:
        fields = {key: value if isinstance(value, Lines) else to_json(value) for key, value in draw(reads).items()}
    except Pending:
        is_waiting = True
    except Exception as problem:
        failed = message_of(problem) if problem is reads.problem else t("view.failed")
        if problem is not reads.problem:
            count_error("drawing", problem)
    last = {} if before is None else before.fields
    for key, value in (("failed", failed), ("waiting", is_waiting)):
        if value or key in last:
            fields[key] = to_json(value)
    received = {key: value if isinstance(value, Lines) else hash(value) for key, value in fields.items()}
    sent[name] = Sent(reads.seen, last | received)  # the browser keeps the fields that are left out
    return {key: _change(last.get(key), value) for key, value in fields.items() if last.get(key) != received[key]}


def _change(before: int | Lines | None, value: str | Lines) -> str:
    """Return a field's new value as JSON; of lines, those after the ones that are still the same."""
    if not isinstance(value, Lines):
        return value
    if not isinstance(before, Lines):
        return to_json(value)
    pairs = enumerate(zip(before, value, strict=False))
    kept = next((i for i, (a, b) in pairs if a != b), min(len(before), len(value)))
    return to_json({"$lines": kept, "add": value[kept:]})


def _object(fields: Mapping[str, str]) -> str:
    """Build a JSON object from values that are already JSON."""
    return f"{{{','.join(f'{to_json(name)}:{text}' for name, text in fields.items())}}}"


def analyse(renderer: Renderer, session: Session) -> Iterator[None]:
    """Compute what the open tab needs until nothing is missing. Only one event per session does this at a time."""

    def wanted() -> object:
        with session.lock.reading():
            return renderer.wanted(session, session.snapshot())

    done: object = None
    while session.analysing.acquire(blocking=False):
        try:
            while (now := wanted()) not in (None, done):
                done = now
                yield from _compute_missing(renderer, session)
        finally:
            session.analysing.release()
        if wanted() in (None, done):  # otherwise, another event arrived meanwhile and did nothing
            return


def _compute_missing(renderer: Renderer, session: Session) -> Iterator[None]:
    """Compute each result until nothing that is shown reads it any more, or the text that it belongs to is gone."""
    began = time.perf_counter()
    for computed in renderer.missing(session, session.snapshot()):
        with ANALYSES.enter() as waiting:
            for _ in waiting:
                yield
            for _ in compute(session, computed):
                yield
                if computed not in renderer.missing(session, session.snapshot()):
                    break
    rest(session, began)


def compute(session: Session, computed: Computed[Any], fresh: frozenset[Computed[Any]] = frozenset()) -> Iterator[None]:
    """Compute a result, after those that it needs, and keep it in the session. Yields after each result.

    fresh: results that have just been computed, and need not include what has been written since.
    """
    s = session.snapshot()
    if computed.is_usable is not None and not value_of(s, computed)[1]:
        session.keep(computed, None)
        s = session.snapshot()
    reads, needed = Reads(s, fresh), list[Computed[Any]]()
    size = 0 if s.text is None else 12 * s.text.config.n_layer * s.text.config.n_embd**2  # parameters of all blocks
    try:
        with threads_for(size):
            value = computed.function(reads)
        if isinstance(value, Generator):
            value = yield from _partial_results(session, computed, value, reads.seen)
        session.keep(computed, Result(value, reads.seen))
    except Pending:
        needed = [key for key in reads.seen if isinstance(key, Computed) and not is_ready(s, key)]
    except Exception as problem:
        if not isinstance(problem, ValueError):
            count_error("unexpected", problem)
        error = problem if isinstance(problem, ValueError) else PageError("view.failed")
        session.keep(computed, Result(None, reads.seen, error))
    if not needed:
        yield
    for each in needed:
        yield from compute(session, each)
    now = session.snapshot()
    if needed and all(value_of(now, each)[1] for each in needed):
        yield from compute(session, computed, fresh | {*needed})


def _partial_results(
    session: Session, computed: Computed[Any], values: Generator[Any, None, Any], seen: Seen
) -> Generator[None, None, Any]:
    """Keep each value that a function yields, and return the one that it returns, or else the last one."""
    last = None
    while True:
        try:
            last = next(values)
        except StopIteration as end:
            return last if end.value is None else end.value
        session.keep(computed, Result(last, seen, is_partial=True))
        yield


def rest(session: Session, began: float) -> None:
    """Wait between two rounds of computing while a text is written, until the visitor does something else.

    began: when the first round began, a time from `time.perf_counter`.
    """

    def looked_at() -> tuple[Any, ...]:
        return session.tab, session.selection, session.film, session.chosen()

    ended, before = time.perf_counter(), looked_at()
    resumes = ended + max(FOLLOWING_SECONDS, PAUSE_FACTOR * (ended - began))
    while session.lock.streaming and time.perf_counter() < resumes and looked_at() == before:
        time.sleep(POLL_SECONDS)
