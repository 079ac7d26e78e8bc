"""Infer the layout of a GPT from the shapes of its weights and the words in their names.

Shapes identify the embeddings, a fused query-key-value matrix and the feed-forward network. Words distinguish the query
from the key, the first norm from the second, and the head from the embedding. Any remaining ambiguity raises an error.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from torch import Tensor

from gpt.checks import require
from gpt.config import Activation
from gpt.errors import GPTError
from gpt.models.checkpoints.layouts import (
    CUSTOM,
    GATE,
    HUGGING_FACE,
    LAYOUTS,
    MINGPT,
    NANOGPT,
    ROLES,
    SEPARATE,
    Layout,
    NamesUnknown,
)

WEIGHT_LEAVES, BIAS_LEAVES = ("weight", "w", "scale", "gamma", "g", "gain", "kernel"), ("bias", "b", "shift", "beta")
LEAF = re.compile(rf"(?:^|.*[._])({'|'.join((*WEIGHT_LEAVES, *BIAS_LEAVES))})", re.IGNORECASE)
POSITION = re.compile(r"pos\w*|wpe|pe")
TOKEN = re.compile(r"tok\w*|wte|emb\w*|word\w*|vocab\w*|e")
HEAD = re.compile(r"head|lm|unembed\w*|out|output|logits?|decoder|generator|classifier|toprobs|proj\w*|prj|u")
PARTS = {"q": r"w?(to)?q(uer\w*|s)?", "k": r"w?(to)?k(ey)?s?", "v": r"w?(to)?v(al\w*|s)?"}
FUSED = re.compile(r"(c|in)?_?(attn|proj)|w?(qkv|qvk|kqv|kvq|vqk|vkq)|w?pack|query")
FIRST_NORM, SECOND_NORM = re.compile(r"att\w*|sa|mha|in|input|pre"), re.compile(r"mlp|ff\w*|feed|post|final|out")
GATES = re.compile(r"gate\w*|w1|fc1|linear1|1|g")  # Llama's order: gate, contraction, expansion
FEED_FORWARD = re.compile(r"mlp|ff\w*|feed")
EXPANDS = re.compile(r"(linear|dense|lin|w|fc)1?|up|in|inner|hidden|expand|intermediate|1|a")
CONTRACTS = re.compile(r"(linear|dense|lin|w|fc)2|down|out|output|outer|contract|2|b")


@dataclass
class Module:
    """The weights of one module. In names, "{n}" stands for the block number and "{h}" for the head number."""

    name: str
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)  # shapes of "weight" and "bias"
    names: dict[str, str] = field(default_factory=dict)
    copies: int = 1  # number of heads

    @property
    def shape(self) -> tuple[int, ...]:
        return self.shapes.get("weight", ())

    def has(self, pattern: str | re.Pattern[str]) -> bool:
        return any(re.fullmatch(pattern, word) for word in words(self.name.split("{n}")[-1]))


def infer_layout(named: Mapping[str, Tensor]) -> Layout:
    """Infer the layout of weights whose names match no known layout."""
    floating = {name: tuple(tensor.shape) for name, tensor in named.items() if tensor.is_floating_point()}
    inference = Inference(floating)
    try:
        return inference.layout()
    except GPTError as reason:
        raise NamesUnknown(
            "layout.unknown",
            names=", ".join(list(named)[:3]),
            known=", ".join([HUGGING_FACE, NANOGPT, MINGPT, *(layout.title for layout in LAYOUTS)]),
            reason=reason,
            draft=inference.draft(),
        ) from None


def no_role(role: str) -> GPTError:
    """Return the error for a role that matches no weight."""
    return GPTError("layout.no_role", role=role)


class Inference:
    """Finds the module for each role. shapes: {name: shape} of all weights."""

    def __init__(self, shapes: Mapping[str, tuple[int, ...]]) -> None:
        self.shapes = shapes
        self.width = 0
        self.block: list[Module] = []  # modules in a block that have no role yet
        self.outside: list[Module] = []
        self.roles: dict[str, Module] = {}
        self.transposed: list[str] = []

    def layout(self) -> Layout:
        self.find_blocks()
        self.find_norms()
        self.find_attention()
        self.find_feed_forward()
        self.find_embeddings()
        if left := [module.name for module in (*self.block, *self.outside)]:
            raise GPTError("layout.left_over", names=", ".join(left))
        fused = self.roles.get("h.{n}.attn.c_attn", Module(""))
        order = next((word[-3:] for word in words(fused.name) if sorted(word[-3:]) == ["k", "q", "v"]), "qkv")
        # Programs with one module per head follow a lecture that uses ReLU.
        activation: Activation = "relu" if any("{h}" in name for name in self.names().values()) else "gelu"
        return Layout(CUSTOM, self.names(), activation, tuple(self.transposed), order)

    def draft(self) -> str:
        """Return a layout file to complete by hand after `layout` failed, with "?" for each role that was not found."""
        for find in (self.find_attention, self.find_feed_forward, self.find_embeddings):
            with suppress(GPTError):
                find()
        found = self.names()
        unused = ["h.{n}.attn.c_attn"] if any(role in self.roles for role in SEPARATE) else list(SEPARATE)
        unused += ["wpe"] if self.is_rotary() else []
        unused += [] if self.is_rotary() else [GATE]
        missing = {role: "?" for role in ROLES if role not in self.roles and role not in unused}
        if not self.is_rotary():
            return Layout(CUSTOM, found | missing).to_json()
        options = {"norm": "rms", "position": "rotary"}
        return Layout(CUSTOM, found | missing, "silu", rotary_pairs="?", options=options).to_json()  # type: ignore[arg-type]

    def is_rotary(self) -> bool:
        """Return whether the weights look like Llama's: a gate, norms without biases, and no position embeddings."""
        norms = (self.roles.get(role) for role in ("h.{n}.ln_1", "ln_f"))
        biased = any("bias" in norm.shapes for norm in norms if norm is not None)
        return GATE in self.roles and "wpe" not in self.roles and not biased

    def names(self) -> dict[str, str]:
        """Return {role: name}, with a single name for a module whose weights are called weight and bias."""
        found: dict[str, str] = {}
        for role in (role for role in ROLES if role in self.roles):
            module = self.roles[role]
            plain = all(name == f"{module.name}.{leaf}" for leaf, name in module.names.items())
            found |= {role: module.name} if plain else {f"{role}.{leaf}": name for leaf, name in module.names.items()}
        return found

    def take(self, role: str, candidates: list[Module], group: list[Module]) -> Module:
        """Assign a role to the only candidate. Raises ValueError if there is no candidate, or more than one."""
        if not candidates:
            raise no_role(role)
        if len(candidates) > 1:
            raise GPTError("layout.unclear", role=role, names=", ".join(module.name for module in candidates))
        group.remove(candidates[0])
        self.roles[role] = candidates[0]
        return candidates[0]

    def find_blocks(self) -> None:
        """Separate the weights inside blocks from all others. The width is the most frequent size in their shapes."""
        prefix = block_prefix(self.shapes)
        inside = {name: shape for name, shape in self.shapes.items() if re.match(rf"{re.escape(prefix)}\d", name)}
        if not inside:
            raise no_role("h.{n}")
        self.width = Counter(size for shape in inside.values() for size in shape).most_common(1)[0][0]
        self.block = modules(same_in_all_blocks(inside, prefix))
        self.outside = modules({name: shape for name, shape in self.shapes.items() if name not in inside})

    def find_norms(self) -> None:
        self.take("ln_f", [module for module in self.outside if module.shape == (self.width,)], self.outside)
        norms = [module for module in self.block if module.shape == (self.width,)]
        if len(norms) != 2:
            raise GPTError("layout.norms", n=len(norms), names=", ".join(module.name for module in norms))
        second = [norm for norm in norms if norm.has(SECOND_NORM)]
        first = [norm for norm in norms if norm.has(FIRST_NORM) and norm not in second]
        if len(second) == 1 or len(first) == 1:
            first = [norm for norm in norms if norm not in second] if len(second) == 1 else first
        else:
            first = [norm for norm in norms if numbers(norm) < max(map(numbers, norms))] or norms
        self.take("h.{n}.ln_1", first, self.block)
        self.take("h.{n}.ln_2", [norm for norm in norms if norm in self.block], self.block)

    def find_attention(self) -> None:
        C = self.width
        fused = [
            m for m in self.block if m.shape in ((3 * C, C), (C, 3 * C)) and m.has(FUSED) and not m.has(FEED_FORWARD)
        ]
        if fused:
            module = self.take("h.{n}.attn.c_attn", fused, self.block)
            self.transposed += ["h.{n}.attn.c_attn"] if module.shape == (C, 3 * C) else []
        else:
            square = sorted((m for m in self.square() if not m.has(FEED_FORWARD)), key=lambda module: module.name)
            if len(square) == 4 and len({re.sub(r"\d+(?!.*\d)", "", module.name) for module in square}) == 1:
                for role, module in zip((*SEPARATE, "h.{n}.attn.c_proj"), square, strict=True):
                    self.take(role, [module], self.block)
                return
            for letter, pattern in PARTS.items():
                found = [m for m in self.square() if m.has(pattern)] or [m for m in self.shared() if m.has(pattern)]
                self.take(f"h.{{n}}.attn.{letter}", found, self.block)
        square = self.square()
        if len(square) > 1:  # a feed-forward matrix may also be square
            square = [m for m in square if m.has(r"att\w*|sa|mha|w?o")]
        if square:  # some programs have no output projection
            self.take("h.{n}.attn.c_proj", square, self.block)

    def square(self) -> list[Module]:
        """Return the matrices of shape C x C, those of individual heads, and those of shape (nh, C, hs) or similar."""
        C = self.width

        def is_square(m: Module) -> bool:
            rows = m.shape[:1] if len(m.shape) == 2 else ()
            return (len(m.shape) == 3 and C in m.shape) or (rows == (C // m.copies,) and m.shape[1] == C)

        return [module for module in self.block if is_square(module)]

    def shared(self) -> list[Module]:
        narrow = [m for m in self.block if len(m.shape) == 2 and m.shape[1] == self.width and m.shape[0] > 0]
        return [m for m in narrow if m.shape[0] < self.width and self.width % m.shape[0] == 0]

    def find_feed_forward(self) -> None:
        """Find the feed-forward matrices.

        The matrix that expands the width is identified by its bias or, failing that, by words in the names or by
        the orientation of nn.Linear."""
        C = self.width
        pair = [module for module in self.block if len(module.shape) == 2]
        gates = [module for module in pair if module.has(GATES)]
        if len(pair) == 3 and len(gates) == 1 and sum(module.shape == gates[0].shape for module in pair) == 2:
            self.take(GATE, gates, self.block)
            pair.remove(gates[0])
        if len(pair) != 2:
            raise GPTError("layout.feed_forward", n=len(pair), names=", ".join(module.name for module in pair))
        wide = max(size for module in pair for size in module.shape)
        rules: list[Callable[[Module], bool]] = [
            lambda module: wide != C and module.shapes.get("bias") == (wide,),
            lambda module: module.has(EXPANDS) and not module.has(CONTRACTS),
            lambda module: wide != C and module.shape == (wide, C),
            lambda module: numbers(module) < max(map(numbers, pair)),
        ]
        expands = next((found for rule in rules if len(found := [m for m in pair if rule(m)]) == 1), pair)
        first = self.take("h.{n}.mlp.c_fc", expands, self.block)
        self.take("h.{n}.mlp.c_proj", [module for module in self.block if module in pair], self.block)
        fused = self.roles.get("h.{n}.attn.c_attn")
        turned = first.shape == (C, wide) if wide != C else bool(self.transposed)
        if turned:
            parts = ["h.{n}.attn.q", "h.{n}.attn.k", "h.{n}.attn.v", "h.{n}.attn.c_proj"]
            square = [role for role in parts if role in self.roles and len(self.roles[role].shape) == 2]
            self.transposed += [*square, "h.{n}.mlp.c_fc", "h.{n}.mlp.c_proj"]
        elif fused is not None and self.transposed:
            self.transposed += ["h.{n}.attn.c_proj"]

    def find_embeddings(self) -> None:
        """Find the embeddings and the output head. Names identify the position embedding and the head."""
        C = self.width
        group = [module for module in self.outside if C in module.shape]
        positions = [module for module in group if module.has(POSITION)]
        if not positions and len(group) == 3:  # two of the three have one row per token in the vocabulary
            sizes = Counter(size for module in group for size in module.shape if size != C)
            positions = [module for module in group if not any(sizes[size] > 1 for size in module.shape)]
        if positions or not self.is_rotary():
            self.take("wpe", positions, self.outside)
        group = [module for module in self.outside if module in group]
        heads = [module for module in group if module.has(HEAD)]
        tokens = [module for module in group if module.has(TOKEN)]
        if len(group) > 1:
            head = heads if len(heads) == 1 else [module for module in group if module not in tokens]
            module = self.take("lm_head", head, self.outside)
            self.transposed += ["lm_head"] if module.shape[0] == C != module.shape[1] else []
            group.remove(module)
        self.take("wte", group, self.outside)
        require(positions, "layout.no_positions")


def numbers(module: Module) -> list[int]:
    """Return the numbers in a module's name."""
    return [int(number) for number in re.findall(r"\d+", module.name)]


def words(name: str) -> list[str]:
    """Split a name into lower-case words, such as self, attn, q and proj for "self_attn.q_proj".

    Words that end with digits are returned both with and without the digits."""
    parts = [part for part in re.split(r"[._{}]+", name) if part]
    pieces = [piece for part in parts for piece in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", part)]
    return [word.lower() for word in (*parts, *pieces)]


def block_prefix(names: Iterable[str]) -> str:
    """Return the part of the names before the block number: the most frequent prefix before a number."""
    starts = Counter(name[: match.start()] for name in names for match in re.finditer(r"\d+", name))
    return max(starts, key=lambda start: (starts[start], -len(start)), default="")


def same_in_all_blocks(inside: Mapping[str, tuple[int, ...]], prefix: str) -> dict[str, tuple[int, ...]]:
    """Return the weights of one block, with {n} as the block number. Raises ValueError if the blocks differ."""
    blocks: dict[str, dict[str, tuple[int, ...]]] = {}
    for name, shape in inside.items():
        number = re.findall(r"\d+", name[len(prefix) :])[0]
        blocks.setdefault(number, {})[f"{prefix}{{n}}{name[len(prefix) + len(number) :]}"] = shape
    first = next(iter(blocks.values()))
    for number, block in blocks.items():
        if differing := [name for name in first.keys() | block.keys() if first.get(name) != block.get(name)]:
            raise GPTError("layout.blocks_differ", block=number, names=", ".join(sorted(differing)[:3]))
    return first


def modules(shapes: Mapping[str, tuple[int, ...]]) -> list[Module]:
    """Group the weights by module. Modules for single heads, which differ only in a number, become one module."""
    found: dict[str, Module] = {}
    for name, shape in shapes.items():
        match = LEAF.fullmatch(name)
        start = re.fullmatch(r"(.*[._])?(w|b)_(\w+)", name, re.IGNORECASE)  # W_Q, b_Q
        if match:
            stem, leaf = name[: match.start(1)].rstrip("._"), match[1]
        elif start:
            stem, leaf = (start[1] or "") + start[3], start[2]
        else:
            stem, leaf = name, "weight"
        kind = "bias" if leaf.lower() in BIAS_LEAVES else "weight"
        module = found.setdefault(stem, Module(stem))
        module.shapes[kind], module.names[kind] = shape, name
    return list(merge_heads(found.values()))


def merge_heads(found: Iterable[Module]) -> Iterable[Module]:
    """Merge modules for single heads, such as "heads.0.key" and "heads.1.key", into one with {h} as the number."""
    groups: dict[str, list[Module]] = {}
    for module in found:
        groups.setdefault(re.sub(r"(heads?\D?)\d+", r"\1{h}", module.name), []).append(module)
    for name, members in groups.items():
        first = members[0]
        renamed = {kind: re.sub(r"(heads?\D?)\d+", r"\1{h}", own) for kind, own in first.names.items()}
        yield Module(name, first.shapes, renamed, len(members)) if "{h}" in name else first
