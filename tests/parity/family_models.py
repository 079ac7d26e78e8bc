"""Tiny random transformers models of every family, with unusual shapes, and our models with the same weights."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any

import torch
from torch import nn
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedConfig
from transformers.utils import logging

from gpt.model import GPT
from gpt.models.checkpoints.checkpoint import open_checkpoint
from tests.gpt.family_configs import randomized

logging.disable_progress_bar()

FOLDER = TemporaryDirectory(prefix="families-")  # deleted when Python exits
VOCAB_SIZE, CONTEXT = 61, 48
SIZES = {"vocab_size": VOCAB_SIZE, "max_position_embeddings": CONTEXT, "num_hidden_layers": 3}
SIZES |= {"hidden_size": 24, "num_attention_heads": 4, "intermediate_size": 37}
SIZES |= {"bos_token_id": None, "eos_token_id": None, "pad_token_id": None}
GROUPED = {"num_key_value_heads": 2}
ONE_KEY_HEAD = {"num_key_value_heads": 1}
WIDE_HEADS = {"num_attention_heads": 3, "num_key_value_heads": 3, "head_dim": 10}
TIED, UNTIED = {"tie_word_embeddings": True}, {"tie_word_embeddings": False}
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 500000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16,
}
LINEAR = {"rope_type": "linear", "rope_theta": 20000.0, "factor": 4.0}
YARN = {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "original_max_position_embeddings": 12}
LONG_ROPE = {"rope_type": "longrope", "rope_theta": 10000.0, "factor": 2.0, "original_max_position_embeddings": CONTEXT}
LONG_ROPE |= {"short_factor": [1.0, 1.1, 1.3, 2.0], "long_factor": [1.0, 2.0, 4.0, 8.0]}
LONG = {"rope_type": "default", "rope_theta": 1e6}
CAPS = {"attn_logit_softcapping": 0.8, "final_logit_softcapping": 2.0}  # low enough that random models reach them
SMALL = {"num_hidden_layers": 1, "num_attention_heads": 5, "hidden_size": 30, "intermediate_size": 7}


def gemma_rope(full: dict[str, Any], local_base: float = 10000.0) -> dict[str, Any]:
    local = {"rope_type": "default", "rope_theta": local_base}
    return {"rope_parameters": {"full_attention": full, "sliding_attention": local}}


OPTIONS: dict[str, dict[str, dict[str, Any]]] = {
    "gpt_neox": {
        "pythia": {"hidden_size": 32},
        "one branch after the other": {"use_parallel_residual": False, "hidden_size": 32},
        "all of a head rotated, tied": {"rope_parameters": {"partial_rotary_factor": 1.0, **LONG}, **TIED},
        "no biases in attention": {"attention_bias": False, "hidden_act": "gelu_new", "hidden_size": 64},
        "scaled, five heads": {"rope_parameters": {"partial_rotary_factor": 0.5, **LINEAR}, **SMALL, "hidden_size": 40},
        "another eps, relu": {"layer_norm_eps": 1e-2, "hidden_act": "relu", "hidden_size": 32},
    },
    "llama": {
        "grouped, tied": {**GROUPED, **TIED},
        "one key head, all biases": {**ONE_KEY_HEAD, "attention_bias": True, "mlp_bias": True},
        "wide heads": {**WIDE_HEADS, "mlp_bias": True},
        "llama 3": {**GROUPED, "rope_parameters": LLAMA3},
        "scaled, gelu, another eps": {"rope_parameters": LINEAR, "hidden_act": "gelu", "rms_norm_eps": 1e-2},
        "five heads, one layer": {**SMALL, "attention_bias": True},
        "dynamic": {"rope_parameters": {**LINEAR, "rope_type": "dynamic"}},
        "yarn, all options": {
            "hidden_size": 64,
            "rope_parameters": {**YARN, "beta_fast": 8, "beta_slow": 0.5, "mscale": 0.7, "mscale_all_dim": 1.2},
        },
    },
    "mistral": {
        "no window": {**GROUPED, "sliding_window": None},
        "window": {**GROUPED, "sliding_window": 5},
        "window of the whole text": {"sliding_window": CONTEXT, "num_key_value_heads": 4},
        "wide heads, tied": {**WIDE_HEADS, **TIED, "sliding_window": 3},
        "scaled": {**ONE_KEY_HEAD, "rope_parameters": LINEAR, "sliding_window": 2},
    },
    "qwen2": {
        "grouped": GROUPED,
        "one key head, tied": {**ONE_KEY_HEAD, **TIED, "rope_parameters": LONG},
        "windows above": {**GROUPED, "use_sliding_window": True, "sliding_window": 4, "max_window_layers": 1},
        "windows by layer": {
            **GROUPED,
            "use_sliding_window": True,
            "sliding_window": 3,
            "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
        },
        "five heads, scaled": {**SMALL, "num_key_value_heads": 5, "rope_parameters": LINEAR},
        "yarn": {**GROUPED, "hidden_size": 64, "rope_parameters": YARN},
    },
    "qwen3": {
        "wide heads, tied": {**WIDE_HEADS, **TIED},
        "grouped, biases": {**GROUPED, "head_dim": 6, "attention_bias": True},
        "one key head, long": {**ONE_KEY_HEAD, "head_dim": 16, "rope_parameters": LONG},
        "scaled, another eps": {**SMALL, "num_key_value_heads": 5, "head_dim": 4, "rope_parameters": LLAMA3},
        "yarn between pairs": {
            **GROUPED,
            "head_dim": 24,
            "rope_parameters": {**YARN, "truncate": False, "factor": 3.0},
        },
    },
    "gemma3_text": {
        "five windows, one without": {**GROUPED, "head_dim": 10, "sliding_window": 4, "num_hidden_layers": 7},
        "windows by layer, untied": {
            **UNTIED,
            **ONE_KEY_HEAD,
            "head_dim": 6,
            "sliding_window": 3,
            "layer_types": ["full_attention", "sliding_attention", "full_attention"],
            "query_pre_attn_scalar": 7,
        },
        "scaled without window": {
            **GROUPED,
            "head_dim": 8,
            "layer_types": ["sliding_attention", "full_attention", "full_attention"],
            "sliding_window": 5,
            **gemma_rope({**LINEAR, "factor": 8.0}, 300.0),
        },
        "biases, another eps": {**WIDE_HEADS, "attention_bias": True, "rms_norm_eps": 1e-2, "sliding_window": 2},
        "window of the whole text": {**GROUPED, "head_dim": 6, "sliding_window": CONTEXT, "query_pre_attn_scalar": 6},
    },
    "gpt2": {
        "three heads": {"num_attention_heads": 3},
        "untied, narrow": {**UNTIED, "n_inner": 11},
        "one odd head": {"num_attention_heads": 1, "hidden_size": 7, "num_hidden_layers": 1},
        "exact gelu, another eps": {"activation_function": "gelu", "layer_norm_epsilon": 1e-2},
        "silu, upcast": {"activation_function": "silu", "reorder_and_upcast_attn": True},
    },
    "gpt_neo": {
        "local layers": {"attention_types": [[["global", "local"], 1], [["global"], 1]], "window_size": 5},
        "all global, untied": {"attention_types": [[["global"], 3]], **UNTIED, "intermediate_size": None},
        "all local, exact gelu": {
            "attention_types": [[["local"], 3]],
            "window_size": 2,
            "activation_function": "gelu",
        },
        "one layer, five heads": {**SMALL, "attention_types": [[["local"], 1]], "window_size": 3},
    },
    "phi": {
        "half of each head": {"hidden_size": 32},
        "grouped, a part of each head": {
            **GROUPED,
            "hidden_size": 40,
            "rope_parameters": {"partial_rotary_factor": 0.4, **LONG},
        },
        "all of a head, tied": {**TIED, "rope_parameters": {"partial_rotary_factor": 1.0, **LINEAR}},
        "five heads, another eps": {**SMALL, "hidden_size": 40, "layer_norm_eps": 1e-2},
        "one key head, relu": {**ONE_KEY_HEAD, "hidden_size": 32, "hidden_act": "relu"},
    },
    "phi3": {
        "no window": {},
        "grouped, window": {**GROUPED, "sliding_window": 5},
        "one key head, tied, a part of each head": {
            **ONE_KEY_HEAD,
            **TIED,
            "hidden_size": 32,
            "rope_parameters": {"partial_rotary_factor": 0.75, **LONG},
        },
        "five heads, one layer": {**SMALL, "rms_norm_eps": 1e-2},
        "longrope": {"hidden_size": 32, "rope_parameters": LONG_ROPE},
        "window of the whole text, gelu": {"sliding_window": CONTEXT, "hidden_act": "gelu"},
    },
    "opt": {
        "relu": {"ffn_dim": 37},
        "untied, gelu": {**UNTIED, "ffn_dim": 96, "activation_function": "gelu"},
        "no biases": {"enable_bias": False, "ffn_dim": 20},
        "silu, no dropout": {"activation_function": "silu", "dropout": 0.0, "ffn_dim": 30},
        "five heads, one layer, no biases": {**SMALL, "ffn_dim": 7, "enable_bias": False},
    },
    "stablelm": {
        "a quarter of each head": {"hidden_size": 32, "num_key_value_heads": 4},
        "grouped, biases": {**GROUPED, "hidden_size": 32, "use_qkv_bias": True},
        "one key head, relu": {**ONE_KEY_HEAD, "hidden_size": 32, "hidden_act": "relu"},
        "all of a head, tied": {
            **TIED,
            **GROUPED,
            "rope_parameters": {"partial_rotary_factor": 1.0, **LINEAR},
            "layer_norm_eps": 1e-2,
        },
        "five heads, gelu": {**SMALL, "hidden_size": 40, "num_key_value_heads": 5, "hidden_act": "gelu"},
    },
    "gemma": {
        "wide heads": WIDE_HEADS,
        "grouped, biases": {**GROUPED, "head_dim": 8, "attention_bias": True},
        "one key head, untied": {**ONE_KEY_HEAD, **UNTIED, "head_dim": 10, "rope_parameters": LONG},
        "the gelu of the first releases": {**GROUPED, "head_dim": 6, "hidden_act": "gelu"},
    },
    "olmo": {
        "all heads": {},
        "grouped, biases": {**GROUPED, "attention_bias": True},
        "one key head, tied": {**ONE_KEY_HEAD, **TIED, "rope_parameters": LONG},
        "scaled, gelu": {"rope_parameters": LINEAR, "hidden_act": "gelu"},
        "five heads, one layer": SMALL,
    },
    "starcoder2": {
        "grouped, window": {**GROUPED, "sliding_window": 5},
        "no biases": {**GROUPED, "use_bias": False},
        "one key head, untied": {**ONE_KEY_HEAD, **UNTIED, "norm_epsilon": 1e-2},
        "wide heads, relu": {**WIDE_HEADS, "hidden_act": "relu", "rope_parameters": LONG},
        "five heads, scaled": {**SMALL, "num_key_value_heads": 5, "rope_parameters": LINEAR, "sliding_window": 2},
    },
    "gpt_bigcode": {
        "one key head": {},
        "exact gelu": {"activation_function": "gelu"},
        "untied, narrow": {**UNTIED, "n_inner": 11},
        "five heads, one layer, another eps": {**SMALL, "layer_norm_epsilon": 1e-2},
        "one odd head, relu": {"num_attention_heads": 1, "hidden_size": 7, "activation_function": "relu"},
    },
    "gptj": {
        "a part of each head": {"hidden_size": 32, "rotary_dim": 4},
        "all of a head": {"rotary_dim": 6, "n_inner": 11},
        "six of ten numbers of a head": {"hidden_size": 40, "rotary_dim": 6, "layer_norm_epsilon": 1e-2},
        "tied, relu": {**TIED, "rotary_dim": 2, "activation_function": "relu"},
        "five heads, one layer": {**SMALL, "rotary_dim": 2},
    },
    "gemma2": {
        "every other layer has a window": {**GROUPED, "head_dim": 10, "sliding_window": 4, **CAPS},
        "one key head, untied": {
            **UNTIED,
            **ONE_KEY_HEAD,
            "head_dim": 6,
            "layer_types": ["full_attention", "sliding_attention", "sliding_attention"],
            "sliding_window": 3,
            "query_pre_attn_scalar": 7,
            **CAPS,
        },
        "biases, scaled, only scores capped": {
            **WIDE_HEADS,
            "attention_bias": True,
            "rope_parameters": LINEAR,
            "rms_norm_eps": 1e-2,
            "attn_logit_softcapping": 0.7,
            "final_logit_softcapping": None,
        },
        "no window, only logits capped": {
            **GROUPED,
            "head_dim": 8,
            "layer_types": ["full_attention"] * 3,
            "attn_logit_softcapping": None,
            "final_logit_softcapping": 3.0,
        },
        "caps by default": {**SMALL, "num_key_value_heads": 1, "head_dim": 4, "sliding_window": 2},
    },
    "nanochat": {
        "grouped": {**GROUPED, "final_logit_softcapping": 2.0},
        "biases": {"attention_bias": True, "rms_norm_eps": 1e-2},
        "one key head, no cap, tied": {
            **ONE_KEY_HEAD,
            **TIED,
            "final_logit_softcapping": None,
            "rope_parameters": LONG,
        },
        "scaled, gelu": {"rope_parameters": LINEAR, "hidden_act": "gelu"},
        "five heads, one layer": SMALL,
    },
    "olmo2": {
        "all heads": {},
        "grouped": {**GROUPED, "hidden_size": 32},
        "one key head, tied": {**ONE_KEY_HEAD, **TIED, "rope_parameters": LONG},
        "biases, gelu, another eps": {**GROUPED, "attention_bias": True, "hidden_act": "gelu", "rms_norm_eps": 1e-2},
        "five heads, scaled": {**SMALL, "rope_parameters": LLAMA3},
    },
    "smollm3": {
        "the fourth layer without rotation": {**GROUPED, "num_hidden_layers": 5},
        "every other layer, untied": {**ONE_KEY_HEAD, **UNTIED, "no_rope_layer_interval": 2},
        "by layer, biases": {
            **GROUPED,
            "no_rope_layers": [0, 1, 0],
            "attention_bias": True,
            "mlp_bias": True,
            "rope_parameters": LONG,
        },
        "windows without rotation": {
            **GROUPED,
            "no_rope_layer_interval": 2,
            "use_sliding_window": True,
            "sliding_window": 4,
        },
        "no rotation at all": {**SMALL, "num_key_value_heads": 5, "no_rope_layer_interval": 1},
    },
}
CASES = [(family, name) for family, cases in OPTIONS.items() for name in cases]


@dataclass(frozen=True)
class Twins:
    """A transformers model, its saved folder, and our model with the same weights."""

    reference: nn.Module
    folder: Path
    ours: GPT


def reference_config(family: str, name: str) -> PreTrainedConfig:
    """Return the configuration of one of CASES."""
    return AutoConfig.for_model(family, **{**SIZES, **OPTIONS[family][name]})


def subtract_norm_offsets(model: nn.Module) -> None:
    """Spread the weights of Gemma's norms, which multiply by 1 + weight, around 0."""
    for module in model.modules():
        if re.fullmatch(r"Gemma\d*RMSNorm", type(module).__name__):
            module.weight.data -= 1.0


def reference_model(family: str, name: str) -> nn.Module:
    """Return a random transformers model in evaluation mode with eager attention."""
    config = reference_config(family, name)
    torch.manual_seed(len(name))
    model = randomized(AutoModelForCausalLM.from_config(config, attn_implementation="eager"))
    subtract_norm_offsets(model)
    return model


@cache
@torch.inference_mode(False)  # the first caller may run in inference mode although a later one needs gradients
def family_twins(family: str, name: str) -> Twins:
    """Return both models of one of CASES, created once."""
    reference = reference_model(family, name)
    folder = Path(mkdtemp(dir=FOLDER.name))
    reference.save_pretrained(folder)
    return Twins(reference, folder, open_checkpoint(folder).build())
