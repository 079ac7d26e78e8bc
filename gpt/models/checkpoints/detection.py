"""Detect a checkpoint's layout and translate its weights to our names.

The sizes follow from the weights. The configuration file adds options that shapes do not determine, such as the number
of heads and the activation function, and must match the weights.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import torch
from torch import Tensor

from gpt.checks import is_integer
from gpt.config import GPTConfig
from gpt.errors import GPTError
from gpt.model import meta_model
from gpt.models.checkpoints.contents import Contents, Deferred
from gpt.models.checkpoints.families import FAMILIES, GPT2, SIZES
from gpt.models.checkpoints.family_options import (
    MAX_CONTEXT,
    check_classifier,
    check_config,
    find_family,
    read_family_options,
)
from gpt.models.checkpoints.infer import infer_layout
from gpt.models.checkpoints.layouts import (
    BARE,
    BUILD_NANOGPT,
    CUSTOM,
    GPT2_LAYOUTS,
    GPT2_NAMES,
    HUGGING_FACE,
    LAYOUTS,
    MINGPT,
    NANOGPT,
    OURS,
    HeadsUnknown,
    Layout,
    NamesInferred,
    ScaleUnknown,
    known_options,
)
from gpt.models.checkpoints.stated import (
    INFER,
    MODEL_ARGS,
    NO_HINTS,
    Beside,
    Hints,
    Options,
    options_beside,
    options_inside,
    score_factor,
)
from gpt.models.checkpoints.translate import (
    Weights,
    duplicate_name,
    is_named,
    is_written_by_transformers,
    our_name,
    role_of,
    strip_wrappers,
    their_name,
    translate,
    translate_family,
    with_half_pairs,
)

GPT2_WEIGHTS = {f"{role}.weight" for role in GPT2_NAMES if role != "lm_head"}
GPT2_BIASES = {f"{role}.bias" for role in GPT2_NAMES}
OUR_OPTIONS = {field.name for field in fields(GPTConfig)}
NANOGPT_OPTIONS = {"n_layer", "n_head", "n_embd", "block_size", "bias", "vocab_size", "dropout"}
MAX_LISTED_WEIGHTS = 8  # maximum number listed in an error message for each kind of problem
# Names of further output heads, which do not change the logits.
EXTRA_HEADS = re.compile(r"(?!lm_head\.)(\w+_)?heads?_?\d*\.|score\.|critic\.")
# Names of buffers, such as attention masks and rotary angles, which are not weights.
BUFFERS = re.compile(
    r"(\.attn|(^|\.)attention)\.bias$|(^|\.)(\w*mask\w*|tril|triu|causal|version|IGNORE|inv_freq|freqs(_\w+)?"
    r"|(cos|sin)(_cached)?|position_ids|_extra_state|n_averaged)$"
)


# The layout of a checkpoint, and its configuration and weights under our names.
Translated = tuple[Layout, GPTConfig, Weights]


def detect_layout(contents: Contents, hints: Hints = NO_HINTS) -> Translated:
    """Find the layout of a checkpoint's weights and translate them to our names.

    Raises NamesInferred if the layout had to be inferred from names and shapes and the hints do not accept that;
    HeadsUnknown or ScaleUnknown if the number of heads or the attention scale is unknown; and ValueError for an unknown
    layout, an unsupported option, or weights that do not fit, which the message lists.
    """
    tensors, config, entries, given = contents.tensors, contents.config, contents.entries, contents.layout
    family = None if config is None else check_config(config)
    beside = contents.settings if config is None else Beside("config.json", config)
    if config is not None and family is None and given is None:
        return detect_own(tensors, config, hints)
    named = clean_names(tensors)
    check_classifier(named)
    if config and family and is_written_by_transformers(named, family):
        return detect_family(named, config, hints)
    if given and (absent := [theirs for role, theirs in given.names.items() if not is_named(role, given, named)]):
        raise GPTError(
            "layout.role_absent",
            "the given names include {names}, but no weight has this name: correct it, or remove it if the model has "
            "no such part",
            names=", ".join(absent),
        )
    known = given or known_layout(tensors, named, entries)
    layout = known or infer_layout(named)
    if layout.title == CUSTOM:
        named = {name: tensor for name, tensor in named.items() if tensor.is_floating_point()}
    weights, layout = translate(named, layout, hints.n_head)
    if layout.title == CUSTOM:
        fill_projections(weights)
    sizes = read_sizes(weights, layout)
    stated = stated_options(layout, beside, entries, sizes)
    if known is None and hints.names != INFER:
        told = {name: stated[name] for name in ("n_head", "activation", "attn_scale") if stated.get(name) is not None}
        raise NamesInferred(
            "layout.inferred",
            "no known layout has weights with these names. Names and shapes suggest these roles, for a model of width "
            "{n_embd} with LayerNorm before attention and feed-forward:\n{layout}\nIf this is right, confirm it with "
            "names='infer' (--names infer on the command line); else save it to a file, correct it, and pass the file "
            "as names",
            layout=replace(layout, **told).to_json(),
            n_embd=sizes["n_embd"],
        )
    if stated.get("tie_weights") is False:
        check_has_head(weights, layout)
    found = match_config(sizes, stated, hints, layout)
    if layout.title == CUSTOM:
        fill_biases(weights, found)
    return fitted(layout, found, weights)


def detect_own(tensors: Mapping[str, Tensor], options: Mapping[str, Any], hints: Hints) -> Translated:
    """Return a checkpoint in our own format, which states every option and has our names."""
    layout = GPT2_LAYOUTS[OURS]
    given = known_options(options, OUR_OPTIONS, "config.json")
    if given.get("qkv_bias") and not given.get("bias") and "h.0.attn.c_attn.bias" not in tensors:
        given["qkv_bias"] = None  # older checkpoints
    config = GPTConfig(**given)
    check_hints({"n_head": config.n_head, "activation": config.activation}, hints)
    match_scale(config, {"attn_scale": config.attn_scale}, hints, layout)
    weights: Weights = {name: (tensor,) for name, tensor in tensors.items()}
    check_weights(expected_shapes(config), weights, layout)
    return layout, config, weights


def detect_family(named: Mapping[str, Tensor], config: Mapping[str, object], hints: Hints) -> Translated:
    """Translate the weights of a model from a known family. The configuration determines every option.

    Raises:
        ValueError: If the weights or the hints contradict the configuration.
    """
    stated = read_family_options(config)
    weights, layout = translate_family(named, find_family(config), stated)
    layout = replace(layout, n_head=None)  # n_head comes from the configuration
    tied = stated["tie_weights"]
    if not tied:
        check_has_head(weights, layout)
    if tied and "wte.weight" not in weights and "lm_head.weight" in weights:  # either matrix may be stored
        weights["wte.weight"] = weights["lm_head.weight"]
    sizes = read_sizes(weights, layout)
    tied = tied and sizes["tie_weights"]  # transformers does not tie weights that differ
    sizes = {name: sizes[name] for name in ("vocab_size", "block_size", "n_layer", "n_embd", "n_ff") if name in sizes}
    stated.setdefault("attn_scale", None)  # so that a conflicting hint is rejected
    found = match_config({**sizes, "tie_weights": tied}, stated, hints, layout)
    return fitted(layout, found, weights)


def fitted(layout: Layout, config: GPTConfig, weights: Weights) -> Translated:
    """Check the weights and sort them into the model's order. Raises ValueError if they do not fit."""
    expected = expected_shapes(config)
    unused = {name for name in weights.keys() - expected.keys() if is_unused(name, weights)}
    weights = {name: part for name, part in weights.items() if name not in unused}
    check_weights(expected, weights, layout)
    if layout.rotary_pairs == "interleaved":
        weights = with_half_pairs(weights, config)
    return layout, config, weights


def is_unused(name: str, weights: Weights) -> bool:
    """Return whether a weight that the model lacks does not affect its logits: a further head, or integers in a buffer.

    A head with a row for each token may be the model's own under another name, unless that is present too.
    """
    if name == "lm_head.weight" or not any(tensor.is_floating_point() for tensor in weights[name]):
        return True  # a tied head, or a buffer
    n_vocab = weights["wte.weight"][0].shape[0]
    may_be_own = "lm_head.weight" not in weights and any(n_vocab in tensor.shape for tensor in weights[name])
    return EXTRA_HEADS.match(name) is not None and not may_be_own


def check_has_head(weights: Weights, layout: Layout) -> None:
    """Raise ValueError if the weights have no output head."""
    if "lm_head.weight" not in weights:
        raise GPTError(
            "layout.no_head",
            "the configuration has tie_word_embeddings=False, but the weights have no {name}: save the whole model "
            "with its head, or set tie_word_embeddings=True if the head is the token embedding",
            name=their_name("lm_head.weight", layout),
        )


def clean_names(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the weights without buffers, with wrapper prefixes removed from their names."""
    named: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        name = strip_wrappers(name)
        if BUFFERS.search(name):
            continue
        if name in named:
            raise duplicate_name(name)
        named[name] = tensor
    return named


def known_layout(
    tensors: Mapping[str, Tensor], named: Mapping[str, Tensor], entries: Mapping[str, object]
) -> Layout | None:
    """Return the known layout that uses these names, or None if no known layout does.

    Six layouts use GPT-2's names. Hugging Face stores matrices transposed (Conv1D). nanoGPT has a tied head, may lack
    biases, and saves model_args; minGPT has none of these properties. build-nanogpt has a tied head and saves its
    configuration, which has no option for biases. Our layout and plain state dicts have no outer module.
    """
    for layout in LAYOUTS:
        has_roles = all(is_named(role, layout, named) for role in layout.names if role != "lm_head")
        if has_roles and ("wpe" in layout.names or all(our_name(name, layout)[0] != name for name in named)):
            return layout
    if "wte.weight" not in named or not any(name.startswith("h.") for name in named):
        return None
    found = {role_of(name) for name in named}
    if GPT2_WEIGHTS - found and found - GPT2_WEIGHTS - GPT2_BIASES - {"lm_head.weight"}:  # only some of GPT-2's names
        return None
    qkv = named.get("h.0.attn.c_attn.weight", torch.empty(0))
    if qkv.dim() == 2 and qkv.shape[1] == 3 * qkv.shape[0]:
        return GPT2_LAYOUTS[HUGGING_FACE]
    if isinstance(entries.get(MODEL_ARGS), dict):
        return GPT2_LAYOUTS[NANOGPT]
    if not any("transformer." in name for name in tensors):
        return GPT2_LAYOUTS[BARE]
    if not is_tied(named.get("lm_head.weight"), named["wte.weight"]) and "ln_f.bias" in named:
        return GPT2_LAYOUTS[MINGPT]
    course = entries.get("config")
    is_course = isinstance(course, Mapping) and {"n_head", "block_size"} <= course.keys() and "bias" not in course
    return GPT2_LAYOUTS[BUILD_NANOGPT if is_course else NANOGPT]


def stated_options(layout: Layout, beside: Beside | None, entries: Mapping[str, object], sizes: Options) -> Options:
    """Return the options found next to the weights or in the checkpoint's other entries.

    Raises ValueError with both values if the two sources contradict each other.
    """
    model_args = entries.get(MODEL_ARGS)
    if layout.title == NANOGPT and isinstance(model_args, dict):
        known_options(model_args, NANOGPT_OPTIONS, MODEL_ARGS)
    inside = options_inside(entries, sizes.keys() - {"tie_weights"})
    if beside is None:
        return inside
    is_gpt2 = beside.options.get("model_type") == GPT2
    outside = options_of_gpt2(beside.options) if is_gpt2 else options_beside(beside)
    for name in outside.keys() & inside.keys():
        if outside[name] != inside[name]:
            raise GPTError(
                "layout.stated_twice",
                "{name} is {beside!r} in {file}, but {inside!r} in the checkpoint: correct {file}",
                name=name,
                beside=outside[name],
                file=beside.file,
                inside=inside[name],
            )
    return {**inside, **outside}


def options_of_gpt2(config: Mapping[str, object]) -> Options:
    """Read the options from the config.json of a transformers GPT-2. Raises ValueError for invalid options."""
    names = {**SIZES, **FAMILIES[GPT2].options}
    return {ours: value for ours, value in read_family_options(config).items() if names.get(ours) in config}


def is_tied(head: Tensor | None, wte: Tensor) -> bool:
    """Return whether the output head is tied to the embedding, that is, missing or equal to it."""
    if head is None:
        return True
    return head is wte or (not isinstance(head, Deferred) and torch.equal(head, wte))


def match_config(sizes: Options, stated: Options, hints: Hints, layout: Layout) -> GPTConfig:
    """Combine the weights' sizes, the stated options and the hints into a configuration.

    Raises ValueError with both values if two sources disagree, and HeadsUnknown or ScaleUnknown if a value is missing.
    """
    found = {**sizes, **({} if layout.n_head is None else {"n_head": layout.n_head})}
    for name in stated.keys() & found.keys() - {"tie_weights", "qkv_bias"}:
        if stated[name] not in (found[name], None):
            raise GPTError(
                "layout.contradiction",
                "{name} is {stated!r} in the configuration, but {found!r} in the weights",
                name=name,
                stated=stated[name],
                found=found[name],
            )
    known = {name: value for name, value in stated.items() if value is not None} | found
    check_hints(known, hints)
    if "n_head" not in known:
        raise HeadsUnknown(known["n_embd"], layout.activation)
    usual = {"n_ff": 4 * known["n_embd"], "n_kv_head": known["n_head"]}
    if is_integer(known["n_head"]) and known["n_head"] > 0:
        usual["head_dim"] = known["n_embd"] // known["n_head"]
    known |= {name: None for name, value in usual.items() if known.get(name) == value}  # equal for equal models
    if layout.options.get("position") == "rotary" and "block_size" in known:
        known["block_size"] = min(known["block_size"], MAX_CONTEXT)
    config = GPTConfig(**{"activation": layout.activation, **layout.options, **known, "attn_scale": None})
    return replace(config, attn_scale=match_scale(config, stated, hints, layout))


def check_hints(known: Options, hints: Hints) -> None:
    """Add the number of heads and the activation in the hints. Raises ValueError if the checkpoint states another."""
    for name in ("n_head", "activation"):
        value = getattr(hints, name)
        if value is not None and known.setdefault(name, value) != value:
            raise contradicts(name, known[name], value)


def contradicts(name: str, stated: object, given: object) -> GPTError:
    """Return the error for a hint that contradicts the checkpoint."""
    return GPTError(
        "layout.stated", "{name} is {stated} in the checkpoint, not {given}", name=name, stated=stated, given=given
    )


def match_scale(config: GPTConfig, stated: Options, hints: Hints, layout: Layout) -> float | None:
    """Return the factor for the attention scores, or None for the default. Raises the same errors as `match_config`."""
    n_embd, head_size = config.n_embd, config.head_size
    if hints.attn_scale is not None and "attn_scale" in stated:
        theirs, given = (score_factor(each, n_embd, head_size) for each in (stated["attn_scale"], hints.attn_scale))
        if theirs != given:
            raise contradicts("attn_scale", stated["attn_scale"], hints.attn_scale)
    scales = (hints.attn_scale, stated.get("attn_scale"), layout.attn_scale)
    scale = next((each for each in scales if each is not None), None)
    if scale is None and layout.asks_scale and config.n_head > 1:
        raise ScaleUnknown(
            "layout.scale_unknown",
            "this checkpoint has a module for each head and does not state how attention scores are scaled: pass "
            "attn_scale='head_size' (divide by the square root of {head_size}, the width of a head) or "
            "attn_scale='n_embd' (divide by the square root of {n_embd}, the width of the model)",
            n_embd=n_embd,
            head_size=head_size,
        )
    return score_factor(scale, n_embd, head_size)


def read_sizes(weights: Weights, layout: Layout) -> Options:
    """Return the options that follow from the names and shapes of the weights."""
    for name in ("wte.weight", "h.0.mlp.c_fc.weight", *({"wpe.weight"} & set(weights))):
        if name not in weights or weights[name][0].dim() != 2:
            raise GPTError(
                "layout.not_a_matrix",
                "the weights do not fit: {name} is missing or not a matrix",
                name=their_name(name, layout),
            )
    wte = weights["wte.weight"][0]
    biases = {name for name in weights if name.endswith(".bias")} - {"lm_head.bias"}
    found: Options = {
        "vocab_size": wte.shape[0],
        "n_embd": wte.shape[1],
        "n_layer": len({name.split(".")[1] for name in weights if re.match(r"h\.\d+\.", name)}),
        "n_ff": weights["h.0.mlp.c_fc.weight"][0].shape[0],
        "bias": bool(biases) if layout.title == CUSTOM else "ln_f.bias" in weights,
        "tie_weights": is_tied(weights.get("lm_head.weight", (None,))[0], wte),
    }
    found["qkv_bias"] = "h.0.attn.c_attn.bias" in weights
    if "h.0.mlp.c_gate.weight" in weights:
        found["gated"] = True
    if "lm_head.bias" in weights:
        found["head_bias"] = True
    if "wpe.weight" in weights:
        found["block_size"] = weights["wpe.weight"][0].shape[0]
    return found


def fill_projections(weights: Weights) -> None:
    """Add identity matrices as attention's output projections if no block has one."""
    if any(name.endswith("attn.c_proj.weight") for name in weights):
        return
    for name, part in list(weights.items()):
        if name.endswith("attn.c_attn.weight"):
            weights[name.replace("c_attn", "c_proj")] = (torch.eye(part[0].shape[-1]),)


def fill_biases(weights: Weights, config: GPTConfig) -> None:
    """Add zeros for biases that are missing from all blocks, if the model has other biases."""
    present = {role_of(name) for name in weights}
    for name, shape in expected_shapes(config).items():
        if name.endswith(".bias") and role_of(name) not in present:
            weights[name] = (torch.zeros(shape),)


def expected_shapes(config: GPTConfig) -> dict[str, tuple[int, ...]]:
    """Return {name: shape} for every weight in a checkpoint with this configuration."""
    shapes = {name: tuple(value.shape) for name, value in meta_model(config).state_dict().items()}
    if config.tie_weights:
        del shapes["lm_head.weight"]
    return shapes


def check_weights(expected: Mapping[str, tuple[int, ...]], weights: Weights, layout: Layout) -> None:
    """Raise ValueError listing the weights that are missing, unexpected, or of the wrong shape or data type.

    expected: {name: shape} of the model's weights.
    """
    found = {name: concatenated_shape(part) for name, part in weights.items()}
    problems = {
        "missing": [name for name in expected if name not in found],
        "unexpected": [name for name in found if name not in expected],
        "wrong shape": [name for name in expected if found.get(name, expected[name]) != expected[name]],
        "not floating point": [name for name, part in weights.items() if not part[0].is_floating_point()],
    }
    listed = []
    for kind, names in problems.items():
        shown = [
            their_name(name, layout) + (f" {found[name]} instead of {expected[name]}" if kind == "wrong shape" else "")
            for name in names[:MAX_LISTED_WEIGHTS]
        ]
        more = f" and {len(names) - len(shown)} more" if len(names) > len(shown) else ""
        listed += [f"{kind}: {', '.join(shown)}{more}"] if names else []
    if listed:
        raise GPTError("layout.misfits", "the weights do not fit; {problems}", problems="; ".join(listed))


def concatenated_shape(part: tuple[Tensor, ...]) -> tuple[int, ...]:
    """Return the shape of tensors after concatenation along the first axis, or () if their shapes do not match."""
    if len(part) == 1:
        return tuple(part[0].shape)
    if any(t.dim() == 0 or t.shape[1:] != part[0].shape[1:] for t in part):
        return ()
    return (sum(t.shape[0] for t in part), *part[0].shape[1:])
