"""Rendering: draws the views whose inputs changed and sends them to the browser as one frame.

A View fills a browser widget; a Control sets properties of a gradio component. Both are pure functions of a Snapshot
with explicit inputs, so opening a tab, changing the language or a selection, and generating a token are the same
operation. A frame contains the changes for both; the page applies component updates in an event that runs only in the
browser (see `Events.wire_controls`).

Each of them fails alone: an error is logged and counted, the page shows a sentence in place of the view, and the rest
of the frame is drawn.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol, TypeVar

from gradio.blocks import Block
from plotly.utils import PlotlyJSONEncoder

from components.i18n import Language, speaking
from components.logs import place_of
from components.monitoring import count_error
from components.state.document_lock import DocumentLock
from components.state.session import Session
from components.state.snapshot import Snapshot

T = TypeVar("T")
FAILED = {
    "failed": True
}  # a view's data, or a part's live properties, after an error: the page shows a sentence instead


class Lines(list[str]):
    """A list of lines that usually grows only at its end, such as a text's tokens. Only new lines are sent."""


@dataclass(frozen=True)
class View:
    """A widget's data.

    name: shared with the widget; inputs: returns everything `draw` depends on, compared by ==; draw: returns the data's
    JSON-compatible fields; the browser keeps fields that are left out. Neither function runs the model.
    """

    name: str
    inputs: Callable[[Snapshot], Hashable]
    draw: Callable[[Snapshot], dict[str, Any]]


@dataclass(frozen=True)
class Signal:
    """A value for the page's script, like a View's fields for a widget.

    is_shared: whether it is also sent to pages that follow this one.
    """

    name: str
    inputs: Callable[[Snapshot], Hashable]
    draw: Callable[[Snapshot], object]
    is_shared: bool = False


@dataclass(frozen=True, eq=False)
class Control:
    """A gradio component that the server updates.

    draw: returns the component's new properties, with values as the browser represents them. If they contain "at", they
    apply only if no tab has been clicked since that time.
    """

    component: Block
    inputs: Callable[[Snapshot], Hashable]
    draw: Callable[[Snapshot], dict[str, Any]]


@dataclass(frozen=True)
class Analysis:
    """A computation with the model that a tab's views need.

    wanted: returns a key for the missing result, or None; run: computes the result and changes the session, yielding
    for each update.
    """

    wanted: Callable[[Snapshot], Hashable]
    run: Callable[[Session], Iterator[None]]


@dataclass(frozen=True)
class Sent:
    """Record of what the browser has received for a view: inputs, a digest of each field, and the growing fields.

    frame: for a control, the frame's number; 0 if the value came from the browser itself.
    """

    inputs: Hashable
    digests: dict[str, int] = field(default_factory=dict)
    lines: dict[str, Lines] = field(default_factory=dict)
    frame: int = 0


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
    """Draws frames from each tab's views, controls and analyses (the key "" means every tab) and from the signals."""

    def __init__(self) -> None:
        self.views: dict[str, list[View]] = {}
        self.controls: dict[str, list[Control]] = {}
        self.signals: list[Signal] = [
            Signal("wanted", self.wanted, lambda s: s.tab if self.wanted(s)[1] is not None else None)
        ]
        self.analyses: dict[str, list[Analysis]] = {}
        self._initial: dict[Hashable, Sent] = {}

    def add(
        self,
        tab: str,
        views: Iterable[View] = (),
        analysis: Analysis | None = None,
        *,
        controls: Iterable[Control] = (),
    ) -> None:
        """Add views, controls and an analysis to a tab."""
        self.views.setdefault(tab, []).extend(views)
        self.controls.setdefault(tab, []).extend(controls)
        if analysis is not None:
            self.analyses.setdefault(tab, []).append(analysis)

    def components(self, tab: str) -> list[Block]:
        """Return the components of the tab's controls without duplicates; frames refer to them by index."""
        return list(dict.fromkeys(control.component for control in self.controls.get(tab, ())))

    def wanted(self, s: Snapshot) -> tuple[str, tuple[Hashable, ...] | None]:
        """Return the open tab and the keys of its analyses' missing results, or None if nothing is missing.

        If something is missing, the page triggers `tick`.
        """
        missing = s.cached(self._missing)
        return s.tab, None if all(each is None for each in missing) else missing

    def _missing(self, s: Snapshot) -> tuple[Hashable, ...]:
        return tuple(_wanted(analysis, s) for analysis in self.analyses.get(s.tab, ()))

    def build(self, session: Session) -> str:
        """Return the frame that is part of the page's HTML, drawn from the initial session.

        Controls are built with this session's values, so a newly loaded page does not overwrite what a person has typed
        or clicked.
        """
        snapshot = session.snapshot()
        controls = [control for tab in self.controls.values() for control in tab]
        session.sent, session.frame_number = {control: Sent(control.inputs(snapshot)) for control in controls}, 0
        frame = self.frame(session)
        self._initial = dict(session.sent)
        return frame or ""

    def start(self, session: Session) -> None:
        """Reset to the state after `build`, because the browser has reloaded the page."""
        session.sent, session.frame_number = dict(self._initial), 1
        session.handled.clear()

    def frame(self, session: Page, edited: Iterable[Block] = ()) -> str | None:
        """Return what has changed in the open tab since the last frame, as JSON, or None if nothing has.

        If the browser missed a frame (`session.seen_frame`), all views are included, but only the controls in the
        missed frames, because a person may be editing the others. `set_in` then contains the frame that first set each
        property, so that the browser, which may have asked twice, can ignore what it has already set.

        edited: components that the person is editing, which are left unchanged.
        """
        spoken = speaking(session.language, exact=session.numbers)
        with spoken, session.render_lock, session.lock.reading():
            seen, session.seen_frame = session.seen_frame, None
            whole = seen is not None
            missed: dict[Control, Sent] = {}
            if seen is not None:
                known = {key: sent for key, sent in session.sent.items() if isinstance(key, Control)}
                missed = {control: sent for control, sent in known.items() if sent.frame > seen}
                session.sent = {control: sent for control, sent in known.items() if sent.frame <= seen}
            snapshot = session.snapshot()
            tabs = dict.fromkeys(("", snapshot.tab))
            changed: dict[str, dict[str, str]] = {}
            for view in (view for tab in tabs for view in self.views.get(tab, ())):
                made = _view(view, snapshot, session.sent.get(view.name))
                if made is not None:
                    fields, session.sent[view.name] = made
                    changed |= {view.name: fields} if fields else {}
            heard = [each for each in self.signals if each.is_shared or not session.is_mirror]
            signals = {each.name: value for each in heard if (value := _signal(each, snapshot, session.sent))}
            updates: dict[str, dict[int, dict[str, str]]] = {}
            set_in: dict[str, dict[int, dict[str, int]]] = {}
            for tab in tabs:
                for index, properties, number in self._updates(tab, snapshot, session, edited, missed):
                    updates.setdefault(tab, {}).setdefault(index, {}).update(properties)
                    set_in.setdefault(tab, {}).setdefault(index, {}).update(dict.fromkeys(properties, number))
            if updates:
                of_tabs = {tab: {str(i): _object(each) for i, each in at.items()} for tab, at in updates.items()}
                signals["controls"] = _object({tab: _object(each) for tab, each in of_tabs.items()})
            if whole:
                signals["set_in"] = _json(set_in)
            if not changed and not signals and not whole:
                return None
            base = None if whole else session.frame_number
            session.frame_number += 1
            return _encode(session.frame_number, base, changed, signals)

    def _updates(
        self, tab: str, snapshot: Snapshot, session: Page, edited: Iterable[Block], missed: Mapping[Control, Sent]
    ) -> Iterator[tuple[int, dict[str, str], int]]:
        """Yield (index in `components`, new properties as JSON, first frame with them) for each changed component."""
        components = self.components(tab)
        for control in self.controls.get(tab, ()):
            draw = partial(_properties, control, snapshot)
            made = _attempt(partial(control.inputs, snapshot), session.sent.get(control), draw)
            if made is None:
                continue
            inputs, properties = made
            is_edited, again = control.component in edited, missed.get(control)
            number = again.frame if again is not None and again.inputs == inputs else session.frame_number + 1
            session.sent[control] = Sent(inputs, frame=0 if is_edited else number)
            if not is_edited and properties:
                yield components.index(control.component), properties, number


def _attempt(
    inputs_of: Callable[[], Hashable], before: Sent | None, draw: Callable[[], T]
) -> tuple[Hashable, T | None] | None:
    """Return the inputs and what is drawn from them, or None if they have not changed since `before`.

    After an error, which is logged and counted once for the same inputs, nothing is drawn: None takes its place.
    """
    inputs: Hashable = None
    try:
        inputs = inputs_of()
        return None if before is not None and before.inputs == inputs else (inputs, draw())
    except Exception as problem:
        if inputs is None:
            inputs = place_of(problem)
            if before is not None and before.inputs == inputs:
                return None
        count_error("drawing", problem)
        return inputs, None


def _wanted(analysis: Analysis, s: Snapshot) -> Hashable:
    try:
        return analysis.wanted(s)
    except Exception as problem:
        count_error("drawing", problem)
        return None


def _properties(control: Control, s: Snapshot) -> dict[str, str]:
    """Return a control's properties as JSON, with choices as (label, value) pairs."""
    drawn = control.draw(s)
    if "choices" in drawn:
        pairs = [each if isinstance(each, tuple) else (str(each), each) for each in drawn["choices"]]
        drawn = drawn | {"choices": pairs}
    return {name: _json(value) for name, value in drawn.items()}


def _view(view: View, s: Snapshot, before: Sent | None) -> tuple[dict[str, str], Sent] | None:
    """Return a view's changed fields as JSON and an updated record, or None if its inputs have not changed."""
    made = _attempt(
        lambda: (s.numbers, view.inputs(s)), before, lambda: _changes({**_working(before), **view.draw(s)}, before)
    )
    if made is None:
        return None
    inputs, changes = made
    fields, sent = changes or _changes(FAILED, before)
    return fields, replace(sent, inputs=inputs)


def _working(before: Sent | None) -> dict[str, Any]:
    """Return the field that ends a view's failure, if it has failed before."""
    return {"failed": False} if before is not None and "failed" in before.digests else {}


def _changes(data: Mapping[str, Any], before: Sent | None) -> tuple[dict[str, str], Sent]:
    """Return the fields that differ from the last ones sent, as JSON, and an updated record without inputs."""
    fields, sent = {}, Sent(None)
    for name, value in data.items():
        if isinstance(value, Lines):
            sent_lines = before.lines.get(name) if before else None
            sent.lines[name] = value
            kept = _common(sent_lines, value)
            if sent_lines is None or kept < len(value) or len(sent_lines) > kept:
                fields[name] = _json(value if sent_lines is None else {"$lines": kept, "add": value[kept:]})
            continue
        text = _json(value)
        sent.digests[name] = hash(text)
        if before is None or before.digests.get(name) != sent.digests[name]:
            fields[name] = text
    return fields, sent


def _signal(signal: Signal, s: Snapshot, sent: dict[Any, Sent]) -> str | None:
    """Return a signal's value as JSON, or None if it has already been sent."""
    made = _attempt(partial(signal.inputs, s), sent.get(signal.name), lambda: _json(signal.draw(s)))
    if made is None:
        return None
    inputs, value = made
    sent[signal.name] = Sent(inputs)
    return value


def _common(before: Lines | None, after: Lines) -> int:
    """Return the length of the common prefix, in lines."""
    if before is None:
        return 0
    return next(
        (i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), min(len(before), len(after))
    )


def _json(value: Any) -> str:
    """Return compact JSON without `<`, which is safe inside HTML."""
    return json.dumps(value, cls=PlotlyJSONEncoder, separators=(",", ":")).replace("<", "\\u003c")


def _encode(number: int, base: int | None, views: Mapping[str, Mapping[str, str]], signals: Mapping[str, str]) -> str:
    shown = ",".join(f"{_json(name)}:{_object(fields)}" for name, fields in views.items())
    return _object({"n": _json(number), "base": _json(base), "views": f"{{{shown}}}", **signals})


def _object(fields: Mapping[str, str]) -> str:
    """Build a JSON object from values that are already JSON."""
    return f"{{{','.join(f'{_json(name)}:{text}' for name, text in fields.items())}}}"
