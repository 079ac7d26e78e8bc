"""Backends that generate a text's tokens: this process, ZeroGPU, or a deployment on a cluster.

A `Backend` streams replies to a request, and `Steps` adds them to the document, which stays in this process. Another
backend can take over at any time and draws the same tokens, because a draw depends only on the seed and the position. A
request contains a text's ids, settings and edits; a reply contains steps and the activations for new positions.
Only plain values and NumPy arrays cross the process boundary.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Protocol, TypeVar

import numpy as np
import torch
from torch import Tensor

from gpt.analysis.concepts import Concepts
from gpt.documents.step import Step
from gpt.edits import Edits, Patch, Steering
from gpt.errors import GPTError
from gpt.inference.cluster import ConnectionLost
from gpt.inference.zero_gpu import to_numpy
from gpt.sampling import SamplingParams

POLL_SECONDS = 0.5  # polling interval while waiting for a step
MAX_AWAY_SECONDS = 20.0  # maximum time that `next` waits for an unreachable cluster
MAX_LOSSES = 5  # limit on consecutive replica failures without a new token

T = TypeVar("T")


@dataclass(frozen=True)
class StreamRequest:
    """A text and the settings for continuing it.

    params: settings, including a seed. max_new_tokens: 0 only reads the text; None makes one step, which never has the
    finish_reason "max_new_tokens". n_known: number of positions for which the caller already has the activations.
    slides: whether to continue past a full context (see `sliding_steps`). held: white space with which the next token
    begins (see `gpt.tokenizer.hold_back`).
    """

    ids: list[int]
    dropped: list[int] = field(default_factory=list)
    edits: Edits | None = None
    params: SamplingParams = field(default_factory=SamplingParams)
    max_new_tokens: int | None = 0
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
    """New steps for a text.

    steps: new steps; None for a step that the document samples itself. rows: `Generation.activations` for the positions
    that were read, starting at `start`. seconds: time spent on these steps.
    """

    steps: tuple[Step | None, ...]
    start: int = 0
    rows: tuple[np.ndarray, ...] = ()
    seconds: float = 0.0


class StreamedDocument(Protocol):
    """Interface for documents that can be continued, such as `Generation`."""

    path: list[int]

    @property
    def full(self) -> bool: ...
    @property
    def n_read(self) -> int: ...
    @property
    def stopped(self) -> bool: ...
    def request(self, params: SamplingParams, max_new_tokens: int | None, *, slides: bool) -> StreamRequest: ...
    def take_step(self, step: Step | None, params: SamplingParams, reply: StreamReply, *, joined: bool) -> Step: ...
    def incomplete_text(self) -> str: ...
    def without_first(self) -> StreamedDocument: ...
    def read(self) -> None: ...
    def activations(self, start: int) -> tuple[Tensor, ...]: ...


class Source(Protocol):
    """A stream of replies to a request (see `gpt.inference.cluster.Stream`)."""

    def next(self, seconds: float) -> StreamReply | None: ...
    def close(self) -> None: ...


class Backend(Protocol):
    """Interface for backends, such as `gpt.inference.cluster.DeployedModel`."""

    def stream(self, request: StreamRequest) -> Source:
        """Send a request. Raises ConnectionLost if the backend is unreachable."""
        ...


class ThisProcess:
    """Backend that runs the document's own model whenever a step is taken."""

    def stream(self, request: StreamRequest) -> ThisProcess:
        """Return this object, which serves all requests."""
        return self

    def next(self, seconds: float) -> StreamReply:
        """Return a placeholder for a step that the document samples itself."""
        return StreamReply((None,))

    def close(self) -> None:
        """Do nothing, because no request is pending."""


THIS_PROCESS = ThisProcess()


class IteratorSource:
    """A source that takes its replies from a generator and waits for each without a time limit."""

    def __init__(self, iterator: Iterator[StreamReply]) -> None:
        self._iterator = iterator

    def next(self, seconds: float) -> StreamReply | None:
        return next(self._iterator)

    def close(self) -> None:
        """Close the generator."""
        close = getattr(self._iterator, "close", lambda: None)
        close()


def replies(
    document: StreamedDocument, request: StreamRequest, interval: Callable[[], float] = lambda: 0.0
) -> Iterator[StreamReply]:
    """Run a request on a document with the same ids, and yield the replies.

    Sends the first token immediately, and later ones once `interval()` seconds have passed since the last reply. Also
    reads the last token, so that the last reply includes its activations.
    """
    if request.max_new_tokens == 0:
        document.read()
        yield StreamReply((), request.n_known, to_numpy(document.activations(request.n_known)))
        return
    made = Steps(document, THIS_PROCESS, request.params, request.max_new_tokens, slides=request.slides)
    steps, start, sent, seconds = list[Step](), request.n_known, -math.inf, 0.0
    for step in islice(made, 1 if request.max_new_tokens is None else None):
        steps.append(step)
        if made.document is not document:
            document, start = made.document, 0
        if step.finish_reason is not None:
            document.read()
        if step.finish_reason is not None or request.slides or time.perf_counter() - sent >= interval():
            rows = to_numpy(document.activations(start))
            yield StreamReply(tuple(steps), start, rows, made.seconds - seconds)
            steps, start, sent, seconds = [], document.n_read, time.perf_counter(), made.seconds


class Steps(Iterator[Step]):
    """Iterator over the steps of a document. Taking a step appends it to the document.

    If a source is lost, another one continues from the document's ids. max_new_tokens: None means no limit.
    slides: see `sliding_steps`; every slide replaces `document`. seconds: model time spent on the steps taken so far.
    """

    def __init__(
        self,
        document: StreamedDocument,
        backend: Backend,
        params: SamplingParams,
        max_new_tokens: int | None,
        *,
        slides: bool = False,
    ) -> None:
        self.document, self._backend, self._params, self._left = document, backend, params, max_new_tokens
        self._slides = slides
        self._made: deque[tuple[Step | None, StreamReply]] = deque()
        self._source: Source | None = None
        self._last_node: int | None = None
        self._ended = max_new_tokens is not None and max_new_tokens < 1
        self._error: GPTError | None = None
        self._losses, self.seconds = 0, 0.0

    def ready(self, seconds: float) -> bool:
        """Wait for at most `seconds`. Returns whether `next` will return or stop without waiting."""
        deadline = time.monotonic() + seconds
        while not (self._made or self._ended):
            remaining = deadline - time.monotonic()
            try:
                if self._source is None:
                    self._make_room()
                    request = self.document.request(self._params, self._left, slides=self._slides)
                    self._source = self._backend.stream(request)
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

    def _make_room(self) -> None:
        if self._slides and self.document.full:
            self.document = self.document.without_first()

    def _lose(self) -> None:
        if self._source is not None:
            self._source, self._losses = None, self._losses + 1
            if self._losses > MAX_LOSSES:
                self._ended = True
                self._error = GPTError(
                    "cluster.lost",
                    "{n} replicas in a row failed while continuing this text: see the cluster's log",
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
                    "the cluster that generates the text is unreachable: try again later; the text is unchanged",
                )
        if not self._made or self.document.stopped:
            if self._error is not None:
                raise self._error
            raise StopIteration
        step, reply = self._made.popleft()
        self._make_room()
        document, began = self.document, time.perf_counter()
        joined = not self._slides and document.path[-1] == self._last_node
        step = document.take_step(step, self._params, reply, joined=joined)
        self.seconds += reply.seconds / len(reply.steps) + time.perf_counter() - began
        self._last_node, self._losses = document.path[-1], 0
        return self._finished(step)

    def _finished(self, step: Step) -> Step:
        """Add the finish_reason and, to the last step, the text for an incomplete character."""
        reason = step.finish_reason
        if reason == "context_full" and self._slides:
            reason = None
        if self._left is not None:
            self._left -= 1
            if reason is None and self._left == 0:
                reason = "max_new_tokens"
            if reason in ("max_new_tokens", "context_full"):
                step = replace(step, text=step.text + self.document.incomplete_text())
        self._ended = reason is not None
        return step if reason == step.finish_reason else replace(step, finish_reason=reason)

    def close(self) -> None:
        """Stop generating."""
        self._ended = True
        if self._source is not None:
            self._source.close()
            self._source = None

    def __del__(self) -> None:
        self.close()


def polled(steps: Iterator[T]) -> Iterator[T | None]:
    """Yield the steps, and None every POLL_SECONDS while a cluster is unreachable or busy."""
    while True:
        if isinstance(steps, Steps) and not steps.ready(POLL_SECONDS):
            yield None
            continue
        try:
            yield next(steps)
        except StopIteration:
            return


def model_seconds(steps: Iterator[Any]) -> Callable[[], float] | None:
    """Return a function for the model time spent on the steps so far, or None if that time is unknown."""
    return (lambda: steps.seconds) if isinstance(steps, Steps) else None


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


def rows_between(reply: StreamReply, start: int, end: int) -> Sequence[Tensor]:
    """Return the activations of positions start to end - 1 from a reply."""
    return [torch.from_numpy(part[..., start - reply.start : end - reply.start, :]) for part in reply.rows]
