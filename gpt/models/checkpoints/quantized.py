"""Dequantise the weights of quantised safetensors files, whose layouts the programs that write them document.

A module's weight is stored as several tensors, such as `qweight`, `scales` and `qzeros`. It becomes one `Deferred`
tensor in float32 with the usual name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from gpt.errors import require
from gpt.models.checkpoints.files import Contents, Deferred
from gpt.models.checkpoints.options import quantization_of
from gpt.models.checkpoints.untrusted import reading

Stored = dict[str, Tensor]  # tensors of a module by the ends of their names
Config = Mapping[str, Any]  # quantization_config
Read = Callable[[Stored, Config], Tensor]
EIGHT_BITS = (torch.int8, torch.float8_e4m3fn, torch.float8_e5m2)
AWQ_COLUMNS = (0, 4, 1, 5, 2, 6, 3, 7)  # places of the columns in a word of AWQ
# Numbers for quantising activations and the cache, which are not needed, as these are not quantised.
UNUSED = re.compile(r".*\.((input|output|[kqv]|[kv]_cache)_(scale|zero_point|global_scale)|weight_format)")
PART = re.compile(
    r"(.+)\.(weight(\.(absmax|quant_map|nested_absmax|nested_quant_map|quant_state\.bitsandbytes__(nf4|fp4))"
    r"|_packed|_scale(_inv)?|_shape|_zero_point|_g_idx)?|SCB|qweight|qzeros|scales|q?biases|g_idx)"
)


def dequantized(contents: Contents, file: str) -> Contents:
    """Return the contents of a checkpoint with `Deferred` tensors for those that are quantised.

    Raises ValueError, naming the file, if a scheme is not read, or a weight does not fit its scales.
    """
    stated = quantization_of(contents.config or {}) or {}
    tensors = {name: tensor for name, tensor in contents.tensors.items() if not UNUSED.fullmatch(name)}
    modules: dict[str, Stored] = {}
    for name, tensor in tensors.items():
        if match := PART.fullmatch(name):
            modules.setdefault(match[1], {})[match[2]] = tensor
    names: list[str] = []
    for module, parts in modules.items():
        with reading(f"{file}: {module}"):
            scheme = scheme_of(parts, stated)
        if scheme is not None:
            for part in parts:
                del tensors[f"{module}.{part}"]
            tensors[f"{module}.weight"] = deferred(scheme[1], parts, stated, f"{file}: {module}")
            names.append(scheme[0])
    return replace(contents, tensors=tensors, stored_as=max(names, key=names.count)) if names else contents


def deferred(read: Read, parts: Stored, config: Config, name: str) -> Deferred:
    """Return a quantised weight (out, in), read in float32. Reading raises ValueError if its scales do not fit."""

    def compute(parts: Stored) -> Tensor:
        with reading(name):
            return read(parts, config)

    stated = {each for each in parts if each == "weight_shape" or ".quant_state" in each}  # these state the shape
    shapes = {each: part if each in stated else part.to("meta") for each, part in parts.items()}
    like = torch.empty(compute(shapes).shape, device="meta")
    return Deferred(lambda dtype, rows: compute(parts)[rows.start : rows.stop], like)


def scheme_of(parts: Stored, config: Config) -> tuple[str, Read] | None:
    """Return the name and the reader of the scheme in which a module's weight is quantised, or None if it is not."""
    weight, bits = parts.get("weight"), config.get("bits", 4)
    if any(".quant_state" in name for name in parts):
        return ("NF4" if any("nf4" in name for name in parts) else "FP4", read_four_bits)
    if "qweight" in parts:
        form = str(config.get("checkpoint_format") or config.get("version") or "gptq").lower()
        require(form in ("gptq", "gptq_v2", "gemm"), "layout.quantized", method=form)
        is_gptq = "g_idx" in parts or parts["qweight"].shape[-1:] == parts.get("scales", parts["qweight"]).shape[-1:]
        return (f"GPTQ {bits}-bit", read_gptq) if is_gptq else (f"AWQ {bits}-bit", read_awq)
    if "weight_packed" in parts:
        return (f"INT{packed_bits(parts)}", read_packed)
    if "scales" in parts and {"biases", "qbiases"} & parts.keys():
        return (f"MLX {bits}-bit", read_mlx)
    if weight is not None and weight.dtype in EIGHT_BITS and len(parts) > 1:
        return ("INT8" if weight.dtype is torch.int8 else "FP8", read_eight_bits)
    return None


def integers(words: Tensor, bits: int) -> Tensor:
    """Return the numbers of some bits in 32-bit words (..., n), the lowest bits first: (..., n x 32 / bits)."""
    if 32 % bits:
        raise RuntimeError(f"{bits} bits")
    shifts = torch.arange(0, 32, bits, dtype=torch.int32, device=words.device)
    return ((words.view(torch.int32)[..., None] >> shifts) & (2**bits - 1)).to(torch.uint8).flatten(-2)


def groups(n: int, size: int, device: torch.device) -> Tensor:
    """Return the number of the group of each of n columns."""
    return torch.arange(n, device=device) // (n if size < 1 else size)


def read_gptq(parts: Stored, config: Config) -> Tensor:
    """Words go down the columns of `qweight` (in / 8, out). The first version stores zero points minus 1."""
    bits, scales = config.get("bits", 4), parts["scales"].float().t()
    numbers = integers(parts["qweight"].t().contiguous(), bits)
    zeros = integers(parts["qzeros"], bits).t().float() + (config.get("checkpoint_format", "gptq") == "gptq")
    group = parts["g_idx"].long() if "g_idx" in parts else groups(numbers.shape[1], config["group_size"], scales.device)
    return (numbers - zeros[:, group]) * scales[:, group]


def read_awq(parts: Stored, config: Config) -> Tensor:
    """Words go along the rows of `qweight` (in, out / 8), with the columns in an order of their own."""
    numbers, zeros = (
        integers(parts[name], 4).unflatten(-1, (-1, 8))[..., AWQ_COLUMNS].flatten(-2) for name in ("qweight", "qzeros")
    )
    group = groups(len(numbers), config.get("group_size", 128), numbers.device)
    return ((numbers - zeros[group].float()) * parts["scales"].float()[group]).t()


def packed_bits(parts: Stored) -> int:
    return int(32 * parts["weight_packed"].shape[1] // parts["weight_shape"][1])


def read_packed(parts: Stored, config: Config) -> Tensor:
    """compressed-tensors: words along the rows, and zero points in words down the columns, both plus half the range."""
    (n_out, n_in), bits, scale = parts["weight_shape"].tolist(), packed_bits(parts), parts["weight_scale"].float()
    numbers = integers(parts["weight_packed"], bits)[:, :n_in] - 2 ** (bits - 1) * scale.new_ones(())
    group = groups(n_in, -(-n_in // scale.shape[1]), scale.device)
    group = parts["weight_g_idx"].long() if "weight_g_idx" in parts else group
    if "weight_zero_point" in parts:
        zeros = integers(parts["weight_zero_point"].t().contiguous(), bits).t()[:n_out].float() - 2 ** (bits - 1)
        numbers = numbers - zeros[:, group]
    return numbers.view(n_out, n_in) * scale[:, group]


def read_mlx(parts: Stored, config: Config) -> Tensor:
    """MLX: unsigned numbers in words along the rows, times the scale of their group plus its bias."""
    numbers, scales = integers(parts["weight"], config.get("bits", 4)), parts["scales"].float()
    group = groups(numbers.shape[1], numbers.shape[1] // scales.shape[1], scales.device)
    biases = parts["biases" if "biases" in parts else "qbiases"].float()
    return numbers * scales[:, group] + biases[:, group]


def read_eight_bits(parts: Stored, config: Config) -> Tensor:
    """int8 or float8 with one scale for all numbers, for each row, or for each block of rows and columns."""
    weight = parts["weight"].float()
    if "SCB" in parts:
        return weight * (parts["SCB"].float() / 127)[:, None]
    scale = parts.get("weight_scale_inv", parts.get("weight_scale", weight)).float()
    by_group = [each["weights"].get("block_structure") for each in config.get("config_groups", {}).values()]
    blocks = config.get("weight_block_size") or next(filter(None, by_group), (128, 128))
    if "weight_zero_point" in parts:
        weight = weight - parts["weight_zero_point"].float().view(-1, 1)
    if scale.dim() < 2 or scale.shape[1] == 1:
        return weight * scale.view(-1, 1)
    rows, columns = (groups(n, size, scale.device) for n, size in zip(weight.shape, blocks, strict=True))
    return weight * scale[rows][:, columns]


def read_four_bits(parts: Stored, config: Config) -> Tensor:
    """bitsandbytes: numbers of 4 bits, the high ones first, choose a value of a table, times the scale of a block."""
    state = next(tensor for name, tensor in parts.items() if ".quant_state" in name)
    stated = json.loads(bytes(state.tolist()))
    shape, scale = torch.Size(stated["shape"]), parts["weight.absmax"].flatten()
    if "nested_blocksize" in stated:
        nested = for_blocks(parts["weight.nested_absmax"], stated["nested_blocksize"], len(scale))
        scale = parts["weight.nested_quant_map"][scale.int()] * nested + stated.get("nested_offset", 0.0)
    words = parts["weight"].flatten().view(torch.uint8)
    numbers = parts["weight.quant_map"].float()[torch.stack((words >> 4, words & 15), dim=1).int().flatten()]
    return (numbers[: shape.numel()] * for_blocks(scale.float(), stated["blocksize"], shape.numel())).view(shape)


def for_blocks(scales: Tensor, size: int, n: int) -> Tensor:
    """Return the scale of each of n numbers, which are in blocks of a size. Raises RuntimeError if others are given."""
    if len(scales) != -(-n // size):
        raise RuntimeError(f"{len(scales)} x {size} / {n}")
    return scales.repeat_interleave(size)[:n]
