"""The tree of texts that one document holds: each token once, with how it came about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from gpt.errors import GPTError
from gpt.sampling import SamplingParams

MAX_TOKENS = 2**16  # in all branches of a document together
How = Literal["typed", "sampled", "chosen"]


@dataclass(frozen=True)
class Origin:
    """How a token came about: typed, sampled, or chosen by hand.

    params: the settings that it was sampled with, seed included; None for the others. The number of the draw
    follows from the seed and the position. Raises ValueError for settings where none belong, or the reverse.
    """

    how: How
    params: SamplingParams | None = None

    def __post_init__(self) -> None:
        if self.how not in get_args(How):
            raise GPTError("argument.choice", name="how", choices=", ".join(get_args(How)), value=self.how)
        if (self.how == "sampled") != (self.params is not None and self.params.seed is not None):
            raise GPTError("document.token_params")


TYPED, CHOSEN = Origin("typed"), Origin("chosen")


@dataclass(frozen=True)
class Token:
    """One token of the tree. parent: the number of the token before it, None for the first."""

    token_id: int
    parent: int | None
    origin: Origin


class Branches:
    """Tokens, each after its parent: a token's number is its place in the list, and none is ever removed.

    Raises ValueError unless the first token, and no other, has no parent, and each parent stands before its child:
    so there are no cycles.
    """

    def __init__(self, tokens: Sequence[Token]) -> None:
        self.tokens: list[Token] = []
        self.depths: list[int] = []  # how many tokens stand before each
        self._children: list[list[int]] = []
        for token in tokens:
            self._append(token)

    @classmethod
    def line(cls, ids: Sequence[int]) -> Branches:
        """One typed text, no branches."""
        return cls([Token(token_id, n - 1 if n else None, TYPED) for n, token_id in enumerate(ids)])

    def __len__(self) -> int:
        return len(self.tokens)

    def add(self, token_id: int, origin: Origin, parent: int) -> int:
        """The number of this token after its parent: a new one, or the one that came about the same way before."""
        for child in self._children[parent]:
            if (self.tokens[child].token_id, self.tokens[child].origin) == (token_id, origin):
                return child
        self._append(Token(token_id, parent, origin))
        return len(self.tokens) - 1

    def children(self, node: int) -> list[int]:
        """The tokens that follow this one, the oldest first: more than one where branches part."""
        return list(self._children[node])

    def leaves(self) -> list[int]:
        """The last token of every branch, the oldest branch first."""
        return [node for node, children in enumerate(self._children) if not children]

    def path(self, node: int) -> list[int]:
        """The tokens from the first to this one."""
        return self.tail(node, [])

    def tail(self, node: int, path: Sequence[int]) -> list[int]:
        """The end of the path to a token that is not on another path, both from the first token."""
        self.check(node)
        nodes: list[int] = []
        step: int | None = node
        while step is not None and (self.depths[step] >= len(path) or path[self.depths[step]] != step):
            nodes.append(step)
            step = self.tokens[step].parent
        return nodes[::-1]

    def shared(self, node: int, path: Sequence[int]) -> int:
        """How many tokens the path to a token has in common with another path."""
        return self.depths[node] + 1 - len(self.tail(node, path))

    def check(self, node: int) -> None:
        """Raise ValueError for a number that no token has."""
        if not 0 <= node < len(self.tokens):
            raise GPTError("document.token_unknown", number=node, last=len(self.tokens) - 1)

    def check_room(self, count: int) -> None:
        """Raise ValueError where so many more tokens are too many."""
        if len(self.tokens) + count > MAX_TOKENS:
            raise GPTError("document.too_large", limit=MAX_TOKENS)

    def _append(self, token: Token) -> None:
        self.check_room(1)
        number = len(self.tokens)
        if number == 0 and token.parent is not None:
            raise GPTError("document.first_token_parent", parent=token.parent)
        if number > 0 and (token.parent is None or not 0 <= token.parent < number):
            raise GPTError("document.token_parent", number=number, last=number - 1, parent=token.parent)
        self.tokens.append(token)
        self.depths.append(0 if token.parent is None else self.depths[token.parent] + 1)
        self._children.append([])
        if token.parent is not None:
            self._children[token.parent].append(number)


class History:
    """Where the text ended after each action, for undo and redo. Nothing in the tree is lost by going back."""

    def __init__(self, tip: int) -> None:
        self._tips, self._at = [tip], 0

    @property
    def can_undo(self) -> bool:
        return self._at > 0

    @property
    def can_redo(self) -> bool:
        return self._at < len(self._tips) - 1

    def push(self, tip: int, *, joined: bool = False) -> None:
        """After an action. joined: it goes on with the last one, and both are undone together."""
        if tip != self._tips[self._at]:
            self._at += 0 if joined else 1
            self._tips[self._at :] = [tip]

    def undo(self) -> int:
        """Where the text ended before the last action. Raises ValueError if there was none."""
        if not self.can_undo:
            raise GPTError("document.nothing_to_undo")
        self._at -= 1
        return self._tips[self._at]

    def redo(self) -> int:
        """Where the text ended after the action undone last. Raises ValueError if there is none."""
        if not self.can_redo:
            raise GPTError("document.nothing_to_redo")
        self._at += 1
        return self._tips[self._at]
