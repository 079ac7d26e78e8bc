"""Activation patching: replace activations of a corrupted run with those of a clean run, one at a time.

Sources: Meng et al., "Locating and Editing Factual Associations in GPT" (2022), arXiv 2202.05262; Wang et al.,
"Interpretability in the Wild" (2022), arXiv 2211.00593; Nanda, "Attribution Patching" (2023).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from gpt.analysis.tracing import MAX_BATCH_TOKENS, hidden_states_from, single_sequence, to_float32, trace_text
from gpt.background import Progress
from gpt.edits import PATCHABLE, Edits, Hook, Patch, check_patchable
from gpt.errors import check_choice, check_head, check_layer, check_position, check_token_id, require
from gpt.inputs import AnyModel, Text, gpt_of, ids_of
from gpt.layers import softcap
from gpt.model import GPT, ForwardContext
from gpt.trace import Trace

SWEEPABLE = (*PATCHABLE, "head_out")


@dataclass(frozen=True)
class PatchSweep:
    """The result of `patch_sweep`.

    recovered: the logit difference after each patch, scaled so that 0 is the corrupted run and 1 the clean one:
    (n_layer, T), for one layer and position. For heads, (n_layer, n_head, T), or (n_layer, n_head) for a head at all
    positions at once. clean, corrupted: logit of the answer minus that of the other token, at the end of each text.
    """

    recovered: Tensor
    clean: float
    corrupted: float


def patch_from(model: AnyModel, text: Text, name: str, layer: int, position: int, head: int | None = None) -> Patch:
    """Run the model on a text and return one activation as a patch for the same name, layer, position and head.

    Raises ValueError if the name cannot be patched, or a token, layer, position or head is out of range.
    """
    check_patchable(name, head)
    model, ids = gpt_of(model), ids_of(model, text)
    limit = model.config.block_size
    require(0 < len(ids) <= limit, "patch.text_length", limit=limit, n=len(ids))
    check_position(position, len(ids))
    check_layer(layer, model.config.n_layer)
    value = trace_text(model, ids, only=[f"layers.{layer}.{name}"])[f"layers.{layer}.{name}"][0]
    if head is not None:
        check_head(head, model.config.n_head)
        value = value[head]
    return Patch(name, layer, position, value[position].clone(), tuple(ids), head)


def is_patch_of_model(model: GPT, patch: Patch) -> bool:
    """Return whether this model reproduces the patch's value from the patch's ids, to within 1e-3."""
    try:
        value = patch_from(model, patch.ids or (), patch.name, patch.layer, patch.position, patch.head).value
    except ValueError:
        return False
    return value.shape == patch.value.shape and torch.allclose(value, patch.value.to(value), rtol=1e-3, atol=1e-3)


class _Pair:
    """A clean and a corrupted text, and the logit difference of two tokens at their ends.

    Raises ValueError if the lengths differ, an id is out of range, or both texts give the same difference.
    """

    @torch.no_grad()
    def __init__(self, model: AnyModel, clean: Text, corrupted: Text, answer: int, other: int) -> None:
        self.model = gpt_of(model)
        self.clean, self.corrupted = ids_of(model, clean), ids_of(model, corrupted)
        n, m = len(self.clean), len(self.corrupted)
        require(n == m, "patch.lengths_differ", clean=n, corrupted=m)
        for token in (answer, other):
            check_token_id(token, self.model.config.vocab_size)
        head = self.model.lm_head
        self.weight = to_float32(head.weight[[answer, other]])  # (2, C)
        self.bias = None if head.bias is None else to_float32(head.bias[[answer, other]])
        self.good, self.bad = trace_text(self.model, self.clean), trace_text(self.model, self.corrupted)
        self.best, self.worst = (self.difference(trace.final_norm[:, -1]) for trace in (self.good, self.bad))  # (1,)
        is_flat = torch.isclose(self.best, self.worst, rtol=1e-4, atol=1e-4)
        require(not is_flat, "patch.no_difference", difference=self.best.item())

    def difference(self, states: Tensor) -> Tensor:
        """Return the logit difference of final-norm states: (n, C) -> (n,)."""
        logits = softcap(F.linear(to_float32(states), self.weight, self.bias), self.model.config.logit_softcap)
        return logits[:, 0] - logits[:, 1]

    def after(self, hook: Hook, n: int) -> Tensor:
        """Return the logit differences of n copies of the corrupted run, continued from a hook's layer: (n,)."""
        assert hook.layer is not None
        resid_pre = self.bad.layers[hook.layer].resid_pre.expand(n, -1, -1)
        return self.difference(hidden_states_from(self.model, resid_pre, hook.layer, Edits(hooks=(hook,)))[:, -1])

    def recovered(self, differences: Tensor) -> Tensor:
        return (differences - self.worst) / (self.best - self.worst)


@torch.inference_mode()
def patch_sweep(
    model: AnyModel,
    clean: Text,
    corrupted: Text,
    answer: int,
    other: int,
    *,
    name: str = "resid_pre",
    each_position: bool = True,
    progress: Progress | None = None,
) -> PatchSweep:
    """Patch an activation of the clean run into the corrupted run, at each layer and position in turn.

    clean, corrupted: two texts with the same number of tokens. answer: the token that follows the clean text; other:
    the token that follows the corrupted text. name: one of PATCHABLE, or "head_out" for each head. each_position: for
    heads, whether to patch each position alone, or all positions of a head at once. progress: called with (passes done,
    total passes).

    Skips positions before the texts first differ, because patching them recovers nothing. Raises ValueError if the
    lengths differ or both texts give the same logit difference.
    """
    check_choice("name", name, SWEEPABLE)
    pair = _Pair(model, clean, corrupted, answer, other)
    T, device = len(pair.clean), pair.worst.device
    first = next(at for at, (one, other) in enumerate(zip(pair.clean, pair.corrupted, strict=True)) if one != other)
    heads = (pair.model.config.n_head,) if name == "head_out" else ()
    is_each = each_position or not heads
    shape = (*heads, T) if is_each else heads  # of the results in one layer
    cells = torch.arange(math.prod(shape), device=device)
    if is_each:
        cells = cells[cells % T >= first]
    batches = cells.split(max(1, MAX_BATCH_TOKENS // T))
    found = pair.worst.expand(len(pair.good.layers), math.prod(shape)).clone()
    for layer, good in enumerate(pair.good.layers):
        for number, batch in enumerate(batches, start=1):
            chosen = F.one_hot(batch, math.prod(shape)).bool().view(-1, *shape, *([1] if is_each else [1, 1]))
            hook = Hook(name, layer, partial(getattr(good, name).where, chosen))
            found[layer, batch] = pair.after(hook, len(batch))
            if progress is not None:
                progress(layer * len(batches) + number, len(found) * len(batches))
    return PatchSweep(pair.recovered(found.view(-1, *shape)), pair.best.item(), pair.worst.item())


def attribution_patching(
    model: AnyModel, clean: Text, corrupted: Text, answer: int, other: int, *, name: str = "resid_pre"
) -> PatchSweep:
    """Estimate `patch_sweep` for all layers and positions (and heads, for "head_out") from two passes and one gradient.

    The estimate is the first-order term: the gradient of the corrupted run's logit difference with respect to each
    activation, times the difference of the activations. It misses what saturates, such as softmax and norms.
    """
    check_choice("name", name, SWEEPABLE)
    pair = _Pair(model, clean, corrupted, answer, other)
    trace = trace_text(pair.model, pair.corrupted, only=[name, "final_norm"], gradients=True)
    bad = [getattr(layer, name) for layer in trace.layers]
    with torch.inference_mode(False), torch.enable_grad():
        gradients = torch.autograd.grad(pair.difference(trace.final_norm[:, -1]), bad)
    good = [getattr(layer, name) for layer in pair.good.layers]
    change, slope = (single_sequence(torch.stack(x, dim=1)) for x in (good, gradients))
    change = change - single_sequence(torch.stack(bad, dim=1).detach())  # (n_layer, T, C) or (n_layer, n_head, T, hs)
    recovered = pair.recovered(pair.worst + (change * slope).sum(dim=-1))
    return PatchSweep(recovered, pair.best.item(), pair.worst.item())


@dataclass(frozen=True)
class PathSweep:
    """The result of `path_sweep`: what each sender recovers along the path to the receiver.

    heads: (n_layer, n_head). mlp: (n_layer,), the feed-forward networks. Senders behind the receiver recover 0.
    """

    heads: Tensor
    mlp: Tensor


Receiver = tuple[int, int, Literal["q", "k", "v"]]  # layer, head, and what of it


@torch.inference_mode()
def path_sweep(
    model: AnyModel, clean: Text, corrupted: Text, answer: int, other: int, *, receiver: Receiver | None = None
) -> PathSweep:
    """Send the change of each head and feed-forward network along the direct path to one receiver, and nowhere else.

    The change is the difference that the sender's output in the clean run makes to what its branch adds to the stream
    of the corrupted run, at all positions. It reaches only the receiver; everything in between stays as it was.

    receiver: the query, key or value of a head, such as (6, 0, "q"), whose own effect then spreads freely; by default
    the logits. Query heads that share a key and value head share it here as well. Raises the same errors as
    `patch_sweep`, and ValueError for a receiver that does not exist.
    """
    pair = _Pair(model, clean, corrupted, answer, other)
    config, last = pair.model.config, len(pair.bad.layers)
    if receiver is not None:
        check_layer(receiver[0], config.n_layer)
        check_head(receiver[1], config.n_head)
        check_choice("receiver", receiver[2], ("q", "k", "v"))
        last = receiver[0]
    found = pair.worst.expand(config.n_layer, config.n_head + 1).clone()
    heads = range(config.n_head)
    for layer, good, bad in zip(range(last), pair.good.layers, pair.bad.layers, strict=False):
        block = pair.model.blocks[layer]
        y = bad.head_out.repeat(config.n_head + 1, 1, 1, 1)  # one head of the clean run in each but the last
        y[heads, heads] = good.head_out[0]
        written: Tensor = block.attn.c_proj(y.transpose(1, 2).flatten(-2))
        written = written if block.ln_1_post is None else block.ln_1_post(written)
        changes = torch.cat((written[:-1] - written[-1:], good.mlp_out - bad.mlp_out))  # (nh + 1, T, C)
        parts = changes.split(max(1, MAX_BATCH_TOKENS // len(pair.clean)))
        found[layer] = torch.cat([_received(pair, part, receiver) for part in parts])
    recovered = pair.recovered(found)
    return PathSweep(recovered[:, :-1], recovered[:, -1])


def _received(pair: _Pair, changes: Tensor, receiver: Receiver | None) -> Tensor:
    """Return the logit differences (n,) if each of n changes of the stream (n, T, C) reaches only the receiver."""
    if receiver is None:
        return pair.difference(pair.model.ln_f(pair.bad.layers[-1].resid_post + changes)[:, -1])
    layer, head, part = receiver
    name, block, config = f"attn_{part}", pair.model.blocks[layer], pair.model.config
    resid_pre, trace = pair.bad.layers[layer].resid_pre, Trace(only=[name])
    trace.begin(config.n_layer)
    block(resid_pre + changes, ForwardContext.of_text(config, resid_pre, trace=trace))
    row = head if part == "q" else head // (config.n_head // config.kv_heads)
    value = trace[f"layers.{layer}.{name}"]  # (n, nh or kv, T, hs)
    chosen = (torch.arange(value.shape[1], device=value.device) == row)[:, None, None]
    return pair.after(Hook(name, layer, partial(value.where, chosen)), len(changes))
