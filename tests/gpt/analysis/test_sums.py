"""Whatever is said to be a sum is one, with every kind of edit in place."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
import torch
from torch.testing import assert_close

from gpt.analysis.attribution import direct_logit_attribution, neuron_logit_attribution
from gpt.analysis.concept_graph import concept_graph
from gpt.analysis.concepts import Concepts
from gpt.analysis.residual import stream_norms, strongest_neurons
from gpt.analysis.rollout import rollout
from gpt.analysis.tracing import trace_text
from gpt.edits import HOOKABLE, HOOKABLE_OUTSIDE, PATCHABLE, Edits, Hook, Patch, Steering
from gpt.inference.packed_weights import Packing, pack
from gpt.model import GPT
from tests.gpt.analysis.concept_dictionary import axis_dictionary

IDS, LAST, TOKEN = [3, 1, 4, 1, 5, 9, 2, 6], 7, 33
VECTOR = torch.linspace(-2, 2, 24)


def hooks(names: Iterable[str], at: int | None = None) -> tuple[Hook, ...]:
    """Return hooks that change these activations, those inside the layers in layer 1."""
    return tuple(Hook(name, None if name in HOOKABLE_OUTSIDE else 1, lambda x: 1.5 * x + 0.25, at) for name in names)


ADDED = {*PATCHABLE, "final_norm"}  # activations that are sums of others: an edit of one adds something
EVERYWHERE = {*HOOKABLE, *HOOKABLE_OUTSIDE}
EDITS = {
    "none": Edits(),
    "heads": Edits(head_scale={(1, 0): 0.0, (2, 2): -1.5}),
    "attention off": Edits(attn_scale={0: 0.5, 1: 0.0}),
    "feed-forward off": Edits(mlp_scale={1: 0.0, 2: -0.5}),
    "activation": Edits(activation="relu"),
    "positions": Edits(drop_positions=True),
    "patch elsewhere": Edits(patches=(Patch("resid_mid", 1, 2, VECTOR),)),
    "hooks inside": Edits(hooks=hooks(EVERYWHERE - ADDED)),
}
ADDING_EDITS = {
    "concept up": Edits(steering=(Steering(1, VECTOR),)),
    "concept down": Edits(steering=(Steering(1, VECTOR, activity=lambda x: -x[..., 3].abs()),)),
    "patches": Edits(patches=tuple(Patch(name, 1, LAST, VECTOR) for name in PATCHABLE)),
    "hooks on sums": Edits(hooks=hooks(ADDED)),
    "hooks at a position": Edits(hooks=hooks(EVERYWHERE, LAST)),
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


@pytest.mark.parametrize("kind", ["none", *ADDING_EDITS])
def test_concepts_others_and_the_error_sum_to_the_logit_before_a_cap(model: GPT, kind: str) -> None:
    edits = (EDITS | ADDING_EDITS)[kind].fitting(model.config)
    concepts = Concepts({layer: axis_dictionary(24) for layer in (0, 1)}, torch.tensor(IDS))
    graph = concept_graph(model, concepts, IDS, TOKEN, [[i] for i in range(8)], lambda *place: place, edits)
    with torch.inference_mode():
        logit = model.lm_head(model.hidden_states(torch.tensor([IDS]), edits=edits))[0, LAST, TOKEN].item()
    assert graph.logit == pytest.approx(logit, abs=1e-5)
    assert sum(node.adds for node in graph.late) + graph.others + graph.error == pytest.approx(logit, abs=1e-4)


@pytest.mark.parametrize("packing", ["half", "int8"])
@torch.inference_mode()
def test_parts_of_a_model_in_reduced_precision_sum_to_the_logit(model: GPT, packing: Packing) -> None:
    pack(model, packing)
    logit = model.lm_head(trace_text(model, IDS).final_norm)[0, LAST, TOKEN].item()
    parts = direct_logit_attribution(model, IDS, LAST, TOKEN)
    assert parts.total == pytest.approx(parts.logit, abs=1e-4)
    assert parts.logit == pytest.approx(logit, abs=0.05)
    assert abs(parts.rest) < 0.5
