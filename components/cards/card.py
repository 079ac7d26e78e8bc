"""Cards, each a gr.HTML whose content and controls are built from parts, and the events for the cards in a tab."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import gradio as gr

from components.events import Events, error_messages
from components.i18n import t
from components.monitoring import count_error
from components.parts import Action, Handler, Live, Part, Queue, streams
from components.render import View
from components.state.reads import Pending
from components.state.session import Session
from components.state.snapshot import Snapshot

EVENTS: dict[Queue, str] = {
    "interactive": "select",
    "typing": "apply",
    "model": "submit",
    "experiment": "input",
    "stop": "stop",
}
SHORT = ("interactive", "stop")  # queues whose handlers do not yield
EARLY: tuple[Queue, ...] = ("interactive", "typing")  # queues whose actions the events of the other queues bring along


class Card:
    """A gr.HTML built from parts.

    name: used for the view `card.<name>` and the page element `card-<name>`. html: the component, which triggers
    one of EVENTS for each queue. For each event, its value contains the pending actions of that queue and of those in
    EARLY: {queue: [[number, action, value], ...]}. opened: whether the part of the tab that contains the card is open;
    otherwise its pictures are not drawn.
    """

    def __init__(self, name: str, *parts: Part, classes: str = "gb-card", opened: Live | None = None) -> None:
        self.name, self._is_open = name, opened
        self.root = Part("box", fixed={"classes": f"gb-stack {classes}".strip()}, children=parts)
        self.layout = self.root.described()
        self.words: dict[str, Mapping[str, object]] = {}  # placeholder values for each catalogue key
        self.actions: dict[str, Action] = {}  # keyed by part name and event, such as "lesson-head:input"
        names = set[str]()
        for part in self.root.everything():
            if part.name and part.name in names:
                raise TypeError(f"the card {name} has two parts named {part.name}")
            names.add(part.name)
            self.words |= dict(part.words.values())
            for event, action in part.actions.items():
                key = f"{part.name}:{event}"
                if action.queue in SHORT and streams(action.handler):
                    raise TypeError(f"{key}: a handler of the queue {action.queue} may not yield")
                self.actions[key] = action
        self.queues = dict.fromkeys(action.queue for action in self.actions.values())
        call = json.dumps({"name": name, "events": EVENTS, "early": EARLY})
        self.html = gr.HTML(
            html_template="<div></div>",
            js_on_load=f"glassbox.card(element, trigger, props, {call})",
            apply_default_css=False,
            elem_id=f"card-{name}",
            elem_classes=["gb-widget", "gb-holder"],  # repeated on an inner element: none may draw a border or padding
        )
        pictures = [part for part in self.root.everything() if part.draw is not None]
        self.view = View(f"card.{name}", self._draw)
        self.pictures = [View(part.name, part.draw, partial(self._shows, part)) for part in pictures if part.draw]

    def _shows(self, part: Part, s: Snapshot) -> bool:
        return part in s.cached(self._opened)

    def _opened(self, s: Snapshot) -> list[Part]:
        parts = [self.root] if self._is_open is None or self._is_open(s) else []
        for part in parts:
            with suppress(Exception):  # `_draw` reports it
                parts.extend(part.opened(s))
        return parts

    def _draw(self, s: Any) -> dict[str, Any]:
        """Return the card's data.

        layout: the tree of parts, which never changes. words: translated texts by key. seen: see `_seen`. live.<name>:
        a part's live properties, or `failed`, a sentence.
        """
        live: dict[str, dict[str, Any]] = {}
        parts = [self.root]
        for part in parts:
            try:
                if part.live:
                    live[f"live.{part.name}"] = {name: of(s) for name, of in part.live.items()}
                parts.extend(part.opened(s))
            except Pending:  # the page keeps what it shows
                continue
            except Exception as problem:
                count_error("drawing", problem)
                live[f"live.{part.name}"] = {"failed": t("view.failed")}
        texts = {key: t(key, **values) for key, values in self.words.items()}
        return {"layout": self.layout, "words": texts, "seen": s.cached(self._seen), **live}

    def _seen(self, s: Any) -> dict[str, int]:
        """Return the number of the last action that has begun in each queue, and of the last that has ended by name."""
        numbers = {key: number for (card, key), number in s.handled.items() if card == self.name}
        return dict.fromkeys(self.queues, 0) | numbers


def add_cards(events: Events, shown: Mapping[str, Sequence[Card]]) -> None:
    """Show cards in their tabs ("" stands for every tab), and wire one event for each queue that they use.

    An event of the queue "model" also brings along what has just been set or typed in any of the cards, and one of the
    queue "stop" cancels their other events.
    """
    for tab, cards in shown.items():
        events.renderer.add(tab, [view for card in cards for view in (card.view, *card.pictures)])
    cards = [card for each in shown.values() for card in each]
    wired: dict[Queue, Any] = {}
    for queue, event in EVENTS.items():  # "stop" comes last
        able = [card for card in cards if queue in card.queues]
        if not able:
            continue
        sent = [card for card in cards if card.queues] if queue == "model" else able
        handler = partial(act if queue in SHORT else act_and_show, sent, queue)
        wired[queue] = events.on(
            [getattr(card.html, event) for card in able],
            handler,
            [card.html for card in sent],
            queue=queue,
            trigger_mode="always_last" if queue in EARLY else "multiple",
            cancels=[each for name, each in wired.items() if name not in EARLY] if queue == "stop" else (),
        )


def act(cards: Sequence[Card], queue: Queue, session: Session, *sent: dict[str, Any]) -> None:
    for _ in act_and_show(cards, queue, session, *sent):
        pass


def act_and_show(cards: Sequence[Card], queue: Queue, session: Session, *sent: dict[str, Any]) -> Iterator[None]:
    """Like `act`, but for handlers that may yield. The first yield confirms that an action has arrived.

    After an error, the remaining actions are still handled. The first error is raised at the end.
    """
    problems: list[Exception] = []
    for handler, value in _pending(cards, queue, session, sent):
        yield
        try:
            made = handler(session, value)
            if isinstance(made, Iterator):
                yield from made
        except Exception as problem:
            problems.append(problem)
    for other in problems[1:]:
        with suppress(gr.Error), error_messages():  # counts it; only the first one becomes a message
            raise other
    if problems:
        raise problems[0]


def _pending(
    cards: Sequence[Card], queue: Queue, session: Session, sent: Sequence[dict[str, Any]]
) -> Iterator[tuple[Handler, Any]]:
    """Yield the handler and value of each pending action: first those in EARLY, then those of `queue`.

    sent: the value of each card, {queue: actions}, unchecked.
    """
    for each in dict.fromkeys((*EARLY, queue) if queue != "interactive" else (queue,)):
        for card, value in zip(cards, sent, strict=True):
            found = value.get(each)
            for entry in found if isinstance(found, list) else ():
                match entry:
                    case [int(number), str(name), payload]:
                        is_new, action = session.is_new(card.name, each, number), card.actions.get(name)
                        if action is None or action.queue != each:
                            continue
                        if action.early is not None and each != queue:
                            yield action.early, payload
                        elif is_new:
                            yield action.handler, payload
                            session.mark_ended(card.name, name, number)
