"""Views of attention weights, and the roles of heads in a model with hand-set weights."""

from __future__ import annotations

import pytest
import torch

from components.state.example import EXAMPLES
from gpt import DEFAULT_MODEL, Edits, LoadedModel, SamplingParams, generate, get_model
from gpt.analysis.heads import (
    CopyCircuit,
    copy_circuit,
    copying_heads,
    head_roles,
)
from gpt.analysis.patching import patch_from
from gpt.analysis.tracing import trace_text
from gpt.trace import Trace
from tests.gpt.analysis.copying_model import copying_model

T = 12


@pytest.fixture
def ids() -> list[int]:
    return torch.randint(61, (T,)).tolist()


def trace_of(*layers: torch.Tensor) -> Trace:
    """Return a trace that contains only attention weights, each (nh, T, T)."""
    trace = Trace()
    trace.begin(len(layers))
    for layer, weights in enumerate(layers):
        trace.record(layer, "attn_weights", weights[None])
    trace.record(None, "final_norm", torch.zeros(1, layers[0].shape[-1], 1))
    return trace


def test_a_head_set_by_hand_scores_one_in_its_role():
    ids = [1, 2, 3, 4, 5, 1, 2, 3, 4, 5]
    roles = head_roles(trace_text(copying_model(), ids), ids)
    assert roles.previous_token[0, 0] == 1
    assert roles.first_token[0, 1] == 1
    assert roles.induction[1, 0] == 1
    assert roles.same_token[1, 1] == 1
    assert roles.previous_token[0, 1] == roles.first_token[0, 0] == pytest.approx(1 / 9)  # only at the second token
    assert roles.same_token[1, 0] == roles.induction[1, 1] == roles.induction[0].max() == 0


GREEDY = SamplingParams(temperature=0)


@pytest.fixture(scope="module")
def bundled() -> LoadedModel:
    return get_model(DEFAULT_MODEL)


@pytest.mark.parametrize("length", [12, 20])
def test_random_tokens_are_copied_by_an_induction_head_after_a_previous_token_head(
    bundled: LoadedModel, length: int
) -> None:
    found = copying_heads(bundled.model, bundled.tokenizer.eot_id, length)
    assert found.induction.score > 0.85
    assert found.previous_token.score >= 0.8
    assert found.previous_token.layer < found.induction.layer
    assert found.loss < 0.5


def test_the_example_copies_and_does_not_without_the_induction_head(bundled: LoadedModel) -> None:
    text = EXAMPLES["en"]["example.repeat"]
    words = text.split()
    rest = words[3 : words.index(words[0], 1)]

    def first(edits: Edits | None) -> list[tuple[str, float]]:
        steps = generate(bundled, text, GREEDY, len(rest), edits=edits)
        return [(step.text, step.probability) for step in steps]

    copied = first(None)
    assert "".join(token for token, _ in copied).split() == rest
    assert min(probability for _, probability in copied) > 0.6
    head = copying_heads(bundled.model, bundled.tokenizer.eot_id).induction
    broken = first(Edits(head_scale={(head.layer, head.head): 0.0}))
    assert "".join(token for token, _ in broken).split()[0] != rest[0]


def test_both_heads_of_a_copy_are_needed_and_one_vector_of_the_earlier_one_brings_it_back(bundled: LoadedModel) -> None:
    model, ids = bundled.model, bundled.tokenizer.encode("The tree red dog cloud fire cold tree red dog")
    circuit = copy_circuit(trace_text(model, ids), ids)
    assert circuit == CopyCircuit(source=4, induction=(6, 0), previous_token=(4, 1))

    def copied(edits: Edits) -> float:
        return float(model(torch.tensor([ids]), edits=edits)[0, -1].softmax(-1)[ids[circuit.source]])

    assert copied(Edits()) > 0.9
    for head in (circuit.induction, circuit.previous_token):
        assert copied(Edits(head_scale={head: 0.0})) < 0.1
    patch = patch_from(model, ids, "attn_out", 4, circuit.source)
    assert copied(Edits(head_scale={circuit.previous_token: 0.0}, patches=(patch,))) > 0.8
    with pytest.raises(ValueError, match="nothing to copy"):
        copy_circuit(trace_text(model, ids[:4]), ids[:4])
