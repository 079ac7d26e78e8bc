"""Dictionaries in the folders of sae-lens: cfg.json and sae_weights.safetensors."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from gpt.analysis.concepts import NONE, WINDOW, Dictionary
from gpt.errors import GPTError, is_integer, require
from gpt.models.checkpoints.untrusted import open_safetensors, read_json

SAE_CONFIG, SAE_WEIGHTS = "cfg.json", "sae_weights.safetensors"
# Options of sae-lens 6.54 that change what a dictionary computes, and their readable values, defaults first.
SAE_OPTIONS: dict[str, tuple[str, ...]] = {
    "architecture": ("standard", "topk", "jumprelu"),
    "normalize_activations": ("none",),
    "reshape_activations": ("none",),
    "activation_fn_str": ("relu",),  # until version 5
}


def load_sae(folder: Path) -> tuple[int | None, Dictionary]:
    """Return the layer and the dictionary in a folder of sae-lens, without examples, shares and names.

    Encoding and decoding give the values of sae-lens. The layer is None if the folder does not name it. Every natural
    strength is 1, so a concept is turned up by a multiple of one unit of activity.

    Raises ValueError if the dictionary is damaged, or was trained on something else than the residual stream, or has an
    architecture or a normalisation that `Dictionary` cannot express.
    """
    config = read_json(folder / SAE_CONFIG, dict)
    for name, known in SAE_OPTIONS.items():
        value = config.get(name, known[0])
        require(value in known, "concepts.sae_option", name=name, value=value, known=", ".join(known))
    metadata = config.get("metadata")
    hook = (metadata if isinstance(metadata, dict) else config).get("hook_name")
    place = re.fullmatch(r"blocks\.([0-9]{1,4})\.hook_resid_(pre|post)", str(hook))
    layer = None if place is None else int(place[1]) - (place[2] == "pre")
    if (hook is not None and place is None) or layer == -1:
        raise GPTError("concepts.sae_option", name="hook_name", value=hook, known="blocks.<layer>.hook_resid_post")
    tensors = {name: value.float() for name, value in open_safetensors(folder / SAE_WEIGHTS).items()}
    n, width = tensors["W_dec"].shape if "W_dec" in tensors and tensors["W_dec"].dim() == 2 else (0, 0)
    shapes = {"W_enc": (width, n), "W_dec": (n, width), "b_enc": (n,), "b_dec": (width,)}
    architecture = config.get("architecture", "standard")
    if architecture == "jumprelu":
        shapes["threshold"] = (n,)
    active = config.get("k") if architecture == "topk" else n
    fits = {name: tuple(value.shape) for name, value in tensors.items()} == shapes
    if not fits or not is_integer(active) or not 0 < active <= n:
        raise GPTError("concepts.sae_tensors", file=SAE_WEIGHTS, expected=", ".join(shapes))
    encoder, decoder, bias, center = tensors["W_enc"].T, tensors["W_dec"], tensors["b_enc"], tensors["b_dec"]
    if config.get("apply_b_dec_to_input", True):
        bias = (bias.double() - encoder.double() @ center.double()).float()
    if config.get("rescale_acts_by_decoder_norm"):
        norm = decoder.norm(dim=1)
        encoder, bias, decoder = encoder * norm[:, None], bias * norm, decoder / norm[:, None]
    tokens, promotes, starts = (torch.full((n, 1), NONE, dtype=torch.int32) for _ in range(3))
    tints = torch.zeros(n, 1, WINDOW, dtype=torch.uint8)
    examples = (torch.zeros(n), tokens, promotes, starts, torch.ones(n, 1), tints)
    encoder = encoder.contiguous()
    return layer, Dictionary(encoder, decoder, bias, center, active, *examples, tensors.get("threshold"))


def save_sae(dictionary: Dictionary, folder: Path, *, layer: int, model: str = "") -> None:
    """Write a dictionary as sae-lens 6 does. model: its name in sae-lens. Raises ValueError for two limits at once."""
    (n, width), threshold = dictionary.encoder.shape, dictionary.threshold
    config: dict[str, Any] = {"d_in": width, "d_sae": n, "dtype": "float32", "device": "cpu"}
    config |= {"apply_b_dec_to_input": False, "normalize_activations": "none", "reshape_activations": "none"}
    config["architecture"] = "standard" if threshold is None else "jumprelu"
    if dictionary.active < n:
        require(threshold is None, "concepts.sae_limits")
        config |= {"architecture": "topk", "k": dictionary.active, "rescale_acts_by_decoder_norm": False}
    hook = f"blocks.{layer}.hook_resid_post"
    config["metadata"] = {"sae_lens_version": "6.54.12", "model_name": model, "hook_name": hook}
    tensors = {"W_enc": dictionary.encoder.T, "W_dec": dictionary.decoder}
    tensors |= {"b_enc": dictionary.bias, "b_dec": dictionary.center}
    tensors |= {} if threshold is None else {"threshold": threshold}
    folder.mkdir(parents=True, exist_ok=True)
    save_file({name: value.float().contiguous() for name, value in tensors.items()}, folder / SAE_WEIGHTS)
    (folder / SAE_CONFIG).write_text(json.dumps(config, indent=1), encoding="utf-8")
