"""What is shown of steering a text: how a token was drawn, the branches, what a search found. No components."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from components.i18n import Language, t
from components.labels import percent, quoted, token_text, visible
from components.tabs.playground.views import Look, place
from components.widgets.choices import Choice, choices_value
from components.widgets.draw import Piece, draw_value
from components.widgets.tree import Lane, tree_value
from gpt import Generation, distribution
from gpt.documents.branches import Branches
from gpt.documents.pipeline import draw_strip, search_vocabulary

PIECES = 48  # of a strip that have a place of their own
THINNEST = 0.004  # share of the strip
LANES = 60
WORDS = 16  # tokens of a branch that are its label
HITS = 8


def draw(document: Generation, look: Look, language: Language) -> str:
    """How the selected token came about; "" for a token of the prompt."""
    tokenizer, position = document.loaded.tokenizer, selected(document, look)
    if position < document.n_prompt:
        return ""
    origin, token = document.origin(position), quoted(tokenizer, document.ids[position])
    number = document.draw(position)
    if origin.params is None or number is None:
        return draw_value(t(f"draw.{origin.how}", language, token=token))
    if position > document.n_read:
        return ""
    stages = distribution(document.logits(position - 1), origin.params, previous_ids=document.ids[:position])
    if origin.params.temperature == 0:
        return draw_value(t("draw.greedy", language, token=token))
    strip = draw_strip(stages.final, number)
    start, end = strip.bounds
    text = t(
        "draw.says", language, token=token, number=f"{number:.4f}", start=f"{start:.4f}", end=f"{end:.4f}",
        seed=origin.params.seed, position=position, temperature=f"{origin.params.temperature:g}",
    )  # fmt: skip
    pieces, drawn = _pieces(document, strip.ids, strip.ends, strip.place, language)
    return draw_value(text, pieces, number=number, place=drawn, mark=t("draw.mark", language, number=f"{number:.2f}"))


def selected(document: Generation, look: Look) -> int:
    """The position that is framed: unlike `Look.at` also the last token of a full context, which is never read."""
    last = len(document.ids) - 1
    return last if look.position < 0 else min(look.position, last)


def _pieces(
    document: Generation, ids: np.ndarray, ends: np.ndarray, drawn: int, language: Language
) -> tuple[list[Piece], int]:
    """The broad pieces one by one, the others together, but for the one that was drawn; and which that is."""
    starts = np.concatenate(([0.0], ends[:-1]))
    broad = min(PIECES, int((ends - starts >= THINNEST).sum()))
    cuts = sorted({*range(broad + 1), drawn, drawn + 1, len(ids)})
    pieces, number = [], 0
    for first, after in pairwise(cuts):
        if first == drawn:
            number = len(pieces)
        span = f"{starts[first]:.4f} – {ends[after - 1]:.4f}"
        if after - first == 1:
            name = quoted(document.loaded.tokenizer, int(ids[first]))
        else:
            name = t("draw.others", language, n=f"{after - first:,}")
        pieces.append(Piece(float(ends[after - 1]), f"{name} {span} ({percent(ends[after - 1] - starts[first])})"))
    return pieces, number


class _Line(NamedTuple):
    """A branch: its tokens of the tree that are no other's, the number of the line it parts from, and how deep."""

    nodes: list[int]
    parent: int | None
    start: int


def tree(document: Generation, language: Language) -> str:
    """The branches of a document; "" while there is only one, and the text goes to its end."""
    branches, path = document.tree, document.path
    if not branches.children(path[-1]) and len(branches.leaves()) == 1:
        return ""
    lines = _lines(branches)
    current, depths = set(path), branches.depths
    lanes = []
    for line in lines[:LANES]:
        mine = [node for node in line.nodes if node in current]
        lanes.append(
            Lane(
                parent=line.parent,
                start=line.start,
                end=depths[line.nodes[-1]],
                reached=depths[mine[-1]] if mine else -1,
                here=bool(mine) and mine[-1] == path[-1],
                label=_label(document, line),
                sent={"document": str(document.key), "node": line.nodes[-1]},
            )
        )
    more = len(lines) - len(lanes)
    key = "tree.says" if len(lines) > 1 else "tree.says.one"
    text = t(key, language, n=len(lines)) + (t("tree.more", language, n=more) if more else "")
    return tree_value(lanes, text)


def _lines(branches: Branches) -> list[_Line]:
    """Every branch after the one it parts from; of two that part from the same one, the later fork stands first, so
    that no line crosses another."""
    lines: list[_Line] = []
    waiting: list[tuple[int, int | None]] = [(0, None)]
    while waiting:
        node, parent = waiting.pop()
        number, nodes = len(lines), [node]
        while children := branches.children(node):
            waiting += [(child, number) for child in reversed(children[1:])]
            node = children[0]
            nodes.append(node)
        lines.append(_Line(nodes, parent, max(0, branches.depths[nodes[0]] - 1)))
    return lines


def _label(document: Generation, line: _Line) -> str:
    """The first words of a branch that are no other's; of the first branch those after its first fork."""
    nodes, tree = line.nodes, document.tree
    if line.parent is None:
        fork = next((i for i, node in enumerate(nodes) if len(tree.children(node)) > 1), -1)
        nodes = nodes[fork + 1 :] if fork >= 0 else nodes[-WORDS:]
    ids = [tree.tokens[node].token_id for node in nodes[:WORDS]]
    more = "…" if len(nodes) > WORDS else ""
    return "…" + document.loaded.tokenizer.decode(ids).replace("\n", "⏎") + more


def found(document: Generation, look: Look, query: str, language: Language) -> str:
    """What a person may put behind the selected token: the query as it stands, and the tokens that hold it."""
    if not query:
        return ""
    position, tokenizer = look.at(document), document.loaded.tokenizer
    here = place(document, position)
    lines = []
    try:
        n = len(tokenizer.encode(query))
    except ValueError:  # a character that this vocabulary does not have
        n = 0
    if n:
        key = "box.text.one" if n == 1 else "box.text"
        lines.append(Choice((t(key, language, text=visible(query), n=n),), here | {"text": query}))
    for hit in search_vocabulary(tokenizer, document.logits(position), query, limit=HITS):
        name = f"{visible(token_text(tokenizer, hit.token_id))}  {hit.token_id}"
        lines.append(Choice((name, f"{hit.rank:,}", percent(hit.probability)), here | {"token": hit.token_id}))
    if not lines:
        return ""
    head = (t("box.token", language), t("strip.rank", language), t("strip.probability", language))
    return choices_value(t("box.name", language), head, lines)
