"""Our model and sampling match transformers on tiny random models."""

from __future__ import annotations

import math
import random

import pytest
import torch
from torch.testing import assert_close
from transformers import (
    MinPLogitsWarper,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from gpt.sampling import SamplingParams, distribution
from gpt.seeding import seeded
from gpt.trace import Trace

SMALL = {"vocab_size": 64, "n_positions": 16, "n_layer": 2, "n_head": 3, "n_embd": 12}
SHAPES = {
    "one odd head": {"vocab_size": 17, "n_positions": 9, "n_layer": 1, "n_head": 1, "n_embd": 7},
    "three heads of five": {"vocab_size": 101, "n_positions": 12, "n_layer": 3, "n_head": 3, "n_embd": 15},
    "four heads": {"vocab_size": 257, "n_positions": 32, "n_layer": 4, "n_head": 4, "n_embd": 32},
    "narrow feed-forward": SMALL | {"n_inner": 11},
    "untied": SMALL | {"tie_word_embeddings": False},
    "exact gelu": SMALL | {"activation_function": "gelu"},
    "relu": SMALL | {"activation_function": "relu"},
    "silu": SMALL | {"activation_function": "silu"},
}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize(
    ("dtype", "atol", "weights_atol"), [(torch.float32, 1e-5, 1e-6), (torch.float64, 1e-12, 1e-12)]
)
@torch.inference_mode()
def test_logits_attentions_and_hidden_states_are_those_of_transformers(twins, shape, dtype, atol, weights_atol):
    reference, ours = (model.to(dtype) for model in twins(**shape))
    for T in (1, 5, shape["n_positions"]):
        idx = torch.randint(shape["vocab_size"], (2, T))
        expected = reference(idx, output_attentions=True, output_hidden_states=True)
        trace = Trace()
        traced = ours(idx, trace=trace)
        assert_close(ours(idx), expected.logits, atol=atol, rtol=0)
        assert_close(traced, expected.logits, atol=atol, rtol=0)
        for layer, weights in zip(trace.layers, expected.attentions, strict=True):
            assert_close(layer.attn_weights, weights, atol=weights_atol, rtol=0)
        for layer, state in zip(trace.layers, expected.hidden_states[:-1], strict=True):
            assert_close(layer.resid_pre, state, atol=atol, rtol=0)
        assert_close(trace.final_norm, expected.hidden_states[-1], atol=atol, rtol=0)


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
    """Return the logits after each of transformers' processors, in generate()'s order."""
    processors = [
        RepetitionPenaltyLogitsProcessor(params.repetition_penalty) if params.repetition_penalty else None,
        TemperatureLogitsWarper(params.temperature),
        TopKLogitsWarper(params.top_k) if params.top_k else None,
        TopPLogitsWarper(params.top_p) if params.top_p else None,
        MinPLogitsWarper(params.min_p) if params.min_p is not None else None,
    ]
    row, ids = logits[None], torch.tensor([previous_ids])
    for processor in processors:
        row = row if processor is None else processor(ids, row)
        yield row[0]


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
        )
        previous_ids = torch.randint(vocab_size, (choice([1, 40]),)).tolist()
        stages = distribution(logits, params, previous_ids=previous_ids)
        names = ("repetition_penalty", "temperature", "top_k", "top_p", "min_p")
        for name, expected in zip(names, processed(logits, params, previous_ids), strict=True):
            assert_close(getattr(stages, name), expected.softmax(dim=-1), atol=1e-6, rtol=0, msg=f"{name} {params}")
