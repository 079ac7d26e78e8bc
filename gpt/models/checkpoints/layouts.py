"""The known layouts of GPT checkpoints: detects the layout of a checkpoint and translates it to our names.

Sizes are read from the weights. The configuration file adds what shapes do not determine (heads, activation) and must
match the weights.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import torch
from torch import Tensor

from gpt.config import Activation, GPTConfig
from gpt.errors import GPTError
from gpt.models.checkpoints.hugging_face import read_options, transposed
from gpt.models.meta import meta_model

OURS, HUGGING_FACE, NANOGPT, MINGPT, BOOK = "Glassbox GPT", "Hugging Face GPT-2", "nanoGPT", "minGPT", "GPTModel"
QKV_PROJ = "GPT with qkv_proj"

# The book's names and ours. Its query, key and value are three matrices, of which W_query is listed.
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
QKV_PROJ_NAMES = {
    "token_embedding": "wte",
    "position_embedding": "wpe",
    "blocks": "h",
    "ln1": "ln_1",
    "ln2": "ln_2",
    "attn.qkv_proj": "attn.c_attn",
    "attn.out_proj": "attn.c_proj",
    "mlp.fc1": "mlp.c_fc",
    "mlp.fc2": "mlp.c_proj",
}


@dataclass(frozen=True)
class Renamed:
    """A layout with other names than GPT-2's. names: its names and ours, the token embedding first."""

    names: Mapping[str, str]
    activation: Activation


RENAMED = {BOOK: Renamed(BOOK_NAMES, "gelu_tanh"), QKV_PROJ: Renamed(QKV_PROJ_NAMES, "gelu")}
OUR_OPTIONS = {field.name for field in fields(GPTConfig)}
NANOGPT_OPTIONS = {"n_layer", "n_head", "n_embd", "block_size", "bias", "vocab_size", "dropout"}
MAX_LISTED_WEIGHTS = 8  # of each kind, in an error message

Weights = dict[str, tuple[Tensor, ...]]  # by our names, the stored tensors that are concatenated along the first axis
Options = dict[str, Any]  # by the names of GPTConfig


class HeadsUnknown(GPTError):
    """The checkpoint does not state the number of heads; `choices` are the numbers that divide the width."""

    @property
    def choices(self) -> list[int]:
        n_embd = self.values["n_embd"]
        assert isinstance(n_embd, int)
        return [n for n in range(1, min(n_embd, 128) + 1) if n_embd % n == 0]


@dataclass(frozen=True, eq=False)
class DetectedLayout:
    """The weights and the configuration of a checkpoint, in our names."""

    layout: str
    config: GPTConfig
    weights: Weights


def detect_layout(
    tensors: Mapping[str, Tensor],
    *,
    config: Mapping[str, object] | None = None,
    model_args: Mapping[str, object] | None = None,
    n_head: int | None = None,
) -> DetectedLayout:
    """Find the layout of these weights and translate it.

    config: the config.json beside them; model_args: nanoGPT's, from inside the checkpoint.
    Raises HeadsUnknown if the number of heads is not stated; ValueError for an unknown layout, for an option that is
    not implemented, and for weights that do not fit, which are listed.
    """
    if config is not None and config.get("model_type", "gpt2") != "gpt2":
        raise GPTError("layout.model_type", model_type=config["model_type"])
    named = clean_names(tensors)
    options: Options = {"activation": "gelu_tanh"}
    weights: Weights = {name: (tensor,) for name, tensor in named.items()}
    their_names: Mapping[str, str] = {}
    if renamed := [layout for layout, its in RENAMED.items() if f"{next(iter(its.names))}.weight" in named]:
        layout, options = renamed[0], {"activation": RENAMED[renamed[0]].activation}
        names = RENAMED[layout].names
        weights, their_names = by_our_names(named, names), {ours: theirs for theirs, ours in names.items()}
    elif "wte.weight" in named:
        layout = gpt2_names_layout(tensors, weights, config, model_args)
        if layout == HUGGING_FACE:
            options = read_options(config) if config else options
            weights = {name: (transposed(name, tensor),) for name, tensor in named.items()}
        elif layout == OURS:
            options = known_options(config or {}, OUR_OPTIONS, "config.json")
        elif layout == NANOGPT:
            options = {"activation": "gelu"} | known_options(model_args or {}, NANOGPT_OPTIONS, "model_args")
    else:
        some = ", ".join(list(tensors)[:3])
        raise GPTError("layout.unknown", names=some, known=", ".join([HUGGING_FACE, NANOGPT, MINGPT, *RENAMED]))
    found = match_config(weights, options, n_head)
    if found.tie_weights:
        weights.pop("lm_head.weight", None)
    check_weights(found, weights, their_names)
    return DetectedLayout(layout, found, weights)


def clean_names(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Strip the prefixes of torch.compile, DDP and the outer module, and leave out the buffers of causal masks."""
    named = {}
    for name, tensor in tensors.items():
        name = re.sub(r"^(module\.|_orig_mod\.)*(transformer\.)?", "", name)
        if re.search(r"\.attn\.(bias|masked_bias)$|\.attn?\.mask$", name):
            continue
        if name in named:
            raise GPTError("layout.duplicate", name=name)
        named[name] = tensor
    return named


def gpt2_names_layout(
    tensors: Mapping[str, Tensor],
    weights: Weights,
    config: Mapping[str, object] | None,
    model_args: Mapping[str, object] | None,
) -> str:
    """The layout of weights with GPT-2's names, one of four. Hugging Face stores its matrices transposed (Conv1D).

    nanoGPT has a tied head, may lack biases, and states its model_args; minGPT has none of these.
    """
    qkv = weights.get("h.0.attn.c_attn.weight", (torch.empty(0),))[0]
    if qkv.dim() == 2 and qkv.shape[1] == 3 * qkv.shape[0]:
        return HUGGING_FACE
    if model_args is not None:
        return NANOGPT
    if not any("transformer." in name for name in tensors):
        if config is None or "tie_weights" not in config:
            raise GPTError("layout.no_config")
        return OURS
    return NANOGPT if is_tied(weights) or "ln_f.bias" not in weights else MINGPT


def rename(name: str, names: Mapping[str, str]) -> str:
    """Replace the parts of a dotted name."""
    for old, new in names.items():
        name = re.sub(rf"(?<![^.]){re.escape(old)}(?![^.])", new, name)
    return name


def by_our_names(named: Mapping[str, Tensor], names: Mapping[str, str]) -> Weights:
    """The weights by our names; the book's query, key and value are concatenated."""
    weights: Weights = {}
    for name, tensor in named.items():
        others = [name.replace("W_query", other) for other in ("W_key", "W_value") if ".att.W_query." in name]
        if missing := [other for other in others if other not in named]:
            raise GPTError("layout.missing", names=", ".join(missing))
        if not re.search(r"\.att\.W_(key|value)\.", name):
            weights[rename(name, names)] = (tensor, *(named[other] for other in others))
    return weights


def known_options(options: Mapping[str, object], known: set[str], where: str) -> Options:
    """The options. Raises ValueError for one that is not known: it may change the mathematics."""
    if unknown := sorted(set(options) - known):
        raise GPTError("layout.option", where=where, names=", ".join(map(str, unknown)))
    return dict(options)


def is_tied(weights: Weights) -> bool:
    """Whether the head is the embedding's matrix: absent, or equal to it."""
    if "lm_head.weight" not in weights:
        return True
    head, wte = weights["lm_head.weight"][0], weights["wte.weight"][0]
    return head.shape == wte.shape and (head.data_ptr() == wte.data_ptr() or torch.equal(head, wte))


def match_config(weights: Weights, stated: Options, n_head: int | None) -> GPTConfig:
    """The configuration on which weights, stated options and n_head agree. Raises ValueError if they do not."""
    found = read_sizes(weights)
    for name in stated.keys() & found.keys() - {"tie_weights"}:
        if stated[name] not in (found[name], None):
            raise GPTError("layout.contradiction", name=name, stated=stated[name], found=found[name])
    stated_heads = stated.get("n_head")
    if stated_heads is None and n_head is None:
        raise HeadsUnknown("layout.heads_unknown", n_embd=found["n_embd"])
    if stated_heads is not None and n_head not in (stated_heads, None):
        raise GPTError("layout.n_head", stated=stated_heads, n_head=n_head)
    found["n_head"] = n_head if stated_heads is None else stated_heads
    if found["n_ff"] == 4 * found["n_embd"]:
        found["n_ff"] = None
    return GPTConfig(**{**stated, **found})


def read_sizes(weights: Weights) -> Options:
    """Every option that the names and shapes of the weights determine."""
    for name in ("wte.weight", "h.0.mlp.c_fc.weight", *({"wpe.weight"} & set(weights))):
        if name not in weights or weights[name][0].dim() != 2:
            raise GPTError("layout.not_a_matrix", name=name)
    vocab_size, n_embd = weights["wte.weight"][0].shape
    found: Options = {
        "vocab_size": vocab_size,
        "n_embd": n_embd,
        "n_layer": len({name.split(".")[1] for name in weights if re.match(r"h\.\d+\.", name)}),
        "n_ff": weights["h.0.mlp.c_fc.weight"][0].shape[0],
        "bias": "ln_f.bias" in weights,
        "tie_weights": is_tied(weights),
    }
    if found["bias"]:
        found["qkv_bias"] = "h.0.attn.c_attn.bias" in weights
    if "wpe.weight" in weights:
        found["block_size"] = weights["wpe.weight"][0].shape[0]
    return found


def expected_shapes(config: GPTConfig) -> dict[str, tuple[int, ...]]:
    """Name and shape of every weight that a checkpoint of this configuration has."""
    shapes = {name: tuple(value.shape) for name, value in meta_model(config).state_dict().items()}
    if config.tie_weights:
        del shapes["lm_head.weight"]
    return shapes


def check_weights(config: GPTConfig, weights: Weights, their_names: Mapping[str, str]) -> None:
    """Raise ValueError that lists the weights which are missing, unexpected, of the wrong shape or type."""
    expected = expected_shapes(config)
    found = {name: concatenated_shape(part) for name, part in weights.items()}
    problems = {
        "missing": [name for name in expected if name not in found],
        "unexpected": [name for name in found if name not in expected],
        "wrong shape": [name for name in expected if found.get(name, expected[name]) != expected[name]],
        "not floating point": [name for name, part in weights.items() if not all(t.is_floating_point() for t in part)],
    }
    listed = []
    for kind, names in problems.items():
        shown = [
            rename(name, their_names) + (f" {found[name]} instead of {expected[name]}" if kind == "wrong shape" else "")
            for name in names[:MAX_LISTED_WEIGHTS]
        ]
        more = f" and {len(names) - len(shown)} more" if len(names) > len(shown) else ""
        listed += [f"{kind}: {', '.join(shown)}{more}"] if names else []
    if listed:
        raise GPTError("layout.misfits", problems="; ".join(listed))


def concatenated_shape(part: tuple[Tensor, ...]) -> tuple[int, ...]:
    """The shape of tensors concatenated along the first axis; () if they cannot be."""
    if any(t.dim() == 0 or t.shape[1:] != part[0].shape[1:] for t in part):
        return ()
    return (sum(t.shape[0] for t in part), *part[0].shape[1:])
