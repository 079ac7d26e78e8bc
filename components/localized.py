"""Gradio components whose words follow the page's language."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from gradio.blocks import Block

from components.i18n import Language, t
from components.render import Control

B = TypeVar("B", bound=Block)
Source = str | Callable[[Language], Any]  # a key of the catalogue, or a function of the language


class Words:
    """Builds components with words in them; `controls` give each its new words when the language changes."""

    def __init__(self) -> None:
        self.controls: list[Control] = []

    def build(self, cls: type[B] | Callable[..., B], texts: dict[str, Source], **arguments: Any) -> B:
        """cls(**arguments) plus a property per entry of texts."""
        component = cls(**arguments, **_in_language("en", texts))
        self.controls.append(Control(component, lambda s: s.language, lambda s: _in_language(s.language, texts)))
        return component

    @property
    def components(self) -> list[Block]:
        """Everything that changes with the language."""
        return [control.component for control in self.controls]


def _in_language(language: Language, texts: dict[str, Source]) -> dict[str, Any]:
    return {name: source(language) if callable(source) else t(source, language) for name, source in texts.items()}
