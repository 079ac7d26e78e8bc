"""Components whose text depends only on the language."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import gradio as gr
from gradio.blocks import Block

from components.i18n import t
from components.render import Control, View
from components.state.snapshot import Snapshot
from components.widgets.sentence import Kind, sentence
from components.widgets.widget import placed

B = TypeVar("B", bound=Block)
Source = str | Callable[[], Any]  # a catalogue key, or a function that looks up texts


class Localizer:
    """Builds components with localized texts.

    controls: update the components' texts; view: provides the texts of all sentences.
    """

    def __init__(self) -> None:
        self.controls: list[Control] = []
        self.view = View("words", self._draw)
        self._sentences: dict[str, dict[str, Any]] = {}

    def build(self, cls: type[B] | Callable[..., B], texts: dict[str, Source], **arguments: Any) -> B:
        """Return cls(**arguments) with a localized property for each entry of `texts`."""
        component = cls(**arguments, **_said(texts))
        self.controls.append(Control(component, lambda s: _said(texts)))
        return component

    def sentence(self, key: str, *, kind: Kind, elem_id: str | None = None, **values: object) -> gr.HTML:
        """Return a component that shows a sentence from the catalogue. values: values for its placeholders."""
        self._sentences[key] = values
        return placed(sentence(elem_id or "", kind=kind, view="words", field=key))

    def _draw(self, s: Snapshot) -> dict[str, str]:
        return {key: t(key, **values) for key, values in self._sentences.items()}


def _said(texts: dict[str, Source]) -> dict[str, Any]:
    return {name: source() if callable(source) else t(source) for name, source in texts.items()}
