"""Draws a tab as the page does: pictures, then what they wait for, then the pictures again."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import wraps
from typing import Any

from components.cards.card import Card
from components.i18n import speaking
from components.kit import Tab
from components.render import Renderer, analyse, compute
from components.state.reads import Computed
from components.state.session import Session
from gpt import Generation, LoadedModel


class Drawn:
    """A tab's pictures as the browser has them. `update` computes what they wait for, unless compute is False."""

    def __init__(self, session: Session, tab: Tab, *more: Callable[[], Card]) -> None:
        self.session, self.renderer, self.views = session, Renderer(), dict[str, dict[str, Any]]()
        session.tab, self.actions = tab.name, dict[str, Any]()  # by the name of a part and its event
        for make in (*tab._cards, *more):
            card = make()
            self.actions |= card.actions
            self.renderer.add(tab.name, [card.view, *card.pictures])

    def update(self, *, compute: bool = True) -> dict[str, dict[str, Any]]:
        """Return the data of every view."""
        self._frame()
        for _ in analyse(self.renderer, self.session) if compute else ():
            self._frame()
        return self.views

    @property
    def is_waiting(self) -> bool:
        """Whether something has to be computed."""
        return self.renderer.wanted(self.session, self.session.snapshot()) is not None

    def _frame(self) -> None:
        if frame := self.renderer.frame(self.session):
            for name, fields in json.loads(frame)["views"].items():
                view = self.views.setdefault(name, {})
                grown = {key: lines for key, lines in fields.items() if isinstance(lines, dict) and "$lines" in lines}
                new = {key: view[key][: lines["$lines"]] + lines["add"] for key, lines in grown.items()}
                view.update(fields | new)


def as_read(loaded: LoadedModel, text: str | list[int], **options: Any) -> Generation:
    """Return a text that the model has read."""
    document = Generation(loaded, text, **options)
    document.read()
    return document


def spoken_in(language: str, function: Callable[..., Any], *args: Any, **values: Any) -> Any:
    """Return a function's result for a page in this language."""
    with speaking(language, exact=False):
        return function(*args, **values)


def in_its_language(function: Callable[..., Any]) -> Callable[..., Any]:
    """Call a function of a session in the session's language, as the page does."""

    @wraps(function)
    def called(session: Session, *args: Any) -> Any:
        with speaking(session.language, exact=session.numbers):
            return function(session, *args)

    return called


def compute_now(session: Session, *computed: Computed[Any]) -> None:
    """Compute results for views that are drawn without a page."""
    for each in computed:
        list(compute(session, each))
