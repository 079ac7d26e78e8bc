"""Tree of all texts in a document, with the origin of each token, and the history of actions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from gpt.checks import check_choice
from gpt.errors import GPTError
from gpt.sampling import SamplingParams

MAX_TOKENS = 2**16  # limit on the tokens in all branches of a document
End = tuple[int, str]  # the last node of a text, and the white space held back after it (see `Document.held`)
OriginKind = Literal["typed", "sampled", "chosen"]


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
        if (self.kind == "sampled") != (self.params is not None and self.params.seed is not None):
            raise GPTError("document.token_params", "sampled tokens need settings with a seed; other tokens have none")


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

    @classmethod
    def from_ids(cls, ids: Sequence[int]) -> TokenTree:
        """Create the tree of a typed text without branches."""
        return cls([Token(token_id, n - 1 if n else None, TYPED) for n, token_id in enumerate(ids)])

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
        """Return the nodes from the root to this one."""
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

    def shared_length(self, node: int, path: Sequence[int]) -> int:
        """Return the number of nodes that the path to `node` shares with another path."""
        return self.depths[node] + 1 - len(self.path_after(node, path))

    def truncate(self, count: int) -> None:
        """Remove all nodes except the first `count`."""
        for node in range(len(self.tokens) - 1, count - 1, -1):
            parent = self.tokens[node].parent
            if parent is not None:
                self._children[parent].remove(node)
        del self.tokens[count:], self.depths[count:], self._children[count:]

    def check(self, node: int) -> None:
        """Raise ValueError if a node does not exist."""
        if not 0 <= node < len(self.tokens):
            raise GPTError(
                "document.token_unknown",
                "token number {number} does not exist: the document has tokens 0 to {last}",
                number=node,
                last=len(self.tokens) - 1,
            )

    def check_room(self, count: int) -> None:
        """Raise ValueError if `count` more nodes would exceed MAX_TOKENS."""
        if len(self.tokens) + count > MAX_TOKENS:
            raise GPTError(
                "document.too_large",
                "a document can have at most {limit:,} tokens in all its branches: start a new one",
                limit=MAX_TOKENS,
            )

    def _append(self, token: Token) -> None:
        self.check_room(1)
        number = len(self.tokens)
        if number == 0 and token.parent is not None:
            raise GPTError(
                "document.first_token_parent",
                "the first token cannot follow another one, but is marked as following {parent}",
                parent=token.parent,
            )
        if number > 0 and (token.parent is None or not 0 <= token.parent < number):
            raise GPTError(
                "document.token_parent",
                "token number {number} must follow one of 0 to {last}, not {parent}",
                number=number,
                last=number - 1,
                parent=token.parent,
            )
        self.tokens.append(token)
        self.depths.append(0 if token.parent is None else self.depths[token.parent] + 1)
        self._children.append([])
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
        """Forget the undone actions."""
        del self._ends[self._current + 1 :]

    def undo(self) -> End:
        """Undo an action and return the end of the text. Raises ValueError if there is nothing to undo."""
        if not self.can_undo:
            raise GPTError("document.nothing_to_undo", "there is nothing to undo")
        self._current -= 1
        return self._ends[self._current]

    def redo(self) -> End:
        """Redo an action and return the end of the text. Raises ValueError if there is nothing to redo."""
        if not self.can_redo:
            raise GPTError("document.nothing_to_redo", "there is nothing to redo")
        self._current += 1
        return self._ends[self._current]
