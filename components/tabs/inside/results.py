"""Results that the open part needs in addition to the recording, each with the tokens it was computed from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor

from components.state.example import language_of_model
from components.tabs.inside.recording import Recording
from gpt import Generation, LoadedModel, Trace


@dataclass(frozen=True, eq=False)
class PositionTrace:
    """All activations at the last token in `ids`, (1, 1, ...)."""

    document: Generation
    ids: tuple[int, ...]
    trace: Trace = field(repr=False)

    @classmethod
    def of(cls, recording: Recording, position: int) -> PositionTrace:
        return cls(recording.document, recording.ids[: position + 1], recording.trace_at(position))

    def is_at(self, recording: Recording, position: int) -> bool:
        """Return whether the trace belongs to that position in the recorded text."""
        return self.document is recording.document and self.ids == recording.ids[: position + 1]


@dataclass(frozen=True, eq=False)
class Stories:
    """The model's predictions after two sentences with the same ending, and after the ending alone.

    Attributes:
        TEXTS: The two prefixes, their shared ending, and the words in which they differ, for each model language.
        texts: The ids of the three texts and the logits after each, (vocab_size,). Empty if the model cannot read them.
    """

    TEXTS: ClassVar = {
        "en": (("Tom got a cat.", "Tom got a bike."), "He loves his", ("cat", "bike")),
        "zh": (("江路落残阳。", "江路落残花。"), "戍楼望归客，夜夜梦还", ("阳", "花")),  # rhyme decides the next token
    }
    loaded: LoadedModel
    texts: tuple[tuple[tuple[int, ...], Tensor], ...]

    @classmethod
    @torch.inference_mode()
    def of(cls, loaded: LoadedModel) -> Stories:
        language = language_of_model(loaded.name)
        starts, ending, _ = cls.TEXTS[language]
        between = " " if language == "en" else "\n"
        texts = [*(f"{start}{between}{ending}" for start in starts), ending]
        try:
            return cls(loaded, tuple(_read(loaded, text) for text in texts))
        except ValueError:  # unknown characters, or the context is too short
            return cls(loaded, ())


def _read(loaded: LoadedModel, text: str) -> tuple[tuple[int, ...], Tensor]:
    document = Generation(loaded, text)
    document.read()
    return tuple(document.ids), document.logits(len(document.ids) - 1)
