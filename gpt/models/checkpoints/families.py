"""The model families in transformers as data: the names of weights and options for each `model_type`.

Source: the models in transformers. `tests/parity` compares ours with them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gpt.models.checkpoints.layouts import GPT2_LAYOUTS, GPT2_NAMES, HUGGING_FACE, SEPARATE, Layout

Values = Mapping[str, Any]  # contents of a config.json
GPT2 = "gpt2"


@dataclass(frozen=True)
class Family:
    """A description of all models with the same `model_type`.

    Attributes:
        layout: Names of the weights, without `prefix`. If two roles have the same name, they share the weights.
        prefix: Prefix of these names. It is missing in models saved without their head.
        fixed: Options, under our names, that have the same value in every model of the family.
        options: {our name: name in config.json}. Replaces or extends SIZES.
        defaults: Values that transformers uses for options missing in config.json. None means that null is allowed.
        powers: Our options that are a power of another option: {our name: (other option, exponent)}.
        required: Options that change the computation, each with the only supported value.
        equal: {option: other option that it must equal if config.json contains it}.
        activations: Names of activation functions that have a different meaning in this family.
        window: Name of the option for the attention window. It applies only if `defaults` contains it.
        split: {stored matrix: names of the layout's matrices that are stacked in it}.
        skip_rows: {role: number of rows to skip at the start of its matrix}.
        plain_norms: Whether the norms have neither weights nor biases.
        variants: Changes to these fields that depend on an option: (option, value, fields).
        dropouts: Names of the family's dropouts, besides the one in `options`.
    """

    layout: Layout
    prefix: str
    fixed: Values
    options: Mapping[str, str]
    defaults: Values
    powers: Mapping[str, tuple[str, float]] = field(default_factory=dict)
    required: Values = field(default_factory=dict)
    equal: Mapping[str, str] = field(default_factory=dict)
    activations: Mapping[str, str] = field(default_factory=dict)
    window: str = "sliding_window"
    split: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    skip_rows: Mapping[str, int] = field(default_factory=dict)
    plain_norms: bool = False
    variants: tuple[tuple[str, object, Values], ...] = ()
    dropouts: tuple[str, ...] = ("attention_dropout",)


SIZES = {
    "vocab_size": "vocab_size",
    "block_size": "max_position_embeddings",
    "n_layer": "num_hidden_layers",
    "n_head": "num_attention_heads",
    "n_embd": "hidden_size",
    "n_ff": "intermediate_size",
    "tie_weights": "tie_word_embeddings",
}


def without(items: Mapping[str, str], *keys: str) -> dict[str, str]:
    """Return the items except those with the given keys."""
    return {key: value for key, value in items.items() if key not in keys}


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
    **without(LLAMA_NAMES, "h.{n}.ln_1", "h.{n}.ln_2"),
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

GPT_NEO_NAMES = {
    **without(GPT2_NAMES, "h.{n}.attn.c_attn"),
    "h.{n}.attn.q": "h.{n}.attn.attention.q_proj",
    "h.{n}.attn.k": "h.{n}.attn.attention.k_proj",
    "h.{n}.attn.v": "h.{n}.attn.attention.v_proj",
    "h.{n}.attn.c_proj": "h.{n}.attn.attention.out_proj",
}
GPTJ_NAMES = {
    "wte": "wte",
    "h.{n}.ln_1": "h.{n}.ln_1",
    "h.{n}.attn.q": "h.{n}.attn.q_proj",
    "h.{n}.attn.k": "h.{n}.attn.k_proj",
    "h.{n}.attn.v": "h.{n}.attn.v_proj",
    "h.{n}.attn.c_proj": "h.{n}.attn.out_proj",
    "h.{n}.ln_2": "h.{n}.ln_1",
    "h.{n}.mlp.c_fc": "h.{n}.mlp.fc_in",
    "h.{n}.mlp.c_proj": "h.{n}.mlp.fc_out",
    "ln_f": "ln_f",
    "lm_head": "lm_head",
}
PHI_NAMES = {
    "wte": "embed_tokens",
    "h.{n}.ln_1": "layers.{n}.input_layernorm",
    "h.{n}.attn.q": "layers.{n}.self_attn.q_proj",
    "h.{n}.attn.k": "layers.{n}.self_attn.k_proj",
    "h.{n}.attn.v": "layers.{n}.self_attn.v_proj",
    "h.{n}.attn.c_proj": "layers.{n}.self_attn.dense",
    "h.{n}.ln_2": "layers.{n}.input_layernorm",
    "h.{n}.mlp.c_fc": "layers.{n}.mlp.fc1",
    "h.{n}.mlp.c_proj": "layers.{n}.mlp.fc2",
    "ln_f": "final_layernorm",
    "lm_head": "lm_head",
}
PHI3_NAMES = {
    **without(LLAMA_NAMES, *SEPARATE),
    "h.{n}.attn.c_attn": "layers.{n}.self_attn.qkv_proj",
}
OPT_NAMES = {
    "wte": "decoder.embed_tokens",
    "wpe": "decoder.embed_positions",
    "h.{n}.ln_1": "decoder.layers.{n}.self_attn_layer_norm",
    "h.{n}.attn.q": "decoder.layers.{n}.self_attn.q_proj",
    "h.{n}.attn.k": "decoder.layers.{n}.self_attn.k_proj",
    "h.{n}.attn.v": "decoder.layers.{n}.self_attn.v_proj",
    "h.{n}.attn.c_proj": "decoder.layers.{n}.self_attn.out_proj",
    "h.{n}.ln_2": "decoder.layers.{n}.final_layer_norm",
    "h.{n}.mlp.c_fc": "decoder.layers.{n}.fc1",
    "h.{n}.mlp.c_proj": "decoder.layers.{n}.fc2",
    "ln_f": "decoder.final_layer_norm",
    "lm_head": "lm_head",
}
STARCODER2_NAMES = {
    **without(LLAMA_NAMES, "h.{n}.mlp.c_gate"),
    "h.{n}.mlp.c_fc": "layers.{n}.mlp.c_fc",
    "h.{n}.mlp.c_proj": "layers.{n}.mlp.c_proj",
}

GPT2_OPTIONS = {
    "block_size": "n_positions",
    "n_layer": "n_layer",
    "n_head": "n_head",
    "n_embd": "n_embd",
    "n_ff": "n_inner",
    "norm_eps": "layer_norm_epsilon",
    "activation": "activation_function",
    "dropout": "resid_pdrop",
}
GPT2_DEFAULTS = {
    "vocab_size": 50257,
    "n_positions": 1024,
    "n_embd": 768,
    "n_layer": 12,
    "n_head": 12,
    "n_inner": None,
    "layer_norm_epsilon": 1e-5,
    "activation_function": "gelu_new",
    "resid_pdrop": 0.1,
    "tie_word_embeddings": True,
}
GPT2_DROPOUTS = ("embd_pdrop", "attn_pdrop")
GPT2_REQUIRED = {
    "scale_attn_weights": True,
    "scale_attn_by_inverse_layer_idx": False,
    "add_cross_attention": False,
    "is_encoder_decoder": False,
    "pruned_heads": {},
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
    "max_position_embeddings": 2048,
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
    "max_position_embeddings": 32768,
    "num_key_value_heads": 32,
    "sliding_window": 4096,
    "use_sliding_window": False,
    "max_window_layers": 28,
}
SOFTCAPPING = ("final_logit_softcapping", "attn_logit_softcapping")

FAMILIES = {
    GPT2: Family(
        GPT2_LAYOUTS[HUGGING_FACE],
        prefix="transformer.",
        fixed={},
        options=GPT2_OPTIONS,
        defaults=GPT2_DEFAULTS,
        required=GPT2_REQUIRED,
        dropouts=GPT2_DROPOUTS,
    ),
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
            "max_position_embeddings": 2048,
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
        defaults={
            **LLAMA_DEFAULTS,
            "max_position_embeddings": 131072,
            "num_key_value_heads": 8,
            "sliding_window": 4096,
        },
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
            "max_position_embeddings": 131072,
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
    "gpt_neo": Family(
        Layout("GPT-Neo", GPT_NEO_NAMES),
        prefix="transformer.",
        fixed={"attn_scale": 1.0, "qkv_bias": False},
        options={
            "n_layer": "num_layers",
            "n_head": "num_heads",
            "norm_eps": "layer_norm_epsilon",
            "activation": "activation_function",
            "dropout": "resid_dropout",
        },
        defaults={
            "max_position_embeddings": 2048,
            "intermediate_size": None,
            "layer_norm_epsilon": 1e-5,
            "activation_function": "gelu_new",
            "resid_dropout": 0.0,
            "tie_word_embeddings": True,
            "attention_types": [[["global", "local"], 12]],
            "window_size": 256,
        },
        window="window_size",
        dropouts=("embed_dropout", "attention_dropout"),
    ),
    "phi": Family(
        Layout("Phi", PHI_NAMES),
        prefix="model.",
        fixed={"position": "rotary", "parallel": True, "head_bias": True},
        options={
            "n_kv_head": "num_key_value_heads",
            "head_dim": "head_dim",
            "norm_eps": "layer_norm_eps",
            "activation": "hidden_act",
            "dropout": "resid_pdrop",
            "rotary_base": "rope_theta",
            "rotary_share": "partial_rotary_factor",
        },
        defaults={
            "max_position_embeddings": 2048,
            "num_key_value_heads": None,
            "head_dim": None,
            "layer_norm_eps": 1e-5,
            "hidden_act": "gelu_new",
            "resid_pdrop": 0.0,
            "rope_theta": 10000.0,
            "partial_rotary_factor": 0.5,
            "tie_word_embeddings": False,
        },
        required={"qk_layernorm": False},
        dropouts=("embd_pdrop", "attention_dropout"),
    ),
    "phi3": Family(
        Layout("Phi-3", PHI3_NAMES),
        prefix="model.",
        fixed=LLAMA_FIXED,
        options={**LLAMA_OPTIONS, "dropout": "resid_pdrop", "rotary_share": "partial_rotary_factor"},
        defaults={
            **LLAMA_DEFAULTS,
            "max_position_embeddings": 4096,
            "rms_norm_eps": 1e-5,
            "resid_pdrop": 0.0,
            "partial_rotary_factor": 1.0,
            "sliding_window": None,
        },
        required={"layer_types": None},
        split={"mlp.gate_up_proj": ("mlp.gate_proj", "mlp.up_proj")},
        dropouts=("embd_pdrop", "attention_dropout"),
    ),
    "opt": Family(
        Layout("OPT", OPT_NAMES),
        prefix="model.",
        fixed={},
        options={
            **dict.fromkeys(("qkv_bias", "proj_bias", "mlp_bias"), "enable_bias"),
            "n_ff": "ffn_dim",
            "activation": "activation_function",
            "dropout": "dropout",
        },
        defaults={
            "max_position_embeddings": 2048,
            "enable_bias": True,
            "activation_function": "relu",
            "dropout": 0.1,
            "tie_word_embeddings": True,
        },
        required={"do_layer_norm_before": True, "_remove_final_layer_norm": False},
        equal={"word_embed_proj_dim": "hidden_size"},
        skip_rows={"wpe": 2},
        variants=(("layer_norm_elementwise_affine", False, {"plain_norms": True}),),
    ),
    "stablelm": Family(
        Layout("StableLM", LLAMA_NAMES),
        prefix="model.",
        fixed={"position": "rotary", "gated": True, "proj_bias": False, "mlp_bias": False},
        options={
            "n_kv_head": "num_key_value_heads",
            "qkv_bias": "use_qkv_bias",
            "norm_eps": "layer_norm_eps",
            "activation": "hidden_act",
            "dropout": "hidden_dropout",
            "parallel": "use_parallel_residual",
            "rotary_base": "rope_theta",
            "rotary_share": "partial_rotary_factor",
        },
        defaults={
            "max_position_embeddings": 4096,
            "num_key_value_heads": 32,
            "use_qkv_bias": False,
            "layer_norm_eps": 1e-5,
            "hidden_act": "silu",
            "hidden_dropout": 0.0,
            "use_parallel_residual": False,
            "rope_theta": 10000.0,
            "partial_rotary_factor": 0.25,
            "tie_word_embeddings": False,
        },
        required={"qk_layernorm": False},
        variants=(
            (
                "use_parallel_residual",
                True,
                {"layout": Layout("StableLM", {**LLAMA_NAMES, "h.{n}.ln_2": LLAMA_NAMES["h.{n}.ln_1"]})},
            ),
        ),
    ),
    "gemma": Family(
        Layout("Gemma", LLAMA_NAMES, norm_offset=1.0),
        prefix="model.",
        fixed=LLAMA_FIXED,
        options={**LLAMA_OPTIONS, **ATTENTION_BIAS},
        powers={"embedding_scale": ("hidden_size", 0.5)},
        defaults={
            **LLAMA_DEFAULTS,
            "max_position_embeddings": 8192,
            "num_key_value_heads": 16,
            "head_dim": 256,
            "hidden_act": "gelu_pytorch_tanh",
            "attention_bias": False,
            "tie_word_embeddings": True,
        },
        required={"use_bidirectional_attention": False},
        activations={"gelu": "gelu_tanh"},  # the first releases used this name
    ),
    "olmo": Family(
        Layout("OLMo", LLAMA_NAMES),
        prefix="model.",
        fixed={"position": "rotary", "gated": True, "bias": False},
        options={**without(LLAMA_OPTIONS, "norm_eps"), **ATTENTION_BIAS},
        defaults={**LLAMA_DEFAULTS, "attention_bias": False},
        required={"clip_qkv": None},
        plain_norms=True,
    ),
    "starcoder2": Family(
        Layout("StarCoder2", STARCODER2_NAMES),
        prefix="model.",
        fixed={"position": "rotary"},
        options={
            **LLAMA_OPTIONS,
            **dict.fromkeys(("qkv_bias", "proj_bias", "mlp_bias"), "use_bias"),
            "norm_eps": "norm_epsilon",
            "dropout": "residual_dropout",
        },
        defaults={
            **LLAMA_DEFAULTS,
            "max_position_embeddings": 4096,
            "num_key_value_heads": 2,
            "norm_epsilon": 1e-5,
            "hidden_act": "gelu_pytorch_tanh",
            "residual_dropout": 0.0,
            "use_bias": True,
            "sliding_window": None,
            "tie_word_embeddings": True,
        },
        required={"layer_types": None},
        dropouts=("embedding_dropout", "attention_dropout"),
    ),
    "gpt_bigcode": Family(
        Layout("GPT BigCode", GPT2_NAMES),
        prefix="transformer.",
        fixed={"n_kv_head": 1},
        options=GPT2_OPTIONS,
        defaults={**GPT2_DEFAULTS, "activation_function": "gelu_pytorch_tanh", "multi_query": True},
        required={name: GPT2_REQUIRED[name] for name in ("scale_attn_weights", "add_cross_attention")},
        variants=(
            ("multi_query", False, {"layout": Layout("GPT BigCode", GPT2_NAMES, qkv_order="heads"), "fixed": {}}),
        ),
        dropouts=GPT2_DROPOUTS,
    ),
    "gptj": Family(
        Layout("GPT-J", GPTJ_NAMES, rotary_pairs="interleaved"),
        prefix="transformer.",
        fixed={
            "position": "rotary",
            "parallel": True,
            "qkv_bias": False,
            "proj_bias": False,
            "head_bias": True,
        },
        options={**GPT2_OPTIONS, "rotary_size": "rotary_dim"},
        defaults={
            "n_positions": 2048,
            "n_inner": None,
            "layer_norm_epsilon": 1e-5,
            "activation_function": "gelu_new",
            "resid_pdrop": 0.0,
            "rotary_dim": 64,
            "tie_word_embeddings": False,
        },
        dropouts=GPT2_DROPOUTS,
    ),
    "gemma2": Family(
        Layout(
            "Gemma 2",
            without(GEMMA3_NAMES, *QK_NORM_NAMES),
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
            "max_position_embeddings": 8192,
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
            "max_position_embeddings": 32768,
            "num_key_value_heads": 4,
            "rope_theta": 2_000_000.0,
            "no_rope_layer_interval": 4,
            "sliding_window": None,
            "use_sliding_window": False,
            "attention_bias": False,
            "mlp_bias": False,
            "tie_word_embeddings": True,
        },
    ),
}

# Unsupported model types, grouped by the reason, which is the last part of the message's key.
REASONS: dict[str, tuple[str, ...]] = {
    "alibi": ("bloom", "mpt"),
    "experts": (
        "dbrx",
        "deepseek",
        "deepseek_v2",
        "deepseek_v3",
        "glm4_moe",
        "granitemoe",
        "llama4",
        "llama4_text",
        "mixtral",
        "olmoe",
        "phimoe",
        "qwen2_moe",
        "qwen3_moe",
    ),
    "linear_attention": ("kimi_linear", "minimax", "qwen3_next", "qwen3_5", "qwen3_5_text", "qwen3_5_moe"),
    "recurrent": ("falcon_mamba", "jamba", "mamba", "mamba2", "recurrent_gemma", "rwkv", "rwkv5", "rwkv6", "xlstm"),
    "sinks": ("gpt_oss",),
    "encoder_decoder": ("bart", "marian", "mbart", "mt5", "pegasus", "t5", "umt5", "whisper"),
    "encoder": ("albert", "bert", "deberta", "deberta-v2", "distilbert", "electra", "modernbert", "roberta"),
}
EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts")  # names of the option for the number of experts
