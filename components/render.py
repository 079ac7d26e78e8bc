"""From a session to the browser: every view whose inputs changed is drawn again, and one frame holds them all.

A View shows something in a browser widget; a Control is a gradio component that the server changes. Both are pure
functions of a Snapshot, with inputs that say when they must be drawn again. So a tab that is opened, another language,
a selection made elsewhere, a slider and one more token are the same operation. A frame holds the changes of both: the
page applies those of components by an event that runs in the browser alone, `Events.wire_controls`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from gradio.blocks import Block
from plotly.utils import PlotlyJSONEncoder

from components.state.session import Session
from components.state.snapshot import Snapshot


class Lines(list[str]):
    """A field that grows at its end, such as the tokens of a text: only what is new is sent."""


@dataclass(frozen=True)
class View:
    """What a widget shows. name: the one that its widget has; inputs: whatever `draw` depends on, compared by ==;
    draw: the fields of the widget's data, as JSON can hold them. Neither runs the model."""

    name: str
    inputs: Callable[[Snapshot], Hashable]
    draw: Callable[[Snapshot], dict[str, Any]]


@dataclass(frozen=True, eq=False)
class Control:
    """A gradio component that the server changes. draw: its new properties, with values as the browser has them."""

    component: Block
    inputs: Callable[[Snapshot], Hashable]
    draw: Callable[[Snapshot], dict[str, Any]]


@dataclass(frozen=True)
class Analysis:
    """What a tab must compute with the model before its views can be drawn. wanted: names what is missing now, None
    for nothing; run: computes it and changes the session, yielding whenever something is worth showing."""

    wanted: Callable[[Snapshot], Hashable]
    run: Callable[[Session], Iterator[None]]


@dataclass(frozen=True)
class Sent:
    """What the browser has of a view: the inputs that it was drawn from, a digest of each field, and growing fields."""

    inputs: Hashable
    digests: dict[str, int] = field(default_factory=dict)
    lines: dict[str, Lines] = field(default_factory=dict)


class Renderer:
    """The views and controls of the page by the tab that shows them, those of every tab under "", and signals: what a
    frame tells the page's own script, drawn as views are."""

    def __init__(self) -> None:
        self.views: dict[str, list[View]] = {}
        self.controls: dict[str, list[Control]] = {}
        self.signals: list[View] = [
            View("wanted", self.wanted, lambda s: s.tab if self.wanted(s)[1] is not None else None)
        ]
        self.analyses: dict[str, list[Analysis]] = {}
        self._initial: dict[str | Control, Sent] = {}

    def add(
        self,
        tab: str,
        views: Iterable[View] = (),
        analysis: Analysis | None = None,
        *,
        controls: Iterable[Control] = (),
    ) -> None:
        """Let a tab show these views, of what the analysis finds, and these controls."""
        self.views.setdefault(tab, []).extend(views)
        self.controls.setdefault(tab, []).extend(controls)
        if analysis is not None:
            self.analyses.setdefault(tab, []).append(analysis)

    def components(self, tab: str) -> list[Block]:
        """The different components of the tab's controls; frames name them by their place in this list."""
        return list(dict.fromkeys(control.component for control in self.controls.get(tab, ())))

    def wanted(self, s: Snapshot) -> tuple[str, tuple[Hashable, ...] | None]:
        """The open tab, and what each of its analyses lacks; None where none lacks anything. The page asks for it with
        the event `tick` of the frame."""
        missing = tuple(analysis.wanted(s) for analysis in self.analyses.get(s.tab, ()))
        return s.tab, None if all(each is None for each in missing) else missing

    def build(self, session: Session) -> str:
        """The frame that the page is built with, of the session that every visitor starts with. All controls are built
        as this session has them: an arriving page does not set them over what a person has typed or clicked already."""
        snapshot = session.snapshot()
        controls = [control for tab in self.controls.values() for control in tab]
        session.sent, session.frame_number = {control: Sent(control.inputs(snapshot)) for control in controls}, 0
        frame = self.frame(session)
        self._initial = dict(session.sent)
        return frame or ""

    def start(self, session: Session) -> None:
        """The browser has loaded the page anew: it shows what `build` gave it."""
        session.sent, session.frame_number = dict(self._initial), 1

    def frame(self, session: Session, edited: Iterable[Block] = ()) -> str | None:
        """The views and controls of the open tab that changed since the last frame, as JSON; None where none did. All
        of them after `session.missed_frame`.

        edited: components that the person is editing, which are not set.
        """
        with session.render_lock, session.lock.reading():
            whole, session.missed_frame = session.missed_frame, False
            if whole:
                session.sent = {}
            snapshot = session.snapshot()
            tabs = dict.fromkeys(("", snapshot.tab))
            changed = {}
            for view in (view for tab in tabs for view in self.views.get(tab, ())):
                inputs, before = view.inputs(snapshot), session.sent.get(view.name)
                if before is not None and before.inputs == inputs:
                    continue
                fields, session.sent[view.name] = _changes(view.draw(snapshot), inputs, before)
                if fields:
                    changed[view.name] = fields
            signals = {view.name: value for view in self.signals if (value := _signal(view, snapshot, session.sent))}
            updates = {tab: update for tab in tabs if (update := self._updates(tab, snapshot, session.sent, edited))}
            if updates:
                signals["controls"] = _json(updates)
            if not changed and not signals and not whole:
                return None
            base = None if whole else session.frame_number
            session.frame_number += 1
            return _encode(session.frame_number, base, changed, signals)

    def _updates(
        self, tab: str, snapshot: Snapshot, sent: dict[str | Control, Sent], edited: Iterable[Block]
    ) -> dict[int, dict[str, Any]]:
        """The new properties of the tab's controls, by the place of their components in `components`."""
        places = {component: place for place, component in enumerate(self.components(tab))}
        updates: dict[int, dict[str, Any]] = {}
        for control in self.controls.get(tab, ()):
            inputs, before = control.inputs(snapshot), sent.get(control)
            if before is not None and before.inputs == inputs:
                continue
            sent[control] = Sent(inputs)
            if control.component not in edited and (properties := control.draw(snapshot)):
                updates.setdefault(places[control.component], {}).update(_as_pairs(properties))
        return updates


def _as_pairs(properties: dict[str, Any]) -> dict[str, Any]:
    """The properties with each of their choices as (label, value), as the browser knows them."""
    if "choices" not in properties:
        return properties
    pairs = [each if isinstance(each, tuple) else (str(each), each) for each in properties["choices"]]
    return properties | {"choices": pairs}


def _changes(data: Mapping[str, Any], inputs: Hashable, before: Sent | None) -> tuple[dict[str, str], Sent]:
    """The fields that differ from what was sent, as JSON, and what is sent with them."""
    fields, sent = {}, Sent(inputs)
    for name, value in data.items():
        if isinstance(value, Lines):
            known = before.lines.get(name) if before else None
            sent.lines[name] = value
            kept = _common(known, value)
            if known is None or kept < len(value) or len(known) > kept:
                fields[name] = _json(value if known is None else {"$lines": kept, "add": value[kept:]})
            continue
        text = _json(value)
        sent.digests[name] = hash(text)
        if before is None or before.digests.get(name) != sent.digests[name]:
            fields[name] = text
    return fields, sent


def _signal(view: View, snapshot: Snapshot, sent: dict[Any, Sent]) -> str | None:
    """The value of a signal as JSON; None where it was sent already."""
    inputs, before = view.inputs(snapshot), sent.get(view.name)
    if before is not None and before.inputs == inputs:
        return None
    sent[view.name] = Sent(inputs)
    return _json(view.draw(snapshot))


def _common(before: Lines | None, after: Lines) -> int:
    """How many of the first lines are the same."""
    if before is None:
        return 0
    return next(
        (i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), min(len(before), len(after))
    )


def _json(value: Any) -> str:
    """Compact JSON, in which `<` starts no tag."""
    return json.dumps(value, cls=PlotlyJSONEncoder, separators=(",", ":")).replace("<", "\\u003c")


def _encode(number: int, base: int | None, views: Mapping[str, Mapping[str, str]], signals: Mapping[str, str]) -> str:
    shown = ",".join(f"{_json(name)}:{_object(fields)}" for name, fields in views.items())
    return _object({"n": _json(number), "base": _json(base), "views": f"{{{shown}}}", **signals})


def _object(fields: Mapping[str, str]) -> str:
    """A JSON object of values that are JSON already."""
    return f"{{{','.join(f'{_json(name)}:{text}' for name, text in fields.items())}}}"
