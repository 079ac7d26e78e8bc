"""Gradio components whose words follow the page's language."""

from __future__ import annotations

from functools import partial
from typing import Any, TypeVar

import gradio as gr
from gradio.blocks import Block

from components.i18n import Language, t

B = TypeVar("B", bound=Block)


class Words:
    """Builds components with words in them, and gives every one its new words when the language changes."""

    def __init__(self) -> None:
        self._bound: list[tuple[Block, dict[str, Any]]] = []
        self._first = 0

    def build(self, cls: type[B], texts: dict[str, Any], **arguments: Any) -> B:
        """cls(**arguments) plus a property per entry of texts; each names a key, or is a function of the language."""
        component = cls(**arguments, **self._in("en", texts))
        self._bound.append((component, texts))
        return component

    def end_first_screen(self) -> None:
        """What has been built so far, and the name of every tab, is seen first."""
        self._first = len(self._bound)

    @property
    def components(self) -> list[Block]:
        """Everything that changes with the language."""
        return [component for component, _ in self._bound]

    def wire(self, switch: gr.Radio, language: gr.State, **options: Any) -> None:
        """New words when the switch moves: the first screen at once, with `language`; then everything else, for which
        the browser needs longer."""
        first = [bound for i, bound in enumerate(self._bound) if i < self._first or isinstance(bound[0], gr.Tab)]
        later = [bound for bound in self._bound if bound not in first]

        def at_once(chosen: Language) -> Any:
            return [chosen, *self._updates(first, chosen)] if first else chosen

        switch.change(at_once, switch, [language, *(component for component, _ in first)], **options)
        language.change(partial(self._updates, later), language, [component for component, _ in later], **options)

    def updates(self, language: Language) -> list[Any]:
        """One update per entry of `components`."""
        return self._updates(self._bound, language)

    def _updates(self, bound: list[tuple[Block, dict[str, Any]]], language: Language) -> list[Any]:
        return [gr.update(**self._in(language, texts)) for _, texts in bound]

    @staticmethod
    def _in(language: Language, texts: dict[str, Any]) -> dict[str, Any]:
        return {name: source(language) if callable(source) else t(source, language) for name, source in texts.items()}
