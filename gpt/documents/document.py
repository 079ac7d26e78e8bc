"""A text with branches, and the actions that edit it. Requires a vocabulary and a context length, but no model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Literal, get_args

from gpt.checks import check_choice, check_position, require
from gpt.errors import GPTError
from gpt.sampling import SamplingParams, uniform_draw
from gpt.tokenizer import TextDecoder, Vocabulary, as_token_ids, hold_back, plain_text

MAX_TOKENS = 2**16  # limit on the tokens in all branches of a document
End = tuple[int, str]  # the last node of a text, and the white space held back after it (see `Document.held`)
OriginKind = Literal["typed", "sampled", "chosen"]
_keys = count(1)
_NOT_RETYPED = None, 0, 0, None


@dataclass(frozen=True)
class Origin:
    """How a token was added: typed, sampled, or chosen by hand.

    params: settings and seed of a sampled token; None for other tokens. held: typed white space with which a sampled
    token had to begin (see `gpt.tokenizer.hold_back`). Raises ValueError for a sampled token without settings, or any
    other token with settings.
    """

    kind: OriginKind
    params: SamplingParams | None = None
    held: str = ""

    def __post_init__(self) -> None:
        check_choice("kind", self.kind, get_args(OriginKind))
        has_seed = self.params is not None and self.params.seed is not None
        require((self.kind == "sampled") == has_seed, "document.token_params")


TYPED, CHOSEN = Origin("typed"), Origin("chosen")


@dataclass(frozen=True)
class Token:
    """One node of the tree. parent: number of the previous node; None for the root."""

    token_id: int
    parent: int | None
    origin: Origin


class TokenTree:
    """Tree whose nodes are numbered in insertion order. Nodes can be removed only from the end.

    tokens: one per node. depths: number of ancestors of each node, which is its position in a text.
    Raises ValueError unless only the first node has no parent and each parent precedes its children.
    """

    def __init__(self, tokens: Sequence[Token]) -> None:
        self.tokens: list[Token] = []
        self.depths: list[int] = []
        self._children: list[list[int]] = []
        for token in tokens:
            self._append(token)

    def __len__(self) -> int:
        return len(self.tokens)

    def add(self, token_id: int, origin: Origin, parent: int) -> int:
        """Return the child with this id and origin, adding it if it does not exist."""
        for child in self._children[parent]:
            if (self.tokens[child].token_id, self.tokens[child].origin) == (token_id, origin):
                return child
        self._append(Token(token_id, parent, origin))
        return len(self.tokens) - 1

    def children(self, node: int) -> list[int]:
        """Return the children of a node, oldest first."""
        return list(self._children[node])

    def leaves(self) -> list[int]:
        """Return the last node of every branch, oldest branch first."""
        return [node for node, children in enumerate(self._children) if not children]

    def path(self, node: int) -> list[int]:
        return self.path_after(node, [])

    def path_after(self, node: int, path: Sequence[int]) -> list[int]:
        """Return the nodes on the path from the root to `node` that are not on `path`."""
        self.check(node)
        nodes: list[int] = []
        step: int | None = node
        while step is not None and (self.depths[step] >= len(path) or path[self.depths[step]] != step):
            nodes.append(step)
            step = self.tokens[step].parent
        return nodes[::-1]

    def truncate(self, count: int) -> None:
        for node in range(len(self.tokens) - 1, count - 1, -1):
            parent = self.tokens[node].parent
            if parent is not None:
                self._children[parent].remove(node)
        del self.tokens[count:], self.depths[count:], self._children[count:]

    def check(self, node: int) -> None:
        if not 0 <= node < len(self.tokens):
            raise GPTError("document.token_unknown", number=node, last=len(self.tokens) - 1)

    def check_room(self, count: int) -> None:
        if len(self.tokens) + count > MAX_TOKENS:
            raise GPTError("document.too_large", limit=MAX_TOKENS)

    def _append(self, token: Token) -> None:
        self.check_room(1)
        number = len(self.tokens)
        if token.parent is not None if number == 0 else token.parent is None or not 0 <= token.parent < number:
            raise GPTError("document.token_parent", number=number, last=number - 1, parent=token.parent)
        del self.depths[number:], self._children[number:]  # of an interrupted call
        self.depths.append(0 if token.parent is None else self.depths[token.parent] + 1)
        self._children.append([])
        self.tokens.append(token)
        if token.parent is not None:
            self._children[token.parent].append(number)


class History:
    """The end of the text after each action, for undo and redo. node: the last node before the first action."""

    def __init__(self, node: int) -> None:
        self._ends: list[End] = [(node, "")]
        self._current = 0

    def copy(self) -> History:
        other = History(0)
        other._ends, other._current = list(self._ends), self._current
        return other

    @property
    def can_undo(self) -> bool:
        return self._current > 0

    @property
    def can_redo(self) -> bool:
        return self._current < len(self._ends) - 1

    def push(self, before: End, after: End, *, joined: bool = False) -> None:
        """Record the end of the text before and after an action. An action that changes nothing leaves no entry.

        joined: undo it together with the previous action.
        """
        if before == after and not joined:
            return
        if joined and self.can_undo:
            self._current -= 1
        else:
            self._ends[self._current] = before
        self.clear_redo()
        if after != self._ends[self._current]:
            self._ends.append(after)
            self._current += 1

    def clear_redo(self) -> None:
        del self._ends[self._current + 1 :]

    def undo(self) -> End:
        """Undo an action and return the end of the text. Raises ValueError if there is nothing to undo."""
        require(self.can_undo, "document.nothing_to_undo")
        self._current -= 1
        return self._ends[self._current]

    def redo(self) -> End:
        """Redo an action and return the end of the text. Raises ValueError if there is nothing to redo."""
        require(self.can_redo, "document.nothing_to_redo")
        self._current += 1
        return self._ends[self._current]


class Document:
    """A tree of texts, one of which is current. Actions add nodes. Only `retype` removes any, and only those it added.

    ids: token ids of the current text. tree: all tokens and their origins. path: nodes of the current text.
    The first n_prompt_nodes nodes of the tree form the prompt; initially the text ends at `node`.
    block_size: the context length. A text may be one token longer: its last token is predicted but never read.
    dropped: ids before the text that no longer fit into the context (see `gpt.documents.generation`).
    key: unique among the documents in this process. It changes when the edits are replaced, and when nodes are removed,
        because their numbers are reused.
    """

    _n_prompt_nodes: int
    _held: dict[int, str]  # by node: white space typed after it
    # The latest run of `retype` calls: the text's end before it, its first node, its tree's length and its text's end.
    _retyped: tuple[End | None, int, int, End | None]

    def __init__(
        self,
        tokenizer: Vocabulary,
        block_size: int,
        tree: TokenTree,
        n_prompt_nodes: int,
        node: int,
        dropped: Sequence[int] = (),
    ) -> None:
        self.tokenizer, self.block_size, self.key, self.dropped = tokenizer, block_size, next(_keys), [*dropped]
        self._set_tree(tree, n_prompt_nodes, node)

    @property
    def text(self) -> str:
        """The current text, without control tokens."""
        return plain_text(self.tokenizer, self.ids) + self.held

    @property
    def held(self) -> str:
        """White space typed at the end of the text, which begins the next token (see `gpt.tokenizer.hold_back`)."""
        return self._held.get(self.path[-1], "")

    @held.setter
    def held(self, held: str) -> None:
        if held != self.held:
            self._held = {node: text for node, text in self._held.items() if node != self.path[-1]}
            self._held |= {self.path[-1]: held} if held else {}
            self._renew_key()

    def held_after(self, position: int) -> str:
        """Return the white space with which the token after a position had to begin, or has to if it is the last."""
        next_position = position + 1
        return self.origin(next_position).held if next_position < len(self.path) else self.held

    @property
    def prompt_ids(self) -> list[int]:
        """Token ids of the prompt."""
        return [token.token_id for token in self.tree.tokens[: self._n_prompt_nodes]]

    @property
    def n_prompt(self) -> int:
        """Number of tokens in the current text that belong to the prompt."""
        return sum(node < self._n_prompt_nodes for node in self.path)

    @property
    def full(self) -> bool:
        """Whether the text has no room for another token."""
        return len(self.ids) > self.block_size

    @property
    def can_undo(self) -> bool:
        """Whether there is an action to undo."""
        return self._history.can_undo

    @property
    def can_redo(self) -> bool:
        """Whether there is an action to redo."""
        return self._history.can_redo

    def origin(self, position: int) -> Origin:
        """Return the origin of the token at a position in the current text."""
        return self.tree.tokens[self._node(position)].origin

    def draw(self, position: int) -> float | None:
        """Return the number in [0, 1) that selected the token at a position, or None if it was not sampled."""
        params = self.origin(position).params
        if params is None or params.seed is None:
            return None
        return uniform_draw(params.seed, len(self.dropped) + position)

    def append(self, *token_ids: int, after: int | None = None) -> str:
        """Append tokens chosen by hand, as one action, and return the characters they complete.

        after: position to start a branch from; defaults to the end of the text.
        Raises ValueError if the tokens exceed the context or an id is unknown.
        """
        return self._add(token_ids, CHOSEN, after)

    def append_text(self, text: str | Sequence[int], *, after: int | None = None, special: bool = False) -> str:
        """Append a typed text, or its ids, as one action. Arguments and errors are the same as for `append`.

        White space at the end of a text is held back (see `gpt.tokenizer.hold_back`). special: whether names of control
        tokens in a text become control tokens.
        """
        if not isinstance(text, str):
            return self._add(text, TYPED, after)
        at_end = after is None or after == len(self.path) - 1
        before = self.held if at_end else ""
        text, held = hold_back(self.tokenizer, before + text)
        encode = (
            partial(self.tokenizer.encode_special, is_start=False) if special else self.tokenizer.encode_continuation
        )
        return self._add(encode(text), TYPED, after, held=held) + held

    def retype(self, ids: Sequence[int], keep: int, held: str = "", *, joined: bool = True) -> None:
        """Replace everything after the first `keep` tokens with typed tokens.

        held: white space typed after them. joined: whether this and the previous call form one action, if they are
        consecutive.

        Tokens that such calls added but that are no longer in the text are removed from the tree. If the tree contains
        only the prompt, this edits the prompt itself, which cannot be undone. Raises ValueError, leaving the text
        unchanged, if keep < 1, the tokens exceed the context, or an id is unknown.
        """
        ids, last = as_token_ids(ids), self._node(keep - 1)
        if ids == self.ids[keep:] and held == self.held:
            return
        before, first, size, end = self._retyped
        is_prompt = len(self.tree) == self._n_prompt_nodes
        if before is None or not joined or (size, end) != (len(self.tree), self._end):
            joined, before, first = False, self._end, len(self.tree)
        self._check(ids, last)
        self._go_to(last)
        self._remove_nodes(max(1 if is_prompt else first, last + 1))
        for token_id in ids:
            last = self.tree.add(token_id, TYPED, last)
        self._go_to(last)
        self.held = held
        self._retyped = (before, first, len(self.tree), self._end) if self._end != before else _NOT_RETYPED
        if is_prompt:
            self._n_prompt_nodes, self._history = len(self.tree), History(last)
        else:
            self._history.push(before, self._end, joined=joined)

    def go_back(self, position: int) -> None:
        """End the text after this position. The rest stays in the tree."""
        self.switch(self._node(position))

    def switch(self, node: int) -> None:
        """End the text at a node of the tree."""
        self.tree.check(node)
        before = self._end
        self._go_to(node)
        self._history.push(before, self._end)

    def undo(self) -> None:
        """Undo the latest action. Raises ValueError if there is nothing to undo."""
        self._return_to(self._history.undo())

    def redo(self) -> None:
        """Redo the last undone action. Raises ValueError if there is nothing to redo."""
        self._return_to(self._history.redo())

    @property
    def history(self) -> History:
        """Actions for `undo` and `redo`. Set this to restore a saved document's history."""
        return self._history

    @history.setter
    def history(self, history: History) -> None:
        self._history = history.copy()

    def _add(
        self, ids: Sequence[int], origin: Origin, after: int | None = None, *, held: str = "", joined: bool = False
    ) -> str:
        """Add all tokens after a position as one action. White space held back there is not written a second time."""
        ids, before, held_after = as_token_ids(ids), self._end, held
        node = self.path[-1] if after is None else self._node(after)
        held = self.held if node == self.path[-1] else ""
        if held and ids and not self.tokenizer.token_bytes(ids[0]).startswith((b" ", b"\t")):
            ids = [*self.tokenizer.encode_continuation(held), *ids]
        self._check(ids, node)
        for token_id in ids:
            node = self.tree.add(token_id, origin, node)
        completed = self._go_to(node)
        self.held = held_after
        self._history.push(before, self._end, joined=joined)
        return completed.removeprefix(held if completed.startswith(held) else " ") if held else completed

    def check_room(self, n: int = 1, after: int | None = None) -> None:
        """Raise ValueError if n tokens do not fit after position `after`, by default the last."""
        room = self.block_size - (len(self.ids) - 1 if after is None else after)
        if n > room == 0:
            raise GPTError("context.full", limit=self.block_size)
        if n > room:
            raise GPTError("context.no_room", n=n, limit=self.block_size, room=room)

    def check_whole(self) -> None:
        """Raise ValueError if the first tokens have been dropped."""
        require(not self.dropped, "document.dropped")

    def _check(self, ids: Sequence[int], node: int) -> None:
        """Raise ValueError if the tokens do not fit after a node or an id is unknown."""
        self.check_room(len(ids), self.tree.depths[node])
        for token_id in ids:
            self.tokenizer.token_bytes(token_id)  # raises for an unknown id
        self.tree.check_room(len(ids))

    def _remove_nodes(self, start: int) -> None:
        """Remove node `start` and all later ones. None of them may be part of the text."""
        if start < len(self.tree):
            self.tree.truncate(start)
            self._held = {node: held for node, held in self._held.items() if node < start}
            self._renew_key()

    def _renew_key(self) -> None:
        self.key = next(_keys)

    def _set_tree(self, tree: TokenTree, n_prompt_nodes: int, node: int) -> None:
        self.tree, self._n_prompt_nodes, self._history = tree, n_prompt_nodes, History(node)
        self._retyped = _NOT_RETYPED
        self._held = {}
        self.ids: list[int] = []
        self.path: list[int] = []
        self._restart_decoder()
        self._go_to(node)

    @property
    def _end(self) -> End:
        return self.path[-1], self.held

    def _return_to(self, end: End) -> None:
        node, held = end
        self._go_to(node)
        self.held = held

    def _go_to(self, node: int) -> str:
        """End the text at this node and return the characters completed by new tokens."""
        added = self.tree.path_after(node, self.path)
        shared = self.tree.depths[node] + 1 - len(added)
        if shared < len(self.path):
            self._cut(shared)
        ids = [self.tree.tokens[each].token_id for each in added]
        self.path, self.ids = self.path + added, self.ids + ids  # both or, if interrupted, neither
        return "".join(map(self._decoder.feed, ids))

    def _cut(self, length: int) -> None:
        """End the text after its first `length` tokens."""
        self.path, self.ids = self.path[:length], self.ids[:length]
        self._restart_decoder()

    def _node(self, position: int) -> int:
        check_position(position, len(self.path))
        return self.path[position]

    def _restart_decoder(self) -> None:
        self._decoder = TextDecoder(self.tokenizer)
        for token_id in self.ids:
            self._decoder.feed(token_id)


def common_prefix_length(left: Sequence[int], right: Sequence[int]) -> int:
    shorter = min(len(left), len(right))
    return next((n for n in range(shorter) if left[n] != right[n]), shorter)
