"""What a card can hold: words, pictures, controls, and their arrangement.

A part has fixed properties, which reach the page once; words, which follow the language; and live properties, functions
of the snapshot, which are sent when their value changes. Nothing a person typed is read as HTML.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypedDict

from typing_extensions import NotRequired, Unpack

from components.state.snapshot import Snapshot

Queue = Literal["interactive", "model", "analysis", "experiment", "stop"]
Handler = Callable[..., Iterator[None] | None]  # (session, what was sent); one that yields updates the page each time
Live = Callable[[Snapshot], Any]
Sentence = tuple[str, Mapping[str, object]]  # a key of the catalogue, and the values of its placeholders
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
    that depend on the snapshot; "hidden" works for each kind. actions: by event.
    """

    kind: str
    name: str = ""
    fixed: Mapping[str, Any] = field(default_factory=dict)
    words: Mapping[str, Sentence] = field(default_factory=dict)
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
        if self.live:
            node["live"] = True
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
class _Case(Part):
    """See `case`."""

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
    """The one part that `which` names; the others are not on the page. A name without a part shows nothing."""
    described = {key: part.described() for key, part in parts.items()}

    def opened(s: Snapshot) -> dict[str, Any]:
        key = which(s)
        return {"key": str(key), "node": described.get(key)}

    return _Case("case", name, live={"opened": opened}, which=which, parts=parts)


# Arrangement


def row(*parts: Part, classes: str = "") -> Part:
    """Parts beside each other, wrapping where there is no room."""
    return Part("box", fixed={"classes": f"gb-row {classes}".strip()}, children=parts)


def title_row(*parts: Part) -> Part:
    """The first line of a card: a question and small controls."""
    return row(*parts, classes="gb-card-head")


def columns(*parts: Part, classes: str = "") -> Part:
    """A row of columns, level at the top."""
    return row(*parts, classes=f"gb-columns {classes}".strip())


def column(
    *parts: Part, grow: float = 1, min_width: int = 280, classes: str = "", name: str = "", show: Live | None = None
) -> Part:
    """Parts below each other. grow: its share of the row; min_width: in px, below which the row wraps. With `show` it
    needs a name."""
    fixed = {"classes": f"gb-column {classes}".strip(), "grow": grow, "min_width": min_width}
    return _shown(Part("box", name, fixed, children=parts), show)


def section(*parts: Part, classes: str = "", grow: float = 0, name: str = "", show: Live | None = None) -> Part:
    """The look of a card, where one component holds several. grow: its share of a row. With `show` it needs a name."""
    fixed = {"classes": f"gb-card gb-section {classes}".strip(), "grow": grow, "min_width": 300}
    return _shown(Part("box", name, fixed, children=parts), show)


def fold(name: str, title: str, *parts: Part, on: Handler | None = None, classes: str = "") -> Part:
    """Parts that a click on the title shows. title: a key of the catalogue. on: gets whether they are shown."""
    actions = {} if on is None else {"act": Action(on, latest=True)}
    return Part("fold", name, {"classes": classes}, {"title": (title, {})}, actions=actions, children=parts)


# Words: sentences of the catalogue, with values for their placeholders


def question(key: str, **values: object) -> Part:
    """The title of a card."""
    return _sentence("question", key, values)


def lead(key: str, **values: object) -> Part:
    """A sentence in normal size."""
    return _sentence("lead", key, values)


def caption(key: str, **values: object) -> Part:
    """A quiet sentence."""
    return _sentence("caption", key, values)


def _sentence(look: str, key: str, values: Mapping[str, object]) -> Part:
    return Part("words", fixed={"look": look}, words={"text": (key, values)})


# Controls


class ControlOptions(TypedDict):
    """What every control takes.

    label, info: keys of the catalogue, the second for a sentence below; a label may be a function of the snapshot that
    returns the words. value: the one to show. on: gets the session and what the control sends, in the queue. show:
    whether the control is on the page.
    """

    label: str | Live
    value: Live
    on: Handler
    queue: NotRequired[Queue]
    info: NotRequired[str]
    show: NotRequired[Live | None]


def slider(
    name: str,
    low: float | Live,
    high: float | Live,
    step: float | Live,
    *,
    typed_step: float | None = None,
    **options: Unpack[ControlOptions],
) -> Part:
    """A number in a range, also to type. It sends a number between low and high. typed_step: of what is typed, where it
    is finer."""
    return _control("slider", name, options, low=low, high=high, step=step, typed_step=typed_step)


def choice(name: str, choices: Choices | Live, *, labelled: bool = False, **options: Unpack[ControlOptions]) -> Part:
    """A few values side by side. It sends the chosen one. labelled: show the label, not only read it aloud."""
    return _control("choice", name, options, choices=choices, labelled=labelled)


def select(name: str, choices: Choices | Live, *, beside: bool = False, **options: Unpack[ControlOptions]) -> Part:
    """A list that drops down. It sends the chosen value. beside: the label stands on the same line."""
    return _control("select", name, options, choices=choices, beside=beside)


def pick_list(name: str, choices: Choices | Live, *, most: int, **options: Unpack[ControlOptions]) -> Part:
    """Up to `most` entries, each picked from the choices or typed. It sends a list of values and typed texts. A single
    one gives way to the next."""
    return _control("pick_list", name, options, choices=choices, most=most)


def text_box(
    name: str,
    *,
    max_length: int,
    placeholder: str = "",
    on_enter: Action | None = None,
    **options: Unpack[ControlOptions],
) -> Part:
    """A text to type, in one line or more. It sends the text with each key. placeholder: a key of the catalogue.
    on_enter: sends it once more when the text is entered, and so keeps it to one line."""
    part = _control("text_box", name, options, max_length=max_length)
    words: dict[str, Sentence] = {"placeholder": (placeholder, {})} if placeholder else {}
    actions = {} if on_enter is None else {"enter": on_enter}
    return replace(part, words={**part.words, **words}, actions={**part.actions, **actions})


def number_box(name: str, *, whole: bool = True, **options: Unpack[ControlOptions]) -> Part:
    """A number to type, a whole one unless told. It sends the number, and None for anything else."""
    return _control("number_box", name, options, whole=whole)


def check_box(name: str, **options: Unpack[ControlOptions]) -> Part:
    """Something that is on or off. It sends a bool."""
    return _control("check_box", name, options)


def button(
    name: str,
    label: str | Live,
    on: Handler,
    *,
    queue: Queue = "interactive",
    enabled: Live | None = None,
    show: Live | None = None,
    primary: bool = False,
) -> Part:
    """A button. Its handler gets the session alone. label: a key of the catalogue, or a function of the snapshot.
    queue: "stop" also cancels what runs in the tab. primary: the main one of its card."""
    live: dict[str, Live] = {} if enabled is None else {"disabled": lambda s: not enabled(s)}
    words: dict[str, Sentence] = {"label": (label, {})} if isinstance(label, str) else {}
    if not isinstance(label, str):
        live["label"] = label
    actions = {"act": Action(valueless(on), queue)}
    return _shown(Part("button", name, {"primary": primary}, words, live, actions), show)


def code_text(name: str, label: str, text: Live) -> Part:
    """A program to read and to copy. text: a function of the snapshot."""
    return Part("code_text", name, words={"label": (label, {}), "copy": ("copy", {})}, live={"text": text})


def timer(name: str, seconds: float, on: Handler, *, active: Live) -> Part:
    """Calls the handler, which gets the session alone, again and again while it is active and its tab is open."""
    return Part(
        "timer", name, {"seconds": seconds}, {}, {"active": active}, {"act": Action(valueless(on), latest=True)}
    )


def run_buttons(
    name: str,
    label: str,
    start: Handler,
    stop: Handler,
    running: Live,
    *,
    queue: Queue,
    able: Live | None = None,
    primary: bool = False,
) -> Part:
    """Start and Stop, of which one can be pressed. label: of Start, a key of the catalogue; able: whether it can be
    pressed while nothing runs; primary: see `button`."""

    def can_start(s: Snapshot) -> bool:
        return not running(s) and (able is None or able(s))

    return row(
        button(f"{name}-start", label, start, queue=queue, enabled=can_start, primary=primary),
        button(f"{name}-stop", "stop", stop, queue="stop", enabled=running),
        classes="gb-buttons gb-short",
    )


def valueless(handler: Handler) -> Handler:
    """The handler of what sends no value, such as a button, from one that takes the session alone."""
    if streams(handler):

        def write(session: Any, _: object) -> Iterator[None]:
            yield from handler(session) or ()

        return write
    return lambda session, _: handler(session)


def streams(handler: Any) -> bool:
    """Whether a handler yields, to update the page before it ends."""
    return inspect.isgeneratorfunction(getattr(handler, "func", handler))


def _control(kind: str, name: str, options: ControlOptions, **properties: object) -> Part:
    """A control. Properties that are functions are live."""
    given = {**properties, "value": options["value"]}
    words: dict[str, Sentence] = {"info": (options["info"], {})} if options.get("info") else {}
    if callable(options["label"]):
        given["label"] = options["label"]
    else:
        words["label"] = (options["label"], {})
    live: dict[str, Live] = {key: value for key, value in given.items() if callable(value)}
    fixed = {key: value for key, value in given.items() if key not in live}
    action = Action(options["on"], options.get("queue", "interactive"), latest=True)
    return _shown(Part(kind, name, fixed, words, live, {"act": action}), options.get("show"))


def _shown(part: Part, show: Live | None) -> Part:
    return part if show is None else replace(part, live={**part.live, "hidden": lambda s: not show(s)})
