"""The model families in transformers as data: the names of weights and options for each `model_type`.

Source: the models in transformers. `tests/parity` compares ours with them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gpt.models.checkpoints.layouts import GATE, GPT2_LAYOUTS, HUGGING_FACE, SEPARATE, Layout

GPT2 = "gpt2"
ABSENT = object()
SIZES = {
    "vocab_size": "vocab_size",
    "block_size": "max_position_embeddings",
    "n_layer": "num_hidden_layers",
    "n_head": "num_attention_heads",
    "n_embd": "hidden_size",
    "n_ff": "intermediate_size",
    "tie_weights": "tie_word_embeddings",
}
ATTENTION_BIAS = {"qkv_bias": "attention_bias", "proj_bias": "attention_bias"}
QK_NORMS = {f"h.{{n}}.attn.{each}_norm": f"layers.{{n}}.self_attn.{each}_norm" for each in "qk"}
NORMS_AFTER = {
    "h.{n}.ln_1_post": "layers.{n}.post_attention_layernorm",
    "h.{n}.ln_2_post": "layers.{n}.post_feedforward_layernorm",
}
ALL_BIASES = ("qkv_bias", "proj_bias", "mlp_bias")


def like(base: Layout, title: str, model_class: str, **changes: Any) -> Layout:
    """Return a family that differs from another in these fields. Dictionaries add items, and ABSENT removes one."""
    for name, value in changes.items():
        if isinstance(before := getattr(base, name), Mapping):
            changes[name] = {key: each for key, each in {**before, **value}.items() if each is not ABSENT}
    return replace(base, title=title, model_class=model_class, **changes)


_GPT2 = replace(
    GPT2_LAYOUTS[HUGGING_FACE],
    model_class="GPT2LMHeadModel",
    prefix="transformer.",
    stated={
        "block_size": "n_positions",
        "n_layer": "n_layer",
        "n_head": "n_head",
        "n_embd": "n_embd",
        "n_ff": "n_inner",
        "norm_eps": "layer_norm_epsilon",
        "activation": "activation_function",
        "dropout": "resid_pdrop",
    },
    defaults={
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
    },
    required={
        "scale_attn_weights": True,
        "scale_attn_by_inverse_layer_idx": False,
        "add_cross_attention": False,
        "is_encoder_decoder": False,
        "pruned_heads": {},
    },
    dropouts=("embd_pdrop", "attn_pdrop"),
)
# What Llama and those that follow it have in common.
_ROTARY = Layout(
    "Llama",
    {
        "wte": "embed_tokens",
        "h.{n}.ln_1": "layers.{n}.input_layernorm",
        "h.{n}.attn.q": "layers.{n}.self_attn.q_proj",
        "h.{n}.attn.k": "layers.{n}.self_attn.k_proj",
        "h.{n}.attn.v": "layers.{n}.self_attn.v_proj",
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
        "n_kv_head": "num_key_value_heads",
        "head_dim": "head_dim",
        "norm_eps": "rms_norm_eps",
        "activation": "hidden_act",
        "rotary_base": "rope_theta",
    },
    defaults={
        "max_position_embeddings": 2048,
        "num_key_value_heads": None,
        "head_dim": None,
        "rms_norm_eps": 1e-6,
        "hidden_act": "silu",
        "rope_theta": 10000.0,
        "tie_word_embeddings": False,
    },
)
_LLAMA = like(
    _ROTARY,
    "Llama",
    "LlamaForCausalLM",
    stated={**ATTENTION_BIAS, "mlp_bias": "mlp_bias"},
    defaults={"attention_bias": False, "mlp_bias": False},
)
_QWEN2 = like(
    _ROTARY,
    "Qwen2",
    "Qwen2ForCausalLM",
    options={"qkv_bias": True},
    defaults={
        "max_position_embeddings": 32768,
        "num_key_value_heads": 32,
        "sliding_window": 4096,
        "use_sliding_window": False,
        "max_window_layers": 28,
    },
)
_GEMMA = like(
    _ROTARY,
    "Gemma",
    "GemmaForCausalLM",
    norm_offset=1.0,
    stated=ATTENTION_BIAS,
    powers={"embedding_scale": ("hidden_size", 0.5)},
    defaults={
        "max_position_embeddings": 8192,
        "num_key_value_heads": 16,
        "head_dim": 256,
        "hidden_act": "gelu_pytorch_tanh",
        "attention_bias": False,
        "tie_word_embeddings": True,
    },
    required={"use_bidirectional_attention": False},
    activations={"gelu": "gelu_tanh"},  # the first releases used this name
)
_GEMMA2 = like(
    _GEMMA,
    "Gemma 2",
    "Gemma2ForCausalLM",
    names={**NORMS_AFTER, "h.{n}.ln_2": "layers.{n}.pre_feedforward_layernorm"},
    options={"post_norm": True},
    stated={
        "activation": "hidden_activation",
        "attn_softcap": "attn_logit_softcapping",
        "logit_softcap": "final_logit_softcapping",
    },
    powers={"attn_scale": ("query_pre_attn_scalar", -0.5)},
    defaults={
        "num_key_value_heads": 4,
        "hidden_act": ABSENT,
        "hidden_activation": "gelu_pytorch_tanh",
        "query_pre_attn_scalar": 256,
        "attn_logit_softcapping": 50.0,
        "final_logit_softcapping": 30.0,
        "sliding_window": 4096,
        "sliding_window_pattern": 2,
    },
    activations={"gelu": ABSENT},
)
# Models with LayerNorm and biases that rotate part of each head.
_PHI = like(
    _ROTARY,
    "Phi",
    "PhiForCausalLM",
    names={
        GATE: ABSENT,
        "h.{n}.attn.c_proj": "layers.{n}.self_attn.dense",
        "h.{n}.ln_2": "layers.{n}.input_layernorm",
        "h.{n}.mlp.c_fc": "layers.{n}.mlp.fc1",
        "h.{n}.mlp.c_proj": "layers.{n}.mlp.fc2",
        "ln_f": "final_layernorm",
    },
    options={"norm": ABSENT, "gated": ABSENT, "bias": ABSENT, "parallel": True, "head_bias": True},
    stated={"norm_eps": "layer_norm_eps", "dropout": "resid_pdrop", "rotary_share": "partial_rotary_factor"},
    defaults={
        "rms_norm_eps": ABSENT,
        "layer_norm_eps": 1e-5,
        "hidden_act": "gelu_new",
        "resid_pdrop": 0.0,
        "partial_rotary_factor": 0.5,
    },
    required={"qk_layernorm": False},
    dropouts=("embd_pdrop", "attention_dropout"),
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
    "llama": _LLAMA,
    "mistral": like(
        _ROTARY,
        "Mistral",
        "MistralForCausalLM",
        defaults={"max_position_embeddings": 131072, "num_key_value_heads": 8, "sliding_window": 4096},
        required={"layer_types": None},
    ),
    "qwen2": _QWEN2,
    "qwen3": like(
        _QWEN2,
        "Qwen3",
        "Qwen3ForCausalLM",
        names=QK_NORMS,
        options={"qkv_bias": ABSENT, "qk_norm": True},
        stated=ATTENTION_BIAS,
        defaults={"head_dim": 128, "attention_bias": False},
    ),
    "gemma3_text": like(
        _GEMMA2,
        "Gemma 3",
        "Gemma3ForCausalLM",
        names=QK_NORMS,
        options={"qk_norm": True},
        stated={"attn_softcap": ABSENT, "logit_softcap": ABSENT, "window_rotary_base": "rope_local_base_freq"},
        defaults={
            "max_position_embeddings": 131072,
            "rope_theta": 1_000_000.0,
            "rope_local_base_freq": 10000.0,
            "attn_logit_softcapping": ABSENT,
            "final_logit_softcapping": ABSENT,
            "sliding_window_pattern": 6,
        },
        required=dict.fromkeys(("final_logit_softcapping", "attn_logit_softcapping")),
    ),
    "gpt_neo": replace(
        like(
            _GPT2,
            "GPT-Neo",
            "GPTNeoForCausalLM",
            names={
                "h.{n}.attn.c_attn": ABSENT,
                **{f"h.{{n}}.attn.{each}": f"h.{{n}}.attn.attention.{each}_proj" for each in "qkv"},
                "h.{n}.attn.c_proj": "h.{n}.attn.attention.out_proj",
            },
        ),
        activation="gelu",
        transposed=(),
        options={"attn_scale": 1.0, "qkv_bias": False},
        stated={
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
        required={},
        window="window_size",
        dropouts=("embed_dropout", "attention_dropout"),
    ),
    "phi": _PHI,
    "phi3": like(
        _ROTARY,
        "Phi-3",
        "Phi3ForCausalLM",
        names={**dict.fromkeys(SEPARATE, ABSENT), "h.{n}.attn.c_attn": "layers.{n}.self_attn.qkv_proj"},
        stated={"dropout": "resid_pdrop", "rotary_share": "partial_rotary_factor"},
        defaults={
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
            **dict.fromkeys(ALL_BIASES, "enable_bias"),
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
    "stablelm": like(
        _ROTARY,
        "StableLM",
        "StableLmForCausalLM",
        options={"norm": ABSENT, "bias": ABSENT, "proj_bias": False, "mlp_bias": False},
        stated={
            "head_dim": ABSENT,
            "qkv_bias": "use_qkv_bias",
            "norm_eps": "layer_norm_eps",
            "dropout": "hidden_dropout",
            "parallel": "use_parallel_residual",
            "rotary_share": "partial_rotary_factor",
        },
        defaults={
            "max_position_embeddings": 4096,
            "num_key_value_heads": 32,
            "use_qkv_bias": False,
            "head_dim": ABSENT,
            "rms_norm_eps": ABSENT,
            "layer_norm_eps": 1e-5,
            "hidden_dropout": 0.0,
            "use_parallel_residual": False,
            "partial_rotary_factor": 0.25,
        },
        required={"qk_layernorm": False},
        variants=(
            ("use_parallel_residual", True, {"names": _ROTARY.names | {"h.{n}.ln_2": _ROTARY.names["h.{n}.ln_1"]}}),  # type: ignore[operator]
        ),
    ),
    "gemma": _GEMMA,
    "olmo": like(
        _ROTARY,
        "OLMo",
        "OlmoForCausalLM",
        options={"norm": ABSENT},
        stated={"norm_eps": ABSENT, **ATTENTION_BIAS},
        defaults={"attention_bias": False},
        required={"clip_qkv": None},
        plain_norms=True,
    ),
    "starcoder2": like(
        _ROTARY,
        "StarCoder2",
        "Starcoder2ForCausalLM",
        names={
            GATE: ABSENT,
            "h.{n}.mlp.c_fc": "layers.{n}.mlp.c_fc",
            "h.{n}.mlp.c_proj": "layers.{n}.mlp.c_proj",
        },
        options={"norm": ABSENT, "gated": ABSENT, "bias": ABSENT},
        stated={**dict.fromkeys(ALL_BIASES, "use_bias"), "norm_eps": "norm_epsilon", "dropout": "residual_dropout"},
        defaults={
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
    "gpt_bigcode": like(
        _GPT2,
        "GPT BigCode",
        "GPTBigCodeForCausalLM",
        activation="gelu",
        transposed=(),
        options={"n_kv_head": 1},
        defaults={"activation_function": "gelu_pytorch_tanh", "multi_query": True},
        variants=(("multi_query", False, {"qkv_order": "heads", "options": {}}),),
    ),
    "gptj": replace(
        like(
            _GPT2,
            "GPT-J",
            "GPTJForCausalLM",
            names={
                "wpe": ABSENT,
                "h.{n}.attn.c_attn": ABSENT,
                **{f"h.{{n}}.attn.{each}": f"h.{{n}}.attn.{each}_proj" for each in "qkv"},
                "h.{n}.attn.c_proj": "h.{n}.attn.out_proj",
                "h.{n}.ln_2": "h.{n}.ln_1",
                "h.{n}.mlp.c_fc": "h.{n}.mlp.fc_in",
                "h.{n}.mlp.c_proj": "h.{n}.mlp.fc_out",
            },
            stated={"rotary_size": "rotary_dim"},
        ),
        activation="gelu",
        transposed=(),
        rotary_pairs="interleaved",
        options={"position": "rotary", "parallel": True, "qkv_bias": False, "proj_bias": False, "head_bias": True},
        defaults={
            "n_positions": 2048,
            "n_inner": None,
            "layer_norm_epsilon": 1e-5,
            "activation_function": "gelu_new",
            "resid_pdrop": 0.0,
            "rotary_dim": 64,
            "tie_word_embeddings": False,
        },
        required={},
    ),
    "gemma2": _GEMMA2,
    "nanochat": like(
        _ROTARY,
        "nanochat",
        "NanoChatForCausalLM",
        names={
            GATE: ABSENT,
            **QK_NORMS,
            "h.{n}.mlp.c_fc": "layers.{n}.mlp.fc1",
            "h.{n}.mlp.c_proj": "layers.{n}.mlp.fc2",
        },
        rotary_pairs="backwards",
        options={"gated": ABSENT, "qk_norm": True},
        stated={**ATTENTION_BIAS, "logit_softcap": "final_logit_softcapping"},
        defaults={
            "vocab_size": 50304,
            "hidden_size": 768,
            "intermediate_size": 8192,
            "num_hidden_layers": 12,
            "num_attention_heads": 6,
            "hidden_act": "relu2",
            "final_logit_softcapping": 15.0,
            "attention_bias": False,
        },
        plain_norms=True,
        normed_embedding=True,
    ),
    "olmo2": like(
        _ROTARY,
        "OLMo 2",
        "Olmo2ForCausalLM",
        names={"h.{n}.ln_1": ABSENT, "h.{n}.ln_2": ABSENT, **QK_NORMS, **NORMS_AFTER},
        options={"qk_norm": "full", "pre_norm": False, "post_norm": True},
        stated=ATTENTION_BIAS,
        defaults={"rms_norm_eps": 1e-5, "attention_bias": False},
    ),
    "smollm3": like(
        _LLAMA,
        "SmolLM3",
        "SmolLM3ForCausalLM",
        defaults={
            "max_position_embeddings": 32768,
            "num_key_value_heads": 4,
            "rope_theta": 2_000_000.0,
            "no_rope_layer_interval": 4,
            "sliding_window": None,
            "use_sliding_window": False,
            "tie_word_embeddings": True,
        },
    ),
}

# Unsupported model types, grouped by the reason, which is the last part of the message's key.
REASONS: dict[str, tuple[str, ...]] = {
    "alibi": ("bloom", "mpt"),
    "experts": (
        *("dbrx", "deepseek", "deepseek_v2", "deepseek_v3", "glm4_moe", "granitemoe", "llama4", "llama4_text"),
        *("mixtral", "olmoe", "phimoe", "qwen2_moe", "qwen3_moe"),
    ),
    "linear_attention": ("kimi_linear", "minimax", "qwen3_next", "qwen3_5", "qwen3_5_text", "qwen3_5_moe"),
    "recurrent": ("falcon_mamba", "jamba", "mamba", "mamba2", "recurrent_gemma", "rwkv", "rwkv5", "rwkv6", "xlstm"),
    "sinks": ("gpt_oss",),
    "encoder_decoder": ("bart", "marian", "mbart", "mt5", "pegasus", "t5", "umt5", "whisper"),
    "encoder": ("albert", "bert", "deberta", "deberta-v2", "distilbert", "electra", "modernbert", "roberta"),
}
EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts")  # names of the option for the number of experts
