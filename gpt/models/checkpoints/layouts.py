"""Whose checkpoint is this? Recognises the layouts people save GPTs in, and translates them to ours.

Sizes are read off the weights; a configuration beside them adds what shapes cannot say (heads, activation)
and must agree with the rest.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import torch
from torch import Tensor

from gpt.config import GPTConfig
from gpt.errors import GPTError
from gpt.models.checkpoints.hugging_face import read_options, turned
from gpt.models.meta import meta_model

OURS, HUGGING_FACE, NANOGPT, MINGPT, BOOK = "Glassbox GPT", "Hugging Face GPT-2", "nanoGPT", "minGPT", "GPTModel"

# The book's names in ours; its query, key and value are three matrices, named here by the first.
BOOK_NAMES = {
    "tok_emb": "wte",
    "pos_emb": "wpe",
    "trf_blocks": "h",
    "norm1.scale": "ln_1.weight",
    "norm1.shift": "ln_1.bias",
    "att.W_query": "attn.c_attn",
    "att.out_proj": "attn.c_proj",
    "norm2.scale": "ln_2.weight",
    "norm2.shift": "ln_2.bias",
    "ff.layers.0": "mlp.c_fc",
    "ff.layers.2": "mlp.c_proj",
    "final_norm.scale": "ln_f.weight",
    "final_norm.shift": "ln_f.bias",
    "out_head": "lm_head",
}


class HeadsUnknown(GPTError):
    """The weights do not say how many heads there are; `choices` are the numbers that divide the width."""

    @property
    def choices(self) -> list[int]:
        n_embd = self.values["n_embd"]
        assert isinstance(n_embd, int)
        return [n for n in range(1, min(n_embd, 128) + 1) if n_embd % n == 0]


@dataclass(frozen=True, eq=False)
class Recognised:
    """A checkpoint in our terms. parts: for each of our names the stored tensors that, stacked, make it."""

    layout: str
    config: GPTConfig
    parts: dict[str, tuple[Tensor, ...]]


def recognise(
    tensors: Mapping[str, Tensor],
    *,
    config: Mapping[str, object] | None = None,
    model_args: Mapping[str, object] | None = None,
    n_head: int | None = None,
) -> Recognised:
    """Name the layout of these weights and translate it.

    config: the config.json beside them; model_args: nanoGPT's, from inside the checkpoint.
    Raises HeadsUnknown if nothing says the number of heads; ValueError for an unknown layout, for options that
    change the mathematics and are not implemented, and for weights that do not fit, each listed.
    """
    if config is not None and config.get("model_type", "gpt2") != "gpt2":
        raise GPTError("layout.model_type", model_type=config["model_type"])
    named = clean_names(tensors)
    stated: dict[str, Any]
    if "tok_emb.weight" in named:
        layout, stated, parts = BOOK, {"activation": "gelu_tanh"}, from_book(named)
    elif "wte.weight" in named:
        parts = {name: (tensor,) for name, tensor in named.items()}
        layout = shared_names_layout(tensors, parts, config, model_args)
        if layout == HUGGING_FACE:
            stated = read_options(config) if config else {"activation": "gelu_tanh"}
            parts = {name: (turned(name, tensor),) for name, (tensor,) in parts.items()}
        elif layout == OURS:
            stated = known_options(config or {}, {field.name for field in fields(GPTConfig)}, "config.json")
        elif layout == NANOGPT:
            known = {"n_layer", "n_head", "n_embd", "block_size", "bias", "vocab_size", "dropout"}
            stated = {"activation": "gelu"} | known_options(model_args or {}, known, "model_args")
        else:
            stated = {"activation": "gelu_tanh"}
    else:
        some = ", ".join(list(tensors)[:3])
        raise GPTError(
            "layout.unknown", names=some, hugging_face=HUGGING_FACE, nanogpt=NANOGPT, mingpt=MINGPT, book=BOOK
        )
    return Recognised(layout, *settle(layout, parts, stated, n_head))


def clean_names(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Names without what torch.compile, DDP and the outer module put before them; buffers of masks left out."""
    named = {}
    for name, tensor in tensors.items():
        name = re.sub(r"^(module\.|_orig_mod\.)*(transformer\.)?", "", name)
        if re.search(r"\.attn\.(bias|masked_bias)$|\.att\.mask$", name):
            continue
        if name in named:
            raise GPTError("layout.duplicate", name=name)
        named[name] = tensor
    return named


def shared_names_layout(
    tensors: Mapping[str, Tensor],
    parts: Mapping[str, tuple[Tensor, ...]],
    config: Mapping[str, object] | None,
    model_args: Mapping[str, object] | None,
) -> str:
    """Which of the four that use GPT-2's names. Hugging Face stores matrices the other way round (Conv1D).

    nanoGPT ties its head to the embedding, may lack biases, and says its model_args; minGPT does none of that.
    """
    qkv = parts.get("h.0.attn.c_attn.weight", (torch.empty(0),))[0]
    if qkv.dim() == 2 and qkv.shape[1] == 3 * qkv.shape[0]:
        return HUGGING_FACE
    if model_args is not None:
        return NANOGPT
    if not any("transformer." in name for name in tensors):
        if config is None or "tie_weights" not in config:
            raise GPTError("layout.no_config")
        return OURS
    return NANOGPT if is_tied(parts) or "ln_f.bias" not in parts else MINGPT


def translate(name: str, names: Mapping[str, str]) -> str:
    """A dotted name with its parts replaced."""
    for old, new in names.items():
        name = re.sub(rf"(?<![^.]){re.escape(old)}(?![^.])", new, name)
    return name


def from_book(named: Mapping[str, Tensor]) -> dict[str, tuple[Tensor, ...]]:
    """The book's names in ours; its query, key and value matrices one under the other."""
    parts: dict[str, tuple[Tensor, ...]] = {}
    for name, tensor in named.items():
        others = [name.replace("W_query", other) for other in ("W_key", "W_value") if ".att.W_query." in name]
        if missing := [other for other in others if other not in named]:
            raise GPTError("layout.missing", names=", ".join(missing))
        if not re.search(r"\.att\.W_(key|value)\.", name):
            parts[translate(name, BOOK_NAMES)] = (tensor, *(named[other] for other in others))
    return parts


def known_options(said: Mapping[str, object], known: set[str], where: str) -> dict[str, object]:
    """Refuse an option nobody here has heard of: it may change the mathematics."""
    if unknown := sorted(set(said) - known):
        raise GPTError("layout.option", where=where, names=", ".join(map(str, unknown)))
    return dict(said)


def is_tied(parts: Mapping[str, tuple[Tensor, ...]]) -> bool:
    """Whether the head is the embedding's matrix: absent, or equal to it number by number."""
    if "lm_head.weight" not in parts:
        return True
    head, wte = parts["lm_head.weight"][0], parts["wte.weight"][0]
    return head.shape == wte.shape and (head.data_ptr() == wte.data_ptr() or torch.equal(head, wte))


def settle(
    layout: str, parts: dict[str, tuple[Tensor, ...]], stated: dict[str, Any], n_head: int | None
) -> tuple[GPTConfig, dict[str, tuple[Tensor, ...]]]:
    """The configuration that the weights and what is stated agree on, and the weights it needs."""
    read = read_off(parts)
    for name in stated.keys() & read.keys() - {"tie_weights"}:
        if stated[name] not in (read[name], None):
            raise GPTError("layout.contradiction", name=name, stated=stated[name], found=read[name])
    heads = stated.pop("n_head", None)
    if heads is not None and n_head not in (heads, None):
        raise GPTError("layout.n_head", stated=heads, n_head=n_head)
    if heads is None and n_head is None:
        raise HeadsUnknown("layout.heads_unknown", n_embd=read["n_embd"])
    if read["n_ff"] == 4 * read["n_embd"]:
        read["n_ff"] = None
    config = GPTConfig(**{**stated, **read, "n_head": n_head if heads is None else heads})
    if config.tie_weights:
        parts = {name: part for name, part in parts.items() if name != "lm_head.weight"}
    list_misfits(config, parts, {ours: theirs for theirs, ours in BOOK_NAMES.items()} if layout == BOOK else {})
    return config, parts


def read_off(parts: Mapping[str, tuple[Tensor, ...]]) -> dict[str, Any]:
    """Every field of the configuration that shapes and names of the weights decide."""
    for name in ("wte.weight", "h.0.mlp.c_fc.weight", *({"wpe.weight"} & set(parts))):
        if name not in parts or parts[name][0].dim() != 2:
            raise GPTError("layout.not_a_matrix", name=name)
    vocab_size, n_embd = parts["wte.weight"][0].shape
    read: dict[str, Any] = {
        "vocab_size": vocab_size,
        "n_embd": n_embd,
        "n_layer": len({name.split(".")[1] for name in parts if re.match(r"h\.\d+\.", name)}),
        "n_ff": parts["h.0.mlp.c_fc.weight"][0].shape[0],
        "bias": "ln_f.bias" in parts,
        "tie_weights": is_tied(parts),
    }
    if read["bias"]:
        read["qkv_bias"] = "h.0.attn.c_attn.bias" in parts
    if "wpe.weight" in parts:
        read["block_size"] = parts["wpe.weight"][0].shape[0]
    return read


def expected_shapes(config: GPTConfig) -> dict[str, tuple[int, ...]]:
    """Name and shape of every weight of a model, without making it."""
    shapes = {name: tuple(value.shape) for name, value in meta_model(config).state_dict().items()}
    if config.tie_weights:
        del shapes["lm_head.weight"]
    return shapes


def list_misfits(config: GPTConfig, parts: Mapping[str, tuple[Tensor, ...]], their_names: Mapping[str, str]) -> None:
    """Raise ValueError that lists, by their names, weights that are missing, unexpected or of the wrong shape."""
    expected, found = expected_shapes(config), {name: stacked_shape(part) for name, part in parts.items()}
    problems = {
        "missing": [name for name in expected if name not in found],
        "unexpected": [name for name in found if name not in expected],
        "wrong shape": [name for name in expected if found.get(name, expected[name]) != expected[name]],
        "not floating point": [name for name, part in parts.items() if not all(t.is_floating_point() for t in part)],
    }
    listed = []
    for kind, names in problems.items():
        named = [translate(name, their_names) for name in names[:8]]
        if kind == "wrong shape":
            named = [
                f"{shown} {found[name]} instead of {expected[name]}" for shown, name in zip(named, names, strict=False)
            ]
        more = f" and {len(names) - 8} more" if len(names) > 8 else ""
        listed += [f"{kind}: {', '.join(named)}{more}"] if names else []
    if listed:
        raise GPTError("layout.misfits", problems="; ".join(listed))


def stacked_shape(part: tuple[Tensor, ...]) -> tuple[int, ...]:
    """The shape of some tensors one under the other; () if they cannot be."""
    if any(t.dim() == 0 or t.shape[1:] != part[0].shape[1:] for t in part):
        return ()
    return (sum(t.shape[0] for t in part), *part[0].shape[1:])
