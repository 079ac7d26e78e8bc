"""Rendering: draws what has changed and sends it to the browser as one frame.

A View fills a browser widget; a Signal is a value for the page's script, such as the properties of gradio's components.
Each is a pure function of a snapshot, drawn again only if something that it read has changed (see
`components.state.reads`). So opening a tab, changing the language or a selection, and generating a token are the same
operation.

Each of them fails alone: an error is logged and counted, the page shows a sentence in place of the view, and the rest
of the frame is drawn.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from plotly.utils import PlotlyJSONEncoder

from components.errors import PageError, localize_error
from components.i18n import Language, speaking, t
from components.monitoring import count_error
from components.parts import Lines
from components.state.admission import ANALYSES
from components.state.document_lock import DocumentLock
from components.state.reads import Computed, Pending, Reads, Result, Seen, is_ready, is_same, value_of
from components.state.session import Session
from components.state.snapshot import Snapshot
from gpt.background import threads_for

WAITING = "waiting"
PROPERTIES = "properties"
FOLLOWING_SECONDS = 0.4  # shortest pause between two rounds of computing while a text is written
PAUSE_FACTOR = 3  # shortest pause, as a multiple of the round's duration
POLL_SECONDS = 0.02
Draw = Callable[[Any], Any]  # a function of a snapshot that records what is read from it


@dataclass(frozen=True)
class View:
    """A widget's data.

    name: shared with the widget. draw: returns JSON-compatible fields; the browser keeps fields that are left
    out. It does not run the model. shown: whether the widget is on the page; otherwise it is not drawn.
    """

    name: str
    draw: Draw
    shown: Callable[[Snapshot], bool] | None = None


@dataclass(frozen=True)
class Signal:
    """A value for the page's script, like a View's fields for a widget.

    is_shared: whether it is also sent to pages that follow this one. by_field: whether only the changed fields of what
    `draw` returns, a dict or None, are sent.
    """

    name: str
    draw: Draw
    is_shared: bool = False
    by_field: bool = False


@dataclass(frozen=True)
class Sent:
    """What the browser has received for a view: what it was drawn from, a digest of each field, and growing fields."""

    seen: Seen
    digests: dict[str, int] = field(default_factory=dict)
    lines: dict[str, Lines] = field(default_factory=dict)


class Page(Protocol):
    """The source of frames: a session, or a session as its followers see it (`is_mirror`)."""

    language: Language
    numbers: bool
    is_mirror: bool
    sent: dict[Any, Any]
    frame_number: int
    seen_frame: int | None
    render_lock: threading.Lock

    @property
    def lock(self) -> DocumentLock: ...

    def snapshot(self) -> Snapshot: ...


class Renderer:
    """Draws frames from each tab's views (the key "" means every tab) and from the signals.

    properties: for each of gradio's components passed to `Events.show`, the function that returns its properties.
    """

    def __init__(self) -> None:
        self.views: dict[str, list[View]] = {}
        self.properties: list[Draw] = []
        self.signals = [Signal(PROPERTIES, self._properties, is_shared=True, by_field=True)]
        self._initial: dict[Hashable, Sent] = {}

    def add(self, tab: str, views: Iterable[View]) -> None:
        self.views.setdefault(tab, []).extend(views)

    def shown(self, s: Snapshot) -> list[View]:
        views = [*self.views.get("", ()), *self.views.get(s.tab, ())]
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

    def due(self, session: Session) -> list[Callable[[], Iterator[None] | None]]:
        """Return functions that compute what is missing for the open tab, yielding after each result."""
        s = session.snapshot()
        missing = self.missing(session, s)
        began = time.perf_counter()
        return [
            *(partial(_in_slot, partial(self._compute, session, each)) for each in missing),
            *(partial(rest, session, began) for _ in missing[:1]),
        ]

    def _compute(self, session: Session, computed: Computed[Any]) -> Iterator[None]:
        """Compute a result until nothing that is shown reads it any more, or the text that it belongs to is gone."""
        for _ in compute(session, computed):
            yield
            if computed not in self.missing(session, session.snapshot()):
                return

    def build(self, session: Session) -> str:
        """Return the frame that is part of the page's HTML, drawn from the initial session.

        Gradio's components are built with this session's properties, so a newly loaded page does not overwrite what a
        person has clicked.
        """
        snapshot, session.sent, session.frame_number = session.snapshot(), {}, 0
        _signal(self.signals[0], snapshot, session.sent)
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
            seen, session.seen_frame = session.seen_frame, None
            whole = seen is not None
            if whole:
                session.sent = {}
            s = session.snapshot()
            changed: dict[str, dict[str, str]] = {}
            for view in self.shown(s):
                if fields := _fields(view, s, session.sent):
                    changed[view.name] = fields
            heard = [each for each in self.signals if each.is_shared or not session.is_mirror]
            signals = {each.name: value for each in heard if (value := _signal(each, s, session.sent))}
            wanted = None if session.is_mirror else self.wanted(session, s)
            if wanted != session.sent.get("wanted"):  # sent again whenever something else is missing
                session.sent["wanted"] = wanted
                signals["wanted"] = _json(None if wanted is None else s.tab)
            if not changed and not signals and not whole:
                return None
            base = None if whole else session.frame_number
            session.frame_number += 1
            return _encode(session.frame_number, base, changed, signals)

    def _properties(self, s: Any) -> dict[str, Any]:
        """Return the properties of gradio's components by number. Each fails alone."""
        drawn: dict[str, Any] = {}
        for number, draw in enumerate(self.properties):
            try:
                drawn[str(number)] = draw(s)
            except Exception as problem:
                count_error("drawing", problem)
        return drawn


def look(draw: Draw, s: Snapshot, before: Sent | None) -> tuple[Any, Reads, str] | None:
    """Draw a snapshot, unless everything that was read `before` is the same: then return None.

    Returns what was drawn, or {} if it could not be drawn; what was read; and why it could not be drawn, as a sentence,
    or WAITING if it waits for a result. An error is logged and counted, unless it is the result of something computed,
    which is a sentence for the visitor.
    """
    if before is not None and is_same(before.seen, s):
        return None
    reads = Reads(s)
    reads.seen |= {"language": s.language, "numbers": s.numbers}  # texts depend on them
    try:
        return draw(reads), reads, ""
    except Pending:
        return {}, reads, WAITING
    except Exception as problem:
        if problem is reads.problem:
            return {}, reads, localize_error(problem)
        count_error("drawing", problem)
        return {}, reads, t("view.failed")


def compute(session: Session, computed: Computed[Any], fresh: frozenset[Computed[Any]] = frozenset()) -> Iterator[None]:
    """Compute a result, after those that it needs, and keep it in the session. Yields after each result.

    fresh: results that have just been computed, and need not include what has been written since.
    """
    if computed.is_usable is not None and not value_of(session.snapshot(), computed)[1]:
        session.keep(computed, None)
    needed = yield from _computed_once(session, computed, fresh)
    for each in needed:
        yield from compute(session, each)
    now = session.snapshot()
    if needed and all(value_of(now, each)[1] for each in needed):
        yield from compute(session, computed, fresh | {*needed})


def _computed_once(
    session: Session, computed: Computed[Any], fresh: frozenset[Computed[Any]]
) -> Generator[None, None, list[Computed[Any]]]:
    """Compute a result and return an empty list, or return the results that it needs first."""
    s = session.snapshot()
    reads = Reads(s, fresh)
    try:
        with threads_for(_n_parameters(s)):
            value = computed.function(reads)
        if isinstance(value, Generator):
            value = yield from _partial_results(session, computed, value, reads.seen)
        session.keep(computed, Result(value, reads.seen))
    except Pending:
        return [key for key in reads.seen if isinstance(key, Computed) and not is_ready(s, key)]
    except Exception as problem:
        if not isinstance(problem, ValueError):
            count_error("unexpected", problem)
        error = problem if isinstance(problem, ValueError) else PageError("view.failed")
        session.keep(computed, Result(None, reads.seen, error))
    yield
    return []


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


def _n_parameters(s: Snapshot) -> int:
    """Return the number of parameters in all blocks of the text's model."""
    return 0 if s.text is None else 12 * s.text.config.n_layer * s.text.config.n_embd**2


def _in_slot(run: Callable[[], Iterator[None]]) -> Iterator[None]:
    with ANALYSES.enter() as waiting:
        for _ in waiting:
            yield
        yield from run()


def _fields(view: View, s: Snapshot, sent: dict[Any, Sent]) -> dict[str, str]:
    """Return a view's changed fields as JSON, and record them in `sent`.

    failed: a sentence if it could not be drawn. waiting: whether it waits for a result, and shows the last one.
    """
    before = sent.get(view.name)
    looked = look(lambda s: {name: _encoded(value) for name, value in view.draw(s).items()}, s, before)
    if looked is None:
        return {}
    data, reads, problem = looked
    known = {} if before is None else before.digests
    is_waiting = problem == WAITING
    for name, value in (("failed", "" if is_waiting else problem), ("waiting", is_waiting)):
        if value or name in known:
            data[name] = _json(value)
    fields, sent[view.name] = _changes(data, before, reads.seen)
    return fields


def _encoded(value: Any) -> str | Lines:
    return value if isinstance(value, Lines) else _json(value)


def _changes(data: Mapping[str, str | Lines], before: Sent | None, seen: Seen) -> tuple[dict[str, str], Sent]:
    """Return the fields that differ from the last ones sent, as JSON, and an updated record."""
    fields, sent = {}, Sent(seen)
    if before is not None:  # the browser keeps the fields that are left out
        sent.digests.update(before.digests)
        sent.lines.update(before.lines)
    for name, value in data.items():
        if isinstance(value, Lines):
            sent_lines = sent.lines.get(name)
            sent.lines[name] = value
            kept = _common(sent_lines or (), value)
            if sent_lines is None or kept < len(value) or len(sent_lines) > kept:
                fields[name] = _json(value if sent_lines is None else {"$lines": kept, "add": value[kept:]})
            continue
        if sent.digests.get(name) != hash(value):
            sent.digests[name] = hash(value)
            fields[name] = value
    return fields, sent


def _signal(signal: Signal, s: Snapshot, sent: dict[Any, Sent]) -> str | None:
    """Return a signal's value as JSON, or None if it has already been sent."""
    before = sent.get(signal.name)

    def draw(s: Any) -> dict[str, str]:
        value = signal.draw(s)
        return {name: _json(each) for name, each in ((value or {}) if signal.by_field else {"": value}).items()}

    if (looked := look(draw, s, before)) is None:
        return None
    fields, sent[signal.name] = _changes(looked[0], before, looked[1].seen)
    return fields.get("") if not signal.by_field else _object(fields) if fields else None


def _common(before: Sequence[str], after: Sequence[str]) -> int:
    """Return the length of the common prefix, in lines."""
    pairs = enumerate(zip(before, after, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(before), len(after)))


def _json(value: Any) -> str:
    """Return compact JSON without `<`, which is safe inside HTML."""
    return json.dumps(value, cls=PlotlyJSONEncoder, separators=(",", ":")).replace("<", "\\u003c")


def _encode(number: int, base: int | None, views: Mapping[str, Mapping[str, str]], signals: Mapping[str, str]) -> str:
    shown = ",".join(f"{_json(name)}:{_object(fields)}" for name, fields in views.items())
    return _object({"n": _json(number), "base": _json(base), "views": f"{{{shown}}}", **signals})


def _object(fields: Mapping[str, str]) -> str:
    """Build a JSON object from values that are already JSON."""
    return f"{{{','.join(f'{_json(name)}:{text}' for name, text in fields.items())}}}"
