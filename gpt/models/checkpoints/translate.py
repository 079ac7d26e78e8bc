"""Translate a checkpoint's weights from its layout's names and orientation to ours, and find its configuration."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields, replace

import torch
from torch import Tensor
from torch.nn.functional import rms_norm

from gpt.config import GPTConfig
from gpt.errors import GPTError, require
from gpt.model import meta_model
from gpt.models.checkpoints import layouts
from gpt.models.checkpoints.files import Contents, Deferred
from gpt.models.checkpoints.infer import infer_layout
from gpt.models.checkpoints.layouts import CUSTOM, GPT2_LAYOUTS, NANOGPT, SEPARATE, Hints, Layout, Options
from gpt.models.checkpoints.options import MODEL_ARGS, check_config, options_inside, read_family_options

Weights = dict[str, tuple[Tensor, ...]]  # {our name: stored tensors to concatenate along axis 0}

# Names of wrapper modules from torch.compile, DDP, FSDP, activation checkpointing and training programs.
WRAPPERS = re.compile(r"(?<![^.])(_orig_mod|module|model|_fsdp_wrapped_module|_checkpoint_wrapped_module)\.")
GPT2_WEIGHTS = {f"{role}.weight" for role in layouts.GPT2_NAMES if role != "lm_head"}
GPT2_BIASES = {f"{role}.bias" for role in layouts.GPT2_NAMES}
OUR_OPTIONS = {field.name for field in fields(GPTConfig)}
NANOGPT_OPTIONS = {"n_layer", "n_head", "n_embd", "block_size", "bias", "vocab_size", "dropout"}
SIZES = ("vocab_size", "block_size", "n_layer", "n_embd", "n_ff")
MAX_LISTED_WEIGHTS = 8  # maximum number listed in an error message for each kind of problem
# Names of further output heads, which do not change the logits.
EXTRA_HEADS = re.compile(r"(?!lm_head\.)(\w+_)?heads?_?\d*\.|score\.|critic\.")
# Names of buffers, such as attention masks and rotary angles, which are not weights.
BUFFERS = re.compile(
    r"(\.attn|(^|\.)attention)\.bias$|(^|\.)(\w*mask\w*|tril|triu|causal|version|IGNORE|inv_freq|freqs(_\w+)?"
    r"|(cos|sin)(_cached)?|position_ids|_extra_state|n_averaged)$"
)


def detect_layout(contents: Contents, hints: Hints = layouts.NO_HINTS) -> tuple[Layout, GPTConfig, Weights]:
    """Find a checkpoint's layout, its configuration, and its weights under our names. Errors: see `open_checkpoint`."""
    config, entries, given = contents.config, contents.entries, contents.layout
    named = clean_names(contents.tensors)
    family = None if config is None else check_config(config)
    if family and contents.stored_as and "h.0.attn.c_attn.weight" in named:  # bitsandbytes turns GPT-2's matrices
        family = replace(family, transposed=())
    is_theirs = family is not None and (contents.family is not None or is_written_by_transformers(named, family))
    if config is not None and (is_theirs or (family is None and given is None)):  # it states every option
        if family is None:  # our format
            own = GPTConfig(**layouts.known_options(config, OUR_OPTIONS, "config.json"))
            stated, layout = asdict(own) | {"n_ff": own.ff_size}, GPT2_LAYOUTS[layouts.OURS]
        else:
            stated = {"attn_scale": None} | read_family_options(config)
            layout = replace(contents.family or family, n_head=stated["n_head"])
        weights, layout = translate(named, layout, norm_eps=stated.get("norm_eps"))
        if stated["tie_weights"] and "lm_head.weight" in weights:  # either may be stored
            weights.setdefault("wte.weight", weights["lm_head.weight"])
        found = read_sizes(weights, layout)
        sizes = {name: found[name] for name in SIZES if name in found}
        # transformers ties no weights that differ. In our format, a head that differs is a contradiction.
        sizes["tie_weights"] = stated["tie_weights"] and found["tie_weights"]
        if family is None and sizes["tie_weights"] != stated["tie_weights"]:
            raise GPTError("layout.contradiction", name="tie_weights", stated=True, found=False)
    else:
        layout = given or known_layout(contents.tensors, named, entries) or infer_layout(named)
        weights, layout = translate(named, layout, hints.n_head)
        sizes = read_sizes(weights, layout)
        if layout.title == NANOGPT and isinstance(model_args := entries.get(MODEL_ARGS), dict):
            layouts.known_options(model_args, NANOGPT_OPTIONS, MODEL_ARGS)
        beside = contents.settings if config is None else config
        stated = options_inside(entries, sizes.keys() - {"tie_weights"}) | options_inside(beside or {})
        if given is None and layout.title == CUSTOM and hints.names != layouts.INFER:
            told = {name: stated[name] for name in stated.keys() & {"n_head", "activation", "attn_scale"}}
            inferred = replace(layout, **told).to_json()
            raise layouts.NamesInferred("layout.inferred", layout=inferred, n_embd=sizes["n_embd"])
    ours = match_config(sizes, stated, hints, layout)
    expected = expected_shapes(ours)
    weights = {name: part for name, part in weights.items() if name in expected or not is_unused(name, weights)}
    check_weights(expected, add_missing(weights, expected, layout), layout)
    return layout, ours, half_pairs(weights, ours, layout)


def is_unused(name: str, weights: Weights) -> bool:
    """Return whether a weight that the model lacks does not affect its logits: a further head, or integers in a buffer.

    A head with a row for each token may be the model's own under another name, unless that is present too.
    """
    if name == "lm_head.weight" or not any(tensor.is_floating_point() for tensor in weights[name]):
        return True  # a tied head, or a buffer
    n_vocab = weights["wte.weight"][0].shape[0]
    may_be_own = "lm_head.weight" not in weights and any(n_vocab in tensor.shape for tensor in weights[name])
    return EXTRA_HEADS.match(name) is not None and not may_be_own


def clean_names(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the weights without buffers, with wrapper prefixes removed from their names."""
    named: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        name = strip_wrappers(name)
        if BUFFERS.search(name):
            continue
        require(name not in named, "layout.duplicate", name=name)
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
    for layout in layouts.LAYOUTS:
        roles = [pattern(role, theirs).fullmatch for role, theirs in layout.names.items() if role != "lm_head"]
        has_roles = all(any(map(matches, named)) for matches in roles)
        if has_roles and ("wpe" in layout.names or all(our_names(name, layout) != [(name, 0)] for name in named)):
            return layout
    if "wte.weight" not in named or not any(name.startswith("h.") for name in named):
        return None
    found = {role_of(name) for name in named}
    if GPT2_WEIGHTS - found and found - GPT2_WEIGHTS - GPT2_BIASES - {"lm_head.weight"}:  # only some of GPT-2's names
        return None
    if is_written_by_transformers(named, GPT2_LAYOUTS[layouts.HUGGING_FACE]):
        return GPT2_LAYOUTS[layouts.HUGGING_FACE]
    if isinstance(entries.get(MODEL_ARGS), dict):
        return GPT2_LAYOUTS[NANOGPT]
    if not any("transformer." in name for name in tensors):
        return GPT2_LAYOUTS[layouts.BARE]
    if not is_tied(named.get("lm_head.weight"), named["wte.weight"]) and "ln_f.bias" in named:
        return GPT2_LAYOUTS[layouts.MINGPT]
    course = entries.get("config")
    is_course = isinstance(course, Mapping) and {"n_head", "block_size"} <= course.keys() and "bias" not in course
    return GPT2_LAYOUTS[layouts.BUILD_NANOGPT if is_course else NANOGPT]


def is_written_by_transformers(named: Mapping[str, Tensor], family: Layout) -> bool:
    """Return whether weights have the family's names and are stored in the orientation that transformers uses.

    Other projects also use GPT-2's names, but only transformers stores the matrices as (in, out).
    """
    qkv = named.get("h.0.attn.c_attn.weight", torch.empty(0))
    return not family.transposed or (qkv.dim() == 2 and qkv.shape[1] == 3 * qkv.shape[0])


def is_tied(head: Tensor | None, wte: Tensor) -> bool:
    """Return whether the output head is tied to the embedding, that is, missing or equal to it."""
    if head is None:
        return True
    if isinstance(head, Deferred) or isinstance(wte, Deferred):
        return head is wte
    return head.shape == wte.shape and (head.data_ptr() == wte.data_ptr() or torch.equal(head, wte))


def match_config(sizes: Options, stated: Options, hints: Hints, layout: Layout) -> GPTConfig:
    """Return the configuration. Raises ValueError if weights, options and hints contradict each other."""
    found = sizes if layout.n_head is None else {**sizes, "n_head": layout.n_head}
    for name, value in found.items():  # in this order, so that a width is named before what follows from it
        if name not in ("tie_weights", "qkv_bias") and stated.get(name) not in (value, None):
            raise GPTError("layout.contradiction", name=name, stated=stated[name], found=value)
    known = {name: value for name, value in stated.items() if value is not None} | found
    for name, hint in (("n_head", hints.n_head), ("activation", hints.activation)):
        if hint is not None and known.setdefault(name, hint) != hint:
            raise GPTError("layout.stated", name=name, stated=known[name], given=hint)
    if "n_head" not in known:
        raise layouts.HeadsUnknown("layout.heads_unknown", n_embd=known["n_embd"], activation=layout.activation)
    config = GPTConfig(**{"activation": layout.activation, **layout.options, **known, "attn_scale": None})
    widths = {"n_embd": config.n_embd, "head_size": config.head_size}
    scales = (hints.attn_scale, stated.get("attn_scale"), layout.attn_scale)
    given, theirs, usual = (widths[scale] ** -0.5 if isinstance(scale, str) else scale for scale in scales)
    theirs = config.score_scale if theirs is None and "attn_scale" in stated and given is not None else theirs
    if None not in (given, theirs) and given != theirs:
        raise GPTError("layout.stated", name="attn_scale", stated=stated["attn_scale"], given=hints.attn_scale)
    scale = next((each for each in (given, theirs, usual) if each is not None), None)
    # Code with one module per head follows a lecture, whose first edition divides by the square root of the model's
    # width and whose second edition divides by the square root of a head's width.
    if scale is None and config.n_head > 1 and any("{h}" in name for name in layout.names.values()):
        raise layouts.ScaleUnknown("layout.scale_unknown", head_size=config.head_size, n_embd=config.n_embd)
    return replace(config, attn_scale=scale)


def read_sizes(weights: Weights, layout: Layout) -> Options:
    """Return the options that follow from the names and shapes of the weights."""
    for name in ("wte.weight", "h.0.mlp.c_fc.weight", *({"wpe.weight"} & set(weights))):
        if name not in weights or weights[name][0].dim() != 2:
            raise GPTError("layout.not_a_matrix", name=their_name(name, layout))
    wte = weights["wte.weight"][0]
    biases = {name for name in weights if name.endswith(".bias")} - {"lm_head.bias"}
    found: Options = {
        "vocab_size": wte.shape[0],
        "n_embd": wte.shape[1],
        "n_layer": len({name.split(".")[1] for name in weights if re.match(r"h\.\d+\.", name)}),
        "n_ff": weights["h.0.mlp.c_fc.weight"][0].shape[0],
        "bias": bool(biases) if layout.title == CUSTOM else "ln_f.bias" in weights,
        "tie_weights": is_tied(weights.get("lm_head.weight", (None,))[0], wte),
        "qkv_bias": "h.0.attn.c_attn.bias" in weights,
        "gated": "h.0.mlp.c_gate.weight" in weights,
        "head_bias": "lm_head.bias" in weights,
    }
    found |= {"block_size": weights["wpe.weight"][0].shape[0]} if "wpe.weight" in weights else {}
    if layout not in (layouts.BOOK_LLAMA, layouts.BOOK_QWEN):
        return found
    q, k, _ = weights["h.0.attn.c_attn.weight"]  # the book's later models state no options
    n_head = layouts.LLAMA_32_HEADS.get(q.shape[1], 0)
    if layout == layouts.BOOK_QWEN:
        n_head = len(q) // len(weights["h.0.attn.q_norm.weight"][0])
    require(n_head, "layout.book_llama", width=q.shape[1])
    size = len(q) // n_head
    return found | {"n_head": n_head, "n_kv_head": len(k) // size, "head_dim": size}


def expected_shapes(config: GPTConfig) -> dict[str, tuple[int, ...]]:
    """Return {name: shape} for every weight in a checkpoint with this configuration."""
    state = meta_model(config).state_dict()
    return {name: tuple(state[name].shape) for name in state if name != "lm_head.weight" or not config.tie_weights}


def stored_shapes(layout: Layout, config: GPTConfig) -> dict[str, tuple[int, ...]]:
    """Return {name, without the prefix: shape} for the weights that are stored in a layout."""
    heads, shapes = {"q": config.n_head, "k": config.kv_heads, "v": config.kv_heads}, {}
    for name, shape in expected_shapes(config).items():
        module, _, leaf = name.rpartition(".")
        parts = {role_of(module): shape}
        if module.endswith("c_attn") and "h.{n}.attn.q" in layout.names:
            parts = {f"h.{{n}}.attn.{x}": (n * config.head_size, *shape[1:]) for x, n in heads.items()}
        for role, size in parts.items():
            if role in layout.names and not (layout.plain_norms and re.search(r"ln_|_norm", role)):
                size = size[::-1] if role in layout.transposed else size
                size = (size[0] + layout.skip_rows.get(role, 0), *size[1:])
                shapes[layout.names[role].replace("{n}", name.split(".")[1]) + f".{leaf}"] = size
    for fused, names in layout.split.items():
        for name in [name for name in shapes if f".{names[0]}." in name]:
            stacked = [shapes.pop(name.replace(names[0], part)) for part in names]
            shapes[name.replace(names[0], fused)] = (sum(size[0] for size in stacked), *stacked[0][1:])
    return shapes


def check_weights(expected: Mapping[str, tuple[int, ...]], weights: Weights, layout: Layout) -> None:
    """Raise ValueError listing the weights that are missing, unexpected, or of the wrong shape or data type."""
    found = {name: concatenated_shape(part) for name, part in weights.items()}
    differing = [name for name in expected if found.get(name, expected[name]) != expected[name]]
    problems = {
        "missing": [their_name(name, layout) for name in expected if name not in found],
        "unexpected": [their_name(name, layout) for name in found if name not in expected],
        "wrong shape": [f"{their_name(name, layout)} {found[name]} instead of {expected[name]}" for name in differing],
        "not floating point": [name for name, part in weights.items() if not part[0].is_floating_point()],
    }
    shown = {
        kind: names[:MAX_LISTED_WEIGHTS] + ["…"] * (len(names) > MAX_LISTED_WEIGHTS) for kind, names in problems.items()
    }
    listed = "; ".join(f"{kind}: {', '.join(names)}" for kind, names in shown.items() if names)
    require(not listed, "layout.misfits", problems=listed)


def concatenated_shape(part: tuple[Tensor, ...]) -> tuple[int, ...]:
    """Return the shape of tensors after concatenation along the first axis, or () if their shapes do not match."""
    if len(part) == 1:
        return tuple(part[0].shape)
    if any(t.dim() == 0 or t.shape[1:] != part[0].shape[1:] for t in part):
        return ()
    return (sum(t.shape[0] for t in part), *part[0].shape[1:])


def strip_wrappers(name: str) -> str:
    """Remove all wrappers, and GPT-2's outer module, from a name."""
    return WRAPPERS.sub("", name).removeprefix("transformer.")


def pattern(ours: str, theirs: str) -> re.Pattern[str]:
    """Return the pattern for a role's stored names. Groups: n, h, and leaf unless `ours` names a single weight."""
    text = re.escape(strip_wrappers(theirs)).replace(r"\{n\}", r"(?P<n>\d+)").replace(r"\{h\}", r"(?P<h>\d+)")
    return re.compile(text + ("" if ours.endswith((".weight", ".bias")) else r"(\.(?P<leaf>weight|bias))?"))


def our_names(name: str, layout: Layout) -> list[tuple[str, int]]:
    """Return our names for a weight, each with the number of its head. Names not in the layout are unchanged."""
    found = []
    for ours, theirs in layout.names.items():
        if match := pattern(ours, theirs).fullmatch(name):
            groups = match.groupdict()
            leaf = "" if ours.endswith((".weight", ".bias")) else f".{groups['leaf'] or 'weight'}"
            found.append((ours.replace("{n}", str(int(groups.get("n") or 0))) + leaf, int(groups.get("h") or 0)))
    return found or [(name, 0)]


def role_of(ours: str) -> str:
    """Return the role of a weight: our name with {n} instead of the block number."""
    return re.sub(r"^h\.\d+\.", "h.{n}.", ours)


def their_name(ours: str, layout: Layout) -> str:
    """Return the layout's name for one of our weights, or `ours` if it has none. Of several, this is the first."""
    role = role_of(ours)
    if not any(role.startswith(known) for known in layout.names):
        role = role.replace(".c_attn.", ".q.")
    for known, theirs in layout.names.items():
        if role == known or role.startswith(f"{known}."):
            return theirs.replace("{n}", ours.split(".")[1]).replace("{h}", "0") + role[len(known) :]
    return ours


def translate(
    named: Mapping[str, Tensor], layout: Layout, n_head: int | None = None, norm_eps: float | None = None
) -> tuple[Weights, Layout]:
    """Return the weights under our names, and the layout, with the number of heads if names or shapes determine it.

    All weights are views of the stored tensors. Those without a role keep their names. n_head: if the layout states
    none. norm_eps: for a norm after the embedding. Raises ValueError if two weights have the same role.
    """
    prefix = strip_wrappers(layout.prefix)
    named = {name.removeprefix(prefix): tensor for name, tensor in named.items()}
    for fused, names in layout.split.items():  # weights that stack several matrices
        for name in [name for name, tensor in named.items() if f".{fused}." in name and tensor.dim()]:
            rows = named.pop(name).chunk(len(names))
            named |= {name.replace(fused, part): tensor for part, tensor in zip(names, rows, strict=False)}
    found: dict[str, dict[int, Tensor]] = {}  # {our name, with separate query, key and value: {head: tensor}}
    for name, tensor in named.items():
        for ours, head in our_names(name, layout):
            require(head not in found.setdefault(ours, {}), "layout.duplicate", name=name)
            found[ours][head] = tensor
    if layout.title == CUSTOM:
        first = 0 if any(ours.startswith("h.0.") for ours in found) else 1  # some programs count blocks from 1
        found = {re.sub(r"^h\.(\d+)", lambda n: f"h.{int(n[1]) - first}", ours): each for ours, each in found.items()}
        for ours in [ours for ours in found if ours.endswith(".attn.v.bias")]:  # only the key may lack a bias
            found.setdefault(ours.replace(".v.", ".k."), {head: torch.zeros_like(v) for head, v in found[ours].items()})
    query = [*found.get("h.0.attn.q.weight", {}).values()]
    if "{h}" in layout.names.get(SEPARATE[0], "") and query:
        layout = replace(layout, n_head=len(query))
    elif query and query[0].dim() == 3:
        layout = replace(layout, n_head=len(query[0]))
    weights: Weights = {}
    for ours in sorted(found, key=lambda name: "qkv".find(name.rpartition(".")[0][-1:])):
        fused = re.sub(r"\.attn\.[qkv]\.", ".attn.c_attn.", ours)
        for _, tensor in sorted(found[ours].items()):
            parts = stored(tensor, ours, layout, layout.n_head or n_head)
            weights[fused] = (*weights.get(fused, ()), *parts)
    if layout.normed_embedding:  # a tied head has the weights before the norm
        weights.setdefault("lm_head.weight", weights["wte.weight"])
        wte = whole(weights["wte.weight"])

        def read(_: torch.dtype, rows: range) -> Tensor:
            return rms_norm(wte[rows.start : rows.stop].float(), wte.shape[-1:], eps=norm_eps)

        weights["wte.weight"] = (Deferred(read, torch.empty(wte.shape, device="meta")),)
    return weights, layout


def stored(tensor: Tensor, ours: str, layout: Layout, n_head: int | None) -> Iterable[Tensor]:
    """Return views of a stored tensor in our orientation, to be concatenated.

    Query, key and value may have shape (nh, C, hs) with biases (nh, hs), the output projection (nh, hs, C), and
    position embeddings (1, T, C).
    """
    role = re.sub(r"\.(weight|bias)$", "", role_of(ours))
    if ours == "wpe.weight" and tensor.dim() == 3 and 1 in tensor.shape[:2]:
        return [tensor[0] if len(tensor) == 1 else tensor[:, 0]]
    if role in SEPARATE and tensor.dim() == 3:
        return [head.t() if head.shape[0] >= head.shape[1] else head for head in tensor]
    if role in SEPARATE and tensor.dim() == 2 and ours.endswith(".bias"):
        return list(tensor)
    if role.endswith("attn.c_proj") and tensor.dim() == 3:
        return [tensor.flatten(0, 1).t()]
    if tensor.dim() == 2 and role in layout.transposed:
        tensor = tensor.t()
    if tensor.dim() and role in layout.skip_rows:
        return [tensor[layout.skip_rows[role] :]]
    if not role.endswith("attn.c_attn") or layout.qkv_order == "qkv" or not tensor.dim():
        return [tensor]
    if layout.qkv_order != "heads":
        parts = tensor.chunk(3)
        return [parts[layout.qkv_order.index(letter)] for letter in "qkv"]
    if n_head is None or len(tensor) % (3 * n_head):
        raise layouts.HeadsUnknown("layout.heads_unknown", n_embd=len(tensor) // 3, activation=layout.activation)
    heads = tensor.unflatten(0, (n_head, 3, -1))
    return [heads[head, part] for part in range(3) for head in range(n_head)]


def whole(parts: tuple[Tensor, ...] | list[Tensor]) -> Tensor:
    """Return the parts of a weight as one tensor, without copying a single part."""
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def half_pairs(weights: Weights, config: GPTConfig, layout: Layout) -> Weights:
    """Reorder the query and key rows of a model that rotates adjacent dimensions as pairs, or backwards.

    `gpt.rotary` pairs each dimension with the one half a head later. Of adjacent dimensions, the even rows of a head
    come first, followed by the odd rows; the halves of one that turns backwards are exchanged. All parts are views of
    the stored tensors.
    """
    if layout.rotary_pairs == "half":
        return weights
    turned = dict(weights)
    rows = [n * config.head_size for n in (config.n_head, config.kv_heads, config.kv_heads)]
    for name in [name for name in weights if ".attn.c_attn." in name]:
        q, k, v = weights[name] if len(weights[name]) == 3 else whole(weights[name]).split(rows)
        parts: list[Tensor] = []
        for head in (head for matrix in (q, k) for head in matrix.unflatten(0, (-1, config.head_size))):
            rotated, rest = head[: config.rotary_size], head[config.rotary_size :]
            is_backwards = layout.rotary_pairs == "backwards"
            parts += [*(reversed(rotated.chunk(2)) if is_backwards else (rotated[0::2], rotated[1::2])), rest]
        turned[name] = (*parts, v)
    return turned


def add_missing(weights: Weights, expected: Mapping[str, tuple[int, ...]], layout: Layout) -> Weights:
    """Add weights that no block has: those of plain norms; in custom layouts, zeros for biases, and the identity."""
    present, dtype = {role_of(name) for name in weights}, next(iter(weights.values()))[0].dtype
    for name, shape in expected.items():
        if role_of(name) in present:
            continue
        if layout.plain_norms and re.search(r"ln_|_norm", name):
            weights[name] = (torch.full(shape, float(name.endswith("weight")), dtype=dtype),)
        elif layout.title == CUSTOM and name.endswith(".bias"):
            weights[name] = (torch.zeros(shape, dtype=dtype),)
        elif layout.title == CUSTOM and name.endswith("attn.c_proj.weight"):  # some programs have no output projection
            weights[name] = (torch.eye(*shape, dtype=dtype),)
    return weights
