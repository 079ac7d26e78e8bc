"""Configurations of published models."""

from typing import Any

from gpt.config import GPTConfig, RotaryScaling

CONTEXT = 4096  # longest text of the page by default, also for models trained on longer texts


def pythia(n_layer: int, n_head: int, n_embd: int) -> GPTConfig:
    """Return the configuration of a Pythia model (Biderman et al., arXiv 2304.01373)."""
    return GPTConfig(
        vocab_size=50304,
        block_size=2048,
        n_layer=n_layer,
        n_head=n_head,
        n_embd=n_embd,
        activation="gelu",
        tie_weights=False,
        parallel=True,
        position="rotary",
        rotary_share=0.25,
    )


def llama(
    vocab_size: int, n_layer: int, n_head: int, n_kv_head: int, n_embd: int, n_ff: int | None, **options: Any
) -> GPTConfig:
    """Return a configuration with the options that Llama, SmolLM2, Qwen and Gemma share."""
    return GPTConfig(
        **{
            "vocab_size": vocab_size,
            "block_size": CONTEXT,
            "n_layer": n_layer,
            "n_head": n_head,
            "n_kv_head": n_kv_head,
            "n_embd": n_embd,
            "n_ff": n_ff,
            "bias": False,
            "norm": "rms",
            "gated": True,
            "activation": "silu",
            "position": "rotary",
            **options,
        }
    )


PRESETS: dict[str, GPTConfig] = {
    "gpt2": GPTConfig(dropout=0.1),
    "gpt2-medium": GPTConfig(n_layer=24, n_head=16, n_embd=1024, dropout=0.1),
    "gpt2-large": GPTConfig(n_layer=36, n_head=20, n_embd=1280, dropout=0.1),
    "gpt2-xl": GPTConfig(n_layer=48, n_head=25, n_embd=1600, dropout=0.1),
    "distilgpt2": GPTConfig(n_layer=6, dropout=0.1),
    "pythia-14m": pythia(6, 4, 128),
    "pythia-31m": pythia(6, 8, 256),
    "pythia-70m": pythia(6, 8, 512),
    "pythia-160m": pythia(12, 12, 768),
    "pythia-410m": pythia(24, 16, 1024),
    "SmolLM2-135M": llama(49152, 30, 9, 3, 576, 1536, rotary_base=100_000),
    "SmolLM2-360M": llama(49152, 32, 15, 5, 960, 2560, rotary_base=100_000),
    "Qwen2.5-0.5B": llama(151936, 24, 14, 2, 896, 4864, qkv_bias=True, norm_eps=1e-6, rotary_base=1_000_000),
    "Qwen3-0.6B": llama(
        151936, 28, 16, 8, 1024, 3072, head_dim=128, qk_norm=True, norm_eps=1e-6, rotary_base=1_000_000
    ),
    "Llama-3.2-1B": llama(
        128256,
        16,
        32,
        8,
        2048,
        None,
        rotary_base=500_000,
        rotary_scaling=RotaryScaling("llama3", 32.0, 1.0, 4.0, 8192),
    ),
    "gemma-3-270m": llama(
        262144,
        18,
        4,
        1,
        640,
        2048,
        head_dim=256,
        qk_norm=True,
        post_norm=True,
        norm_eps=1e-6,
        activation="gelu_tanh",
        embedding_scale=640**0.5,
        rotary_base=1_000_000,
        window=512,
        full_layers=(5, 11, 17),
        window_rotary_base=10_000,
    ),
}
