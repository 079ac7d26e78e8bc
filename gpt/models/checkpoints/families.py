"""Families of models that transformers writes, as data: for each `model_type` the names of its weights and its options.

Source: the models of transformers; `tests/parity` compares with them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gpt.models.checkpoints.layouts import Layout

Values = Mapping[str, Any]  # of a config.json


@dataclass(frozen=True)
class Family:
    """What a `model_type` means.

    layout: the names of the weights, without `prefix`, which those of a model without a head lack.
    fixed: our options that are the same in every model of the family.
    options: names of theirs by ours, beside those of SIZES. powers: of ours, the name of one of theirs and an exponent.
    defaults: what transformers takes where config.json does not say.
    required: options that change the mathematics, with the only value that is implemented.
    """

    layout: Layout
    prefix: str
    fixed: Values
    options: Mapping[str, str]
    defaults: Values
    powers: Mapping[str, tuple[str, float]] = field(default_factory=dict)
    required: Values = field(default_factory=dict)


SIZES = {
    "vocab_size": "vocab_size",
    "block_size": "max_position_embeddings",
    "n_layer": "num_hidden_layers",
    "n_head": "num_attention_heads",
    "n_embd": "hidden_size",
    "n_ff": "intermediate_size",
    "tie_weights": "tie_word_embeddings",
}

LLAMA_NAMES = {
    "wte": "embed_tokens",
    "h.{n}.ln_1": "layers.{n}.input_layernorm",
    "h.{n}.attn.q": "layers.{n}.self_attn.q_proj",
    "h.{n}.attn.k": "layers.{n}.self_attn.k_proj",
    "h.{n}.attn.v": "layers.{n}.self_attn.v_proj",
    "h.{n}.attn.c_proj": "layers.{n}.self_attn.o_proj",
    "h.{n}.ln_2": "layers.{n}.post_attention_layernorm",
    "h.{n}.mlp.c_gate": "layers.{n}.mlp.gate_proj",
    "h.{n}.mlp.c_fc": "layers.{n}.mlp.up_proj",
    "h.{n}.mlp.c_proj": "layers.{n}.mlp.down_proj",
    "ln_f": "norm",
    "lm_head": "lm_head",
}
QK_NORM_NAMES = {
    "h.{n}.attn.q_norm": "layers.{n}.self_attn.q_norm",
    "h.{n}.attn.k_norm": "layers.{n}.self_attn.k_norm",
}
GEMMA3_NAMES = {
    **LLAMA_NAMES,
    **QK_NORM_NAMES,
    "h.{n}.ln_1_post": "layers.{n}.post_attention_layernorm",
    "h.{n}.ln_2": "layers.{n}.pre_feedforward_layernorm",
    "h.{n}.ln_2_post": "layers.{n}.post_feedforward_layernorm",
}
OLMO2_NAMES = {
    **{ours: theirs for ours, theirs in LLAMA_NAMES.items() if ours not in ("h.{n}.ln_1", "h.{n}.ln_2")},
    **QK_NORM_NAMES,
    "h.{n}.ln_1_post": "layers.{n}.post_attention_layernorm",
    "h.{n}.ln_2_post": "layers.{n}.post_feedforward_layernorm",
}
GPT_NEOX_NAMES = {
    "wte": "embed_in",
    "h.{n}.ln_1": "layers.{n}.input_layernorm",
    "h.{n}.attn.c_attn": "layers.{n}.attention.query_key_value",
    "h.{n}.attn.c_proj": "layers.{n}.attention.dense",
    "h.{n}.ln_2": "layers.{n}.post_attention_layernorm",
    "h.{n}.mlp.c_fc": "layers.{n}.mlp.dense_h_to_4h",
    "h.{n}.mlp.c_proj": "layers.{n}.mlp.dense_4h_to_h",
    "ln_f": "final_layer_norm",
    "lm_head": "embed_out",
}

LLAMA_FIXED = {"position": "rotary", "norm": "rms", "gated": True, "bias": False}
LLAMA_OPTIONS = {
    "n_kv_head": "num_key_value_heads",
    "head_dim": "head_dim",
    "norm_eps": "rms_norm_eps",
    "activation": "hidden_act",
    "rotary_base": "rope_theta",
}
LLAMA_DEFAULTS = {
    "num_key_value_heads": None,
    "head_dim": None,
    "rms_norm_eps": 1e-6,
    "hidden_act": "silu",
    "rope_theta": 10000.0,
    "tie_word_embeddings": False,
}
ATTENTION_BIAS = {"qkv_bias": "attention_bias", "proj_bias": "attention_bias"}
QWEN_DEFAULTS = {
    **LLAMA_DEFAULTS,
    "num_key_value_heads": 32,
    "sliding_window": 4096,
    "use_sliding_window": False,
    "max_window_layers": 28,
}
SOFTCAPPING = ("final_logit_softcapping", "attn_logit_softcapping")

FAMILIES = {
    "gpt_neox": Family(
        Layout("GPT-NeoX", GPT_NEOX_NAMES, qkv_order="heads"),
        prefix="gpt_neox.",
        fixed={"position": "rotary"},
        options={
            **ATTENTION_BIAS,
            "norm_eps": "layer_norm_eps",
            "activation": "hidden_act",
            "dropout": "hidden_dropout",
            "parallel": "use_parallel_residual",
            "rotary_base": "rotary_emb_base",
            "rotary_share": "rotary_pct",
        },
        defaults={
            "attention_bias": True,
            "layer_norm_eps": 1e-5,
            "hidden_act": "gelu",
            "hidden_dropout": 0.0,
            "use_parallel_residual": True,
            "rotary_emb_base": 10000.0,
            "rotary_pct": 0.25,
            "tie_word_embeddings": False,
        },
    ),
    "llama": Family(
        Layout("Llama", LLAMA_NAMES),
        prefix="model.",
        fixed=LLAMA_FIXED,
        options={**LLAMA_OPTIONS, **ATTENTION_BIAS, "mlp_bias": "mlp_bias"},
        defaults={**LLAMA_DEFAULTS, "attention_bias": False, "mlp_bias": False},
    ),
    "mistral": Family(
        Layout("Mistral", LLAMA_NAMES),
        prefix="model.",
        fixed=LLAMA_FIXED,
        options=LLAMA_OPTIONS,
        defaults={**LLAMA_DEFAULTS, "num_key_value_heads": 8, "sliding_window": 4096},
        required={"layer_types": None},
    ),
    "qwen2": Family(
        Layout("Qwen2", LLAMA_NAMES),
        prefix="model.",
        fixed={**LLAMA_FIXED, "qkv_bias": True},
        options=LLAMA_OPTIONS,
        defaults=QWEN_DEFAULTS,
    ),
    "qwen3": Family(
        Layout("Qwen3", {**LLAMA_NAMES, **QK_NORM_NAMES}),
        prefix="model.",
        fixed={**LLAMA_FIXED, "qk_norm": True},
        options={**LLAMA_OPTIONS, **ATTENTION_BIAS},
        defaults={**QWEN_DEFAULTS, "head_dim": 128, "attention_bias": False},
    ),
    "gemma3_text": Family(
        Layout("Gemma 3", GEMMA3_NAMES, norm_offset=1.0),
        prefix="model.",
        fixed={**LLAMA_FIXED, "qk_norm": True, "post_norm": True},
        options={
            **LLAMA_OPTIONS,
            **ATTENTION_BIAS,
            "activation": "hidden_activation",
            "window_rotary_base": "rope_local_base_freq",
        },
        powers={"attn_scale": ("query_pre_attn_scalar", -0.5), "embedding_scale": ("hidden_size", 0.5)},
        defaults={
            **LLAMA_DEFAULTS,
            "num_key_value_heads": 4,
            "head_dim": 256,
            "hidden_activation": "gelu_pytorch_tanh",
            "rope_theta": 1_000_000.0,
            "rope_local_base_freq": 10000.0,
            "query_pre_attn_scalar": 256,
            "sliding_window": 4096,
            "sliding_window_pattern": 6,
            "attention_bias": False,
            "tie_word_embeddings": True,
        },
        required={**dict.fromkeys(SOFTCAPPING), "use_bidirectional_attention": False},
    ),
    "gemma2": Family(
        Layout(
            "Gemma 2",
            {ours: theirs for ours, theirs in GEMMA3_NAMES.items() if ours not in QK_NORM_NAMES},
            norm_offset=1.0,
        ),
        prefix="model.",
        fixed={**LLAMA_FIXED, "post_norm": True},
        options={
            **LLAMA_OPTIONS,
            **ATTENTION_BIAS,
            "activation": "hidden_activation",
            "attn_softcap": "attn_logit_softcapping",
            "logit_softcap": "final_logit_softcapping",
        },
        powers={"attn_scale": ("query_pre_attn_scalar", -0.5), "embedding_scale": ("hidden_size", 0.5)},
        defaults={
            **LLAMA_DEFAULTS,
            "num_key_value_heads": 4,
            "head_dim": 256,
            "hidden_activation": "gelu_pytorch_tanh",
            "query_pre_attn_scalar": 256,
            "attn_logit_softcapping": 50.0,
            "final_logit_softcapping": 30.0,
            "sliding_window": 4096,
            "sliding_window_pattern": 2,
            "attention_bias": False,
            "tie_word_embeddings": True,
        },
        required={"use_bidirectional_attention": False},
    ),
    "olmo2": Family(
        Layout("OLMo 2", OLMO2_NAMES),
        prefix="model.",
        fixed={**LLAMA_FIXED, "qk_norm": "full", "pre_norm": False, "post_norm": True},
        options={**LLAMA_OPTIONS, **ATTENTION_BIAS},
        defaults={**LLAMA_DEFAULTS, "rms_norm_eps": 1e-5, "attention_bias": False},
    ),
    "smollm3": Family(
        Layout("SmolLM3", LLAMA_NAMES),
        prefix="model.",
        fixed=LLAMA_FIXED,
        options={**LLAMA_OPTIONS, **ATTENTION_BIAS, "mlp_bias": "mlp_bias"},
        defaults={
            **LLAMA_DEFAULTS,
            "num_key_value_heads": 4,
            "rope_theta": 2_000_000.0,
            "no_rope_layer_interval": 4,
            "use_sliding_window": False,
            "attention_bias": False,
            "mlp_bias": False,
            "tie_word_embeddings": True,
        },
    ),
}
