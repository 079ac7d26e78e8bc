"""Models that the page offers from the hub: sizes, tensor names and vocabularies, without downloading weights."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM

from gpt.models.checkpoints.families import FAMILIES, GPT2
from gpt.models.checkpoints.files import Contents
from gpt.models.checkpoints.translate import detect_layout
from gpt.models.checkpoints.vocabularies import PlainIds
from gpt.models.sources import HUB_MODELS
from tests.gpt.models.published import CONFIGS
from tests.gpt.models.test_real_vocabularies import ROWS

REAL = Path(__file__).resolve().parents[3] / "shared" / "real"

# Published configurations in ../shared/real/configs, and vocabularies in ../shared/real/tokenizers.
FILES = {
    "gpt2": ("mirror__gpt2", "gpt2"),
    "gpt2-medium": ("mlc__gpt2_medium", "gpt2"),
    "gpt2-large": ("mirror__gpt2-large", "gpt2"),
    "gpt2-xl": ("mirror__gpt2-xl", "gpt2"),
    "EleutherAI/pythia-410m": ("mirror__pythia-410m", "pythia"),
    "HuggingFaceTB/SmolLM2-135M": ("mlc__smollm2_135m", "smollm2"),
    "HuggingFaceTB/SmolLM2-135M-Instruct": ("mlc__smollm2_135m", "smollm2"),
    "HuggingFaceTB/SmolLM2-360M": ("mlc__smollm2_360m", "smollm2"),
    "Qwen/Qwen2.5-0.5B-Instruct": ("mirror__Qwen2.5-0.5B-Instruct", "qwen2.5-0.5b"),
    "Qwen/Qwen3-0.6B": ("mlc__qwen3_0.6b", "qwen3"),
    "google/gemma-3-270m": ("text__gemma-3-270m", "gemma3"),
    "google/gemma-3-270m-it": ("text__gemma-3-270m", "gemma3"),
}
# Configurations missing from the collection, as described by the models' authors.
DESCRIBED: dict[str, dict[str, Any]] = {
    "distilgpt2": {"model_type": GPT2, "n_layer": 6},
    "roneneldan/TinyStories-33M": {
        "model_type": "gpt_neo",
        "vocab_size": 50257,
        "hidden_size": 768,
        "num_layers": 4,
        "num_heads": 16,
        "attention_types": [[["global", "local"], 2]],
    },
    "microsoft/phi-1_5": {
        "model_type": "phi",
        "vocab_size": 51200,
        "num_hidden_layers": 24,
        "num_attention_heads": 32,
        "hidden_size": 2048,
        "intermediate_size": 8192,
    },
    **{f"EleutherAI/{name}": CONFIGS[name][0] for name in ("pythia-14m", "pythia-70m", "pythia-160m")},
}
OTHER_VOCABULARIES = {"phi-2": "microsoft/phi-1_5"}  # for models in DESCRIBED


def published(name: str) -> dict[str, Any]:
    """Return the configuration of a model; skips the test if the collection is missing."""
    if name in DESCRIBED:
        return DESCRIBED[name]
    path = REAL / "configs" / f"{FILES[name][0]}.json"
    if not path.is_file():
        pytest.skip("needs the published configurations in ../shared/real")
    return dict(json.loads(path.read_text()))


def test_every_listed_model_is_checked() -> None:
    assert HUB_MODELS.keys() == FILES.keys() | DESCRIBED.keys()


QUICK = ("gpt2", "Qwen/Qwen3-0.6B")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.thorough) for name in HUB_MODELS]
)
def test_tensors_of_transformers_class_have_a_place_and_the_stated_number_of_parameters(name: str) -> None:
    config = {option: value for option, value in published(name).items() if option not in ("auto_map", "architectures")}
    with torch.device("meta"):
        reference = AutoModelForCausalLM.from_config(AutoConfig.for_model(**config))
    layout, _, _ = detect_layout(Contents(reference.state_dict(), PlainIds, config))
    assert layout.title == FAMILIES[config["model_type"]].title
    assert HUB_MODELS[name].n_parameters == sum(parameter.numel() for parameter in reference.parameters())


VOCABULARIES = {name: tokenizer for name, (_, tokenizer) in FILES.items()} | {"microsoft/phi-1_5": "phi-2"}


@pytest.mark.parametrize(("name", "tokenizer"), VOCABULARIES.items())
def test_the_vocabulary_of_a_listed_model_is_among_those_that_are_compared(name: str, tokenizer: str) -> None:
    assert ROWS[tokenizer] == published(name).get("vocab_size", 50257)
