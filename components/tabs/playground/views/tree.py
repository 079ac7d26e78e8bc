"""The text's branches."""

from __future__ import annotations

from typing import Any, NamedTuple

from components.i18n import t
from components.labels import marked
from components.render import View
from components.state.snapshot import Snapshot
from components.widgets.tree import Lane, tree_data
from gpt import Generation
from gpt.documents.document import TokenTree

MAX_LANES = 60
LABEL_TOKENS = 16  # maximum length of a branch's label


def tree(s: Snapshot) -> dict[str, Any]:
    """Show the text's branches, or nothing if there is only one branch and the text extends to its end."""
    if s.written is None:
        return tree_data([], "")
    document, branches, path = s.written.document, s.written.document.tree, s.written.document.path
    if not branches.children(path[-1]) and len(branches.leaves()) == 1:
        return tree_data([], "")
    lines = _lines(branches)
    current, depths = set(path), branches.depths
    lanes = []
    for line in lines[:MAX_LANES]:
        shared = [node for node in line.nodes if node in current]
        lanes.append(
            Lane(
                parent=line.parent,
                start=line.start,
                end=depths[line.nodes[-1]],
                reached=depths[shared[-1]] if shared else -1,
                here=bool(shared) and shared[-1] == path[-1],
                label=_label(document, line),
                sent={"document": str(document.key), "node": line.nodes[-1]},
            )
        )
    more = len(lines) - len(lanes)
    text = t("tree.says", n=len(lines)) + (t("tree.more", n=more) if more else "")
    return tree_data(lanes, text)


class _Line(NamedTuple):
    """A branch: the nodes that belong only to it, the index of its parent line, and the depth at which it starts."""

    nodes: list[int]
    parent: int | None
    start: int


def _lines(branches: TokenTree) -> list[_Line]:
    """Return the branches, each after its parent.

    Among branches with the same parent, later forks come first, so that the lines do not cross.
    """
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
    """Return the first tokens unique to this branch or, for the first branch, the tokens after its first fork."""
    nodes, tree = line.nodes, document.tree
    if line.parent is None:
        fork = next((i for i, node in enumerate(nodes) if len(tree.children(node)) > 1), -1)
        nodes = nodes[fork + 1 :] if fork >= 0 else nodes[-LABEL_TOKENS:]
    ids = [tree.tokens[node].token_id for node in nodes[:LABEL_TOKENS]]
    more = "…" if len(nodes) > LABEL_TOKENS else ""
    return "…" + marked(document.loaded.tokenizer.decode(ids)) + more


VIEWS = (View("tree", tree),)
