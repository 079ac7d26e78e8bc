"""GPT checkpoint layouts as data: the name of each weight, and how matrices are stored.

LAYOUTS contains the layouts used by other projects. Any other layout can be given as a JSON file (`read_layout`) or
inferred (`gpt.models.checkpoints.infer`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import permutations
from pathlib import Path
from typing import Any, Literal, cast, get_args

from gpt.config import Activation, RotaryScaling
from gpt.errors import GPTError, check_choice, is_number, require
from gpt.models.checkpoints.untrusted import read_json

HUGGING_FACE, NANOGPT, MINGPT, OURS, CUSTOM = "Hugging Face GPT-2", "nanoGPT", "minGPT", "Glassbox GPT", "custom GPT"
BUILD_NANOGPT, BARE = "build-nanogpt", "GPT with GPT-2's names"
LAYOUT_FILE = "names.json"  # read automatically if it is next to the weights
INFER = "infer"  # passed instead of the name of a layout file
STATED = object()  # see `Layout.stated`
Options = dict[str, Any]  # under GPTConfig's names
AttnScale = float | Literal["head_size", "n_embd"]
SCALES = ("head_size", "n_embd")  # widths whose square root may divide the attention scores
SEPARATE = ("h.{n}.attn.q", "h.{n}.attn.k", "h.{n}.attn.v")  # instead of c_attn
GATE = "h.{n}.mlp.c_gate"
BLOCK_ROLES = "ln_1 attn.c_attn attn.q attn.k attn.v attn.c_proj ln_2 mlp.c_gate mlp.c_fc mlp.c_proj"
ROLES = ("wte", "wpe", *(f"h.{{n}}.{name}" for name in BLOCK_ROLES.split()), "ln_f", "lm_head")
# Linear layers of a block. In transformers' GPT-2, they are stored as (in, out), like in OpenAI's released weights.
MATRICES = ("h.{n}.attn.c_attn", "h.{n}.attn.c_proj", GATE, "h.{n}.mlp.c_fc", "h.{n}.mlp.c_proj")
QKV_ORDERS = (*map("".join, permutations("qkv")), "heads")
# Fields that a layout file may contain, and options, in case neither the weights nor the configuration determine them.
LAYOUT_FIELDS = ("transposed", "qkv_order", "n_head", "attn_scale", "rotary_pairs", "activation")
LAYOUT_OPTIONS = ("norm", "norm_eps", "position", "rotary_base", "rotary_share", "n_kv_head", "block_size", "parallel")
RotaryPairs = Literal["half", "interleaved", "backwards"]

# {our name: name in a book's GPTModel}. That model has separate matrices for query, key and value.
BOOK_NAMES = {
    "wte": "tok_emb",
    "wpe": "pos_emb",
    "h.{n}.ln_1.weight": "trf_blocks.{n}.norm1.scale",
    "h.{n}.ln_1.bias": "trf_blocks.{n}.norm1.shift",
    **{f"h.{{n}}.attn.{name[0]}": f"trf_blocks.{{n}}.att.W_{name}" for name in ("query", "key", "value")},
    "h.{n}.attn.c_proj": "trf_blocks.{n}.att.out_proj",
    "h.{n}.ln_2.weight": "trf_blocks.{n}.norm2.scale",
    "h.{n}.ln_2.bias": "trf_blocks.{n}.norm2.shift",
    "h.{n}.mlp.c_fc": "trf_blocks.{n}.ff.layers.0",
    "h.{n}.mlp.c_proj": "trf_blocks.{n}.ff.layers.2",
    "ln_f.weight": "final_norm.scale",
    "ln_f.bias": "final_norm.shift",
    "lm_head": "out_head",
}
# The book's later models: Llama 3.2, and Qwen3 with a class of its own for norms.
BOOK_LLAMA_NAMES = {
    **{ours: theirs for ours, theirs in BOOK_NAMES.items() if "ln_" not in ours and ours != "wpe"},
    "h.{n}.ln_1": "trf_blocks.{n}.norm1",
    "h.{n}.ln_2": "trf_blocks.{n}.norm2",
    GATE: "trf_blocks.{n}.ff.fc1",
    "h.{n}.mlp.c_fc": "trf_blocks.{n}.ff.fc2",
    "h.{n}.mlp.c_proj": "trf_blocks.{n}.ff.fc3",
    "ln_f": "final_norm",
}
BOOK_QWEN_NAMES = {
    **{ours: theirs for ours, theirs in BOOK_LLAMA_NAMES.items() if "ln_" not in ours},
    **{ours: theirs for ours, theirs in BOOK_NAMES.items() if theirs.endswith(".scale")},
    "h.{n}.attn.q_norm.weight": "trf_blocks.{n}.att.q_norm.scale",
    "h.{n}.attn.k_norm.weight": "trf_blocks.{n}.att.k_norm.scale",
}
LLAMA_32_HEADS = {2048: 32, 3072: 24}  # {width: number of heads} of Llama 3.2 1B and 3B
ROTARY = {"norm": "rms", "position": "rotary", "block_size": 2**17}
META_NAMES = {
    "wte": "tok_embeddings",
    "h.{n}.ln_1": "layers.{n}.attention_norm",
    **{f"h.{{n}}.attn.{each}": f"layers.{{n}}.attention.w{each}" for each in "qkv"},
    "h.{n}.attn.c_proj": "layers.{n}.attention.wo",
    "h.{n}.ln_2": "layers.{n}.ffn_norm",
    GATE: "layers.{n}.feed_forward.w1",
    "h.{n}.mlp.c_fc": "layers.{n}.feed_forward.w3",
    "h.{n}.mlp.c_proj": "layers.{n}.feed_forward.w2",
    "ln_f": "norm",
    "lm_head": "output",
}
GPT2_NAMES = {role: role for role in ROLES if role not in (*SEPARATE, GATE)}


@dataclass(frozen=True)
class Layout:
    """The names and storage format of the weights in one kind of checkpoint, and where its options are stated."""

    title: str
    # {our name: stored name} for modules or single weights (ROLES); "{n}" stands for the block number, "{h}" for the
    # head number. If two roles have the same name, they share the weights.
    names: Mapping[str, str]
    activation: Activation = "gelu"  # in the project's code; a checkpoint may name another
    transposed: tuple[str, ...] = ()  # roles of the matrices stored as (in, out)
    qkv_order: str = "qkv"  # in a fused matrix; "heads" means that query, key and value alternate, head by head
    n_head: int | None = None  # None if the checkpoint contains it or if it is unknown
    norm_offset: float = 0.0  # number to add to the stored norm weights
    attn_scale: AttnScale | None = None  # see `Hints`
    # Which numbers in a head are rotated together. "half" pairs each number with the one half a head further along, as
    # in this project; "interleaved" pairs neighbours, as in Meta's Llama and llama2.c; "backwards" pairs like "half",
    # but turns the other way, as in nanochat.
    rotary_pairs: RotaryPairs = "half"
    options: Mapping[str, Any] = field(default_factory=dict)  # set in the project's code, under GPTConfig's names

    # The others describe the models with one `model_type` in transformers.
    prefix: str = ""  # of the names; it is missing in models saved without their head
    # {our option: (name in config.json, value that transformers uses if it is missing, or STATED)}
    stated: Mapping[str, tuple[str, Any]] = field(default_factory=dict)
    others: Mapping[str, Any] = field(default_factory=dict)  # {further option of config.json: value if it is missing}
    powers: Mapping[str, tuple[str, float]] = field(default_factory=dict)  # {our option: (other option, exponent)}
    required: Mapping[str, Any] = field(default_factory=dict)  # {option: the only value that is supported}
    activations: Mapping[str, str] = field(default_factory=dict)  # names that have a different meaning in this family
    window: str = "sliding_window"  # option for the attention window, which applies only if `others` contains it
    split: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # {stored matrix: matrices stacked in it}
    skip_rows: Mapping[str, int] = field(default_factory=dict)  # {role: rows to skip at the start of its matrix}
    plain_norms: bool = False  # whether the norms have neither weights nor biases
    normed_embedding: bool = False  # whether RMSNorm without weights follows the embedding
    model_class: str = ""  # class in transformers

    @property
    def theirs(self) -> dict[str, str]:
        return {ours: theirs for ours, (theirs, _) in self.stated.items()}

    @property
    def defaults(self) -> dict[str, Any]:
        return {theirs: value for theirs, value in self.stated.values() if value is not STATED} | dict(self.others)

    def to_json(self) -> str:
        usual = Layout("", {})
        other = {name: getattr(self, name) for name in LAYOUT_FIELDS if getattr(self, name) != getattr(usual, name)}
        content = {"names": dict(self.names), "activation": self.activation, **other, **self.options}
        return json.dumps(content, indent=2)


@dataclass(frozen=True)
class Hints:
    """Settings that the user provides because the checkpoint does not contain them."""

    n_head: int | None = None
    activation: Activation | None = None  # defaults to the layout's
    # Factor that multiplies q k^T. "head_size" divides by the square root of a head's width, "n_embd" by the square
    # root of the model's width. Defaults to "head_size" unless that is ambiguous.
    attn_scale: AttnScale | None = None
    # A layout file (`read_layout`), or "infer" to accept the roles inferred from the names and shapes of the weights.
    # Defaults to names.json next to the weights, if it exists.
    names: Path | str | None = None
    weights: str | None = None  # entry to read from a file that contains several models, such as "ema"
    base: Path | str | None = None  # of an adapter; defaults to the one in the same folder, then to the one it states
    strength: float | None = None  # factor of an adapter's changes; defaults to 1, and 0 is the base model

    def __post_init__(self) -> None:
        check_attn_scale(self.attn_scale)

    def given(self) -> dict[str, Any]:
        """Return the hints that were given, as arguments for `gpt.load_model`. Paths become strings."""
        return {name: str(v) if isinstance(v, Path) else v for name, v in vars(self).items() if v is not None}


def check_attn_scale(value: object) -> None:
    """Raise ValueError unless value is None, a positive number, "head_size" or "n_embd"."""
    is_known = value is None or value in SCALES or (is_number(value) and value > 0)
    require(is_known, "argument.attn_scale", value=value)


NO_HINTS = Hints()


class Unclear(GPTError):
    """Raised when the user must confirm or add something. Its values include `n_embd`, and `activation` or a `layout`.

    `layout` is the contents of a layout file. `choices` are the possible numbers of heads, or none if that is known.
    """

    @property
    def layout(self) -> dict[str, Any]:
        return dict(json.loads(str(self.values["layout"]))) if "layout" in self.values else self.values

    @property
    def activation(self) -> Activation:
        return cast(Activation, self.layout["activation"])

    @property
    def choices(self) -> list[int]:
        n_embd = cast(int, self.values["n_embd"])
        return [] if "n_head" in self.layout else [n for n in range(1, min(n_embd, 128) + 1) if n_embd % n == 0]


class HeadsUnknown(Unclear):
    """Raised when a checkpoint does not specify the number of heads. It may have the layout's `activation`."""


class NamesInferred(Unclear):
    """Raised when the roles of weights with unknown names were inferred and have not been confirmed."""


class ScaleUnknown(GPTError):
    """Raised when attention scores may be scaled in two ways. Its `values` map each of SCALES to its width."""


class NamesUnknown(GPTError):
    """Raised when roles cannot be inferred. Its values include a `draft`, a layout file with "?" for these roles."""


# Layouts with their own names. `translate.known_layout` distinguishes those with GPT-2's names.
BOOK = Layout("GPTModel", BOOK_NAMES, "gelu_tanh")
BOOK_LLAMA = Layout(
    "Llama3Model",
    BOOK_LLAMA_NAMES,
    "silu",
    options={**ROTARY, "rotary_base": 500_000.0, "rotary_scaling": RotaryScaling("llama3", 32.0)},
)
BOOK_QWEN = Layout(
    "Qwen3Model", BOOK_QWEN_NAMES, "silu", options={**ROTARY, "norm_eps": 1e-6, "rotary_base": 1e6, "qk_norm": True}
)
META = Layout(
    "Llama with Meta's names",
    META_NAMES,
    "silu",
    rotary_pairs="interleaved",
    options={"norm": "rms", "position": "rotary", "block_size": 2048},
)
LAYOUTS = (
    BOOK,
    BOOK_LLAMA,
    BOOK_QWEN,
    META,
    Layout("GPT with blocks", {ours: name.replace("h.{n}", "blocks.{n}") for ours, name in GPT2_NAMES.items()}),
)
# Layouts whose names are inferred without asking: {name of query, key and value, or of the query: title}.
INFERRED = {"blocks.{n}.attn.qkv_proj": "GPT with qkv_proj", "blocks.{n}.sa.heads.{h}.query": "GPTLanguageModel"}
GPT2_LAYOUTS = {title: Layout(title, GPT2_NAMES, "gelu_tanh") for title in (BUILD_NANOGPT, MINGPT, OURS, BARE)}
GPT2_LAYOUTS[HUGGING_FACE] = Layout(HUGGING_FACE, GPT2_NAMES, "gelu_tanh", MATRICES)
GPT2_LAYOUTS[NANOGPT] = Layout(NANOGPT, GPT2_NAMES)


def read_layout(path: Path) -> Layout:
    """Read a layout file: {"names": {our name: stored name}} and, as needed, the other fields of `Layout`."""
    content = read_json(path, dict)
    names = content.pop("names", None)
    if not isinstance(names, dict) or not all(isinstance(name, str) for name in names.values()):
        raise GPTError("layout.file", file=path.name, reason='"names" must give a name for each of ours')
    for role in (re.sub(r"\.(weight|bias)$", "", ours) for ours in names):
        check_choice("names", role, ROLES)
    for ours, theirs in names.items():
        require(theirs != "?", "layout.file", file=path.name, reason=f'{ours} is still "?"')
    stated = {name: content.pop(name) for name in LAYOUT_FIELDS if name in content}
    given = Layout(CUSTOM, names, options=known_options(content, set(LAYOUT_OPTIONS), path.name), **stated)
    require(isinstance(given.transposed, tuple | list), "layout.file", file=path.name, reason='"transposed" is no list')
    check_choice("qkv_order", given.qkv_order, QKV_ORDERS)
    check_choice("rotary_pairs", given.rotary_pairs, get_args(RotaryPairs))
    check_attn_scale(given.attn_scale)
    return given


def known_options(options: Mapping[str, object], known: set[str], where: str) -> Options:
    """Return the options. Raises ValueError for an unknown option, because it might change the computation."""
    if unknown := sorted(set(options) - known):
        raise GPTError("layout.option", where=where, names=", ".join(map(str, unknown)))
    return dict(options)
