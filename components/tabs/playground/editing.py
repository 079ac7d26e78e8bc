"""Edits to the text: choose or type a token, undo, redo, go back, switch branches. The text token by token."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from components.api.arguments import checked_text
from components.i18n import is_exact, t
from components.labels import Later, marked, percent, quoted, shortened, token_text, visible
from components.limits import MAX_CHARACTERS
from components.state.adoption import return_to
from components.state.session import Session
from components.state.snapshot import LastAction, Message
from components.state.text import Text, shading_named
from components.tabs.playground.box import settle
from components.text_views import count_sentence, place_after
from components.widgets.widget import Said
from gpt import Generation, distribution
from gpt.analysis.predictions import search_vocabulary
from gpt.analysis.sampling_stages import cumulative_draw
from gpt.documents.document import TokenTree
from gpt.tokenizer import prompt_ids

MAX_SHOWN_CHARS = 24  # limit for typed text shown in the status
MAX_QUERY_CHARS = 200
MAX_TYPED_CHARS = 2000
MAX_DROPPED = 60  # dropped tokens that are quoted
MAX_PIECES = 48  # tokens shown individually in the draw
MIN_PIECE_SHARE = 0.004  # minimum probability of a token shown individually
MAX_HITS = 8
MAX_LANES = 60
LABEL_TOKENS = 16  # maximum length of a branch's label


def choose(session: Session, sent: dict[str, Any]) -> None:
    """Insert the clicked token or text after the token for which it was offered."""

    def change(document: Generation) -> LastAction | None:
        after = _position(document, sent)
        if after is None:
            return None
        token, text = sent.get("token"), sent.get("text")
        if type(token) is int:
            document.check_room(1, after)
            document.append(token, after=after)
            return Message("status.chosen", {"token": Later(quoted, document.loaded.tokenizer, token)})
        return _type(session, document, text, after) if isinstance(text, str) else None

    _change(session, change)
    session.query = ""


def type_text(session: Session, text: str) -> None:
    def change(document: Generation) -> LastAction | None:
        return _type(session, document, text, Text.of(document).framed(session.selection)) if text else None

    _change(session, change)
    session.query = ""


def retrace(session: Session, sent: dict[str, Any]) -> None:
    """Undo or, if `sent["redo"]` is true, redo."""
    (redo if sent.get("redo") is True else undo)(session)


def undo(session: Session) -> None:
    """Undo the last action.

    This removes a typed text that did not become the document, undoes an action in the document or, if there is none,
    restores the previous document.
    """
    if session.document is not None and (unwritten := session.unwritten) is not None:
        with session.lock.changing():
            session.redo_stack.append(session.archived(session.document, unwritten))
            session.set_typed(None)
            settle(session, Message("status.undone"))
        return
    if session.undo_stack and not (session.document is not None and session.document.can_undo):
        return_to(session, session.undo_stack, session.redo_stack, Message("status.undone"))
        return

    def change(document: Generation) -> LastAction | None:
        if not document.can_undo:
            return None
        document.undo()
        return Message("status.undone")

    _change(session, change, new=False)


def redo(session: Session) -> None:
    if session.redo_stack and not (session.document is not None and session.document.can_redo):
        return_to(session, session.redo_stack, session.undo_stack, Message("status.redone"))
        return

    def change(document: Generation) -> LastAction | None:
        if not document.can_redo:
            return None
        document.redo()
        return Message("status.redone")

    _change(session, change, new=False)


def go_back(session: Session) -> None:
    def change(document: Generation) -> LastAction | None:
        position = Text.of(document).framed(session.selection)
        if position == len(document.ids) - 1:
            return None
        document.go_back(position)
        return Message("status.back", {"token": Later(quoted, document.loaded.tokenizer, document.ids[-1])})

    _change(session, change)


def switch_branch(session: Session, sent: dict[str, Any]) -> None:
    def change(document: Generation) -> LastAction | None:
        node = sent.get("node")
        if type(node) is not int or sent.get("document") != str(document.key) or node == document.path[-1]:
            return None
        document.switch(node)
        return Message("status.switched")

    _change(session, change)


def is_earlier(s: Any) -> bool:
    """Return whether tokens follow the selected one."""
    return s.written is not None and s.written.framed(s.selection) < len(s.written.ids) - 1


def search(session: Session, text: str) -> None:
    session.query = str(text or "")[:MAX_QUERY_CHARS]


def select_token(session: Session, sent: dict[str, Any]) -> None:
    session.select(position=sent.get("index"))


def choose_shading(session: Session, shading: object) -> None:
    if chosen := shading_named(shading):
        session.selection = replace(session.selection, shading=chosen)


def _change(session: Session, change: Callable[[Generation], LastAction | None], *, new: bool = True) -> None:
    """Stop generation, change the document, and read its new tokens.

    `change` returns the action, or None if it is no longer possible; its ValueErrors are propagated. `new` tells
    whether the action is a new one, which clears what can be redone. While the box contains a text that has not become
    the document, the page is stale, and there are no new actions.
    """
    with session.lock.changing():
        document = session.document
        if document is None or (new and session.unwritten is not None):
            return
        action = change(document)
        document.read()
        if action is not None and new:
            session.redo_stack.clear()
        if action is not None:
            settle(session, action)


def _position(document: Generation, sent: dict[str, Any]) -> int | None:
    """Return the position that `sent` refers to, as drawn by `place_after`, or None if the text is another one now.

    Only the model may have added tokens since.
    """
    node, last = sent.get("behind"), sent.get("last")
    if sent.get("document") != str(document.key) or node not in document.path or last not in document.path:
        return None
    since = range(document.path.index(last) + 1, len(document.path))
    if any(document.origin(position).kind != "sampled" for position in since):
        return None
    return document.path.index(node)


def _type(session: Session, document: Generation, text: str, after: int) -> LastAction:
    document.append_text(checked_text("text", text), after=after, special=session.special)
    return Message("status.typed", {"text": shortened(text, MAX_SHOWN_CHARS)})


# The branches


def tree(s: Any) -> dict[str, Any]:
    """Show the text's branches, or nothing if there is only one branch and the text extends to its end."""
    if s.written is None:
        return {"lanes": []}
    document, branches, path = s.written.document, s.written.document.tree, s.written.document.path
    if not branches.children(path[-1]) and len(branches.leaves()) == 1:
        return {"lanes": []}
    lines = _lines(branches)
    current, depths = set(path), branches.depths
    lanes = []
    for line in lines[:MAX_LANES]:
        shared = [node for node in line.nodes if node in current]
        lanes.append(
            {
                "parent": line.parent,
                "start": line.start,
                "end": depths[line.nodes[-1]],
                "reached": depths[shared[-1]] if shared else -1,
                "here": bool(shared) and shared[-1] == path[-1],
                "label": _label(document, line),
                "sent": {"document": str(document.key), "node": line.nodes[-1]},
            }
        )
    more = len(lines) - len(lanes)
    text = t("tree.says", n=len(lines)) + (t("tree.more", n=more) if more else "")
    return {"text": text, "lanes": lanes}


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


# Token by token


def draw(s: Any) -> dict[str, Any]:
    def said(text: str, pieces: Sequence[Any] = ()) -> dict[str, Any]:
        return {"text": text, "pieces": list(pieces)}

    if s.written is None:
        return said("")
    document, tokenizer = s.written.document, s.written.tokenizer
    position = s.written.framed(s.selection)
    origin, token = document.origin(position), quoted(tokenizer, document.ids[position])
    if position < document.n_prompt:
        return said(t("draw.prompt", token=token))
    number = document.draw(position)
    if origin.params is None or number is None:
        return said(t(f"draw.{origin.kind}", token=token))
    if position > s.written.n_read:
        return said("")
    if document.dropped and position < len(document.ids) - 1:
        return said(t("draw.dropped", token=token))
    stages = distribution(document.logits(position - 1), origin.params, previous_ids=document.ids[:position])
    if origin.params.temperature == 0:
        return said(t("draw.greedy", token=token))
    drawn_strip = cumulative_draw(stages.final, number)
    start, end = drawn_strip.bounds
    text = t(
        "draw.says.exact" if is_exact() else "draw.says",
        token=token,
        number=f"{number:.4f}",
        start=f"{start:.4f}",
        end=f"{end:.4f}",
        seed=origin.params.seed,
        position=len(document.dropped) + position,
        temperature=f"{origin.params.temperature:g}",
    )
    if replace(origin.params, seed=None) != s.settings.sampling():
        text += t("draw.then", temperature=f"{origin.params.temperature:g}")
    if any(hidden < position for hidden in s.hidden):
        text += t("draw.visible")
    pieces, drawn = _pieces(s.written, drawn_strip.ids, drawn_strip.ends, drawn_strip.index)
    mark = t("draw.mark", number=f"{number:.2f}")
    return said(text, pieces) | {"number": number, "place": drawn, "mark": mark}


def _pieces(text: Text, ids: np.ndarray, ends: np.ndarray, drawn: int) -> tuple[list[tuple[float, str, bool]], int]:
    """Return the pieces and the index of the drawn one. Small intervals are combined, except for the drawn one."""
    starts = np.concatenate(([0.0], ends[:-1]))
    broad = min(MAX_PIECES, int((ends - starts >= MIN_PIECE_SHARE).sum()))
    cuts = sorted({*range(broad + 1), drawn, drawn + 1, len(ids)})
    pieces: list[tuple[float, str, bool]] = []
    number = 0
    for first, after in pairwise(cuts):
        if first == drawn:
            number = len(pieces)
        span = f"{starts[first]:.4f} – {ends[after - 1]:.4f} " if is_exact() else ""
        if after - first == 1:
            name = quoted(text.tokenizer, int(ids[first]))
        else:
            name = t("draw.others", n=f"{after - first:,}")
        says = f"{name} {span}({percent(ends[after - 1] - starts[first])})"
        pieces.append((float(ends[after - 1]), says, after - first > 1))
    return pieces, number


def hits(s: Any) -> dict[str, Any]:
    """List candidates to insert after the selected token: the query itself, and tokens that contain it."""
    nothing: dict[str, Any] = {"lines": []}
    if not s.query or s.text is None or s.written is None or s.text.n_read == 0:
        return nothing
    query = s.query
    position, tokenizer = s.text.at(s.selection), s.text.tokenizer
    here = place_after(s.written.document, s.written.at(s.selection))
    lines = []
    try:
        n = len(tokenizer.encode_continuation(query))
    except ValueError:  # a character outside the vocabulary
        n = 0
    if n:
        lines.append({"cells": [t("box.text", text=visible(query), n=n)], "sent": here | {"text": query}})
    logits = s.text.document.logits(position)
    final = s.stages(logits, s.text.ids[: position + 1]).final
    for hit in search_vocabulary(tokenizer, logits, query, limit=MAX_HITS):
        name = visible(token_text(tokenizer, hit.token_id)) + (f"  {hit.token_id}" if is_exact() else "")
        cells = (name, f"{hit.rank:,}", percent(final[hit.token_id].item()))
        lines.append({"cells": cells, "sent": here | {"token": hit.token_id}})
    if not lines:
        return nothing
    head = (t("box.token"), t("strip.rank"), t("pipeline.probability"))
    return {"name": t("box.name"), "head": head, "lines": lines}


def dropped(s: Any) -> str:
    ids = [] if s.written is None else s.written.document.dropped
    if not ids:
        return ""
    end = marked(s.written.tokenizer.decode(ids[-MAX_DROPPED:]).replace("\n", " "))
    shown = end if len(ids) <= MAX_DROPPED else f"…{end}"
    return t("strip.dropped", n=len(ids), text=shown, limit=s.written.document.block_size)


def prompt_count(s: Any) -> Said:
    if s.loaded is None:
        return ""
    limit = s.loaded.model.config.block_size
    if s.unwritten is None:
        return count_sentence(0 if s.written is None else len(s.written.ids), limit)
    try:
        return count_sentence(len(prompt_ids(s.loaded.tokenizer, s.unwritten[:MAX_CHARACTERS])), limit)
    except ValueError as problem:
        return problem
