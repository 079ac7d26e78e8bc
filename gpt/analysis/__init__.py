"""What the analyses share: one traced text, float32 at least, the vocabulary a few positions at a time.

Each analysis is a pure function of a trace, a model and ids, of one text at a time, and leaves the model as it was:

    gpt.analysis.heads        who looks at whom, and which part a head plays
    gpt.analysis.lens         what each layer would predict
    gpt.analysis.attribution  what each part adds to a token's logit
    gpt.analysis.residual     lengths along the stream, neurons, embeddings
    gpt.analysis.patching     a clean run's activations put into a corrupted run
    gpt.analysis.saliency     which tokens of the text a prediction hangs on
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from gpt.edits import Edits
from gpt.errors import GPTError
from gpt.model import GPT, ForwardContext, rotary_angles
from gpt.trace import Trace

Progress = Callable[[int, int], None]  # parts done, parts there are
PORTION = 2**23  # logits computed at once: 32 MB in float32
BATCH_TOKENS = 2048  # tokens of one pass where many texts run as a batch


@torch.inference_mode()
def trace_text(model: GPT, ids: Sequence[int], edits: Edits | None = None) -> Trace:
    """Every activation of one pass over a text; the head is left out."""
    trace = Trace()
    model.hidden_states(torch.tensor([list(ids)], device=model.device), trace=trace, edits=edits)
    return trace


def widened(x: Tensor) -> Tensor:
    """x in float32 where it had fewer bits, else as it is."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def only_text(x: Tensor) -> Tensor:
    """(1, ...) -> (...), in float32 at least. Raises ValueError for a batch of several texts."""
    if x.shape[0] != 1:
        raise GPTError("analysis.one_text", n=x.shape[0])
    return widened(x[0])


def check_layer(trace: Trace, layer: int) -> None:
    """Raise ValueError for a layer that the trace does not hold."""
    if not 0 <= layer < len(trace.layers):
        raise GPTError("layer.unknown", layer=layer, last=len(trace.layers) - 1)


def check_position(trace: Trace, position: int) -> None:
    """Raise ValueError for a position that the trace does not hold; its first is 0."""
    T = trace.final_norm.shape[1]
    if not 0 <= position < T:
        raise GPTError("position.not_traced", position=position, last=T - 1)


def check_token(model: GPT, token: int) -> None:
    """Raise ValueError for an id outside the vocabulary."""
    if not 0 <= token < model.config.vocab_size:
        raise GPTError("token.unknown", token=token, last=model.config.vocab_size - 1)


def log_probabilities(model: GPT, states: Tensor, weight: Tensor | None = None) -> Iterator[tuple[slice, Tensor]]:
    """The model's predictions from states (N, C) that the last norm has made, a few rows at a time.

    weight: the head's, widened, by whoever has it already. Yields (which rows, their log softmax over the vocabulary
    in nats, (n, vocab_size)).
    """
    weight = widened(model.lm_head.weight) if weight is None else weight
    n = max(1, PORTION // len(weight))
    for start in range(0, len(states), n):
        rows = slice(start, min(start + n, len(states)))
        yield rows, F.linear(widened(states[rows]), weight).log_softmax(dim=-1)


def states_from(model: GPT, stream: Tensor, layer: int, edits: Edits | None = None) -> Tensor:
    """What `hidden_states` gives, from the stream (B, T, C) before a layer on: what is below it is not computed again.

    edits: of this layer and those above it.
    """
    T = stream.shape[1]
    placed = edits is None or not edits.drop_positions
    rotary = None
    if model.wpe is None and placed:
        rotary = rotary_angles(torch.arange(T, device=stream.device), model.config.head_size)
    ctx = ForwardContext(is_causal=T > 1, rotary=rotary, edits=edits)
    for block in model.h[layer:]:
        stream = block(stream, ctx)
    return model.ln_f(stream)


@torch.inference_mode()
def kl_bits(model: GPT, states: Tensor, others: Tensor, *, other_model: GPT | None = None) -> Tensor:
    """How much is lost by believing the others' predictions: sum of p log2(p / q), in bits, 0 where they agree.

    states, others: (N, C), final-norm states of the same positions in two passes, such as the original's (p) and
    an edited one's (q). other_model: whose states the others are, where it is another with the same vocabulary;
    its C may differ. Returns (N,). Kullback and Leibler, "On Information and Sufficiency" (1951).
    Raises ValueError where the shapes differ.
    """
    other_model = model if other_model is None else other_model
    if len(states) != len(others) or (other_model is model and states.shape != others.shape):
        raise GPTError("analysis.state_shapes", shape=tuple(states.shape), other=tuple(others.shape))
    sizes = [each.config.vocab_size for each in (model, other_model)]
    if sizes[0] != sizes[1]:
        raise GPTError("analysis.vocabulary_sizes", n=sizes[0], other=sizes[1])
    weight = widened(model.lm_head.weight)
    other_weight = weight if other_model is model else None
    pairs = zip(
        log_probabilities(model, states, weight), log_probabilities(other_model, others, other_weight), strict=True
    )
    return torch.cat([_bits(p, p.exp(), q) for (_, p), (_, q) in pairs])


@torch.inference_mode()
def kl_bits_from(model: GPT, states: Tensor) -> Callable[[Tensor], Tensor]:
    """`kl_bits` of the same states against one pass after the other: their own predictions are computed once.

    They are kept: 8 N vocab_size bytes.
    """
    weight = widened(model.lm_head.weight)
    known = [(p, p.exp()) for _, p in log_probabilities(model, states, weight)]

    @torch.inference_mode()
    def against(others: Tensor) -> Tensor:
        pairs = zip(known, log_probabilities(model, others, weight), strict=True)
        return torch.cat([_bits(*p, q) for p, (_, q) in pairs])

    return against


def _bits(log_p: Tensor, p: Tensor, log_q: Tensor) -> Tensor:
    """(N, vocab_size) each -> (N,). log_q is used up."""
    return log_q.sub_(log_p).mul_(p).sum(dim=-1).neg_().clamp_(min=0).div_(math.log(2))  # rounding may leave -1e-9
