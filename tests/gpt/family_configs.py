"""Tiny configurations: one for each family, and one with every LayerNorm option. Random weights that all matter."""

from __future__ import annotations

from dataclasses import replace

import torch

from gpt.config import GPTConfig, RotaryScaling

GPT2 = GPTConfig(vocab_size=61, block_size=16, n_layer=3, n_head=4, n_embd=24)
LLAMA = replace(
    GPT2, norm="rms", norm_eps=1e-6, bias=False, n_kv_head=2, n_ff=40, gated=True, activation="silu", position="rotary"
)
QWEN3 = replace(LLAMA, head_dim=10, qk_norm=True, rotary_base=1e6)
FAMILIES: dict[str, GPTConfig] = {
    "gpt2": GPT2,
    "gpt_neox": replace(
        GPT2, position="rotary", rotary_share=0.34, parallel=True, activation="gelu", tie_weights=False
    ),
    "llama": replace(LLAMA, tie_weights=False, rotary_scaling=RotaryScaling("llama3", 8.0, 1.0, 4.0, 8)),
    "qwen2": replace(LLAMA, qkv_bias=True),
    "qwen3": QWEN3,
    "gemma3": replace(
        QWEN3,
        activation="gelu_tanh",
        attn_scale=0.5,
        post_norm=True,
        embedding_scale=24**0.5,
        rotary_scaling=RotaryScaling("linear", 8.0),
        window=5,
        full_layers=(1,),
        window_rotary_base=10000.0,
    ),
    "gemma2": replace(
        LLAMA,
        activation="gelu_tanh",
        head_dim=10,
        attn_scale=0.5,
        attn_softcap=0.8,  # small enough that random models reach it
        logit_softcap=2.0,
        post_norm=True,
        embedding_scale=24**0.5,
        window=5,
        full_layers=(1,),
    ),
    "olmo2": replace(LLAMA, qk_norm="full", pre_norm=False, post_norm=True, tie_weights=False),
    "smollm3": replace(LLAMA, rotary_base=2e6, unrotated_layers=(1,)),
    "every_bias": replace(GPT2, n_kv_head=1, head_bias=True, gated=True, post_norm=True, tie_weights=False, n_ff=50),
}


@torch.no_grad()
def randomized(model: torch.nn.Module, std: float = 0.2) -> torch.nn.Module:
    """Return the model in evaluation mode with every parameter random, including those initialised to 0 or 1."""
    for name, parameter in model.named_parameters():
        centre = 1.0 if parameter.dim() == 1 and name.endswith("weight") else 0.0
        parameter.normal_(centre, std)
    return model.eval()
