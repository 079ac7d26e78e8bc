"""A text with branches, and all that can be done to it by hand. Knows the vocabulary and the context, no model."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from itertools import count

from gpt.documents.branches import CHOSEN, TYPED, Branches, History, Origin
from gpt.errors import GPTError
from gpt.models.checkpoints.vocabularies import Vocabulary
from gpt.sampling import uniform
from gpt.tokenizer import IncrementalDecoder, whole_ids

_keys = count(1)


class Document:
    """A tree of texts, one of them current. Nothing that was ever in it is lost by going back.

    ids: the current text. tree: every token there ever was, and how it came about; path: the current text in it.
    The first n_given tokens of the tree are the prompt; at first the text ends at the token number `tip`.
    block_size: the context; a text may be one token longer, which is predicted and never read.
    key: no other document of this process has it; what is shown of a document carries it.
    """

    def __init__(self, tokenizer: Vocabulary, block_size: int, tree: Branches, n_given: int, tip: int) -> None:
        self.tokenizer, self.block_size, self.key = tokenizer, block_size, next(_keys)
        self._plant(tree, n_given, tip)

    @property
    def text(self) -> str:
        """The current text; end-of-text tokens have none."""
        eot_id = self.tokenizer.eot_id
        return self.tokenizer.decode([token_id for token_id in self.ids if token_id != eot_id])

    @property
    def prompt_ids(self) -> list[int]:
        """What the document started from."""
        return [token.token_id for token in self.tree.tokens[: self._n_given]]

    @property
    def n_prompt(self) -> int:
        """How many tokens of the current text are the prompt's."""
        return sum(node < self._n_given for node in self.path)

    @property
    def full(self) -> bool:
        """True when the context holds no further token to read."""
        return len(self.ids) > self.block_size

    @property
    def can_undo(self) -> bool:
        return self._history.can_undo

    @property
    def can_redo(self) -> bool:
        return self._history.can_redo

    def origin(self, position: int) -> Origin:
        """How the token at a position of the current text came about."""
        return self.tree.tokens[self._node(position)].origin

    def draw(self, position: int) -> float | None:
        """The number in [0, 1) that chose the token at a position; None where none was sampled."""
        params = self.origin(position).params
        return None if params is None else uniform(params.seed, position)

    def append(self, *token_ids: int, after: int | None = None) -> str:
        """Add tokens chosen by hand, also what sampling would have cut; returns the characters they completed.

        Several, such as those of a beam, are one action. after: the position that they follow, where a branch
        begins; None is the end of the text. Raises ValueError where they do not fit or do not exist.
        """
        return self._add(token_ids, CHOSEN, after)

    def append_text(self, text: str | Sequence[int], *, after: int | None = None) -> str:
        """Add what was typed, or its ids, as one action; all of it, or a ValueError. after: as in `append`."""
        return self._add(self.tokenizer.encode(text) if isinstance(text, str) else text, TYPED, after)

    def go_back(self, position: int) -> None:
        """Let the text end at this position: what comes next is a branch, and what came after stays in the tree."""
        self.switch(self._node(position))

    def switch(self, node: int) -> None:
        """Let the text end at a token of the tree, by its number."""
        self.tree.check(node)
        self._history.push(node)
        self._go(node)

    def undo(self) -> None:
        """Take the last action back. Raises ValueError if there was none."""
        self._go(self._history.undo())

    def redo(self) -> None:
        """Do again what was undone last. Raises ValueError if there is nothing."""
        self._go(self._history.redo())

    @property
    def history(self) -> History:
        """What `undo` and `redo` go by. May be set to that of the same document, opened from its file."""
        return self._history

    @history.setter
    def history(self, history: History) -> None:
        self._history = deepcopy(history)

    def _add(self, ids: Sequence[int], origin: Origin, after: int | None = None, *, joined: bool = False) -> str:
        """Tokens behind a position, as one action; all of them, or a ValueError."""
        ids = whole_ids(ids)
        tip = self.path[-1] if after is None else self._node(after)
        room = self.block_size - self.tree.depths[tip]
        if room == 0 and ids:
            raise GPTError("context.full", limit=self.block_size)
        if len(ids) > room:
            raise GPTError("context.no_room", n=len(ids), limit=self.block_size, room=room)
        for token_id in ids:
            self.tokenizer.token_bytes(token_id)  # refuses an id that does not exist
        self.tree.check_room(len(ids))
        for token_id in ids:
            tip = self.tree.add(token_id, origin, tip)
        self._history.push(tip, joined=joined)
        return self._go(tip)

    def _plant(self, tree: Branches, n_given: int, tip: int) -> None:
        self.tree, self._n_given, self._history = tree, n_given, History(tip)
        self.ids: list[int] = []
        self.path: list[int] = []
        self._restart_decoder()
        self._go(tip)

    def _go(self, tip: int) -> str:
        """Let the text end at this token; returns the characters completed by those that are new in it."""
        shared = self.tree.shared(tip, self.path)
        if shared < len(self.path):
            del self.path[shared:], self.ids[shared:]
            self._restart_decoder()
        tail = self.tree.tail(tip, self.path)
        new = [self.tree.tokens[node].token_id for node in tail]
        self.path += tail
        self.ids += new
        return "".join(map(self._decode, new))

    def _node(self, position: int) -> int:
        if not 0 <= position < len(self.path):
            raise GPTError("position.unknown", position=position, last=len(self.path) - 1)
        return self.path[position]

    def _restart_decoder(self) -> None:
        self._decoder = IncrementalDecoder()
        for token_id in self.ids:
            self._decode(token_id)

    def _decode(self, token_id: int) -> str:
        if token_id == self.tokenizer.eot_id:
            return ""
        return self._decoder.feed(self.tokenizer.token_bytes(token_id))
