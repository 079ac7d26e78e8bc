"""Traces of forward passes over one text."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypedDict, TypeGuard, TypeVar, Unpack, overload

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from gpt.edits import Edits
from gpt.errors import is_integer, require
from gpt.inputs import AnyModel, Text, Texts, gpt_of, ids_of
from gpt.model import GPT, ForwardContext
from gpt.read_only import ordinary
from gpt.trace import Trace

MAX_BATCH_TOKENS = 2048  # maximum number of tokens in a batch of texts
P = ParamSpec("P")
R = TypeVar("R")


class Recorded(TypedDict, total=False):
    """What a trace records; see `Trace`."""

    full: bool
    gradients: bool
    only: Collection[str]


@overload
def trace_text(model: AnyModel, text: Text, edits: Edits | None = None, **recorded: Unpack[Recorded]) -> Trace: ...
@overload
def trace_text(
    model: AnyModel, text: Texts, edits: Edits | None = None, **recorded: Unpack[Recorded]
) -> list[Trace]: ...
def trace_text(
    model: AnyModel,
    text: Text | Texts,
    edits: Edits | None = None,
    *,
    full: bool = False,
    gradients: bool = False,
    only: Collection[str] = (),
) -> Trace | list[Trace]:
    """Trace a forward pass over a text, or over each of several texts.

    text: a text, a list of texts, or ids (B, T) of texts of the same length. Several texts share passes, in batches of
    similar lengths; hooks then see batches that are padded on the right. Each trace in the result is that of its text
    alone, without padding. With gradients, each text has a pass of its own.
    full, gradients, only: see `Trace`. The pass ends after the last layer that `only` needs, and before the output head
    unless the logits are recorded. Raises the same errors as `gpt.inputs.ids_of`, and ValueError if a text is longer
    than the context.
    """
    return of_each(model, text, lambda trace, ids: trace, edits, full=full, gradients=gradients, only=only)


def of_each(
    model: AnyModel,
    text: Text | Texts,
    analysis: Callable[[Trace, list[int]], R],
    edits: Edits | None = None,
    **recorded: Unpack[Recorded],
) -> R | list[R]:
    """Return the analysis of the trace and ids of a text, or of each of several texts, which are traced together."""
    network, several = gpt_of(model), is_several(text)
    rows = [ids_of(model, each) for each in (text if several else [text])]  # type: ignore[arg-type]
    found: dict[int, R] = {}
    for batch in ([number] for number in range(len(rows))) if recorded.get("gradients") else batches(rows):
        lengths = [len(rows[number]) for number in batch]
        trace = Trace(**recorded)
        trace.n_blocks = trace.blocks_needed(network.config.n_layer)
        if edits is not None:
            edits.check_text(min(lengths))
        texts = [torch.tensor(rows[number], device=network.device) for number in batch]
        with torch.inference_mode(not trace.gradients), torch.set_grad_enabled(trace.gradients):
            run = network if trace.keeps(None, "logits") else network.hidden_states
            run(pad_sequence(texts, batch_first=True), trace=trace, edits=edits)
        for row, number in enumerate(batch):
            found[number] = analysis(trace if len(batch) == 1 else trace.of_text(row, lengths[row]), rows[number])
    return [found[number] for number in range(len(rows))] if several else found[0]


def is_several(text: object) -> TypeGuard[Texts]:
    """Return whether an argument is a list of texts or traces, or a batch of ids, and not a text or its token ids."""
    is_batch = getattr(text, "ndim", 1) == 2
    return is_batch or (isinstance(text, list | tuple) and bool(text) and not is_integer(text[0]))


def batches(rows: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """Group texts of similar lengths: yield their numbers, at most MAX_BATCH_TOKENS tokens at once with padding."""
    numbers = sorted(range(len(rows)), key=lambda number: len(rows[number]), reverse=True)
    while numbers:
        n = max(1, MAX_BATCH_TOKENS // len(rows[numbers[0]]))
        yield numbers[:n]
        numbers = numbers[n:]


class ForTexts(Protocol[P, R]):
    """An analysis of one text, or of each of several, which gives a list of results."""

    @overload
    def __call__(self, model: AnyModel, trace: Trace | Text, *args: P.args, **kwargs: P.kwargs) -> R: ...
    @overload
    def __call__(self, model: AnyModel, trace: Texts | list[Trace], *args: P.args, **kwargs: P.kwargs) -> list[R]: ...


def for_texts(analysis: Callable[Concatenate[GPT, Trace, P], R]) -> ForTexts[P, R]:
    """Let an analysis of a trace take any model, and a text, or a list of traces or of texts, traced together."""

    @wraps(analysis)
    @torch.inference_mode()
    def analysed(model: AnyModel, trace: Any, *args: P.args, **kwargs: P.kwargs) -> Any:
        several = is_several(trace)
        is_traced = isinstance(trace[0] if several else trace, Trace)
        traces = trace if is_traced else trace_text(model, trace, kwargs.get("edits"))  # type: ignore[call-overload]
        found = [analysis(gpt_of(model), one, *args, **kwargs) for one in (traces if several else [traces])]
        return found if several else found[0]

    return analysed


@torch.inference_mode()
def trace_window(model: GPT, ids: Sequence[int], start: int, stop: int, edits: Edits | None = None) -> Trace:
    """Trace positions start to stop - 1, without the output head. Earlier tokens are read into a cache first."""
    idx = torch.tensor([list(ids[:stop])], device=model.device)
    cache = model.new_cache(max_length=stop)
    cache.begin(stop)
    if start:
        model.hidden_states(idx[:, :start], cache=cache, edits=edits)
    trace = Trace()
    model.hidden_states(idx[:, start:], cache=cache, trace=trace, edits=edits)
    return trace


def hidden_states_from(model: GPT, resid_pre: Tensor, layer: int, edits: Edits | None = None) -> Tensor:
    """Continue a pass from a layer's resid_pre (B, T, C) and return its hidden states (B, T, C)."""
    ctx = ForwardContext.of_text(model.config, resid_pre, edits)
    x = resid_pre
    for block in model.h[layer:]:
        x = block(x, ctx)
    return ctx.hook(None, "final_norm", model.ln_f(x))


def to_float32(x: Tensor) -> Tensor:
    """Convert x to an ordinary tensor in float32, leaving float64 unchanged."""
    return ordinary(x).to(torch.promote_types(x.dtype, torch.float32))


def single_sequence(x: Tensor) -> Tensor:
    """Remove the batch dimension, (1, ...) -> (...), and convert to float32. Raises ValueError for a larger batch."""
    require(x.shape[0] == 1, "analysis.one_text", n=x.shape[0])
    return to_float32(x[0])


def traced_position(trace: Trace, position: int) -> int:
    """Convert a possibly negative position in a trace to one counted from 0. Raises ValueError outside the trace."""
    T = trace.final_norm.shape[1]
    require(-T <= position < T, "position.not_traced", position=position, last=T - 1)
    return position % T
