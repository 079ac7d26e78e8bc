"""Our model, its hooks and its sampling match transformers on tiny random models."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close
from transformers import (
    MinPLogitsWarper,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from gpt.cache import KVCache
from gpt.edits import HOOKABLE, HOOKABLE_OUTSIDE, Edits, Hook
from gpt.layers import seeded
from gpt.model import GPT
from gpt.sampling import SamplingParams, distribution
from gpt.trace import Trace
from tests.parity.family_models import family_twins

SHAPES = {
    "three heads of five": {"vocab_size": 101, "n_positions": 12, "n_layer": 3, "n_head": 3, "n_embd": 15},
    "one odd head, narrow, untied, relu": {
        **{"vocab_size": 17, "n_positions": 9, "n_layer": 1, "n_head": 1, "n_embd": 7},
        **{"n_inner": 11, "tie_word_embeddings": False, "activation_function": "relu"},
    },
}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@torch.inference_mode()
def test_logits_attentions_and_hidden_states_are_those_of_transformers_in_float64(twins, shape):
    reference, ours = (model.double() for model in twins(**shape))
    idx = torch.randint(shape["vocab_size"], (2, shape["n_positions"]))
    expected = reference(idx, output_attentions=True, output_hidden_states=True)
    trace = Trace()
    assert_close(ours(idx, trace=trace), expected.logits, atol=1e-12, rtol=0)
    assert_close(ours(idx), expected.logits, atol=1e-12, rtol=0)
    for layer, weights, state in zip(trace.layers, expected.attentions, expected.hidden_states[:-1], strict=True):
        assert_close(layer.attn_weights, weights, atol=1e-12, rtol=0)
        assert_close(layer.resid_pre, state, atol=1e-12, rtol=0)
    assert_close(trace.final_norm, expected.hidden_states[-1], atol=1e-12, rtol=0)


def test_dropout_in_training_mode_drops_what_transformers_drops(twins):
    reference, ours = twins(**SHAPES["three heads of five"])
    idx = torch.randint(101, (2, 12))
    for model in (reference, ours):
        for module in model.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = 0.3
        model.train()
    with seeded(8):
        expected = reference(idx).logits
    with seeded(8):
        assert_close(ours(idx, trace=Trace()), expected, atol=1e-5, rtol=0)


def test_loss_and_its_gradient_are_those_of_transformers(twins):
    reference, ours = twins(**SHAPES["three heads of five"])
    idx = torch.randint(101, (2, 12))
    labels = idx.clone()
    labels[0, 3:7] = -100
    expected = reference(idx, labels=labels).loss  # transformers shifts the labels
    loss = ours.loss(idx[:, :-1], labels[:, 1:])
    assert_close(loss, expected, atol=1e-5, rtol=0)
    expected.backward()
    loss.backward()
    assert_close(ours.wte.weight.grad, reference.transformer.wte.weight.grad, atol=1e-5, rtol=1e-4)


def processed(logits, params, previous_ids):
    """Yield each stage and transformers' logits after it, in generate()'s order or with the temperature last."""
    temperature = {"temperature": TemperatureLogitsWarper(params.temperature)}
    processors = {
        "repetition_penalty": params.repetition_penalty and RepetitionPenaltyLogitsProcessor(params.repetition_penalty),
        **({} if params.temperature_last else temperature),
        "top_k": params.top_k and TopKLogitsWarper(params.top_k),
        "top_p": params.top_p and TopPLogitsWarper(params.top_p),
        "min_p": None if params.min_p is None else MinPLogitsWarper(params.min_p),
        **temperature,
    }
    row, ids = logits[None], torch.tensor([previous_ids[-(params.repetition_window or 99) :]])
    for name, processor in processors.items():
        row = row if processor is None else processor(ids, row)
        yield name, row[0]


@pytest.mark.parametrize(("vocab_size", "temperature"), [(1, 1.0), (2, 0.01), (7, 10.0), (257, 0.7), (3000, 1.0)])
def test_every_stage_is_that_of_transformers(vocab_size, temperature):
    choice = random.Random(vocab_size).choice
    for _ in range(25):
        logits = torch.randn(vocab_size) * choice([0.1, 1.0, 3.0, 30.0])
        logits[torch.rand(vocab_size) < choice([0.0, 0.5, 0.99])] = -math.inf
        logits[0] = 1.0  # one of them must be finite
        params = SamplingParams(
            temperature=temperature,
            top_k=choice([None, 1, 5, 50, 5000]),
            top_p=choice([None, 0.1, 0.5, 0.9, 0.999, 1.0]),
            min_p=choice([None, 0.0, 0.05, 0.5, 1.0]),
            repetition_penalty=choice([None, 1.2, 0.8, 5.0]),
            repetition_window=choice([None, 1, 20]),
            temperature_last=choice([False, True]),
        )
        previous_ids = torch.randint(vocab_size, (choice([1, 40]),)).tolist()
        stages = distribution(logits, params, previous_ids=previous_ids)
        for name, expected in processed(logits, params, previous_ids):
            assert_close(getattr(stages, name), expected.softmax(dim=-1), atol=1e-6, rtol=0, msg=f"{name} {params}")


Change = Callable[[Tensor], Tensor]

LAYER, POSITION, T = 1, 5, 12

CLOSE = {"atol": 1e-5, "rtol": 1e-5}


def gpt2_places(reference: Any) -> dict[str, tuple[str, nn.Module]]:
    """Return the place of each activation in transformers' GPT-2: "in" or "out" of a module."""
    body, block = reference.transformer, reference.transformer.h[LAYER]
    return {
        "token_embedding": ("out", body.wte),
        "position_embedding": ("out", body.wpe),
        "resid_pre": ("in", block),
        "attn_q": ("first third", block.attn.c_attn),
        "attn_k": ("second third", block.attn.c_attn),
        "attn_v": ("last third", block.attn.c_attn),
        "ln_1": ("out", block.ln_1),
        "ln_2": ("out", block.ln_2),
        "head_out": ("in", block.attn.c_proj),
        "logits": ("out", reference.lm_head),
        "attn_out": ("out", block.attn),
        "resid_mid": ("out", block.attn),
        "mlp_pre": ("out", block.mlp.c_fc),
        "mlp_post": ("in", block.mlp.c_proj),
        "mlp_out": ("out", block.mlp),
        "resid_post": ("out", block),
        "final_norm": ("out", body.ln_f),
    }


def llama_places(reference: Any) -> dict[str, tuple[str, nn.Module]]:
    """Return the same for Llama, which rotates the outputs of q_proj and k_proj."""
    body, block = reference.model, reference.model.layers[LAYER]
    return {
        "token_embedding": ("out", body.embed_tokens),
        "resid_pre": ("in", block),
        "attn_q": ("out", block.self_attn.q_proj),
        "attn_k": ("out", block.self_attn.k_proj),
        "attn_v": ("out", block.self_attn.v_proj),
        "ln_1": ("out", block.input_layernorm),
        "ln_2": ("out", block.post_attention_layernorm),
        "head_out": ("in", block.self_attn.o_proj),
        "logits": ("out", reference.lm_head),
        "attn_out": ("out", block.self_attn),
        "resid_mid": ("out", block.self_attn),
        "mlp_pre": ("out", block.mlp.gate_proj),
        "mlp_up": ("out", block.mlp.up_proj),
        "mlp_post": ("in", block.mlp.down_proj),
        "mlp_out": ("out", block.mlp),
        "resid_post": ("out", block),
        "final_norm": ("out", body.norm),
    }


def attach(place: tuple[str, nn.Module], change: Change) -> Any:
    """Attach a torch forward hook that changes a module's input or output."""
    kind, module = place

    def third(x: Tensor) -> Tensor:
        parts = list(x.chunk(3, dim=-1))
        number = ("first third", "second third", "last third").index(kind)
        parts[number] = change(parts[number])
        return torch.cat(parts, dim=-1)

    def after(_: nn.Module, __: Any, output: Any) -> Any:
        changed = third if kind.endswith("third") else change
        return (changed(output[0]), *output[1:]) if isinstance(output, tuple) else changed(output)

    if kind == "in":
        return module.register_forward_pre_hook(lambda _, inputs: (change(inputs[0]), *inputs[1:]))
    return module.register_forward_hook(after)


@pytest.fixture(params=["gpt2", "llama"])
def pair(request: pytest.FixtureRequest, twins: Any) -> tuple[nn.Module, GPT, dict[str, tuple[str, nn.Module]]]:
    """Return a transformers model, ours with the same weights, and the places of its activations."""
    if request.param == "gpt2":
        reference, ours = twins(vocab_size=61, n_positions=16, n_layer=3, n_head=4, n_embd=24)
        return reference, ours, gpt2_places(reference)
    both = family_twins("llama", "grouped, tied")
    return both.reference, both.ours.eval(), llama_places(both.reference)


@pytest.mark.parametrize(
    ("pair", "name", "position"),
    [
        (family, name, POSITION if family == "gpt2" else None)
        for family, lacking in (("gpt2", "mlp_up"), ("llama", "position_embedding"))
        for name in HOOKABLE + HOOKABLE_OUTSIDE
        if name not in ("attn_scores", "attn_weights", lacking)
    ],
    indirect=["pair"],
)
@torch.inference_mode()
def test_a_hook_equals_a_forward_hook_of_torch(
    pair: tuple[nn.Module, GPT, dict[str, tuple[str, nn.Module]]], name: str, position: int | None
) -> None:
    reference, ours, places = pair
    shift = 0.0 if name in ("attn_q", "attn_k") else 0.8  # a factor alone survives the rotation
    factor = 1.0 if name == "resid_mid" else 1.5  # no module returns resid_mid, but shifting attn_out shifts it

    def change(x: Tensor) -> Tensor:
        width = (
            2 if name in ("attn_v", "head_out") else x.shape[-1]
        )  # ours has a dimension for heads, unlike transformers'
        return factor * x + shift * torch.linspace(-1, 1, width).repeat(x.shape[-1] // width)

    def change_there(x: Tensor) -> Tensor:
        if position is None:
            return change(x)
        x = x.clone()
        x[..., position, :] = change(x[..., position, :])
        return x

    idx = torch.randint(61, (2, T))
    plain = reference(idx).logits
    hook = attach(places[name], change_there)
    try:
        expected = reference(idx).logits
    finally:
        hook.remove()
    assert (expected - plain).abs().max() > 1e-3
    edits = Edits(hooks=(Hook(name, LAYER if name in HOOKABLE else None, change, position),))
    before, after, cache, parts = Trace(full=True), Trace(full=True), KVCache(ours.config, batch_size=2), []
    assert_close(ours(idx), plain, **CLOSE)
    assert_close(ours(idx, edits=edits), expected, **CLOSE)
    ours(idx, trace=before)
    assert_close(ours(idx, edits=edits, trace=after), expected, **CLOSE)
    found, was = (getattr(t if name in HOOKABLE_OUTSIDE else t.layers[LAYER], name) for t in (after, before))
    assert_close(found, change_there(was), **CLOSE)
    for length in (4, 1, 1, 1, 5):
        parts.append(ours(idx[:, cache.length : cache.length + length], cache=cache, edits=edits))
    assert_close(torch.cat(parts, dim=1), expected, **CLOSE)


@torch.inference_mode()
def test_weights_that_let_every_token_see_itself_only_give_its_value_to_the_projection(
    pair: tuple[nn.Module, GPT, dict[str, tuple[str, nn.Module]]],
) -> None:
    reference, ours, places = pair
    attention, shared = places["attn_out"][1], ours.config.n_head // ours.config.kv_heads
    values: list[Tensor] = []

    def keep(x: Tensor) -> Tensor:
        heads = x.unflatten(-1, (-1, ours.config.head_size))
        values.append(heads.repeat_interleave(shared, dim=-2).flatten(-2))
        return x

    projection = attention.c_proj if hasattr(attention, "c_proj") else attention.o_proj
    hooks = [attach(places["attn_v"], keep), attach(("in", projection), lambda _: values[-1])]
    idx = torch.randint(61, (2, T))
    try:
        expected = reference(idx).logits
    finally:
        for hook in hooks:
            hook.remove()

    def itself(weights: Tensor) -> Tensor:
        n, total = weights.shape[-2:]
        return torch.ones_like(weights).tril(total - n).triu(total - n)

    scores = Hook("attn_scores", LAYER, lambda x: x.masked_fill(itself(x) == 0, -math.inf))
    for edits in (Edits(hooks=(Hook("attn_weights", LAYER, itself),)), Edits(hooks=(scores,))):
        trace, cache = Trace(), KVCache(ours.config, batch_size=2)
        assert_close(ours(idx, edits=edits), expected, **CLOSE)
        assert_close(ours(idx, edits=edits, trace=trace), expected, **CLOSE)
        assert torch.equal(trace.layers[LAYER].attn_weights, torch.eye(T).expand(2, ours.config.n_head, T, T))
        parts = [ours(part, cache=cache, edits=edits) for part in idx.split([4, 1, 1, 6], dim=1)]
        assert_close(torch.cat(parts, dim=1), expected, **CLOSE)
    assert trace.layers[LAYER].attn_scores.isneginf().sum() == 2 * ours.config.n_head * T * (T - 1)
