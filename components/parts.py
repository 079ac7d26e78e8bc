"""What a card can hold: words, pictures, controls, and their arrangement.

Fixed properties reach the page once, when the card is first shown; words follow the language; what depends on the
snapshot is a function of it and is sent when it changes. Nothing a person typed is read as HTML.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from components.state.snapshot import Snapshot

Queue = Literal["interactive", "model", "analysis", "experiment", "stop"]
Handler = Callable[..., Iterator[None] | None]  # (session, what the control sends)
Live = Callable[[Snapshot], Any]
Choices = Sequence[tuple[str, Any]]  # (label, value)


@dataclass(frozen=True)
class Action:
    """What happens when a part is used. latest: of several quick uses, only the newest counts."""

    handler: Handler
    queue: Queue = "interactive"
    latest: bool = False


@dataclass(frozen=True, eq=False)
class Part:
    """A node of a card.

    kind: the function in `card.js` that builds it. name: its id on the page, and of its actions. fixed: properties that
    never change. words: keys of the catalogue by property, with the values of their placeholders. live: properties
    that depend on the snapshot; "hidden" and "disabled" work for each kind. actions: by event.
    """

    kind: str
    name: str = ""
    fixed: Mapping[str, Any] = field(default_factory=dict)
    words: Mapping[str, tuple[str, Mapping[str, object]]] = field(default_factory=dict)
    live: Mapping[str, Live] = field(default_factory=dict)
    actions: Mapping[str, Action] = field(default_factory=dict)
    children: tuple[Part, ...] = ()

    def described(self) -> dict[str, Any]:
        """The part as the page builds it."""
        node: dict[str, Any] = {"kind": self.kind, **self.fixed}
        if self.name:
            node["name"] = self.name
        if self.words:
            node["words"] = {name: key for name, (key, _) in self.words.items()}
        if self.actions:
            node["actions"] = {event: [each.queue, each.latest] for event, each in self.actions.items()}
        if self.children:
            node["children"] = [child.described() for child in self.children]
        return node

    def everything(self) -> Iterator[Part]:
        """This part and all below it, those that are not shown included."""
        yield self
        for child in self.children:
            yield from child.everything()

    def shown(self, s: Snapshot) -> Iterator[Part]:
        """This part and those below it that are on the page."""
        yield self
        if not (hidden := self.live.get("hidden")) or not hidden(s):
            for child in self.children:
                yield from child.shown(s)


@dataclass(frozen=True, eq=False)
class Case(Part):
    """One of several parts, by a key of the snapshot; the others are not on the page. A key without a part shows
    nothing."""

    which: Callable[[Snapshot], Hashable] = lambda s: None
    parts: Mapping[Hashable, Part] = field(default_factory=dict)

    def everything(self) -> Iterator[Part]:
        yield self
        for part in self.parts.values():
            yield from part.everything()

    def shown(self, s: Snapshot) -> Iterator[Part]:
        yield self
        if part := self.parts.get(self.which(s)):
            yield from part.shown(s)


def case(name: str, which: Callable[[Snapshot], Hashable], parts: Mapping[Any, Part]) -> Part:
    """The part of `parts` that `which` names."""
    described = {key: part.described() for key, part in parts.items()}

    def opened(s: Snapshot) -> dict[str, Any]:
        key = which(s)
        return {"key": str(key), "node": described.get(key)}

    return Case("case", name, live={"opened": opened}, which=which, parts=parts)


# Arrangement


def row(*parts: Part, classes: str = "", show: Live | None = None, name: str = "") -> Part:
    """Parts beside each other, wrapping where there is no room."""
    return _shown(Part("box", name, {"classes": f"gb-row {classes}".strip()}, children=parts), show)


def columns(*parts: Part, classes: str = "", show: Live | None = None, name: str = "") -> Part:
    """A row of columns from the top."""
    return row(*parts, classes=f"gb-columns {classes}".strip(), show=show, name=name)


def column(
    *parts: Part, grow: float = 1, min_width: int = 280, classes: str = "", show: Live | None = None, name: str = ""
) -> Part:
    """Parts below each other. grow: its share of the row; min_width: in px, below which the row wraps."""
    fixed = {"classes": f"gb-column {classes}".strip(), "grow": grow, "min_width": min_width}
    return _shown(Part("box", name, fixed, children=parts), show)


def section(*parts: Part, classes: str = "", show: Live | None = None, name: str = "", grow: float = 0) -> Part:
    """A card inside a card component that holds several. grow: its share of a row."""
    fixed = {"classes": f"gb-card gb-section {classes}".strip(), **({"grow": grow, "min_width": 300} if grow else {})}
    return _shown(Part("box", name, fixed, children=parts), show)


def head(*parts: Part, classes: str = "") -> Part:
    """The line of the title: a question and small controls."""
    return row(*parts, classes=f"gb-card-head {classes}".strip())


def fold(name: str, title: str, *parts: Part, open: bool = False) -> Part:
    """Parts that a click on the title shows. title: a key of the catalogue."""
    return Part("fold", name, {"open": open}, _words(title=title), children=parts)


# Words


def words(key: str, kind: str = "lead", *, show: Live | None = None, name: str = "", **values: object) -> Part:
    """A sentence of the catalogue. kind: "question", "lead" or "caption"; values: of its placeholders."""
    return _shown(Part("words", name, {"as": kind}, {"text": (key, values)}), show)


def question(key: str, **values: object) -> Part:
    """The title of a card."""
    return words(key, "question", **values)


def lead(key: str, **values: object) -> Part:
    """A sentence in normal size."""
    return words(key, "lead", **values)


def caption(key: str, **values: object) -> Part:
    """A quiet sentence."""
    return words(key, "caption", **values)


# Controls


def slider(
    name: str,
    low: float | Live,
    high: float | Live,
    step: float | Live,
    *,
    label: str | Live,
    value: Live,
    on: Handler,
    info: str = "",
    queue: Queue = "interactive",
    show: Live | None = None,
    enabled: Live | None = None,
) -> Part:
    """A number in a range, also as a box to type in. It sends an int or float between low and high.

    label: a key of the catalogue, or the words by snapshot. info: a key of the catalogue, a sentence below.
    """
    live = {"value": value}
    ends = {}
    for end, given in (("low", low), ("high", high), ("step", step)):
        (live if callable(given) else ends)[end] = given  # type: ignore[index]
    return _control("slider", name, ends, live, label, info, Action(on, queue, True), show, enabled)


def choice(
    name: str,
    options: Choices | Live,
    *,
    value: Live,
    on: Handler,
    label: str | Live,
    info: str = "",
    queue: Queue = "interactive",
    labelled: bool = False,
    show: Live | None = None,
    enabled: Live | None = None,
) -> Part:
    """A few options side by side, of which one is chosen; it sends the value. labelled: whether the label is seen, too,
    not only read by screen readers."""
    return _options("choice", name, options, {"labelled": labelled}, value, on, label, info, queue, show, enabled)


def select(
    name: str,
    options: Choices | Live,
    *,
    value: Live,
    on: Handler,
    label: str | Live,
    info: str = "",
    queue: Queue = "interactive",
    beside: bool = False,
    show: Live | None = None,
    enabled: Live | None = None,
) -> Part:
    """A list that drops down; it sends the value. beside: the label stands on the same line."""
    return _options("select", name, options, {"beside": beside}, value, on, label, info, queue, show, enabled)


def token_box(
    name: str,
    options: Choices | Live,
    *,
    value: Live,
    on: Handler,
    label: str | Live,
    info: str = "",
    most: int = 1,
    queue: Queue = "interactive",
    show: Live | None = None,
) -> Part:
    """A list to choose from or to type into, such as tokens; it sends a value, or the text typed. most: above 1 it
    holds several, sent as a list of values and texts."""
    return _options("token_box", name, options, {"most": most}, value, on, label, info, queue, show, None)


def text_box(
    name: str,
    *,
    value: Live,
    on: Handler | None,
    label: str | Live,
    info: str = "",
    lines: int = 1,
    max_length: int | None = None,
    placeholder: str = "",
    queue: Queue = "interactive",
    show: Live | None = None,
    enabled: Live | None = None,
) -> Part:
    """A text that a person types; it sends the text with each key. on: None for a text that can be read and copied
    only. lines: the least height."""
    fixed = {"lines": lines, **({"max_length": max_length} if max_length else {}), "read_only": on is None}
    action = None if on is None else Action(on, queue, True)
    part = _control("text_box", name, fixed, {"value": value}, label, info, action, show, enabled)
    return replace(part, words={**part.words, **_words(placeholder=placeholder)})


def number_box(name: str, *, value: Live, on: Handler, label: str | Live, info: str = "") -> Part:
    """A whole number to type; it sends the number, or None for anything else."""
    return _control("number_box", name, {}, {"value": value}, label, info, Action(on, latest=True), None, None)


def check_box(
    name: str,
    *,
    value: Live,
    on: Handler,
    label: str | Live,
    info: str = "",
    queue: Queue = "interactive",
    show: Live | None = None,
    enabled: Live | None = None,
) -> Part:
    """Something that is on or off; it sends a bool."""
    return _control("check_box", name, {}, {"value": value}, label, info, Action(on, queue, True), show, enabled)


def button(
    name: str,
    label: str | Live,
    on: Handler,
    *,
    queue: Queue = "interactive",
    primary: bool = False,
    classes: str = "",
    show: Live | None = None,
    enabled: Live | None = None,
    **values: object,
) -> Part:
    """A button; its handler is called with the session alone. queue: "stop" also cancels what runs in the tab.
    primary: the main one of the page, which Ctrl+Enter presses. values: of the placeholders of the label."""

    fixed = {"primary": primary, "classes": classes}
    action = Action(valueless(on), queue)
    part = _control("button", name, fixed, {}, label, "", action, show, enabled)
    return replace(part, words={name: (key, values) for name, (key, _) in part.words.items()})


def run_buttons(
    name: str, start: str, on: Handler, stop: Handler, running: Callable[[Snapshot], bool], *, queue: Queue
) -> Part:
    """Start and Stop, of which one applies. start: the label, a key of the catalogue; on: what Start runs."""
    return row(
        button(f"{name}-start", start, on, queue=queue, enabled=lambda s: not running(s)),
        button(f"{name}-stop", "stop", stop, queue="stop", enabled=running),
        classes="gb-buttons gb-short",
    )


def valueless(handler: Handler) -> Handler:
    """The handler of what sends no value, such as a button: it is called with the session alone."""

    def press(session: Any, _: object) -> Any:
        return handler(session)

    press.streams = streams(handler)  # type: ignore[attr-defined]
    return press


def streams(handler: Any) -> bool:
    """Whether a handler yields between updates of the page."""
    marked = getattr(handler, "streams", None)
    return inspect.isgeneratorfunction(getattr(handler, "func", handler)) if marked is None else bool(marked)


# Helpers of this module


def _words(**keys: str) -> dict[str, tuple[str, Mapping[str, object]]]:
    return {name: (key, {}) for name, key in keys.items() if key}


def _shown(part: Part, show: Live | None) -> Part:
    return part if show is None else replace(part, live={**part.live, "hidden": lambda s: not show(s)})


def _control(
    kind: str,
    name: str,
    fixed: Mapping[str, Any],
    live: Mapping[str, Live],
    label: str | Live,
    info: str,
    action: Action | None,
    show: Live | None,
    enabled: Live | None,
) -> Part:
    live = dict(live)
    if callable(label):
        live["label"] = label
    if enabled is not None:
        live["disabled"] = lambda s: not enabled(s)
    written = _words(info=info) if callable(label) else _words(label=label, info=info)
    actions = {} if action is None else {"act": action}
    return _shown(Part(kind, name, fixed, written, live, actions), show)


def _options(
    kind: str,
    name: str,
    options: Choices | Live,
    fixed: dict[str, Any],
    value: Live,
    on: Handler,
    label: str | Live,
    info: str,
    queue: Queue,
    show: Live | None,
    enabled: Live | None,
) -> Part:
    live: dict[str, Live] = {"value": value}
    if callable(options):
        live["options"] = options
    else:
        fixed = {**fixed, "options": list(options)}
    return _control(kind, name, fixed, live, label, info, Action(on, queue, True), show, enabled)
