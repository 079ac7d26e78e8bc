"""A text with branches, and the actions that edit it. Requires a vocabulary and a context length, but no model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Literal, get_args

from gpt.errors import GPTError, check_choice, check_position, require
from gpt.sampling import SamplingParams, uniform_draw
from gpt.tokenizer import TextDecoder, Vocabulary, as_token_ids, hold_back, plain_text

MAX_TOKENS = 2**16  # limit on the tokens in all branches of a document
End = tuple[int, str]  # the last node of a text, and the white space held back after it (see `Document.held`)
OriginKind = Literal["typed", "sampled", "chosen"]
KEYS = count(1)


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
        self._nodes: dict[Token, int] = {}
        for token in tokens:
            self._append(token)

    def __len__(self) -> int:
        return len(self.tokens)

    def add(self, token: Token) -> int:
        """Return the node that is equal to this one, adding it if it does not exist."""
        node = self._nodes.get(token)
        return self._append(token) if node is None else node

    def children(self) -> list[list[int]]:
        """Return the children of every node, oldest first."""
        children: list[list[int]] = [[] for _ in self.tokens]
        for node, token in enumerate(self.tokens):
            if token.parent is not None:
                children[token.parent].append(node)
        return children

    def path(self, node: int, after: Sequence[int] = ()) -> list[int]:
        """Return the nodes on the path from the root to `node` that are not on the path `after`."""
        if not 0 <= node < len(self.tokens):
            raise GPTError("document.token_unknown", number=node, last=len(self.tokens) - 1)
        nodes: list[int] = []
        step: int | None = node
        while step is not None and (self.depths[step] >= len(after) or after[self.depths[step]] != step):
            nodes.append(step)
            step = self.tokens[step].parent
        return nodes[::-1]

    def truncate(self, count: int) -> None:
        for node, token in enumerate(self.tokens[count:], count):
            if self._nodes.get(token) == node:  # an equal token may come before it
                del self._nodes[token]
        del self.tokens[count:], self.depths[count:]

    def check_room(self, count: int) -> None:
        if len(self.tokens) + count > MAX_TOKENS:
            raise GPTError("document.too_large", limit=MAX_TOKENS)

    def _append(self, token: Token) -> int:
        self.check_room(1)
        number, parent = len(self.tokens), token.parent
        if parent is not None if number == 0 else parent is None or not 0 <= parent < number:
            raise GPTError("document.token_parent", number=number, last=number - 1, parent=parent)
        depth = 0 if parent is None else self.depths[parent] + 1
        self.depths[number:] = [depth]  # an interrupted call may have added it
        self.tokens.append(token)
        return self._nodes.setdefault(token, number)


@dataclass
class History:
    """Ends of the text: before each action, oldest first (`past`), and after each undone action, oldest last."""

    past: list[End] = field(default_factory=list)
    future: list[End] = field(default_factory=list)

    def copy(self) -> History:
        return History([*self.past], [*self.future])

    def push(self, before: End, after: End, *, joined: bool = False) -> None:
        """Record the end of the text before and after an action. An action that changes nothing leaves no entry.

        joined: undo it together with the previous action.
        """
        if before == after and not joined:
            return
        if joined and self.past:
            before = self.past.pop()
        self.future.clear()
        if after != before:
            self.past.append(before)


class Document:
    """A tree of texts, one of which is current. Actions add nodes. Only `retype` removes any, and only those it added.

    ids: token ids of the current text. tree: all tokens and their origins. path: nodes of the current text.
    block_size: the context length. A text may be one token longer: its last token is predicted but never read.
    dropped: ids before the text that no longer fit into the context (see `gpt.documents.generation`).
    key: unique among the documents in this process. It changes when the edits are replaced, and when nodes are removed,
        because their numbers are reused.
    history: actions for `undo` and `redo`. Set this to restore a saved document's history.
    """

    history: History
    _n_prompt_nodes: int  # the first nodes of the tree form the prompt
    _held: dict[int, str]  # by node: white space typed after it
    _retyped: tuple[int, object] | None  # first node of the latest run of `retype` calls, and the `_state` after it

    def __init__(
        self, tokenizer: Vocabulary, block_size: int, prompt_ids: Sequence[int], dropped: Sequence[int] = ()
    ) -> None:
        self.tokenizer, self.block_size, self.key, self.dropped = tokenizer, block_size, next(KEYS), [*dropped]
        prompt = [Token(token_id, n - 1 if n else None, TYPED) for n, token_id in enumerate(prompt_ids)]
        self._set_tree(TokenTree(prompt), len(prompt), len(prompt) - 1)

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
            self.key = next(KEYS)

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
        return bool(self.history.past)

    @property
    def can_redo(self) -> bool:
        """Whether there is an action to redo."""
        return bool(self.history.future)

    def origin(self, position: int) -> Origin:
        """Return the origin of the token at a position in the current text."""
        return self.tree.tokens[self._node(position)].origin

    def draw(self, position: int) -> float | None:
        """Return the number in [0, 1) that selected the token at a position, or None if it was not sampled."""
        params = self.origin(position).params
        seed = None if params is None else params.seed
        return None if seed is None else uniform_draw(seed, len(self.dropped) + position)

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
        if special:
            ids = self.tokenizer.encode_special(text, is_start=False)
        else:
            ids = self.tokenizer.encode_continuation(text)
        return self._add(ids, TYPED, after, held=held) + held

    def retype(self, ids: Sequence[int], keep: int, held: str = "", *, joined: bool = True) -> None:
        """Replace everything after the first `keep` tokens with typed tokens.

        held: white space typed after them. joined: whether this and the previous call form one action, if they are
        consecutive.

        Tokens that such calls added but that are no longer in the text are removed from the tree. If the tree contains
        only the prompt, this edits the prompt itself, which cannot be undone. Raises ValueError, leaving the text
        unchanged, if keep < 1, the tokens exceed the context, or an id is unknown.
        """
        ids, last = as_token_ids(ids), self._node(keep - 1)
        is_prompt = len(self.tree) == self._n_prompt_nodes
        if ids == self.ids[keep:] and held == self.held:
            return
        self._check(ids, last)
        before, first = self._end, len(self.tree)
        if joined and self.history.past and self._retyped is not None and self._retyped[1] == self._state:
            before, first = self.history.past.pop(), self._retyped[0]
        self._go_to(last)
        start = max(1 if is_prompt else first, last + 1)
        if start < len(self.tree):
            self.tree.truncate(start)
            self._held = {node: held for node, held in self._held.items() if node < start}
            self.key = next(KEYS)
        self._extend(last, ids, TYPED, held)
        if is_prompt:
            self._n_prompt_nodes, self.history = len(self.tree), History()
        else:
            self.history.future.clear()  # it may refer to nodes that were removed
            self.history.push(before, self._end)
        self._retyped = None if self._end == before else (first, self._state)

    def go_back(self, position: int) -> None:
        """End the text after this position. The rest stays in the tree."""
        self.switch(self._node(position))

    def switch(self, node: int) -> None:
        """End the text at a node of the tree."""
        before = self._end
        self._go_to(node)
        self.history.push(before, self._end)

    def undo(self) -> None:
        """Undo the latest action. Raises ValueError if there is nothing to undo."""
        require(self.can_undo, "document.nothing_to_undo")
        self._retrace(self.history.past, self.history.future)

    def redo(self) -> None:
        """Redo the last undone action. Raises ValueError if there is nothing to redo."""
        require(self.can_redo, "document.nothing_to_redo")
        self._retrace(self.history.future, self.history.past)

    def _add(
        self, ids: Sequence[int], origin: Origin, after: int | None = None, *, held: str = "", joined: bool = False
    ) -> str:
        """Add all tokens after a position as one action. White space held back there is not written a second time."""
        ids, before = as_token_ids(ids), self._end
        node = self.path[-1] if after is None else self._node(after)
        begin = self.held if node == self.path[-1] else ""
        if begin and ids and not self.tokenizer.token_bytes(ids[0]).startswith((b" ", b"\t")):
            ids = [*self.tokenizer.encode_continuation(begin), *ids]
        self._check(ids, node)
        completed = self._extend(node, ids, origin, held)
        self.history.push(before, self._end, joined=joined)
        return completed.removeprefix(begin if completed.startswith(begin) else " ") if begin else completed

    def _extend(self, node: int, ids: Sequence[int], origin: Origin, held: str) -> str:
        """End the text with these tokens after a node, and return the characters that they complete."""
        for token_id in ids:
            node = self.tree.add(Token(token_id, node, origin))
        completed = self._go_to(node)
        self.held = held
        return completed

    def check_room(self, n: int = 1, after: int | None = None) -> None:
        """Raise ValueError if n tokens do not fit after position `after`, by default the last."""
        room = self.block_size - (len(self.ids) - 1 if after is None else after)
        if n > room:
            require(room, "context.full", limit=self.block_size)
            raise GPTError("context.no_room", n=n, limit=self.block_size, room=room)

    def _check(self, ids: Sequence[int], node: int) -> None:
        """Raise ValueError if the tokens do not fit after a node or an id is unknown."""
        self.check_room(len(ids), self.tree.depths[node])
        for token_id in ids:
            self.tokenizer.token_bytes(token_id)  # raises for an unknown id
        self.tree.check_room(len(ids))

    def _set_tree(self, tree: TokenTree, n_prompt_nodes: int, node: int, held: Mapping[int, str] | None = None) -> None:
        self.tree, self._n_prompt_nodes, self._held = tree, n_prompt_nodes, dict(held or {})
        self.history, self._retyped = History(), None
        self.ids: list[int] = []
        self.path: list[int] = []
        self._restart_decoder()
        self._go_to(node)

    @property
    def _end(self) -> End:
        return self.path[-1], self.held

    @property
    def _state(self) -> object:
        """What every action changes."""
        return self._end, len(self.tree), len(self.history.past)

    def _retrace(self, ends: list[End], others: list[End]) -> None:
        """Return to the latest of these ends of the text, and add the present one to the others."""
        others.append(self._end)
        node, held = ends.pop()
        self._extend(node, [], TYPED, held)

    def _go_to(self, node: int) -> str:
        """End the text at this node and return the characters completed by new tokens."""
        added = self.tree.path(node, after=self.path)
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
