"""Generation in another process: on ZeroGPU, or in a deployment of a cluster.

What crosses: the ids of a text, settings and edits in; steps and the activations of the positions that they read out.
All of it are plain values and numpy arrays. The document stays where it is, so another process can continue it from its
ids at any time, and draws the same tokens: a draw depends on seed and position only.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import numpy as np
import torch
from torch import Tensor

from gpt.documents.step import Step
from gpt.edits import Edits, Patch
from gpt.errors import GPTError
from gpt.inference.cluster import ConnectionLost
from gpt.inference.zero_gpu import to_numpy
from gpt.sampling import SamplingParams

POLL_SECONDS = 0.5  # between two checks of whoever waits for a step
MAX_AWAY_SECONDS = 20.0  # that `next` waits for a cluster that is away
MAX_LOSSES = 5  # replicas that may end one after the other without a token

T = TypeVar("T")


@dataclass(frozen=True)
class RemoteRequest:
    """A text and how to continue it.

    edits: see `plain_edits`. params: with a seed. max_new_tokens: 0 reads the text and generates nothing; None is
        one `step`, which has no end.
    n_known: number of positions whose activations the caller has.
    """

    ids: list[int]
    dropped: list[int] = field(default_factory=list)
    edits: dict[str, Any] = field(default_factory=dict)
    params: SamplingParams = field(default_factory=SamplingParams)
    max_new_tokens: int | None = 0
    n_known: int = 0


@dataclass(frozen=True)
class RemoteReply:
    """Steps of a text; rows: `Generation.activations` of the positions that were read, from `start` on. seconds: that
    the steps took."""

    steps: tuple[Step, ...]
    start: int
    rows: tuple[np.ndarray, ...]
    seconds: float = 0.0


class RemoteDocument(Protocol):
    """What the process needs that continues a text; a `Generation`."""

    @property
    def n_read(self) -> int: ...
    def read(self) -> None: ...
    def local_step(self, params: SamplingParams) -> Step: ...
    def local_steps(self, params: SamplingParams, max_new_tokens: int) -> Iterator[Step]: ...
    def activations(self, start: int) -> tuple[Tensor, ...]: ...


class ContinuedDocument(Protocol):
    """What the process needs that asked for it; a `Generation`."""

    ids: list[int]
    path: list[int]

    @property
    def stopped(self) -> bool: ...
    def remote_request(self, params: SamplingParams, max_new_tokens: int | None) -> RemoteRequest: ...
    def add_step(self, step: Step, params: SamplingParams, reply: RemoteReply, *, joined: bool) -> None: ...


def replies(
    document: RemoteDocument, request: RemoteRequest, interval: Callable[[], float] = lambda: 0.0
) -> Iterator[RemoteReply]:
    """Run a request on a document with its ids: the first token at once, the others when `interval()` seconds have
    passed since the last reply. After the last token it is read, too."""
    if request.max_new_tokens == 0:
        document.read()
        yield RemoteReply((), request.n_known, to_numpy(document.activations(request.n_known)))
        return
    steps, start, sent, seconds = list[Step](), request.n_known, -math.inf, 0.0
    if request.max_new_tokens is None:
        made = iter([document.local_step(request.params)])
    else:
        made = document.local_steps(request.params, request.max_new_tokens)
    while True:
        began = time.perf_counter()
        step = next(made, None)
        if step is None:
            return
        seconds += time.perf_counter() - began
        steps.append(step)
        if step.finish_reason is not None:
            document.read()
        if step.finish_reason is not None or time.perf_counter() - sent >= interval():
            yield RemoteReply(tuple(steps), start, to_numpy(document.activations(start)), seconds)
            steps, start, sent, seconds = [], document.n_read, time.perf_counter(), 0.0


class Source(Protocol):
    """The replies to one request; see `gpt.inference.cluster.Stream`."""

    def next(self, seconds: float) -> RemoteReply | None: ...
    def close(self) -> None: ...


class IteratorSource:
    """The replies of a generator, which cannot be lost. Waits for each as long as it takes."""

    def __init__(self, iterator: Iterator[RemoteReply]) -> None:
        self._iterator = iterator

    def next(self, seconds: float) -> RemoteReply | None:
        return next(self._iterator)

    def close(self) -> None:
        """Close the generator."""
        close = getattr(self._iterator, "close", lambda: None)
        close()


def from_iterator(
    make: Callable[[RemoteRequest], Iterator[RemoteReply]],
) -> Callable[[RemoteRequest], Source]:
    """The `open_source` of `RemoteSteps` for a function that gives the replies."""
    return lambda request: IteratorSource(make(request))


class RemoteSteps(Iterator[Step]):
    """The steps of a document that another process makes; each is added to the document when it is taken.

    open_source: sends a request; raises ConnectionLost while nobody is there. A source that is lost is replaced by
    another, which continues from the ids of the document. seconds: that the model needed for the steps taken so far.
    """

    def __init__(
        self,
        document: ContinuedDocument,
        open_source: Callable[[RemoteRequest], Source],
        params: SamplingParams,
        max_new_tokens: int | None,
    ) -> None:
        self._document, self._open_source, self._params, self._left = document, open_source, params, max_new_tokens
        self._made: deque[tuple[Step, RemoteReply]] = deque()
        self._source: Source | None = None
        self._last_node: int | None = None
        self._ended = max_new_tokens is not None and max_new_tokens < 1
        self._error: GPTError | None = None
        self._losses, self.seconds = 0, 0.0

    def ready(self, seconds: float) -> bool:
        """Whether `next` returns, ends or raises at once; waits for it at most this long."""
        deadline = time.monotonic() + seconds
        while not (self._made or self._ended):
            remaining = deadline - time.monotonic()
            try:
                if self._source is None:
                    self._source = self._open_source(self._document.remote_request(self._params, self._left))
                reply = self._source.next(max(0.0, remaining))
            except ConnectionLost:
                self._lose()
                if remaining <= 0:
                    return False
                time.sleep(min(remaining, POLL_SECONDS / 10))
                continue
            except StopIteration:
                self._ended = True
            except GPTError as error:
                self._error, self._ended = error, True
            else:
                if reply is None:
                    return False
                self._made.extend((step, reply) for step in reply.steps)
        return True

    def _lose(self) -> None:
        if self._source is not None:
            self._source, self._losses = None, self._losses + 1
            if self._losses > MAX_LOSSES:
                self._ended = True
                self._error = GPTError(
                    "cluster.lost",
                    "{n} replicas ended one after the other while they continued this text: see the log of the cluster",
                    n=MAX_LOSSES,
                )

    def __next__(self) -> Step:
        began = time.monotonic()
        while not self.ready(POLL_SECONDS):
            if self._source is not None:
                began = time.monotonic()
            elif time.monotonic() - began > MAX_AWAY_SECONDS:
                raise GPTError(
                    "cluster.away",
                    "the cluster that generates the text is not there: try again later; the text stays as it is",
                )
        if not self._made or self._document.stopped:
            if self._error is not None:
                raise self._error
            raise StopIteration
        step, reply = self._made.popleft()
        self.seconds += reply.seconds / len(reply.steps)
        document = self._document
        document.add_step(step, self._params, reply, joined=document.path[-1] == self._last_node)
        self._last_node, self._losses = document.path[-1], 0
        self._left = None if self._left is None else self._left - 1
        return step

    def close(self) -> None:
        """Stop generating."""
        self._ended = True
        if self._source is not None:
            self._source.close()
            self._source = None

    def __del__(self) -> None:
        self.close()


def polled(steps: Iterator[T]) -> Iterator[T | None]:
    """The steps, and None every POLL_SECONDS in which the next one is not there, because a cluster is away or busy."""
    while True:
        if isinstance(steps, RemoteSteps) and not steps.ready(POLL_SECONDS):
            yield None
            continue
        try:
            yield next(steps)
        except StopIteration:
            return


def model_seconds(steps: Iterator[Any]) -> Callable[[], float] | None:
    """The time that the model needed for the steps taken so far, if another process makes them."""
    return (lambda: steps.seconds) if isinstance(steps, RemoteSteps) else None


def plain_edits(edits: Edits | None) -> dict[str, Any]:
    """Edits as plain values and numpy arrays; {} for none. Raises ValueError for hooks."""
    if edits is None or edits == Edits():
        return {}
    edits.check_portable()
    patches = [vars(patch) | {"value": to_numpy(patch.value)} for patch in edits.patches]
    return {name: dict(value) if "scale" in name else value for name, value in vars(edits).items()} | {
        "patches": patches
    }


def edits_of(plain: dict[str, Any]) -> Edits | None:
    """The edits of `plain_edits`."""
    if not plain:
        return None
    patches = [Patch(**patch | {"value": torch.from_numpy(patch["value"])}) for patch in plain["patches"]]
    return Edits(**plain | {"patches": tuple(patches)})


def rows_between(reply: RemoteReply, start: int, end: int) -> Sequence[Tensor]:
    """The activations of the positions start to end - 1 of a reply."""
    return [torch.from_numpy(part[..., start - reply.start : end - reply.start, :]) for part in reply.rows]
