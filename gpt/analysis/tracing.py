"""Traces of forward passes over one text."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from gpt.edits import Edits
from gpt.errors import GPTError
from gpt.inputs import AnyModel, Text, gpt_of, ids_of
from gpt.model import GPT, ForwardContext
from gpt.read_only import ordinary
from gpt.trace import Trace

MAX_BATCH_TOKENS = 2048  # maximum number of tokens in a batch of text variants


def trace_text(
    model: AnyModel, text: Text, edits: Edits | None = None, *, full: bool = False, gradients: bool = False
) -> Trace:
    """Trace a forward pass over a text.

    full, gradients: see `Trace`. If both are False, the pass ends before the output head. Raises the same errors as
    `gpt.inputs.ids_of`, and ValueError if the text is longer than the context.
    """
    network, trace = gpt_of(model), Trace(full=full, gradients=gradients)
    idx = torch.tensor([ids_of(model, text)], device=network.device)
    with torch.inference_mode(not gradients), torch.set_grad_enabled(gradients):
        (network if full or gradients else network.hidden_states)(idx, trace=trace, edits=edits)
    return trace


def traced(model: AnyModel, source: Trace | Text, edits: Edits | None = None) -> Trace:
    """Return a trace unchanged, or trace a text."""
    return source if isinstance(source, Trace) else trace_text(model, source, edits)


@torch.inference_mode()
def trace_window(model: GPT, ids: Sequence[int], start: int, stop: int, edits: Edits | None = None) -> Trace:
    """Trace positions start to stop - 1, without the output head. Earlier tokens are read into a cache first."""
    idx = torch.tensor([list(ids[:stop])], device=model.device)
    cache = model.new_cache(max_length=stop)
    if start:
        model.hidden_states(idx[:, :start], cache=cache, edits=edits)
    trace = Trace()
    model.hidden_states(idx[:, start:], cache=cache, trace=trace, edits=edits)
    return trace


def hidden_states_from(model: GPT, resid_pre: Tensor, layer: int, edits: Edits | None = None) -> Tensor:
    """Continue a pass from a layer's resid_pre (B, T, C) and return its hidden states (B, T, C).

    edits: must not change lower layers.
    """
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
    if x.shape[0] != 1:
        raise GPTError("analysis.one_text", n=x.shape[0])
    return to_float32(x[0])


def traced_position(trace: Trace, position: int) -> int:
    """Convert a possibly negative position in a trace to one counted from 0.

    Raises ValueError for a position outside the trace.
    """
    T = trace.final_norm.shape[1]
    if not -T <= position < T:
        raise GPTError("position.not_traced", position=position, last=T - 1)
    return position % T
