"""Contributions sum to the logit with every kind of edit, and each equals what its component adds."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest
import torch
from torch.testing import assert_close

from gpt.analysis.attribution import direct_logit_attribution, neuron_logit_attribution
from gpt.analysis.concept_graph import concept_graph
from gpt.analysis.concepts import Concepts
from gpt.analysis.heads import rollout
from gpt.analysis.residual import stream_norms, strongest_neurons
from gpt.analysis.tracing import trace_text
from gpt.edits import HOOKABLE, HOOKABLE_OUTSIDE, PATCHABLE, Edits, Hook, Patch, Steering
from gpt.inference.packed_weights import Packing, pack
from gpt.layers import LayerNorm, RMSNorm
from gpt.model import GPT
from tests.gpt.analysis.concept_dictionary import axis_dictionary
from tests.gpt.analysis.copying_model import copying_model

IDS, LAST, TOKEN = [3, 1, 4, 1, 5, 9, 2, 6], 7, 33


def at_constant_scale(norm: LayerNorm | RMSNorm, whole: torch.Tensor) -> Callable[[torch.Tensor], torch.Tensor]:
    """Return the decrease of norm(whole) if a part were missing but the scale unchanged."""
    mean_square = whole.square().mean() if isinstance(norm, RMSNorm) else whole.var(unbiased=False)
    mean = 0.0 if isinstance(norm, RMSNorm) else 1.0

    def normed(x: torch.Tensor) -> torch.Tensor:
        return (x - mean * x.mean()) / torch.sqrt(mean_square + norm.eps) * norm.weight

    assert_close(norm(whole), normed(whole) if norm.bias is None else normed(whole) + norm.bias)
    return lambda part: normed(whole) - normed(whole - part)


@torch.inference_mode()
def test_a_contribution_is_the_decrease_of_the_logit_without_it_at_a_constant_scale(model):
    model.double()
    trace, config, w = trace_text(model, IDS), model.config, model.lm_head.weight[33]
    parts = direct_logit_attribution(model, trace, 6, 33)
    stream = trace.layers[-1].resid_post[0, 6]
    through_final_norm = at_constant_scale(model.ln_f, stream)

    def lost(part: torch.Tensor) -> float:
        return (through_final_norm(part) @ w).item()

    for number, (block, traced) in enumerate(zip(model.h, trace.layers, strict=True)):
        c_proj, hs = block.attn.c_proj, config.head_size
        written = [
            c_proj.weight[:, hs * head : hs * head + hs]
            @ (traced.attn_weights[0, head, 6] @ traced.attn_v[0, head // (config.n_head // config.kv_heads)])
            for head in range(config.n_head)
        ]
        bias = torch.zeros(24).double() if c_proj.bias is None else c_proj.bias
        if block.ln_1_post is not None:
            added = at_constant_scale(block.ln_1_post, sum(written) + bias)
            written, bias = [added(part) for part in written], added(bias)
            bias = bias if block.ln_1_post.bias is None else bias + block.ln_1_post.bias
        assert_close(sum(written) + bias, traced.attn_out[0, 6])
        assert parts.heads[number].tolist() == pytest.approx([lost(part) for part in written], abs=1e-9)
        assert parts.attn_bias[number].item() == pytest.approx(lost(bias), abs=1e-9)
        assert parts.mlp[number].item() == pytest.approx(lost(traced.mlp_out[0, 6]), abs=1e-9)
    assert parts.embedding == pytest.approx(config.embedding_scale * lost(model.wte.weight[IDS[6]]), abs=1e-9)
    assert parts.position == pytest.approx(0 if model.wpe is None else lost(model.wpe.weight[6]), abs=1e-9)
    biases = [0.0 if model.ln_f.bias is None else (model.ln_f.bias @ w).item()]
    biases += [0.0 if model.lm_head.bias is None else model.lm_head.bias[33].item()]
    assert parts.norm_bias == pytest.approx(sum(biases), abs=1e-9)
    centred = stream if isinstance(model.ln_f, RMSNorm) else stream - stream.mean()
    assert parts.scale == pytest.approx((centred.square().mean() + config.norm_eps).sqrt().item(), abs=1e-12)


def test_only_the_copying_head_contributes_to_the_answer():
    model = copying_model()
    parts = direct_logit_attribution(model, trace_text(model, [1, 2, 3, 1]), 3, 2, against=3)
    assert parts.heads[1, 0].item() == pytest.approx(parts.logit, abs=1e-5)
    assert parts.logit > 5
    others = torch.stack((*parts.heads[0], parts.heads[1, 1], *parts.attn_bias, *parts.mlp))
    assert_close(others, torch.zeros(7), atol=1e-6, rtol=0)
    assert max(abs(parts.embedding), abs(parts.position), abs(parts.norm_bias)) < 1e-6


VECTOR = torch.linspace(-2, 2, 24)


def hooks(names: Iterable[str]) -> tuple[Hook, ...]:
    """Return hooks that change these activations, those inside the layers in layer 1."""
    return tuple(Hook(name, None if name in HOOKABLE_OUTSIDE else 1, lambda x: 1.5 * x + 0.25) for name in names)


ADDED = {*PATCHABLE, "final_norm"}  # activations that are sums of others: an edit of one adds something

EVERYWHERE = {*HOOKABLE, *HOOKABLE_OUTSIDE}

EDITS = {
    "none": Edits(),
    "factors": Edits(head_scale={(2, 2): -1.5}, attn_scale={0: 0.5, 1: 0.0}, mlp_scale={1: 0.0, 2: -0.5}),
    "activation and positions": Edits(activation="relu", drop_positions=True),
    "patch elsewhere": Edits(patches=(Patch("resid_mid", 1, 2, VECTOR),)),
    "hooks inside": Edits(hooks=hooks(EVERYWHERE - ADDED)),
}

ADDING_EDITS = {
    "concept down": Edits(steering=(Steering(1, VECTOR, activity=lambda x: -x[..., 3].abs()),)),
    "patches": Edits(patches=tuple(Patch(name, 1, LAST, VECTOR) for name in PATCHABLE)),
    "hooks on sums": Edits(hooks=hooks(ADDED)),
    "everything": Edits(
        head_scale={(1, 0): 0.5},
        attn_scale={1: 2.0},
        mlp_scale={1: 0.5},
        activation="silu",
        patches=tuple(Patch(name, 1, LAST, VECTOR) for name in ("attn_out", "mlp_out")),
        steering=(Steering(0, VECTOR),),
        hooks=hooks(EVERYWHERE),
    ),
}


@pytest.mark.parametrize("kind", [*EDITS, *ADDING_EDITS])
@torch.inference_mode()
def test_parts_sum_to_the_whole_with_any_edit(model: GPT, kind: str) -> None:
    model.double()
    edits = (EDITS | ADDING_EDITS)[kind].fitting(model.config)
    trace = trace_text(model, IDS, edits)
    logits = model.lm_head(model.hidden_states(torch.tensor([IDS]), edits=edits))[0, LAST]  # before any cap
    for against, logit in ((None, logits[TOKEN]), (12, logits[TOKEN] - logits[12])):
        parts = direct_logit_attribution(model, trace, LAST, TOKEN, against=against)
        assert parts.total == pytest.approx(logit.item(), abs=1e-9)
    stream, rests = stream_norms(trace), [parts.rest]
    for layer in range(3):
        neurons = neuron_logit_attribution(model, trace, LAST, TOKEN, layer, against=12)
        assert neurons.total == pytest.approx(parts.mlp[layer].item(), abs=1e-9)
        rests.append(neurons.rest)
    found = strongest_neurons(model, trace, 2, LAST, k=model.config.ff_size, n_tokens=61)
    of_token = found.up_logit[found.up == TOKEN].sum() - found.up_logit[found.up == 12].sum()
    assert of_token.item() == pytest.approx(neurons.neurons.sum().item(), abs=1e-9)
    shares = stream.kept_share + stream.attn_share + stream.mlp_share + stream.rest_share
    assert_close(shares, torch.ones_like(shares))
    rests += stream.rest_share[:, LAST].tolist()
    if kind in EDITS:
        assert rests == pytest.approx([0] * 7, abs=1e-9)
    else:
        assert max(map(abs, rests)) > 0.01
    flow = rollout(trace)
    assert_close(flow.sum(dim=-1), torch.ones_like(flow[0]))


@pytest.mark.parametrize("model", ["gemma2"], indirect=True)
@pytest.mark.parametrize("kind", ["none", *ADDING_EDITS])
def test_concepts_others_and_the_error_sum_to_the_logit_before_a_cap(model: GPT, kind: str) -> None:
    edits = (EDITS | ADDING_EDITS)[kind].fitting(model.config)
    concepts = Concepts({layer: axis_dictionary(24) for layer in (0, 1)}, torch.tensor(IDS))
    graph = concept_graph(model, concepts, IDS, TOKEN, [[i] for i in range(8)], lambda *place: place, edits)
    with torch.inference_mode():
        logit = model.lm_head(model.hidden_states(torch.tensor([IDS]), edits=edits))[0, LAST, TOKEN].item()
    assert graph.logit == pytest.approx(logit, abs=1e-5)
    assert sum(node.adds for node in graph.late) + graph.others + graph.error == pytest.approx(logit, abs=1e-4)


@pytest.mark.parametrize("model", ["gemma2"], indirect=True)
@pytest.mark.parametrize("packing", ["half", "int8"])
@torch.inference_mode()
def test_parts_of_a_model_in_reduced_precision_sum_to_the_logit(model: GPT, packing: Packing) -> None:
    pack(model, packing)
    logit = model.lm_head(trace_text(model, IDS).final_norm)[0, LAST, TOKEN].item()
    parts = direct_logit_attribution(model, IDS, LAST, TOKEN)
    assert parts.total == pytest.approx(parts.logit, abs=1e-4)
    assert parts.logit == pytest.approx(logit, abs=0.05)
    assert abs(parts.rest) < 0.5
