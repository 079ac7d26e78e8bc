"""A card: one gr.HTML whose content and controls are drawn from parts, and the events of all cards of a tab."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import partial
from typing import Any, cast

import gradio as gr

from components.events import Events
from components.i18n import t
from components.parts import Part, Queue, streams
from components.render import Analysis, View
from components.state.session import Session
from components.state.snapshot import Snapshot

EVENTS: dict[Queue, str] = {  # of gr.HTML, by queue
    "interactive": "select",
    "model": "submit",
    "analysis": "apply",
    "experiment": "input",
    "stop": "stop",
}


class Card:
    """One gr.HTML with these parts.

    name: its id on the page. html: the component; its value is, by queue, what was done and not yet handled:
    {"pending": [[number, action, what it sends], ...]}. The view `view` is named `card.<name>`.
    """

    def __init__(self, name: str, *parts: Part, classes: str = "gb-card", scale: int | None = None) -> None:
        self.name = name
        self.root = Part("box", fixed={"classes": f"gb-stack {classes}".strip()}, children=parts)
        self.actions: dict[str, tuple[Queue, Callable[..., Any]]] = {}
        self.words: dict[str, tuple[str, Any]] = {}
        for part in self.root.everything():
            for event, action in part.actions.items():
                key = action_name(part.name, event)
                if key in self.actions:
                    raise TypeError(f"the card {name} has two parts named {part.name}")
                if action.queue in ("interactive", "stop") and streams(action.handler):
                    raise TypeError(f"{key}: a handler of the queue {action.queue} may not yield")
                self.actions[key] = action.queue, action.handler
            self.words.update({key: (key, values) for key, values in part.words.values()})
        used = dict.fromkeys(queue for queue, _ in self.actions.values())
        self.queues = tuple(queue for queue in EVENTS if queue in used)
        call = json.dumps({"name": name, "events": {queue: EVENTS[queue] for queue in self.queues}})
        self.html = gr.HTML(
            html_template="<div></div>",
            js_on_load=f"glassbox.card(element, trigger, props, {call})",
            apply_default_css=False,
            elem_id=f"card-{name}",
            elem_classes=["gb-widget", "gb-holder"],  # gradio repeats them on an inner element,
            scale=scale,
        )
        self._layout = json.dumps(self.root.described(), separators=(",", ":"))
        self.view = View(f"card.{name}", self._inputs, self._draw)

    def _inputs(self, s: Snapshot) -> Hashable:
        return s.language, json.dumps(s.cached(self._live)), self._seen(s)

    def _draw(self, s: Snapshot) -> dict[str, Any]:
        """layout: the tree of the parts, which never changes. words: by key. seen: by queue, the number of the newest
        handled action. live.<name>: the properties of a part."""
        texts = {key: t(key, s.language, **values) for key, values in self.words.values()}
        return {"layout": json.loads(self._layout), "words": texts, "seen": self._seen(s), **s.cached(self._live)}

    def _live(self, s: Snapshot) -> dict[str, dict[str, Any]]:
        live: dict[str, dict[str, Any]] = {}
        for part in self.root.shown(s):
            if part.live:
                live[f"live.{part.name}"] = {name: of(s) for name, of in part.live.items()}
        return live

    def _seen(self, s: Snapshot) -> dict[str, int]:
        return {queue: s.handled.get((self.name, queue), 0) for queue in self.queues}


def action_name(part: str, event: str) -> str:
    """The name of an action: that of its part, with the event if it is not the part's only one."""
    return part if event == "act" else f"{part}:{event}"


def add_cards(
    events: Events, tab: str, cards: Sequence[Card], views: Sequence[View] = (), analysis: Analysis | None = None
) -> dict[Queue, Any]:
    """Show cards in a tab and wire them: one event for each queue. views: of the pictures in them. Returns the event of
    each queue."""
    events.renderer.add(tab, [*(card.view for card in cards), *views], analysis)
    wired: dict[Queue, Any] = {}
    for queue in EVENTS:
        able = [card for card in cards if queue in card.queues]
        if not able:
            continue
        triggers = [getattr(card.html, EVENTS[queue]) for card in able]
        cancels = list(wired.values()) if queue == "stop" else ()
        is_short = queue in ("interactive", "stop")
        wired[queue] = events.on(
            triggers,
            partial(act if is_short else act_long, able, queue),
            [card.html for card in able],
            queue="interactive" if queue == "stop" else queue,
            trigger_mode="always_last" if queue == "interactive" else "multiple",
            cancels=[each for each in cancels if each is not wired.get("interactive")],
        )
    return wired


def act(cards: Sequence[Card], queue: Queue, session: Session, *sent: dict[str, Any]) -> None:
    """Handle what was done in these cards and is not handled yet, in order."""
    for handler, value in _pending(cards, queue, session, sent):
        handler(session, value)


def act_long(cards: Sequence[Card], queue: Queue, session: Session, *sent: dict[str, Any]) -> Iterator[None]:
    """As `act`, with handlers that may yield."""
    for handler, value in _pending(cards, queue, session, sent):
        yield
        made = handler(session, value)
        if isinstance(made, Iterator):
            yield from made


def _pending(
    cards: Sequence[Card], queue: Queue, session: Session, sent: Sequence[dict[str, Any]]
) -> Iterator[tuple[Callable[..., Any], Any]]:
    for card, value in zip(cards, sent, strict=True):
        found = value.get("pending")
        for entry in found if isinstance(found, list) else ():
            match entry:
                case [int(number), str(name), payload] if session.is_new(card.name, queue, number):
                    known, handler = card.actions.get(name, (None, None))
                    if known == queue:
                        yield cast(Callable[..., Any], handler), payload
