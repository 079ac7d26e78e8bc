"""Edits to the text: choose or type a token, undo, redo, go back, switch branches. The text token by token."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial, wraps
from itertools import pairwise
from typing import Any

import numpy as np

from components.api.arguments import checked_text
from components.i18n import is_exact, t
from components.labels import Later, marked, percent, quoted, shortened, token_text, visible
from components.limits import MAX_CHARACTERS
from components.state.adoption import return_to, settle
from components.state.session import Session
from components.state.snapshot import Message
from components.state.text import Text, shading_named
from components.text_views import count_sentence, place_after
from components.widgets.widget import Said
from gpt import Generation, distribution
from gpt.analysis.predictions import search_vocabulary
from gpt.sampling import cumulative_draw
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


def edit(change: Callable[..., Message | None]) -> Callable[..., None]:
    """Make a handler of a function that changes the document, and returns the action, or None if it isn't possible.

    Generation stops, and the new tokens are read. While the box contains a text that has not become the document, the
    page is stale, and nothing is changed.
    """

    @wraps(change)
    def handle(session: Session, *sent: Any) -> None:
        with session.lock.changing():
            document = session.document
            if document is None or session.unwritten is not None:
                return
            action = change(session, document, *sent)
            document.read()
            if action is not None:
                session.redo_stack.clear()
                settle(session, action)

    return handle


@edit
def choose(session: Session, document: Generation, sent: dict[str, Any]) -> Message | None:
    """Insert the clicked token or text after the token for which it was offered."""
    after, token, text = _position(document, sent), sent.get("token"), sent.get("text")
    if after is None:
        return None
    if isinstance(text, str):
        return _type(session, document, text, after)
    if type(token) is not int:
        return None
    document.append(token, after=after)
    session.query = ""
    return Message("status.chosen", {"token": Later(quoted, document.loaded.tokenizer, token)})


@edit
def type_text(session: Session, document: Generation, text: object) -> Message | None:
    if not isinstance(text, str) or not text:
        return None
    return _type(session, document, text, Text.of(document).framed(session.selection))


def _type(session: Session, document: Generation, text: str, after: int) -> Message:
    document.append_text(checked_text("text", text), after=after, special=session.special)
    session.query = ""
    return Message("status.typed", {"text": shortened(text, MAX_SHOWN_CHARS)})


@edit
def go_back(session: Session, document: Generation) -> Message | None:
    position = Text.of(document).framed(session.selection)
    if position == len(document.ids) - 1:
        return None
    document.go_back(position)
    return Message("status.back", {"token": Later(quoted, document.loaded.tokenizer, document.ids[-1])})


@edit
def switch_branch(session: Session, document: Generation, sent: dict[str, Any]) -> Message | None:
    node = sent.get("node")
    if type(node) is not int or sent.get("document") != str(document.key) or node == document.path[-1]:
        return None
    document.switch(node)
    return Message("status.switched")


def retrace(session: Session, sent: dict[str, Any]) -> None:
    """Undo or, if `sent["redo"]` is true, redo."""
    (redo if sent.get("redo") is True else undo)(session)


def _retrace(session: Session, *, back: bool) -> None:
    """Undo or redo an action in the document or, if there is none, restore the document before or after it.

    The first to be undone is a typed text that did not become the document.
    """
    action = Message("status.undone" if back else "status.redone")
    with session.lock.changing():
        document, unwritten = session.document, session.unwritten
        if document is not None and back and unwritten is not None:
            session.redo_stack.append(session.archived(document, unwritten))
            session.set_typed(None)
        elif document is not None and back and document.can_undo:
            document.undo()
        elif document is not None and not back and document.can_redo:
            document.redo()
        else:
            stacks = session.undo_stack, session.redo_stack
            return_to(session, *(stacks if back else stacks[::-1]), action)
            return
        document.read()
        settle(session, action)


undo, redo = partial(_retrace, back=True), partial(_retrace, back=False)


def is_earlier(s: Any) -> bool:
    """Return whether tokens follow the selected one."""
    return s.written is not None and s.written.framed(s.selection) < len(s.written.ids) - 1


def search(session: Session, text: str) -> None:
    session.query = str(text or "")[:MAX_QUERY_CHARS]


def select_token(session: Session, sent: dict[str, Any]) -> None:
    session.select(position=sent.get("index"))


def select_point(session: Session, sent: dict[str, Any]) -> None:
    session.select(position=sent.get("x"))


def choose_shading(session: Session, shading: object) -> None:
    if chosen := shading_named(shading):
        session.selection = replace(session.selection, shading=chosen)


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


def tree(s: Any) -> dict[str, Any]:
    """Show the text's branches, or nothing if there is only one branch and the text extends to its end.

    Each branch comes after its parent. Among those with the same parent, later forks come first, so that the lines do
    not cross.
    """
    if s.written is None:
        return {"lanes": []}
    document, branches, path = s.written.document, s.written.document.tree, s.written.document.path
    after = branches.children()
    n_branches = after.count([])
    if not after[path[-1]] and n_branches == 1:
        return {"lanes": []}
    lanes: list[dict[str, Any]] = []
    waiting: list[tuple[int, int | None]] = [(0, None)]
    while waiting and len(lanes) < MAX_LANES:
        node, parent = waiting.pop()
        nodes, forks = [node], list[int]()
        while children := after[nodes[-1]]:
            if children[1:]:
                forks.append(len(nodes))
            waiting += [(child, len(lanes)) for child in reversed(children[1:])]
            nodes.append(children[0])
        shared = [mine for mine, ours in zip(nodes, path[branches.depths[node] :], strict=False) if mine == ours]
        # the first tokens of its own or, for the first branch, those after its first fork
        own = nodes if parent is not None else nodes[forks[0] :] if forks else nodes[-LABEL_TOKENS:]
        label = marked(document.tokenizer.decode([branches.tokens[each].token_id for each in own[:LABEL_TOKENS]]))
        lanes.append(
            {
                "parent": parent,
                "start": max(0, branches.depths[node] - 1),
                "end": branches.depths[nodes[-1]],
                "reached": branches.depths[shared[-1]] if shared else -1,
                "here": bool(shared) and shared[-1] == path[-1],
                "label": f"…{label}{'…' if len(own) > LABEL_TOKENS else ''}",
                "sent": {"document": str(document.key), "node": nodes[-1]},
            }
        )
    more = n_branches - len(lanes)
    return {"text": t("tree.says", n=n_branches) + (t("tree.more", n=more) if more else ""), "lanes": lanes}


def draw(s: Any) -> dict[str, Any]:
    """Show how the number fell on the selected token, or why none was drawn."""
    shown: dict[str, Any] = {"text": "", "pieces": []}
    if s.written is None:
        return shown
    document, position = s.written.document, s.written.framed(s.selection)
    origin, number = document.origin(position), document.draw(position)
    params, token = origin.params, quoted(document.tokenizer, document.ids[position])
    if position < document.n_prompt:
        return shown | {"text": t("draw.prompt", token=token)}
    if params is None or number is None:
        return shown | {"text": t(f"draw.{origin.kind}", token=token)}
    if position > s.written.n_read:
        return shown
    if document.dropped and position < len(document.ids) - 1:
        return shown | {"text": t("draw.dropped", token=token)}
    if params.temperature == 0:
        return shown | {"text": t("draw.greedy", token=token)}
    stages = distribution(document.logits(position - 1), params, previous_ids=document.ids[:position])
    strip = cumulative_draw(stages.final, number)
    start, end = strip.bounds
    text = t(
        "draw.says.exact" if is_exact() else "draw.says",
        token=token,
        number=f"{number:.4f}",
        start=f"{start:.4f}",
        end=f"{end:.4f}",
        seed=params.seed,
        position=len(document.dropped) + position,
    )
    if replace(params, seed=None) != s.settings.sampling():
        text += t("draw.then", temperature=f"{params.temperature:g}")
    if any(hidden < position for hidden in s.hidden):
        text += t("draw.visible")
    pieces, place = _pieces(s.written, strip.ids, strip.ends, strip.index)
    mark = t("draw.mark", number=f"{number:.2f}")
    return {"text": text, "pieces": pieces, "number": number, "place": place, "mark": mark}


def _pieces(text: Text, ids: np.ndarray, ends: np.ndarray, drawn: int) -> tuple[list[tuple[float, str, bool]], int]:
    """Return the pieces and the index of the drawn one. Small intervals are combined, except for the drawn one."""
    starts = np.concatenate(([0.0], ends[:-1]))
    broad = min(MAX_PIECES, int((ends - starts >= MIN_PIECE_SHARE).sum()))
    cuts = sorted({*range(broad + 1), drawn, drawn + 1, len(ids)})
    pieces: list[tuple[float, str, bool]] = []
    for first, after in pairwise(cuts):
        n = after - first
        name = quoted(text.tokenizer, int(ids[first])) if n == 1 else t("draw.others", n=f"{n:,}")
        span = f"{starts[first]:.4f} – {ends[after - 1]:.4f} " if is_exact() else ""
        says = f"{name} {span}({percent(ends[after - 1] - starts[first])})"
        pieces.append((float(ends[after - 1]), says, n > 1))
    return pieces, cuts.index(drawn)


def hits(s: Any) -> dict[str, Any]:
    """List candidates to insert after the selected token: the query itself, and tokens that contain it."""
    if not s.query or s.text is None or s.text.n_read == 0:
        return {"lines": []}
    query, position, tokenizer = s.query, s.position, s.text.tokenizer
    here = place_after(s.written.document, s.written.at(s.selection))
    lines: list[dict[str, Any]] = []
    with suppress(ValueError):  # a character outside the vocabulary
        n = len(tokenizer.encode_continuation(query))
        lines.append({"cells": [t("box.text", text=visible(query), n=n)], "sent": here | {"text": query}})
    logits = s.text.document.logits(position)
    final = s.stages(logits, s.text.ids[: position + 1]).final
    for token_id in search_vocabulary(tokenizer, logits, query, limit=MAX_HITS):
        name = visible(token_text(tokenizer, token_id)) + (f"  {token_id}" if is_exact() else "")
        rank = 1 + int((logits > logits[token_id]).sum())
        cells = (name, f"{rank:,}", percent(final[token_id].item()))
        lines.append({"cells": cells, "sent": here | {"token": token_id}})
    head = (t("box.token"), t("strip.shading.rank"), t("pipeline.probability"))
    return {"name": t("box.name"), "head": head, "lines": lines}


def dropped(s: Any) -> str:
    if s.written is None or not (ids := s.written.document.dropped):
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
