"""Tensors are created on the model's device, or explicitly on the CPU. This test needs no GPU.

Under `torch.device("meta")`, a tensor created without naming a device has no data. Reading it or mixing it with the
model's tensors raises an error, as it would with a model on a GPU.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from gpt import BeamSearch, Edits, Generation, Hook, SamplingParams, generate, generate_greedy, logit_lens, trace_text
from gpt.analysis.attribution import direct_logit_attribution, neuron_logit_attribution
from gpt.analysis.embeddings import nearest_tokens, position_similarity
from gpt.analysis.heads import copy_circuit, copying_heads
from gpt.analysis.patching import is_patch_of_model, patch_from, patch_sweep
from gpt.analysis.predictions import text_statistics
from gpt.analysis.residual import stream_norms, strongest_neurons
from gpt.analysis.saliency import Ablation, input_x_gradient, measure_causes, predict_without
from gpt.training.evaluation import score_stories
from gpt.training.recipe import Recipe
from gpt.training.trainer import Batch, Process, Trainer
from tests.gpt.fake_models import family_model

IDS = [5, 9, 2, 7, 5, 9, 3, 5]
LOADED = family_model("every_bias")
MODEL = LOADED.model
HOOKS = Edits(hooks=(Hook("resid_post", 0, lambda x: 2 * x), Hook("mlp_post", 1, lambda x: -x, position=2)))
ABLATION = Ablation(frozenset({1}), frozenset({(0, 1)}), frozenset({(1, 0, 2)}))
ANALYSES: dict[str, Callable[[], Any]] = {
    "causes": lambda: measure_causes(MODEL, IDS, 5, [(0,), (1, 2)]),
    "causes of no word": lambda: measure_causes(MODEL, IDS, 5, []),
    "prediction without": lambda: predict_without(MODEL, IDS, ABLATION),
    "attribution": lambda: direct_logit_attribution(MODEL, trace_text(MODEL, IDS), 3, 5),
    "neuron attribution": lambda: neuron_logit_attribution(MODEL, trace_text(MODEL, IDS), 3, 5, 1),
    "neurons": lambda: strongest_neurons(MODEL, trace_text(MODEL, IDS), 1, 3),
    "norms": lambda: stream_norms(trace_text(MODEL, IDS)),
    "gradient": lambda: input_x_gradient(MODEL, IDS, 5),
    "patches": lambda: patch_sweep(MODEL, IDS, [4, *IDS[1:]], 3, 4),
    "patch": lambda: is_patch_of_model(MODEL, patch_from(MODEL, IDS, "resid_pre", 1, 2)),
    "copying": lambda: copying_heads(MODEL),
    "circuit": lambda: copy_circuit(trace_text(MODEL, IDS), IDS),
    "lens": lambda: logit_lens(MODEL, trace_text(MODEL, IDS), positions=[3]),
    "statistics": lambda: text_statistics(MODEL, trace_text(MODEL, IDS).final_norm[0, :-1], IDS[1:]),
    "embeddings": lambda: (nearest_tokens(MODEL, 5), MODEL.wpe is None or position_similarity(MODEL)),
    "padding": lambda: MODEL(torch.tensor([IDS], device="cpu"), attention_mask=torch.ones(1, 8, device="cpu")),
    "generation": lambda: list(generate(LOADED, "the cat", SamplingParams(seed=1), 5)),
    "hooks": lambda: list(generate(LOADED, "the cat", SamplingParams(seed=1), 5, edits=HOOKS)),
    "greedy": lambda: generate_greedy(MODEL, torch.tensor([IDS], device="cpu"), 4),
    "beams": lambda: list(BeamSearch(Generation(LOADED, "the cat"), 3, 4).steps()),
    "score": lambda: score_stories(MODEL, LOADED.tokenizer, ["the cat is there"]),
}


@pytest.mark.parametrize("name", ANALYSES)
def test_no_tensor_is_made_on_another_device_than_the_models(name: str) -> None:
    with torch.device("meta"):
        ANALYSES[name]()


def test_a_patch_from_another_process_is_compared_in_the_type_of_the_model() -> None:
    model = family_model("gpt2").model.bfloat16()
    patch = patch_from(model, IDS, "resid_pre", 1, 2)
    sent = Edits(patches=(type(patch)(patch.name, 1, 2, patch.value.float(), patch.ids),))
    assert is_patch_of_model(model, sent.patches[0])


def test_held_back_rows_are_moved_to_the_device_of_the_training(monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = Recipe(vocab_size=261, block_size=16, n_layer=1, n_head=2, n_embd=16)
    trainer = Trainer(recipe.new_model(261), recipe, Process(torch.device("meta")))
    devices: list[str] = []

    def loss(idx: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        devices.extend((idx.device.type, targets.device.type))
        return torch.tensor(1.5)

    monkeypatch.setattr(trainer.model, "loss", loss)
    assert trainer.loss(Batch.of_rows(torch.zeros(4, 17, dtype=torch.long))) == 1.5
    assert devices == ["meta", "meta"]
