"""Generation in another process: a replica in a Ray cluster, or a GPU that ZeroGPU lends.

A request contains a text's ids, settings and edits; replies contain draws and final-norm states. Both are plain JSON.
The document stays in this process, which computes attention weights and traces itself when they are looked at. Another
process can continue the text at any time with the same tokens, because a draw depends only on the seed and the
position.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from gpt.sampling import Draw, SamplingParams

FLOAT32 = "<f4"  # little-endian


@dataclass(frozen=True)
class StreamRequest:
    """A text and the settings for continuing it.

    edits: in the format of `gpt.documents.edit_text`. params: settings, including a seed. max_new_tokens: 0 only reads
    the text. n_known: number of positions for which the caller already has the states. slides: whether to continue past
    a full context (see `gpt.documents.generation.stream`). held: white space with which the next token begins (see
    `gpt.tokenizer.hold_back`).
    """

    ids: list[int]
    dropped: list[int] = field(default_factory=list)
    edits: str = ""
    params: SamplingParams = field(default_factory=SamplingParams)
    max_new_tokens: int = 0
    n_known: int = 0
    slides: bool = False
    held: str = ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> StreamRequest:
        return cls(**data | {"params": SamplingParams(**data["params"])})


@dataclass(frozen=True)
class StreamReply:
    """New tokens for a text.

    states: final-norm states (T, C) of the positions that were read, starting at `start`. seconds: time spent on these
    tokens.
    """

    draws: tuple[Draw, ...]
    start: int
    states: Tensor
    seconds: float = 0.0

    def to_json(self) -> dict[str, Any]:
        states = self.states.float().cpu().numpy().astype(FLOAT32, copy=False)
        packed = {"shape": states.shape, "states": b64encode(states.tobytes()).decode()}
        return {"draws": self.draws, "start": self.start, "seconds": self.seconds} | packed

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> StreamReply:
        states = np.frombuffer(bytearray(b64decode(data["states"])), FLOAT32).reshape(data["shape"])
        draws = tuple(Draw(*draw) for draw in data["draws"])
        return cls(draws, data["start"], torch.from_numpy(states), data["seconds"])


class Source(Protocol):
    """The replies to one request, with None whenever there is none for a while.

    Raises `gpt.inference.cluster.ConnectionLost` if the process has failed or is unreachable.
    """

    def __iter__(self) -> Iterator[dict[str, Any] | None]: ...
    def close(self) -> None: ...
