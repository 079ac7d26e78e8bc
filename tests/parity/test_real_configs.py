"""Every published config.json is rejected with a reason, or read and matched with transformers' logits.

Accepted ones are made small: fewer and narrower layers, with all other options as in the file.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.testing import assert_close
from transformers import AutoConfig, AutoModelForCausalLM

from gpt.models.checkpoints import open_checkpoint
from gpt.models.checkpoints.families import FAMILIES
from gpt.models.checkpoints.options import check_config
from tests.conftest import randomized
from tests.parity.family_models import subtract_norm_offsets

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "real" / "configs"
FILES = sorted(FOLDER.glob("*.json"))
# Messages for types that are deliberately not implemented, and for options.
REASONS = {
    "bert": "it is an encoder",
    "bloom": "ALiBi",
    "deepseek": "mixture of experts",
    "deepseek_v2": "mixture of experts",
    "gpt_oss": "attention sinks",
    "llava": "reads images",
    "minimind": "its own code",
    "mixtral": "mixture of experts",
    "orion": "its own code",
    "phi-msft": "its own code",
    "phi3_v": "its own code",
    "qwen": "its own code",
    "qwen2_moe": "mixture of experts",
    "qwen3_5": "linear attention",
    "rwkv5": "recurrent state",
}
OPTIONS = {
    "mirror__smollm-finetune": "is a classifier",
    "mirror__pythia-410m": "is a classifier",
    "mirror__phi-3-mini": "type 'longrope'",
    "mlc__minicpm-moe-8x2b": "mixture of experts",
    "mlc__ministral3_3b_2512": "reads images",
    "mlc__phi-3_5": "type 'longrope'",
    "mlc__phi-4": "type 'longrope'",
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

pytestmark = pytest.mark.skipif(not FILES, reason="needs the published configurations in ../shared/real")


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
    sizes = {"layers": n_layer, "heads": n_head, "width": n_head * head_dim}
    small |= {each: sizes[name] for name, names in NAMES.items() for each in names if each in config}
    return small | {name: config[name][:n_layer] for name in BY_LAYER if config.get(name)}


@pytest.mark.thorough
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
@torch.inference_mode()
def test_a_published_configuration_is_refused_with_the_reason_or_gives_transformers_logits(
    file: Path, tmp_path: Path
) -> None:
    config = read(file)
    model_type = config["model_type"]
    refused = OPTIONS.get(file.stem, REASONS.get(model_type))
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
