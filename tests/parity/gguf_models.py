"""Tiny random transformers models as GGUF files, written with the `gguf` package in llama.cpp's conventions."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
from gguf.quants import dequantize, quantize
from torch import Tensor, nn
from transformers import AutoConfig, AutoModelForCausalLM

from tests.gpt.family_configs import randomized
from tests.parity.family_models import (
    GROUPED,
    LINEAR,
    LLAMA3,
    LONG,
    LONG_ROPE,
    ONE_KEY_HEAD,
    SIZES,
    TIED,
    UNTIED,
    WIDE_HEADS,
    YARN,
    gemma_rope,
    subtract_norm_offsets,
)

SHORT_CONTEXT = 12  # the original context of the model with longrope
SHORT = {"original_max_position_embeddings": SHORT_CONTEXT}
CAPS = {"attn_logit_softcapping": 0.8, "final_logit_softcapping": 2.0}
# {architecture: (model type in transformers, [options that the metadata can express])}
CASES: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "gpt2": ("gpt2", [{}, {**UNTIED, "n_inner": 11}]),
    "llama": (
        "llama",
        [
            {**GROUPED, **TIED, "rope_parameters": LLAMA3},
            {**WIDE_HEADS, "rope_parameters": LINEAR},
            {"hidden_size": 40},
        ],
    ),
    "qwen2": ("qwen2", [{**GROUPED, "rope_parameters": LONG}, {**GROUPED, "hidden_size": 64, "rope_parameters": YARN}]),
    "qwen3": ("qwen3", [{**WIDE_HEADS, **TIED}]),
    "gemma": ("gemma", [{**ONE_KEY_HEAD, "head_dim": 10}]),
    "gemma2": ("gemma2", [{**GROUPED, **CAPS, "head_dim": 10, "query_pre_attn_scalar": 10, "sliding_window": 4}]),
    "gemma3": (
        "gemma3_text",
        [
            {**GROUPED, "head_dim": 6, "query_pre_attn_scalar": 6, "sliding_window": 4, "num_hidden_layers": 7}
            | gemma_rope({**LINEAR, "factor": 8.0}),
        ],
    ),
    "gptneox": ("gpt_neox", [{"hidden_size": 32}, {"hidden_size": 32, "use_parallel_residual": False}]),
    "phi2": ("phi", [{"hidden_size": 32}]),
    "phi3": (
        "phi3",
        [{**GROUPED, "sliding_window": 5}, {"hidden_size": 32, "rope_parameters": {**LONG_ROPE, **SHORT}, **SHORT}],
    ),
    "starcoder": ("gpt_bigcode", [{"activation_function": "gelu_pytorch_tanh"}]),
    "starcoder2": ("starcoder2", [{**GROUPED, "rope_parameters": LONG}]),
    "stablelm": ("stablelm", [{**GROUPED, "hidden_size": 32, "use_qkv_bias": True}]),
    "olmo": ("olmo", [{**GROUPED}]),
    "olmo2": ("olmo2", [{**GROUPED, "hidden_size": 32}]),
    "smollm3": ("smollm3", [{**GROUPED, "num_hidden_layers": 5}]),
}
ALL = [(name, n) for name, (_, options) in CASES.items() for n in range(len(options))]
PERMUTED = ("llama", "olmo", "smollm3")


def reference_model(architecture: str, n: int = 0, **more: Any) -> nn.Module:
    """Return a random transformers model in evaluation mode with eager attention."""
    model_type, options = CASES[architecture]
    config = AutoConfig.for_model(model_type, **{**SIZES, **options[n], **more})
    torch.manual_seed(n)
    model = randomized(AutoModelForCausalLM.from_config(config, attn_implementation="eager"))
    subtract_norm_offsets(model)
    return model


def permuted(rows: Tensor, n_head: int) -> Tensor:
    """Return the rows of queries or keys in llama.cpp's order, in which neighbours are rotated together."""
    return rows.unflatten(0, (n_head, 2, -1)).transpose(1, 2).flatten(0, 2)


def is_transposed(architecture: str, name: str) -> bool:
    """Return whether transformers stores a matrix as (in, out)."""
    return architecture == "gpt2" and re.search(r"(c_attn|c_proj|c_fc)\.weight", name) is not None


def gguf_tensors(model: nn.Module, architecture: str) -> dict[str, Tensor]:
    """Return the weights as llama.cpp's converter stores them."""
    config = model.config
    arch = next(key for key, name in gguf.MODEL_ARCH_NAMES.items() if name == architecture)
    names = gguf.get_tensor_name_map(arch, config.num_hidden_layers)
    kv_heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
    found = {}
    for name, tensor in model.state_dict().items():
        if config.tie_word_embeddings and name.startswith(("lm_head", "embed_out")):
            continue
        tensor = tensor.t() if is_transposed(architecture, name) else tensor
        if architecture in PERMUTED and (part := re.search(r"([qk])_proj", name)):
            tensor = permuted(tensor, config.num_attention_heads if part[1] == "q" else kv_heads)
        if architecture == "gptneox" and "query_key_value" in name:
            tensor = tensor.unflatten(0, (config.num_attention_heads, 3, -1)).transpose(0, 1).flatten(0, 2)
        if architecture.startswith("gemma") and name.endswith("norm.weight"):
            tensor = tensor + 1
        found[names.get_name(name, try_suffixes=(".weight", ".bias"))] = tensor
    if (rope := getattr(config, "rope_parameters", None) or {}).get("rope_type") == "llama3":
        found["rope_freqs.weight"] = llama3_factors(config, rope)
    if rope.get("rope_type") == "longrope":
        found |= {f"rope_factors_{name}.weight": torch.tensor(rope[f"{name}_factor"]) for name in ("long", "short")}
    return found


def llama3_factors(config: Any, rope: dict[str, Any]) -> Tensor:
    """Return what llama.cpp divides the frequencies by, as its converter computes it."""
    size = config.head_dim
    low, high = rope["low_freq_factor"], rope["high_freq_factor"]
    old, factors = rope["original_max_position_embeddings"], []
    for i in range(0, size, 2):
        wavelength = 2 * math.pi * rope["rope_theta"] ** (i / size)
        smooth = min(max((old / wavelength - low) / (high - low), 0), 1)
        factors.append(1 / ((1 - smooth) / rope["factor"] + smooth))
    return torch.tensor(factors)


def metadata(writer: gguf.GGUFWriter, model: nn.Module, architecture: str) -> None:
    """Write the options that llama.cpp's converter writes."""
    config, options = model.config, model.config.to_dict()
    rope = options.get("rope_parameters") or {}
    rope = rope.get("full_attention", rope)
    heads = config.num_attention_heads
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(4 * config.hidden_size)
    writer.add_head_count(heads)

    def add(name: str, write: Callable[[Any], None]) -> None:
        if options.get(name) is not None:
            write(options[name])

    add("num_key_value_heads", writer.add_head_count_kv)
    add("rms_norm_eps", writer.add_layer_norm_rms_eps)
    for name in ("layer_norm_eps", "layer_norm_epsilon", "norm_epsilon"):
        add(name, writer.add_layer_norm_eps)
    add("use_parallel_residual", writer.add_parallel_residual)
    add("attn_logit_softcapping", writer.add_attn_logit_softcapping)
    add("final_logit_softcapping", writer.add_final_logit_softcapping)
    add("sliding_window", writer.add_sliding_window)
    if options.get("head_dim") is not None:
        writer.add_key_length(config.head_dim)
        writer.add_value_length(config.head_dim)
    if "rope_theta" in rope:
        writer.add_rope_freq_base(rope["rope_theta"])
    if "partial_rotary_factor" in rope:
        writer.add_rope_dimension_count(int(rope["partial_rotary_factor"] * (config.hidden_size // heads)))
    if rope.get("rope_type") == "linear":
        writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(rope["factor"])
    if rope.get("rope_type") == "yarn":
        writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        writer.add_rope_scaling_factor(rope["factor"])
    if rope.get("rope_type") == "longrope":
        writer.add_rope_scaling_attn_factors(math.sqrt(1 + math.log(rope["factor"]) / math.log(SHORT_CONTEXT)))
    if "original_max_position_embeddings" in rope and rope["rope_type"] != "llama3":
        writer.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])


def write_gguf(
    path: Path,
    model: nn.Module,
    architecture: str,
    kind: str = "F32",
    vocabulary: Callable[[gguf.GGUFWriter], None] = lambda writer: None,
) -> None:
    """Write a model, with its matrices in a quantisation type."""
    writer = gguf.GGUFWriter(path, architecture)
    metadata(writer, model, architecture)
    vocabulary(writer)
    for name, tensor in gguf_tensors(model, architecture).items():
        stored = gguf.GGMLQuantizationType[kind if tensor.dim() > 1 else "F32"]
        writer.add_tensor(name, stored_as(tensor, stored), raw_dtype=stored)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def round_matrices(model: nn.Module, architecture: str, kind: str) -> None:
    """Give a model the matrices that it has once they were stored in a quantisation type."""
    stored = gguf.GGMLQuantizationType[kind]
    for name, parameter in model.named_parameters():
        if parameter.dim() == 2:
            turned = parameter.data.t() if is_transposed(architecture, name) else parameter.data
            rounded = torch.from_numpy(dequantize(stored_as(turned, stored), stored).reshape(turned.shape))
            parameter.data = rounded.t() if is_transposed(architecture, name) else rounded


def stored_as(tensor: Tensor, kind: gguf.GGMLQuantizationType) -> np.ndarray:
    """Return a matrix in a quantisation type. Types that the package cannot write are filled with random blocks."""
    try:
        return quantize(tensor.contiguous().numpy(), kind)
    except NotImplementedError:
        n_block, n_bytes = gguf.GGML_QUANT_SIZES[kind]
        random = np.random.default_rng(0).integers(0, 256, (2000, n_bytes), np.uint8)
        with np.errstate(all="ignore"):
            largest = np.abs(dequantize(random, kind)).max(axis=1)
        usual = random[(largest < 1) & (largest > 0.01)]
        n = tensor.numel() // n_block
        return np.resize(usual, (n, n_bytes)).reshape(*tensor.shape[:-1], -1)
