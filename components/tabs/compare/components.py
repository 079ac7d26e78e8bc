"""The gradio components of the Compare tab, and its state."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Literal

import gradio as gr

from components.state.settings import LIMITS
from components.state.snapshot import Message
from components.tabs.compare.pair import Pair
from gpt import DEFAULT_MODEL
from gpt.documents.beam_search import BeamSearch
from gpt.models.sources import LLAMA_MODEL

Side = Literal["left", "right"]
SIDES: tuple[Side, Side] = ("left", "right")
COLUMN_SETTINGS = ("temperature", "top_k", "top_p")
MAX_WIDTH = 8  # beams


@dataclass(frozen=True)
class ColumnSettings:
    """Settings of one column. model: "" for the page's."""

    model: str = ""
    temperature: float = LIMITS["temperature"].default
    top_k: int = 0
    top_p: float = 1.0
    seed: str = "1"


PRESETS: dict[str, tuple[ColumnSettings, ColumnSettings]] = {
    "seeds": (ColumnSettings(), ColumnSettings(seed="2")),
    "temperatures": (ColumnSettings(temperature=0.3), ColumnSettings(temperature=1.5)),
    "trained": (ColumnSettings(model=DEFAULT_MODEL), ColumnSettings(model="untrained")),
    "shapes": (ColumnSettings(model=DEFAULT_MODEL), ColumnSettings(model=LLAMA_MODEL)),
}


@dataclass(frozen=True, eq=False)
class CompareState:
    """prompt: of both parts; taken: the Playground's prompt that it was copied from. right_prompt: None for the same.
    columns: their settings. ran: what the last run was made with.

    pair: the generated texts, which grow; pair_version changes with each token.
    measured: positions compared so far, and in total, during the measurement. notice: an error.
    """

    prompt: str = ""
    taken: str = ""
    right_prompt: str | None = None
    columns: tuple[ColumnSettings, ColumnSettings] = PRESETS["temperatures"]
    length: int = 40
    ran: Hashable = None
    pair: Pair | None = None
    pair_version: int = 0
    generating: bool = False
    measured: tuple[int, int] | None = None
    notice: Message | Exception | None = None
    progress: Message | None = None

    @property
    def prompts(self) -> tuple[str, str]:
        """The prompts of the columns."""
        return self.prompt, self.prompt if self.right_prompt is None else self.right_prompt

    @property
    def busy(self) -> bool:
        return self.generating

    @property
    def n_bytes(self) -> int:
        return 0 if self.pair is None else sum(document.n_bytes for document in self.pair.documents)


@dataclass(frozen=True, eq=False)
class BeamState:
    """The beam search: its settings, the search, which grows, and the selected candidate, None for the best. version
    changes with each step; run: numbers the searches, so that a new one ends the previous one."""

    width: int = 3
    penalty: float = 1.0
    length: int = 10
    search: BeamSearch | None = None
    version: int = 0
    run: int = 0
    searching: bool = False
    chosen: int | None = None
    notice: Message | Exception | None = None

    @property
    def busy(self) -> bool:
        return self.searching


@dataclass(frozen=True)
class Column:
    """The components of one side."""

    model: gr.Dropdown
    temperature: gr.Slider
    top_k: gr.Slider
    top_p: gr.Slider
    seed: gr.Textbox
    strip: gr.HTML


@dataclass(frozen=True)
class CompareComponents:
    """The gradio components of the tab."""

    prompt: gr.Textbox
    right_prompt: gr.Textbox
    columns: tuple[Column, Column]
    presets: dict[str, gr.Button]
    length: gr.Slider
    generate: gr.Button
    stop: gr.Button
    divergence: gr.HTML
    beams_tab: gr.Tab
    width: gr.Slider
    penalty: gr.Slider
    max_depth: gr.Slider
    search: gr.Button
    stop_search: gr.Button
    tree: gr.HTML
    adopt: gr.Button
