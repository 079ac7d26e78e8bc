"""Attention rollout: follow attention through all layers.

Source: Abnar and Zuidema, "Quantifying Attention Flow in Transformers" (2020), arXiv 2005.00928.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor
from torch.nn import functional as F

from gpt.analysis.heads import normalize_rows
from gpt.analysis.tracing import single_sequence
from gpt.checks import check_layer
from gpt.errors import GPTError
from gpt.trace import Trace

QUERY_CHUNK = 64  # queries per matrix product; small enough to keep the operands in the CPU cache


@torch.inference_mode()
def rollout_layers(n_layer: int, length: int, attn_weights: Callable[[int, int, int], Tensor]) -> Iterator[Tensor]:
    """Yield the share of each input token at each position after each layer: (T, T). Rows sum to 1.

    This is the product of (W + I) / 2 over the layers so far, where W is the mean over a layer's heads and I stands for
    the residual connection; rows of the result are divided by their sum, which only hooks on the weights can change.
    attn_weights(layer, start, stop): returns the weights for the queries start to stop - 1,
    (n_head, stop - start, stop).
    """
    flow = torch.eye(length)
    for layer in range(n_layer):
        mixed = []
        for start in range(0, length, QUERY_CHUNK):
            stop = min(length, start + QUERY_CHUNK)
            weights = attn_weights(layer, start, stop).mean(dim=0)  # (n, stop)
            flow = flow.to(weights)
            mixed.append(F.pad(weights @ flow[:stop, :stop], (0, length - stop)))  # (n, T)
        flow = normalize_rows(torch.cat(mixed) + flow)
        yield flow


def rollout(trace: Trace, layer: int | None = None) -> Tensor:
    """Return the rollout after one layer, by default the last one: (T, T).

    Raises ValueError if the traced pass had earlier tokens in a cache.
    """
    last = len(trace.layers) - 1 if layer is None else layer
    check_layer(last, len(trace.layers))
    T, S = trace.layers[0].attn_weights.shape[-2:]
    if T != S:
        raise GPTError("analysis.rollout_trace", traced=T, total=S)

    def attn_weights(layer: int, start: int, stop: int) -> Tensor:
        return single_sequence(trace.layers[layer].attn_weights[:, :, start:stop, :stop])

    *_, flow = rollout_layers(last + 1, T, attn_weights)
    return flow
