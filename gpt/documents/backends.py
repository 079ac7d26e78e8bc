"""Generation in another process: on ZeroGPU, or in a deployment on a cluster.

A backend streams replies to a request, and `remote_stream` adds them to the document, which stays in this process.
Another backend can take over at any time and draws the same tokens, because a draw depends only on the seed and the
position. A request contains a text's ids, settings and edits; a reply contains draws and the activations for new
positions. Only plain values and NumPy arrays cross the process boundary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from gpt.analysis.concepts import Concepts
from gpt.edits import Edits, Patch, Steering
from gpt.inference.zero_gpu import to_numpy
from gpt.sampling import Draw, SamplingParams


@dataclass(frozen=True)
class StreamRequest:
    """A text and the settings for continuing it.

    params: settings, including a seed. max_new_tokens: 0 only reads the text. n_known: number of positions for which
    the caller already has the activations. slides: whether to continue past a full context (see
    `gpt.documents.generation.stream`). held: white space with which the next token begins (see
    `gpt.tokenizer.hold_back`).
    """

    ids: list[int]
    dropped: list[int] = field(default_factory=list)
    edits: Edits | None = None
    params: SamplingParams = field(default_factory=SamplingParams)
    max_new_tokens: int = 0
    n_known: int = 0
    slides: bool = False
    held: str = ""

    def __reduce__(self) -> tuple[Callable[..., StreamRequest], tuple[dict[str, Any]]]:
        """Pickle the request with plain edits. Raises ValueError for hooks."""
        return _received, (vars(self) | {"edits": plain_edits(self.edits)},)

    def edits_with(self, concepts: Concepts | None) -> Edits | None:
        """Return the edits, taking activity functions from this model's concepts, because functions cannot be sent."""
        if self.edits is None or concepts is None:
            return self.edits
        steering = (
            each if each.concept is None else concepts.steering(each.layer, *each.concept)
            for each in self.edits.steering
        )
        return replace(self.edits, steering=tuple(steering))


def _received(values: dict[str, Any]) -> StreamRequest:
    return StreamRequest(**values | {"edits": edits_of(values["edits"])})


@dataclass(frozen=True)
class StreamReply:
    """New tokens for a text.

    rows: `Generation.activations` for the positions that were read, starting at `start`. seconds: time spent on these
    tokens.
    """

    draws: tuple[Draw, ...]
    start: int
    rows: tuple[np.ndarray, ...]
    seconds: float = 0.0

    def rows_between(self, start: int, end: int) -> Sequence[Tensor]:
        """Return the activations of positions start to end - 1."""
        return [torch.from_numpy(part[..., start - self.start : end - self.start, :]) for part in self.rows]


class Source(Protocol):
    """The replies to one request, with None whenever there is none for a while.

    Raises `gpt.inference.cluster.ConnectionLost` if the backend has failed or is unreachable.
    """

    def __iter__(self) -> Iterator[StreamReply | None]: ...
    def close(self) -> None: ...


class Backend(Protocol):
    """Interface for backends, such as `gpt.inference.cluster.DeployedModel`."""

    def stream(self, request: StreamRequest) -> Source:
        """Send a request. Raises ConnectionLost if the backend is unreachable."""
        ...


def plain_edits(edits: Edits | None) -> dict[str, Any]:
    """Convert edits to plain values and NumPy arrays; {} for no edits. Raises ValueError for hooks."""
    if edits is None or edits == Edits():
        return {}
    edits.check_portable()
    patches = [vars(patch) | {"value": to_numpy(patch.value)} for patch in edits.patches]
    steering = [vars(each) | {"value": to_numpy(each.value), "activity": None} for each in edits.steering]
    return {name: dict(value) if "scale" in name else value for name, value in vars(edits).items()} | {
        "patches": patches,
        "steering": steering,
    }


def edits_of(plain: dict[str, Any]) -> Edits | None:
    """Convert the result of `plain_edits` back to edits. `StreamRequest.edits_with` adds the activity functions."""
    if not plain:
        return None
    patches = [Patch(**patch | {"value": torch.from_numpy(patch["value"])}) for patch in plain["patches"]]
    steering = [Steering(**each | {"value": torch.from_numpy(each["value"])}) for each in plain["steering"]]
    return Edits(**plain | {"patches": tuple(patches), "steering": tuple(steering)})
