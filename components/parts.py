"""A card's contents: words, pictures, controls, and their arrangement.

A part has fixed properties, which are sent to the page once; words, which follow the language; and live properties,
functions of the snapshot whose values are sent when they change. Text typed by a person is never interpreted as HTML.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, Protocol, TypedDict

from typing_extensions import Unpack

from components.state.snapshot import Snapshot

Queue = Literal["interactive", "typing", "model", "analysis", "experiment", "stop"]
Handler = Callable[..., Iterator[None] | None]  # (session, value sent); may yield to update the page
Live = Callable[[Any], Any]  # of a snapshot
Draw = Callable[[Any], dict[str, Any]]  # of a snapshot: the data of a widget
Sentence = tuple[str, Mapping[str, object]]  # a catalogue key, and the values for its placeholders
Choices = Sequence[tuple[str, Any]]  # (label, value)


class Lines(list[str]):
    """A list of lines in a widget's data that usually grows only at its end. Only new lines are sent."""


@dataclass(frozen=True)
class Action:
    """The action triggered by using a part.

    latest: if a part is used several times in quick succession, only the newest use counts. early: for the queue
    "typing", called instead of the handler before the actions of another queue, also if another event has begun to
    handle this one.
    """

    handler: Handler
    queue: Queue = "interactive"
    latest: bool = False
    early: Handler | None = None


@dataclass(frozen=True, eq=False)
class Part:
    """A node in a card.

    kind: name of the function in `card.js` that builds it. name: its id on the page, also used by its actions. fixed:
    properties that never change. words: translated properties, each a catalogue key with values for its placeholders.
    live: properties that depend on the snapshot; "hidden" works for every kind. actions: the action for each event.
    """

    kind: str
    name: str = ""
    fixed: Mapping[str, Any] = field(default_factory=dict)
    words: Mapping[str, Sentence] = field(default_factory=dict)
    live: Mapping[str, Live] = field(default_factory=dict)
    actions: Mapping[str, Action] = field(default_factory=dict)
    children: tuple[Part, ...] = ()
    draw: Draw | None = None

    def described(self) -> dict[str, Any]:
        given = {
            "name": self.name,
            "words": {name: key for name, (key, _) in self.words.items()},
            "live": bool(self.live),
            "actions": {event: [each.queue, each.latest] for event, each in self.actions.items()},
            "children": [child.described() for child in self.children],
        }
        return {"kind": self.kind, **self.fixed, **{name: value for name, value in given.items() if value}}

    def everything(self) -> Iterator[Part]:
        """Yield this part and all parts below it, including hidden ones."""
        yield self
        for child in self.children:
            yield from child.everything()

    def opened(self, s: Snapshot) -> Sequence[Part]:
        """Return the parts directly below this one that are on the page."""
        hidden = self.live.get("hidden")
        return () if hidden and hidden(s) else self.children


@dataclass(frozen=True, eq=False)
class _Case(Part):
    """See `case`."""

    which: Callable[[Snapshot], Hashable] = lambda s: None
    parts: Mapping[Hashable, Part] = field(default_factory=dict)

    def everything(self) -> Iterator[Part]:
        yield self
        yield from dict.fromkeys(part for shown in self.parts.values() for part in shown.everything())

    def opened(self, s: Snapshot) -> Sequence[Part]:
        part = self.parts.get(self.which(s))
        return () if part is None else (part,)


def case(name: str, which: Callable[[Snapshot], Hashable], parts: Mapping[Any, Part]) -> Part:
    """Return a part that shows only the entry of `parts` that `which` selects, or nothing for an unknown key.

    Several entries may contain the same part.
    """
    described = {key: part.described() for key, part in parts.items()}

    def opened(s: Snapshot) -> dict[str, Any]:
        key = which(s)
        return {"key": str(key), "node": described.get(key)}

    return _Case("case", name, live={"opened": opened}, which=which, parts=parts)


# Arrangement


def row(*parts: Part, classes: str = "") -> Part:
    """Place parts side by side, wrapping if they do not fit."""
    return Part("box", fixed={"classes": f"gb-row {classes}".strip()}, children=parts)


def title_row(*parts: Part) -> Part:
    """Return a card's first line: a question and small controls."""
    return row(*parts, classes="gb-card-head")


def columns(*parts: Part, classes: str = "") -> Part:
    """Place parts in top-aligned columns."""
    return row(*parts, classes=f"gb-columns {classes}".strip())


def column(
    *parts: Part, grow: float = 1, min_width: int = 280, classes: str = "", name: str = "", show: Live | None = None
) -> Part:
    """Place parts one below the other. `show` requires a name.

    grow: share of the row's width; min_width: width in px below which the row wraps.
    """
    fixed = {"classes": f"gb-column {classes}".strip(), "grow": grow, "min_width": min_width}
    return _shown(Part("box", name, fixed, children=parts), show)


def section(*parts: Part, classes: str = "", grow: float = 0, name: str = "", show: Live | None = None) -> Part:
    """Group parts in a box styled like a card; one Gradio component may contain several boxes.

    grow: share of the row's width. `show` requires a name.
    """
    fixed = {"classes": f"gb-card gb-section {classes}".strip(), "grow": grow, "min_width": 300}
    return _shown(Part("box", name, fixed, children=parts), show)


def fold(name: str, title: str, *parts: Part, on: Handler | None = None, classes: str = "") -> Part:
    """Return a collapsible section: a click on its title shows or hides the parts.

    title: a catalogue key. on: a handler that receives whether the section is open.
    """
    actions = {} if on is None else {"act": Action(on, latest=True)}
    return Part("fold", name, {"classes": classes}, {"title": (title, {})}, actions=actions, children=parts)


# Words: sentences from the catalogue, with values for their placeholders


def _sentence(look: str, key: str, /, **values: object) -> Part:
    return Part("words", fixed={"look": look}, words={"text": (key, values)})


title = partial(_sentence, "page-title")
question = partial(_sentence, "question")
lead = partial(_sentence, "lead")  # in normal size
caption = partial(_sentence, "caption")  # muted


# Controls


class ControlOptions(TypedDict, total=False):
    """Options for every control, of which a setting gives the first three and its limits.

    value: the value to show. on: handler called with the session and the control's value, in the given queue. show:
    whether the control is on the page. info, placeholder: catalogue keys; info is a sentence below the control.
    low, high, step: of a slider. typed_step: step for typed numbers, if finer. choices: of a choice, select or pick
    list. labelled: whether a choice's label is visible; otherwise only screen readers read it. beside: put a select's
    label on the same line. most: maximum number of picked entries; if 1, a new one replaces the old one. max_length:
    of a text box. on_enter: receives the text when Enter is pressed, and limits the text box to one line, as
    one_line does. whole: accept only integers in a number field; the default.
    """

    value: Live
    on: Handler
    queue: Queue
    show: Live | None
    info: str
    placeholder: str
    low: float | Live
    high: float | Live
    step: float | Live
    typed_step: float | None
    choices: Choices | Live
    labelled: bool
    beside: bool
    most: int
    max_length: int
    one_line: bool
    on_enter: Action
    whole: bool


class Control(Protocol):
    """Makes a control of a `components.kit.settings.Setting`, or with a name on the page.

    label: a catalogue key, or a function of the snapshot that returns the words.
    """

    def __call__(self, of: Any, label: str | Live, **options: Unpack[ControlOptions]) -> Part: ...


def _control(kind: str, *properties: str) -> Control:
    """Return the function that makes controls of a kind. Properties given as functions are live."""

    def control(of: Any, label: str | Live, **options: Unpack[ControlOptions]) -> Part:
        is_named = isinstance(of, str)
        given: dict[str, Any] = {"whole": True, **({} if is_named else of.control), **options}
        shown = {name: given[name] for name in (*properties, "value") if name in given}
        words: dict[str, Sentence] = {name: (given[name], {}) for name in ("info", "placeholder") if given.get(name)}
        if callable(label):
            shown["label"] = label
        else:
            words["label"] = (label, {})
        live: dict[str, Live] = {name: value for name, value in shown.items() if callable(value)}
        fixed = {name: value for name, value in shown.items() if name not in live}
        actions = {"act": Action(given["on"], given.get("queue", "interactive"), latest=True)}
        if "on_enter" in given:
            actions["enter"] = given["on_enter"]
        part = Part(kind, of if is_named else of.id, fixed, words, live, actions)
        return _shown(part, given.get("show"))

    return control


slider = _control("slider", "low", "high", "step", "typed_step")  # with a number field; sends a number from low to high
choice = _control("choice", "choices", "labelled")  # a few values side by side; sends the chosen one
select = _control("select", "choices", "beside")  # a drop-down list; sends the chosen value
pick_list = _control("pick_list", "choices", "most")  # sends the selected values and typed strings
text_box = _control("text_box", "max_length", "one_line")  # sends the text after each key press
number_box = _control("number_box", "whole")  # sends the number, or None for anything else
check_box = _control("check_box")  # sends a bool


def button(
    name: str,
    label: str | Live,
    on: Handler | None = None,
    *,
    queue: Queue = "interactive",
    enabled: Live | None = None,
    show: Live | None = None,
    primary: bool = False,
    answer: str = "",
) -> Part:
    """Return a button. Its handler receives only the session; without one, the page's script handles clicks.

    label: a catalogue key, or a function of the snapshot. queue: "stop" also cancels what is running in the tab.
    primary: whether it is the card's main button. answer: name of the part that shows the result; the page scrolls to
    it if it is out of sight.
    """
    live: dict[str, Live] = {} if enabled is None else {"disabled": lambda s: not enabled(s)}
    words: dict[str, Sentence] = {"label": (label, {})} if isinstance(label, str) else {}
    if not isinstance(label, str):
        live["label"] = label
    actions = {} if on is None else {"act": Action(valueless(on), queue)}
    fixed = {"primary": primary} | ({"answer": answer} if answer else {})
    return _shown(Part("button", name, fixed, words, live, actions), show)


def code_text(name: str, label: str, text: Live) -> Part:
    """Return a box with a program to read and copy. text: a function of the snapshot."""
    return Part("code_text", name, words={"label": (label, {}), "copy": ("copy", {})}, live={"text": text})


def timer(name: str, seconds: float, on: Handler, *, active: Live) -> Part:
    """Return a timer that calls a handler at regular intervals while it is active and its tab is open.

    on: receives only the session.
    """
    act = Action(valueless(on), latest=True)
    return Part("timer", name, {"seconds": seconds}, live={"active": active}, actions={"act": act})


def valueless(handler: Handler) -> Handler:
    """Adapt a handler that takes only the session for use by a part that sends no value, such as a button."""
    if streams(handler):

        def write(session: Any, _: object) -> Iterator[None]:
            yield from handler(session) or ()

        return write
    return lambda session, _: handler(session)


def streams(handler: Any) -> bool:
    """Return whether a handler is a generator function, which updates the page each time it yields."""
    return inspect.isgeneratorfunction(getattr(handler, "func", handler))


def _shown(part: Part, show: Live | None) -> Part:
    return part if show is None else replace(part, live={**part.live, "hidden": lambda s: not show(s)})
