"""Real files: checkpoints of courses, published configurations, models that the page lists. See ../shared/real."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.testing import assert_close
from transformers import AutoConfig, AutoModelForCausalLM

from gpt import load_model
from gpt.models.checkpoints.checkpoint import open_checkpoint
from gpt.models.checkpoints.families import FAMILIES, GPT2
from gpt.models.checkpoints.files import Contents
from gpt.models.checkpoints.layouts import HeadsUnknown, ScaleUnknown
from gpt.models.checkpoints.options import check_config
from gpt.models.checkpoints.translate import detect_layout
from gpt.models.checkpoints.vocabularies import Characters
from gpt.models.sources import HUB_MODELS
from gpt.tokenizer import PlainIds
from tests.gpt.family_configs import randomized
from tests.gpt.models.published import published
from tests.parity.family_models import subtract_norm_offsets

CHECKPOINTS = Path(__file__).parents[3] / "shared" / "real" / "checkpoints"

# What the user must specify for each file, and whether it includes its vocabulary. Everything else is read.
STATED: dict[str, tuple[dict[str, Any], bool]] = {
    "heads-and-characters-inside.pt": ({}, True),
    "heads-in-model-args.pt": ({}, False),
    "lecture-first-edition.pth": ({"attn_scale": "n_embd"}, True),
    "n-head-inside.pt": ({"activation": "gelu_tanh"}, False),
    "per-head-modules.pth": ({"attn_scale": "head_size"}, False),
}


@pytest.mark.skipif(not CHECKPOINTS.is_dir(), reason="the collection of real files is not beside the repository")
@pytest.mark.parametrize("name", STATED)
def test_a_checkpoint_gives_the_logits_of_its_own_program(name: str) -> None:
    hints, has_characters = STATED[name]
    stated = json.loads((CHECKPOINTS / name).with_suffix(".json").read_text())
    loaded = load_model(CHECKPOINTS / name, device="cpu", names="infer", **hints)
    assert isinstance(loaded.tokenizer, Characters) == has_characters
    with torch.inference_mode():
        logits = loaded.model(torch.tensor([stated["ids"]]))[0]
    assert logits.argmax(dim=-1).tolist()[-len(stated["argmax"]) :] == stated["argmax"]
    torch.testing.assert_close(logits[-1], torch.tensor(stated["logits_last"]), atol=2e-5, rtol=1e-5)


@pytest.mark.skipif(not CHECKPOINTS.is_dir(), reason="the collection of real files is not beside the repository")
@pytest.mark.parametrize("name", ["lecture-first-edition.pth", "per-head-modules.pth"])
def test_a_checkpoint_with_a_module_for_each_head_asks_for_its_scale(name: str) -> None:
    with pytest.raises(ScaleUnknown):
        open_checkpoint(CHECKPOINTS / name, names="infer")


@pytest.mark.skipif(not CHECKPOINTS.is_dir(), reason="the collection of real files is not beside the repository")
def test_a_checkpoint_without_an_output_projection_opens_once_its_heads_are_given() -> None:
    path = CHECKPOINTS / "no-output-projection.pth"
    with pytest.raises(HeadsUnknown):
        open_checkpoint(path, names="infer")
    model = open_checkpoint(path, names="infer", n_head=1, activation="relu").build()
    assert torch.equal(model.h[0].attn.c_proj.weight, torch.eye(128))
    assert model(torch.arange(8)[None]).isfinite().all()


CONFIG_FOLDER = Path(__file__).resolve().parents[3] / "shared" / "real" / "configs"

CONFIG_FILES = sorted(CONFIG_FOLDER.glob("*.json"))

OPTIONS = {
    "mirror__smollm-finetune": "is a classifier",
    "mirror__pythia-410m": "is a classifier",
}

WINDOW, CONTEXT, T = 5, 48, 20

# Names of sizes, each with a small value.
NAMES = {
    "layers": ("num_hidden_layers", "n_layer", "num_layers"),
    "heads": ("num_attention_heads", "n_head", "num_heads"),
    "width": ("hidden_size", "n_embd", "word_embed_proj_dim"),
}

SMALL = {
    **dict.fromkeys(("intermediate_size", "n_inner", "ffn_dim"), 41),
    **dict.fromkeys(("max_position_embeddings", "n_positions"), CONTEXT),
    **dict.fromkeys(("sliding_window", "window_size"), WINDOW),
    "vocab_size": 61,
}

DROPPED = ("architectures", "auto_map", "torch_dtype", "dtype", "_name_or_path", "transformers_version", "n_ctx")

BY_LAYER = ("layer_types", "no_rope_layers", "attention_layers")


def read(file: Path) -> dict[str, Any]:
    config: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return config


def shrink(config: dict[str, Any]) -> dict[str, Any]:
    """Return the configuration of a small model with the same options: head ratios, rotations, windows per layer."""
    stated = {name: config[each] for name, names in NAMES.items() for each in names if each in config}
    n_kv_head = config.get("num_key_value_heads") or stated["heads"]
    kv_heads = min(n_kv_head, 2)
    n_head = stated["heads"] // n_kv_head * kv_heads
    share = config.get("partial_rotary_factor", config.get("rotary_pct", 1.0))
    head_dim = next(size for size in range(8, 100, 2) if size * share % 2 == 0)
    small = {name: value for name, value in config.items() if name not in DROPPED}
    small |= {name: value for name, value in SMALL.items() if config.get(name) is not None}
    small |= dict.fromkeys(("bos_token_id", "eos_token_id", "pad_token_id"))
    n_layer = min(stated["layers"], 7 if "layer_types" in config or "sliding_window" in config else 4)
    if "attention_types" in config:
        small["attention_types"] = [[kinds, 1] for kinds, _ in config["attention_types"]]
        n_layer = sum(len(kinds) for kinds, _ in config["attention_types"])
    if "rotary_dim" in config and "n_embd" in config:
        head_dim = 16
        small["rotary_dim"] = config["rotary_dim"] * head_dim * stated["heads"] // stated["width"]
    if config.get("num_key_value_heads") is not None:
        small["num_key_value_heads"] = kv_heads
    if config.get("head_dim") is not None:
        small["head_dim"] = head_dim
    scaling = config.get("rope_scaling") or {}
    if "short_factor" in scaling:
        n = int(head_dim * share) // 2
        small["rope_scaling"] = scaling | {name: scaling[name][:n] for name in ("short_factor", "long_factor")}
    sizes = {"layers": n_layer, "heads": n_head, "width": n_head * head_dim}
    small |= {each: sizes[name] for name, names in NAMES.items() for each in names if each in config}
    return small | {name: config[name][:n_layer] for name in BY_LAYER if config.get(name)}


@pytest.mark.skipif(not CONFIG_FILES, reason="needs the published configurations in ../shared/real")
@pytest.mark.thorough
@pytest.mark.parametrize("file", CONFIG_FILES, ids=lambda file: file.stem)
@torch.inference_mode()
def test_a_published_configuration_is_refused_with_the_reason_or_gives_transformers_logits(
    file: Path, tmp_path: Path
) -> None:
    config = read(file)
    model_type = config["model_type"]
    refused = OPTIONS.get(file.stem)
    if refused or model_type not in FAMILIES:
        with pytest.raises(ValueError, match=refused or f"a {model_type} model, which is not implemented") as caught:
            check_config(config)
        assert model_type in str(caught.value) or file.stem in OPTIONS
        return
    check_config(config)
    small = shrink(config)
    options = {name: value for name, value in small.items() if name != "model_type"}
    reference = AutoModelForCausalLM.from_config(
        AutoConfig.for_model(model_type, **options), attn_implementation="eager"
    )
    subtract_norm_offsets(randomized(reference, std=0.1))
    reference.save_pretrained(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(small), encoding="utf-8")
    idx = torch.arange(2 * T).view(2, T) * 11 % small["vocab_size"]
    ours = open_checkpoint(tmp_path).build()
    assert_close(ours(idx), reference(idx).logits, atol=2e-5, rtol=1e-5)


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
    **{f"EleutherAI/{name}": published(name) for name in ("pythia-14m", "pythia-70m", "pythia-160m")},
}


def config_of(name: str) -> dict[str, Any]:
    """Return the configuration of a listed model."""
    return DESCRIBED[name] if name in DESCRIBED else published(FILES[name][0])


def test_every_listed_model_is_checked() -> None:
    assert HUB_MODELS.keys() == FILES.keys() | DESCRIBED.keys()


QUICK = ("gpt2", "Qwen/Qwen3-0.6B")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.thorough) for name in HUB_MODELS]
)
def test_tensors_of_transformers_class_have_a_place_and_the_stated_number_of_parameters(name: str) -> None:
    config = {option: value for option, value in config_of(name).items() if option not in ("auto_map", "architectures")}
    with torch.device("meta"):
        reference = AutoModelForCausalLM.from_config(AutoConfig.for_model(**config))
    layout, _, _ = detect_layout(Contents(reference.state_dict(), PlainIds, config))
    assert layout.title == FAMILIES[config["model_type"]].title
    assert HUB_MODELS[name].n_parameters == sum(parameter.numel() for parameter in reference.parameters())
