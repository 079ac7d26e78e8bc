"""Results that the open part needs in addition to the recording, each with the tokens it was computed from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor

from components.state.example import language_of_model
from components.tabs.inside.recording import Recording
from gpt import Generation, LoadedModel, Trace
from gpt.experiments.random_models import skeleton_of


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


@dataclass(frozen=True, eq=False)
class SkeletonPass:
    """A forward pass through the skeleton: the embeddings, without any block. Each tensor is (T, n_embd).

    `position` is None for a model without learned positions.
    """

    recording: Recording
    token: Tensor = field(repr=False)
    position: Tensor | None = field(repr=False)
    states: Tensor = field(repr=False)

    @classmethod
    @torch.inference_mode()
    def of(cls, recording: Recording) -> SkeletonPass:
        document, trace = recording.document, Trace(attention=False)
        model = skeleton_of(document.loaded.model)
        idx = torch.tensor([recording.ids], device=model.device)
        states = model.hidden_states(idx, trace=trace, edits=document.edits)[0]
        position = trace.position_embedding
        return cls(recording, trace.token_embedding[0], None if position is None else position.view_as(states), states)

    @torch.inference_mode()
    def logits(self, position: int) -> Tensor:
        """Return the skeleton's logits after a position, (vocab_size,) in float32."""
        model = self.recording.document.loaded.model
        return model.logits(self.states[position : position + 1])[0].float()
