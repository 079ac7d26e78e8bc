"""A tab: its state, what it computes, and its cards.

    tab = Tab("activations")

    @tab.state
    class Chosen:
        x: float = setting(1.0, low=-3, high=3, step=0.05)

    @tab.computed
    def histogram(s):
        return count_pre_activations(s.text, s.selection.layer)

    def before(s):
        h = s[histogram]
        return bars.histogram(h.shares, h.edges, x_title="x", y_title="share"), t("activations.histogram.says", n=h.n)

    tab.cards(card("histogram", question("activations.histogram"), slider(Chosen.x, "x"), picture("histogram", before)))

`s` is a snapshot of the visitor's session that records what is read from it. A picture is drawn again, and a result is
computed again, only if something that it read has changed. While a result is computed, the pictures that read it keep
their last drawing, dimmed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar, overload

from components.cards.card import Card, add_cards
from components.errors import PageError
from components.events import Events
from components.i18n import t
from components.kit.settings import state_class
from components.parts import Part, question, section
from components.state.reads import Computed, Pending
from components.widgets.widget import Said, says

C = TypeVar("C", bound=type)
T = TypeVar("T")


class Panel:
    """State and computed results of a section that several tabs can show.

    name: beginning of the ids of its settings, and of the key of its question.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def state(self, cls: C) -> C:
        """Decorate a class whose fields are settings, or plain values with defaults. `s[cls]` is its current value."""
        return state_class(cls, self.name)  # type: ignore[return-value]

    @overload
    def computed(self, function: Callable[[Any], T]) -> Computed[T]: ...
    @overload
    def computed(self, **options: Any) -> Callable[[Callable[[Any], Any]], Computed[Any]]: ...
    def computed(self, function: Any = None, **options: Any) -> Any:
        """Decorate a function that runs the model or takes long; `s[function]` is its result.

        It runs off the page's thread, and only while something that is shown reads its result. A ValueError appears in
        place of the pictures that read it. A generator function yields partial results, and may return the last one.
        Takes the options of `Computed`.
        """
        return partial(Computed, **options) if function is None else Computed(function)

    def section(
        self,
        answer: Callable[[Any], Said],
        *parts: Part,
        notice: Callable[[Any], Said] | None = None,
        reads_text: bool = False,
    ) -> Part:
        """Return the section: its question, a sentence that answers it, a notice, and further parts.

        reads_text: whether it is about the page's text. Only lessons with such a section show the text's tokens.
        """

        def said(s: Any) -> Said:
            try:
                return answer(s)
            except Pending:
                if s.has_results:
                    raise
                return t("panel.waits" if s.generating else "panel.busy")

        name = self.name
        notices = () if notice is None else (says(f"{name}-notice", notice, kind="notice"),)
        classes = "gb-panel gb-reads-text" if reads_text else "gb-panel"
        return section(question(f"{name}.question"), says(f"{name}-answer", said), *notices, *parts, classes=classes)


class Tab(Panel):
    """A tab's declarations, from which `build` makes its part of the page."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._cards: list[Callable[[], Card]] = []

    def cards(self, *cards: Callable[[], Card]) -> None:
        self._cards += cards

    def build(self, events: Events, *more: Callable[[], Card]) -> None:
        """Build the cards where gradio's blocks are being built, and wire them.

        more: further cards, which depend on the page's options.
        """
        add_cards(events, {self.name: [make() for make in (*self._cards, *more)]})


def no_text(s: Any) -> PageError | None:
    """Return the error for a page without a text that the model has read, or None if there is one."""
    return PageError("error.no_text") if s.text is None or s.text.n_read == 0 else None


def card(name: str, *parts: Part, **options: Any) -> Callable[[], Card]:
    return partial(Card, name, *parts, **options)
