"""The model families in transformers as data: the names of weights and options for each `model_type`.

Each row states how a family differs from Llama or GPT-2; see `Layout`. Source: the models in transformers.
`tests/parity` compares ours with them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gpt.models.checkpoints.layouts import GATE, GPT2_LAYOUTS, HUGGING_FACE, SEPARATE, STATED, Layout

GPT2 = "gpt2"
ABSENT = object()
ATTENTION_BIAS = dict.fromkeys(("qkv_bias", "proj_bias"), ("attention_bias", False))
QK_NORMS = {f"h.{{n}}.attn.{each}_norm": f"layers.{{n}}.self_attn.{each}_norm" for each in "qk"}
NORMS_AFTER = {
    "h.{n}.ln_1_post": "layers.{n}.post_attention_layernorm",
    "h.{n}.ln_2_post": "layers.{n}.post_feedforward_layernorm",
}
ALL_BIASES = ("qkv_bias", "proj_bias", "mlp_bias")


def like(base: Layout, title: str, usual: Mapping[str, Any] | None = None, **changes: Any) -> Layout:
    """Return a family that differs from another in these fields. Dictionaries add items, and ABSENT removes one.

    title: By default, transformers' class has this name without spaces and hyphens.
    usual: Our options whose names in config.json are the same, but whose values if missing are others.
    """
    changes.setdefault("model_class", f"{re.sub('[ -]', '', title)}ForCausalLM")
    for name, value in changes.items():
        if isinstance(before := getattr(base, name), Mapping):
            changes[name] = {key: each for key, each in {**before, **value}.items() if each is not ABSENT}
    family = replace(base, title=title, **changes)
    renewed = {ours: (family.stated[ours][0], value) for ours, value in (usual or {}).items()}
    return replace(family, stated={**family.stated, **renewed})


_GPT2 = replace(
    GPT2_LAYOUTS[HUGGING_FACE],
    model_class="GPT2LMHeadModel",
    prefix="transformer.",
    stated={
        "vocab_size": ("vocab_size", 50257),
        "block_size": ("n_positions", 1024),
        "n_layer": ("n_layer", 12),
        "n_head": ("n_head", 12),
        "n_embd": ("n_embd", 768),
        "n_ff": ("n_inner", None),
        "tie_weights": ("tie_word_embeddings", True),
        "norm_eps": ("layer_norm_epsilon", 1e-5),
        "activation": ("activation_function", "gelu_new"),
        "dropout": ("resid_pdrop", 0.1),
    },
    required={"scale_attn_weights": True, "scale_attn_by_inverse_layer_idx": False},
)
_SIZES = {
    "vocab_size": ("vocab_size", STATED),
    "block_size": ("max_position_embeddings", 2048),
    "n_layer": ("num_hidden_layers", STATED),
    "n_head": ("num_attention_heads", STATED),
    "n_embd": ("hidden_size", STATED),
    "n_ff": ("intermediate_size", STATED),
    "tie_weights": ("tie_word_embeddings", False),
}
# What Llama and those that follow it have in common.
_ROTARY = Layout(
    "Llama",
    {
        "wte": "embed_tokens",
        "h.{n}.ln_1": "layers.{n}.input_layernorm",
        **{f"h.{{n}}.attn.{each}": f"layers.{{n}}.self_attn.{each}_proj" for each in "qkv"},
        "h.{n}.attn.c_proj": "layers.{n}.self_attn.o_proj",
        "h.{n}.ln_2": "layers.{n}.post_attention_layernorm",
        GATE: "layers.{n}.mlp.gate_proj",
        "h.{n}.mlp.c_fc": "layers.{n}.mlp.up_proj",
        "h.{n}.mlp.c_proj": "layers.{n}.mlp.down_proj",
        "ln_f": "norm",
        "lm_head": "lm_head",
    },
    prefix="model.",
    options={"position": "rotary", "norm": "rms", "gated": True, "bias": False},
    stated={
        **_SIZES,
        "n_kv_head": ("num_key_value_heads", None),
        "head_dim": ("head_dim", None),
        "norm_eps": ("rms_norm_eps", 1e-6),
        "activation": ("hidden_act", "silu"),
        "rotary_base": ("rope_theta", 10000.0),
    },
)
_LLAMA = like(_ROTARY, "Llama", stated={**ATTENTION_BIAS, "mlp_bias": ("mlp_bias", False)})
_QWEN2 = like(
    _ROTARY,
    "Qwen2",
    usual={"block_size": 32768, "n_kv_head": 32},
    options={"qkv_bias": True},
    others={"sliding_window": 4096, "use_sliding_window": False, "max_window_layers": 28},
)
_GEMMA = like(
    _ROTARY,
    "Gemma",
    usual={
        "block_size": 8192,
        "n_kv_head": 16,
        "head_dim": 256,
        "activation": "gelu_pytorch_tanh",
        "tie_weights": True,
    },
    norm_offset=1.0,
    stated=ATTENTION_BIAS,
    powers={"embedding_scale": ("hidden_size", 0.5)},
    required={"use_bidirectional_attention": False},
    activations={"gelu": "gelu_tanh"},  # the first releases used this name
)
_GEMMA2 = like(
    _GEMMA,
    "Gemma 2",
    usual={"n_kv_head": 4},
    names={**NORMS_AFTER, "h.{n}.ln_2": "layers.{n}.pre_feedforward_layernorm"},
    options={"post_norm": True},
    stated={
        "activation": ("hidden_activation", "gelu_pytorch_tanh"),
        "attn_softcap": ("attn_logit_softcapping", 50.0),
        "logit_softcap": ("final_logit_softcapping", 30.0),
    },
    powers={"attn_scale": ("query_pre_attn_scalar", -0.5)},
    others={"query_pre_attn_scalar": 256, "sliding_window": 4096, "sliding_window_pattern": 2},
    activations={"gelu": ABSENT},
)

FAMILIES = {
    GPT2: _GPT2,
    "gpt_neox": Layout(
        "GPT-NeoX",
        {
            "wte": "embed_in",
            "h.{n}.ln_1": "layers.{n}.input_layernorm",
            "h.{n}.attn.c_attn": "layers.{n}.attention.query_key_value",
            "h.{n}.attn.c_proj": "layers.{n}.attention.dense",
            "h.{n}.ln_2": "layers.{n}.post_attention_layernorm",
            "h.{n}.mlp.c_fc": "layers.{n}.mlp.dense_h_to_4h",
            "h.{n}.mlp.c_proj": "layers.{n}.mlp.dense_4h_to_h",
            "ln_f": "final_layer_norm",
            "lm_head": "embed_out",
        },
        model_class="GPTNeoXForCausalLM",
        qkv_order="heads",
        prefix="gpt_neox.",
        options={"position": "rotary"},
        stated={
            **_SIZES,
            **dict.fromkeys(("qkv_bias", "proj_bias"), ("attention_bias", True)),
            "norm_eps": ("layer_norm_eps", 1e-5),
            "activation": ("hidden_act", "gelu"),
            "dropout": ("hidden_dropout", 0.0),
            "parallel": ("use_parallel_residual", True),
            "rotary_base": ("rotary_emb_base", 10000.0),
            "rotary_share": ("rotary_pct", 0.25),
        },
    ),
    "llama": _LLAMA,
    "mistral": like(
        _ROTARY,
        "Mistral",
        usual={"block_size": 131072, "n_kv_head": 8},
        others={"sliding_window": 4096},
        required={"layer_types": None},
    ),
    "qwen2": _QWEN2,
    "qwen3": like(
        _QWEN2,
        "Qwen3",
        usual={"head_dim": 128},
        names=QK_NORMS,
        options={"qkv_bias": ABSENT, "qk_norm": True},
        stated=ATTENTION_BIAS,
    ),
    "gemma3_text": like(
        _GEMMA2,
        "Gemma 3",
        usual={"block_size": 131072, "rotary_base": 1_000_000.0},
        names=QK_NORMS,
        options={"qk_norm": True},
        stated={
            "attn_softcap": ABSENT,
            "logit_softcap": ABSENT,
            "window_rotary_base": ("rope_local_base_freq", 10000.0),
        },
        others={"sliding_window_pattern": 6},
        required=dict.fromkeys(("final_logit_softcapping", "attn_logit_softcapping")),
    ),
    "gpt_neo": like(
        _GPT2,
        "GPT-Neo",
        names={
            "h.{n}.attn.c_attn": ABSENT,
            **{f"h.{{n}}.attn.{each}": f"h.{{n}}.attn.attention.{each}_proj" for each in "qkv"},
            "h.{n}.attn.c_proj": "h.{n}.attn.attention.out_proj",
        },
        transposed=(),
        options={"attn_scale": 1.0, "qkv_bias": False},
        stated={
            **_SIZES,
            "n_layer": ("num_layers", STATED),
            "n_head": ("num_heads", STATED),
            "n_ff": ("intermediate_size", None),
            "tie_weights": ("tie_word_embeddings", True),
            "dropout": ("resid_dropout", 0.0),
        },
        others={"attention_types": [[["global", "local"], 12]], "window_size": 256},
        required=dict.fromkeys(_GPT2.required, ABSENT),
        window="window_size",
    ),
    # Phi and StarCoder2 have LayerNorm and biases, and no gate.
    "phi": like(
        _ROTARY,
        "Phi",
        usual={"activation": "gelu_new"},
        names={
            GATE: ABSENT,
            "h.{n}.attn.c_proj": "layers.{n}.self_attn.dense",
            "h.{n}.ln_2": "layers.{n}.input_layernorm",
            "h.{n}.mlp.c_fc": "layers.{n}.mlp.fc1",
            "h.{n}.mlp.c_proj": "layers.{n}.mlp.fc2",
            "ln_f": "final_layernorm",
        },
        options={"norm": ABSENT, "gated": ABSENT, "bias": ABSENT, "parallel": True, "head_bias": True},
        stated={
            "norm_eps": ("layer_norm_eps", 1e-5),
            "dropout": ("resid_pdrop", 0.0),
            "rotary_share": ("partial_rotary_factor", 0.5),
        },
        required={"qk_layernorm": False},
    ),
    "phi3": like(
        _ROTARY,
        "Phi-3",
        usual={"block_size": 4096, "norm_eps": 1e-5},
        names={**dict.fromkeys(SEPARATE, ABSENT), "h.{n}.attn.c_attn": "layers.{n}.self_attn.qkv_proj"},
        stated={"dropout": ("resid_pdrop", 0.0), "rotary_share": ("partial_rotary_factor", 1.0)},
        others={"sliding_window": None},
        required={"layer_types": None},
        split={"mlp.gate_up_proj": ("mlp.gate_proj", "mlp.up_proj")},
    ),
    "opt": Layout(
        "OPT",
        {
            "wte": "decoder.embed_tokens",
            "wpe": "decoder.embed_positions",
            "h.{n}.ln_1": "decoder.layers.{n}.self_attn_layer_norm",
            **{f"h.{{n}}.attn.{each}": f"decoder.layers.{{n}}.self_attn.{each}_proj" for each in "qkv"},
            "h.{n}.attn.c_proj": "decoder.layers.{n}.self_attn.out_proj",
            "h.{n}.ln_2": "decoder.layers.{n}.final_layer_norm",
            "h.{n}.mlp.c_fc": "decoder.layers.{n}.fc1",
            "h.{n}.mlp.c_proj": "decoder.layers.{n}.fc2",
            "ln_f": "decoder.final_layer_norm",
            "lm_head": "lm_head",
        },
        model_class="OPTForCausalLM",
        prefix="model.",
        stated={
            **_SIZES,
            **dict.fromkeys(ALL_BIASES, ("enable_bias", True)),
            "n_ff": ("ffn_dim", STATED),
            "tie_weights": ("tie_word_embeddings", True),
            "activation": ("activation_function", "relu"),
            "dropout": ("dropout", 0.1),
        },
        required={"do_layer_norm_before": True, "layer_norm_elementwise_affine": True},
        skip_rows={"wpe": 2},
    ),
    "stablelm": like(
        _ROTARY,
        "StableLM",
        model_class="StableLmForCausalLM",
        usual={"block_size": 4096, "n_kv_head": 32},
        options={"norm": ABSENT, "bias": ABSENT, "proj_bias": False, "mlp_bias": False},
        stated={
            "head_dim": ABSENT,
            "qkv_bias": ("use_qkv_bias", False),
            "norm_eps": ("layer_norm_eps", 1e-5),
            "dropout": ("hidden_dropout", 0.0),
            "rotary_share": ("partial_rotary_factor", 0.25),
        },
        required={"qk_layernorm": False, "use_parallel_residual": False},
    ),
    "gemma": _GEMMA,
    "olmo": like(
        _ROTARY,
        "OLMo",
        model_class="OlmoForCausalLM",
        options={"norm": ABSENT},
        stated={"norm_eps": ABSENT, **ATTENTION_BIAS},
        required={"clip_qkv": None},
        plain_norms=True,
    ),
    "starcoder2": like(
        _ROTARY,
        "StarCoder2",
        model_class="Starcoder2ForCausalLM",
        usual={"block_size": 4096, "n_kv_head": 2, "activation": "gelu_pytorch_tanh", "tie_weights": True},
        names={GATE: ABSENT, **{f"h.{{n}}.mlp.{each}": f"layers.{{n}}.mlp.{each}" for each in ("c_fc", "c_proj")}},
        options={"norm": ABSENT, "gated": ABSENT, "bias": ABSENT},
        stated={
            **dict.fromkeys(ALL_BIASES, ("use_bias", True)),
            "norm_eps": ("norm_epsilon", 1e-5),
            "dropout": ("residual_dropout", 0.0),
        },
        others={"sliding_window": None},
        required={"layer_types": None},
    ),
    "gpt_bigcode": like(
        _GPT2,
        "GPT BigCode",
        usual={"activation": "gelu_pytorch_tanh"},
        transposed=(),
        options={"n_kv_head": 1},
        required={"multi_query": True},
    ),
    "gptj": like(
        _GPT2,
        "GPT-J",
        usual={
            **dict.fromkeys(("vocab_size", "n_layer", "n_head", "n_embd"), STATED),
            "block_size": 2048,
            "dropout": 0.0,
            "tie_weights": False,
        },
        names={
            **{"wpe": ABSENT, "h.{n}.attn.c_attn": ABSENT},
            **{f"h.{{n}}.attn.{each}": f"h.{{n}}.attn.{each}_proj" for each in "qkv"},
            "h.{n}.attn.c_proj": "h.{n}.attn.out_proj",
            "h.{n}.ln_2": "h.{n}.ln_1",
            "h.{n}.mlp.c_fc": "h.{n}.mlp.fc_in",
            "h.{n}.mlp.c_proj": "h.{n}.mlp.fc_out",
        },
        stated={"rotary_size": ("rotary_dim", 64)},
        transposed=(),
        rotary_pairs="interleaved",
        options={"position": "rotary", "parallel": True, "qkv_bias": False, "proj_bias": False, "head_bias": True},
        required=dict.fromkeys(_GPT2.required, ABSENT),
    ),
    "gemma2": _GEMMA2,
    "nanochat": like(
        _ROTARY,
        "nanochat",
        model_class="NanoChatForCausalLM",
        usual={"activation": "relu2"},
        names={
            GATE: ABSENT,
            **QK_NORMS,
            "h.{n}.mlp.c_fc": "layers.{n}.mlp.fc1",
            "h.{n}.mlp.c_proj": "layers.{n}.mlp.fc2",
        },
        rotary_pairs="backwards",
        options={"gated": ABSENT, "qk_norm": True},
        stated={**ATTENTION_BIAS, "logit_softcap": ("final_logit_softcapping", 15.0)},
        plain_norms=True,
        normed_embedding=True,
    ),
    "olmo2": like(
        _ROTARY,
        "OLMo 2",
        model_class="Olmo2ForCausalLM",
        usual={"norm_eps": 1e-5},
        names={"h.{n}.ln_1": ABSENT, "h.{n}.ln_2": ABSENT, **QK_NORMS, **NORMS_AFTER},
        options={"qk_norm": "full", "pre_norm": False, "post_norm": True},
        stated=ATTENTION_BIAS,
    ),
    "smollm3": like(
        _LLAMA,
        "SmolLM3",
        usual={"block_size": 32768, "n_kv_head": 4, "rotary_base": 2_000_000.0, "tie_weights": True},
        others={"no_rope_layer_interval": 4, "sliding_window": None, "use_sliding_window": False},
    ),
}
