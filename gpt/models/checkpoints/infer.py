"""Infer the layout of a GPT from the shapes of its weights and the words in their names.

Shapes identify the embeddings, a fused query-key-value matrix and the feed-forward network. Words distinguish the query
from the key, the first norm from the second, and the head from the embedding. Any remaining ambiguity raises an error.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from torch import Tensor

from gpt.config import Activation
from gpt.errors import GPTError, require
from gpt.models.checkpoints import layouts
from gpt.models.checkpoints.layouts import CUSTOM, GATE, INFERRED, MATRICES, ROLES, SEPARATE, Layout

WEIGHT_LEAVES, BIAS_LEAVES = ("weight", "w", "scale", "gamma", "g", "gain", "kernel"), ("bias", "b", "shift", "beta")
LEAF = re.compile(rf"(?:^|.*[._])({'|'.join((*WEIGHT_LEAVES, *BIAS_LEAVES))})", re.IGNORECASE)
POSITION = re.compile(r"pos\w*|wpe|pe")
TOKEN = re.compile(r"tok\w*|wte|emb\w*|word\w*|vocab\w*|e")
HEAD = re.compile(r"head|lm|unembed\w*|out|output|logits?|decoder|generator|classifier|toprobs|proj\w*|prj|u")
PARTS = (r"w?(to)?q(uer\w*|s)?", r"w?(to)?k(ey)?s?", r"w?(to)?v(al\w*|s)?")
FUSED_WORDS = re.compile(r"(c|in)?_?(attn|proj)|w?(qkv|qvk|kqv|kvq|vqk|vkq)|w?pack|query")
FIRST_NORM, SECOND_NORM = re.compile(r"att\w*|sa|mha|in|input|pre"), re.compile(r"mlp|ff\w*|feed|post|final|out")
GATES = re.compile(r"gate\w*|w1|fc1|linear1|1|g")  # Llama's order: gate, contraction, expansion
FEED_FORWARD = re.compile(r"mlp|ff\w*|feed")
EXPANDS = re.compile(r"(linear|dense|lin|w|fc)1?|up|in|inner|hidden|expand|intermediate|1|a")
CONTRACTS = re.compile(r"(linear|dense|lin|w|fc)2|down|out|output|outer|contract|2|b")
FUSED, OUTPUT, EXPANSION, CONTRACTION = (role for role in MATRICES if role != GATE)


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
    """Return the layout of weights with unknown names. Raises NamesUnknown with the first reason why it is unclear."""
    found = Inference({name: tuple(tensor.shape) for name, tensor in named.items() if tensor.is_floating_point()})
    steps = (found.find_blocks, found.find_norms, found.find_attention, found.find_feed_forward, found.find_embeddings)
    reasons: list[GPTError] = []
    for step in steps:
        try:
            step()
        except GPTError as reason:  # the other steps still find roles for the draft
            reasons.append(reason)
    if not reasons:
        return found.layout()
    known = [layouts.HUGGING_FACE, layouts.NANOGPT, layouts.MINGPT]
    known += [*(layout.title for layout in layouts.LAYOUTS), *INFERRED.values()]
    names, draft = ", ".join(list(named)[:3]), found.draft()
    raise layouts.NamesUnknown("layout.unknown", names=names, known=", ".join(known), reason=reasons[0], draft=draft)


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
        fused = self.roles.get(FUSED, Module(""))
        order = next((word[-3:] for word in words(fused.name) if sorted(word[-3:]) == ["k", "q", "v"]), "qkv")
        # Programs with one module per head follow a lecture that uses ReLU.
        activation: Activation = "relu" if any("{h}" in name for name in self.names().values()) else "gelu"
        title = next((INFERRED[name] for name in self.names().values() if name in INFERRED), CUSTOM)
        return Layout(title, self.names(), activation, tuple(self.transposed), order)

    def draft(self) -> str:
        """Return a layout file to complete by hand, with "?" for each role that was not found."""
        unused = [FUSED] if any(role in self.roles for role in SEPARATE) else [*SEPARATE]
        unused += ["wpe"] if self.is_rotary() else [GATE]
        missing = {role: "?" for role in ROLES if role not in self.roles and role not in unused}
        layout = Layout(CUSTOM, self.names() | missing)
        if self.is_rotary():
            options = {"norm": "rms", "position": "rotary"}
            layout = replace(layout, activation="silu", rotary_pairs="?", options=options)  # type: ignore[arg-type]
        return layout.to_json()

    def is_rotary(self) -> bool:
        """Return whether the weights look like Llama's: a gate, norms without biases, and no position embeddings."""
        norms = (self.roles.get(role, Module("")) for role in ("h.{n}.ln_1", "ln_f"))
        return GATE in self.roles and "wpe" not in self.roles and not any("bias" in norm.shapes for norm in norms)

    def names(self) -> dict[str, str]:
        """Return {role: name}, with a single name for a module whose weights are called weight and bias."""
        found: dict[str, str] = {}
        for role in (role for role in ROLES if role in self.roles):
            module = self.roles[role]
            plain = all(name == f"{module.name}.{leaf}" for leaf, name in module.names.items())
            found |= {role: module.name} if plain else {f"{role}.{leaf}": name for leaf, name in module.names.items()}
        return found

    def take(self, role: str, candidates: list[Module]) -> Module:
        """Assign a role to the only candidate. Raises ValueError if there is no candidate, or more than one."""
        require(candidates, "layout.no_role", role=role)
        require(len(candidates) == 1, "layout.unclear", role=role, names=", ".join(each.name for each in candidates))
        for group in (self.block, self.outside):
            group[:] = [module for module in group if module is not candidates[0]]
        self.roles[role] = candidates[0]
        return candidates[0]

    def find_blocks(self) -> None:
        """Separate the weights inside blocks from all others. The width is the most frequent size in their shapes."""
        starts = Counter(name[: match.start()] for name in self.shapes for match in re.finditer(r"\d+", name))
        prefix = max(starts, key=lambda start: (starts[start], -len(start)), default="")
        blocks: dict[str, dict[str, tuple[int, ...]]] = {}
        outside = dict(self.shapes)
        for name, shape in self.shapes.items():
            if match := re.match(rf"{re.escape(prefix)}(\d+)", name):
                blocks.setdefault(match[1], {})[f"{prefix}{{n}}{name[match.end() :]}"] = shape
                del outside[name]
        require(blocks, "layout.no_role", role="h.{n}")
        first = next(iter(blocks.values()))
        for number, block in blocks.items():
            if differing := [name for name in first.keys() | block.keys() if first.get(name) != block.get(name)]:
                raise GPTError("layout.blocks_differ", block=number, names=", ".join(sorted(differing)[:3]))
        self.width = Counter(size for shape in first.values() for size in shape).most_common(1)[0][0]
        self.block, self.outside = modules(first), modules(outside)

    def find_norms(self) -> None:
        self.take("ln_f", [module for module in self.outside if module.shape == (self.width,)])
        norms = [module for module in self.block if module.shape == (self.width,)]
        require(len(norms) == 2, "layout.norms", n=len(norms), names=", ".join(norm.name for norm in norms))

        def place(norm: Module) -> tuple[bool, bool, list[int]]:
            return norm.has(SECOND_NORM), not norm.has(FIRST_NORM), numbers(norm)

        first = min(map(place, norms))
        self.take("h.{n}.ln_1", [norm for norm in norms if place(norm) == first])
        self.take("h.{n}.ln_2", [norm for norm in norms if norm in self.block])

    def find_attention(self) -> None:
        C = self.width
        attention = [module for module in self.block if not module.has(FEED_FORWARD)]
        if fused := [m for m in attention if m.shape in ((3 * C, C), (C, 3 * C)) and m.has(FUSED_WORDS)]:
            self.transposed += [FUSED] if self.take(FUSED, fused).shape == (C, 3 * C) else []
        else:
            square = sorted((m for m in attention if self.is_square(m)), key=lambda module: module.name)
            if len(square) == 4 and len({re.sub(r"\d+(?!.*\d)", "", module.name) for module in square}) == 1:
                for role, module in zip((*SEPARATE, OUTPUT), square, strict=True):
                    self.take(role, [module])
                return
            for role, pattern in zip(SEPARATE, PARTS, strict=True):
                named = [m for m in self.block if m.has(pattern)]
                shared = [m for m in named if len(m.shape) == 2 and m.shape[1] == C > m.shape[0] > 0 == C % m.shape[0]]
                self.take(role, [m for m in named if self.is_square(m)] or shared)  # heads may share keys and values
        square = [module for module in self.block if self.is_square(module)]
        if len(square) > 1:  # a feed-forward matrix may also be square
            square = [m for m in square if m.has(r"att\w*|sa|mha|w?o")]
        if square:  # some programs have no output projection
            self.take(OUTPUT, square)

    def is_square(self, m: Module) -> bool:
        """Return whether a matrix has the shape C x C, is that of one head, or has the shape (nh, C, hs) or similar."""
        return self.width in m.shape if len(m.shape) == 3 else m.shape == (self.width // m.copies, self.width)

    def find_feed_forward(self) -> None:
        """Find the feed-forward matrices. The first is told by its bias, by words in its name, or its orientation."""
        C = self.width
        pair = [module for module in self.block if len(module.shape) == 2]
        gates = [module for module in pair if module.has(GATES)]
        if len(pair) == 3 and len(gates) == 1 and sum(module.shape == gates[0].shape for module in pair) == 2:
            pair.remove(self.take(GATE, gates))
        require(len(pair) == 2, "layout.feed_forward", n=len(pair), names=", ".join(module.name for module in pair))
        wide = max(size for module in pair for size in module.shape)
        rules: list[Callable[[Module], bool]] = [
            lambda module: wide != C and module.shapes.get("bias") == (wide,),
            lambda module: module.has(EXPANDS) and not module.has(CONTRACTS),
            lambda module: wide != C and module.shape == (wide, C),
            lambda module: numbers(module) < max(map(numbers, pair)),
        ]
        expands = next((found for rule in rules if len(found := [m for m in pair if rule(m)]) == 1), pair)
        first = self.take(EXPANSION, expands)
        self.take(CONTRACTION, [module for module in pair if module is not first])
        if first.shape == (C, wide) if wide != C else self.transposed:
            parts = [role for role in (*SEPARATE, OUTPUT) if len(self.roles.get(role, Module("")).shape) == 2]
            self.transposed += [*parts, EXPANSION, CONTRACTION]
        elif self.transposed:
            self.transposed += [OUTPUT]

    def find_embeddings(self) -> None:
        """Find the embeddings and the head, which names identify. No weights may be left over."""
        C = self.width
        group = [module for module in self.outside if C in module.shape]
        positions = [module for module in group if module.has(POSITION)]
        if not positions and len(group) == 3:  # two of the three have one row per token in the vocabulary
            sizes = Counter(size for module in group for size in module.shape if size != C)
            positions = [module for module in group if not any(sizes[size] > 1 for size in module.shape)]
        if positions or not self.is_rotary():
            group.remove(self.take("wpe", positions))
        if len(group) > 1:
            heads = [module for module in group if module.has(HEAD)]
            others = [module for module in group if not module.has(TOKEN)]
            module = self.take("lm_head", heads if len(heads) == 1 else others)
            self.transposed += ["lm_head"] if module.shape[0] == C != module.shape[1] else []
            group.remove(module)
        self.take("wte", group)
        require(positions, "layout.no_positions")
        left = [module.name for module in (*self.block, *self.outside)]
        require(not left, "layout.left_over", names=", ".join(left))


def numbers(module: Module) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", module.name)]


def words(name: str) -> list[str]:
    """Split a name into lower-case words, such as self, attn, q and proj for "self_attn.q_proj".

    Words that end with digits are returned both with and without the digits."""
    parts = [part for part in re.split(r"[._{}]+", name) if part]
    pieces = [piece for part in parts for piece in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", part)]
    return [word.lower() for word in (*parts, *pieces)]


def modules(shapes: Mapping[str, tuple[int, ...]]) -> list[Module]:
    """Group the weights by module. Modules for single heads, which differ only in a number, become one module."""
    found: dict[str, Module] = {}
    heads: dict[str, set[str]] = {}
    for name, shape in shapes.items():
        merged = re.sub(r"(heads?\D?)\d+", r"\1{h}", name)
        if match := LEAF.fullmatch(merged):
            stem, leaf = merged[: match.start(1)].rstrip("._"), match[1]
        elif match := re.fullmatch(r"(.*[._])?(w|b)_(\w+)", merged, re.IGNORECASE):  # W_Q, b_Q
            stem, leaf = (match[1] or "") + match[3], match[2]
        else:
            stem, leaf = merged, "weight"
        kind = "bias" if leaf.lower() in BIAS_LEAVES else "weight"
        module = found.setdefault(stem, Module(stem))
        module.shapes[kind], module.names[kind] = shape, merged
        heads.setdefault(merged, set()).add(name)
        module.copies = len(heads[merged])
    return [*found.values()]
