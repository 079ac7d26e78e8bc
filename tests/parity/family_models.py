"""Tiny random transformers models of every family, in odd shapes, and the same weights read by us."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any

import torch
from torch import nn
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedConfig
from transformers.models.gemma2.modeling_gemma2 import Gemma2RMSNorm
from transformers.models.gemma3.modeling_gemma3 import Gemma3RMSNorm
from transformers.utils import logging

from gpt.model import GPT
from gpt.models.checkpoints import open_checkpoint
from tests.conftest import randomized

logging.disable_progress_bar()

FOLDER = TemporaryDirectory(prefix="families-")  # removed when Python ends
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
LONG = {"rope_type": "default", "rope_theta": 1e6}
CAPS = {"attn_logit_softcapping": 0.8, "final_logit_softcapping": 2.0}  # that random models reach
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
    },
    "qwen3": {
        "wide heads, tied": {**WIDE_HEADS, **TIED},
        "grouped, biases": {**GROUPED, "head_dim": 6, "attention_bias": True},
        "one key head, long": {**ONE_KEY_HEAD, "head_dim": 16, "rope_parameters": LONG},
        "windows above": {
            **GROUPED,
            "head_dim": 8,
            "use_sliding_window": True,
            "sliding_window": 4,
            "max_window_layers": 2,
        },
        "scaled, another eps": {**SMALL, "num_key_value_heads": 5, "head_dim": 4, "rope_parameters": LLAMA3},
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
        "windows by layer, scaled": {
            **GROUPED,
            "no_rope_layers": [1, 0, 1],
            "use_sliding_window": False,
            "sliding_window": 3,
            "layer_types": ["sliding_attention", "full_attention", "full_attention"],
            "rope_parameters": LLAMA3,
        },
        "no rotation at all": {**SMALL, "num_key_value_heads": 5, "no_rope_layer_interval": 1},
    },
}
CASES = [(family, name) for family, cases in OPTIONS.items() for name in cases]


@dataclass(frozen=True)
class Twins:
    """A model of transformers, its saved folder, and ours with the same weights."""

    reference: nn.Module
    folder: Path
    ours: GPT


def reference_config(family: str, name: str) -> PreTrainedConfig:
    """The configuration of one of CASES."""
    return AutoConfig.for_model(family, **{**SIZES, **OPTIONS[family][name]})


def reference_model(family: str, name: str) -> nn.Module:
    """A random model of transformers in evaluation mode, with eager attention."""
    config = reference_config(family, name)
    torch.manual_seed(len(name))
    model = randomized(AutoModelForCausalLM.from_config(config, attn_implementation="eager"))
    if family in ("gemma2", "gemma3_text"):  # their norms multiply by 1 + weight
        for norm in (each for each in model.modules() if isinstance(each, Gemma2RMSNorm | Gemma3RMSNorm)):
            norm.weight.data -= 1.0
    return model


@cache
@torch.inference_mode(False)  # the first test that asks may run in inference mode, another may want gradients
def family_twins(family: str, name: str) -> Twins:
    """Both models of one of CASES, made once."""
    reference = reference_model(family, name)
    folder = Path(mkdtemp(dir=FOLDER.name))
    reference.save_pretrained(folder)
    return Twins(reference, folder, open_checkpoint(folder).build())
