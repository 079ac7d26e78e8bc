"""Configurations of published models."""

from functools import partial

from gpt.config import GPTConfig, RotaryScaling

CONTEXT = 4096  # longest text of the page by default, also for models trained on longer texts
# Further arguments: layers, heads and width. Pythia: Biderman et al., arXiv 2304.01373.
_pythia = partial(
    GPTConfig, 50304, 2048, activation="gelu", tie_weights=False, parallel=True, position="rotary", rotary_share=0.25
)
# What Llama, SmolLM2, Qwen and Gemma share.
_llama = partial(GPTConfig, bias=False, norm="rms", gated=True, activation="silu", position="rotary")
_qwen = partial(_llama, norm_eps=1e-6, rotary_base=1_000_000)  # also Gemma

PRESETS: dict[str, GPTConfig] = {
    "gpt2": GPTConfig(dropout=0.1),
    "gpt2-medium": GPTConfig(n_layer=24, n_head=16, n_embd=1024, dropout=0.1),
    "gpt2-large": GPTConfig(n_layer=36, n_head=20, n_embd=1280, dropout=0.1),
    "gpt2-xl": GPTConfig(n_layer=48, n_head=25, n_embd=1600, dropout=0.1),
    "distilgpt2": GPTConfig(n_layer=6, dropout=0.1),
    "pythia-14m": _pythia(6, 4, 128),
    "pythia-31m": _pythia(6, 8, 256),
    "pythia-70m": _pythia(6, 8, 512),
    "pythia-160m": _pythia(12, 12, 768),
    "pythia-410m": _pythia(24, 16, 1024),
    "SmolLM2-135M": _llama(49152, CONTEXT, 30, 9, 576, 1536, n_kv_head=3, rotary_base=100_000),
    "SmolLM2-360M": _llama(49152, CONTEXT, 32, 15, 960, 2560, n_kv_head=5, rotary_base=100_000),
    "Qwen2.5-0.5B": _qwen(151936, CONTEXT, 24, 14, 896, 4864, n_kv_head=2, qkv_bias=True),
    "Qwen3-0.6B": _qwen(151936, CONTEXT, 28, 16, 1024, 3072, n_kv_head=8, head_dim=128, qk_norm=True),
    "Llama-3.2-1B": _llama(
        *(128256, CONTEXT, 16, 32, 2048), n_kv_head=8, rotary_base=500_000, rotary_scaling=RotaryScaling("llama3", 32.0)
    ),
    "gemma-3-270m": _qwen(
        *(262144, CONTEXT, 18, 4, 640, 2048),
        n_kv_head=1,
        head_dim=256,
        qk_norm=True,
        post_norm=True,
        activation="gelu_tanh",
        embedding_scale=640**0.5,
        window=512,
        full_layers=(5, 11, 17),
        window_rotary_base=10_000,
    ),
}
