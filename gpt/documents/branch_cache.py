"""What the model made of texts that are not being read now: kept for a return, up to a limit of memory."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from gpt.errors import GPTError


@dataclass(frozen=True)
class Piece:
    """A run of tokens, each following the one before. rows: their keys, values, queries and states, (..., n, width)."""

    nodes: tuple[int, ...]
    rows: tuple[Tensor, ...]

    @property
    def n_bytes(self) -> int:
        return sum(row.numel() * row.element_size() for row in self.rows)

    def from_(self, start: int) -> Piece:
        """The same without its first tokens, in memory of its own."""
        return Piece(self.nodes[start:], tuple(row[..., start:, :].clone() for row in self.rows))


class Shelf:
    """Rows of tokens that left the current path, each kept once: what a return takes back is not kept here as well.

    memory: bytes; beyond it the pieces that lie here longest are forgotten. forgotten: the tokens whose rows that
    cost, until the model has read them again.
    """

    def __init__(self, memory: int) -> None:
        if memory < 0:
            raise GPTError("argument.minimum", name="branch_memory", low=0, value=memory)
        self.memory = memory
        self.forgotten: set[int] = set()
        self._pieces: OrderedDict[int, Piece] = OrderedDict()  # by first token, the oldest first

    @property
    def n_bytes(self) -> int:
        """What it holds."""
        return sum(piece.n_bytes for piece in self._pieces.values())

    def copy(self) -> Shelf:
        """Another one with the same pieces, which nobody changes."""
        other = Shelf(self.memory)
        other.forgotten, other._pieces = set(self.forgotten), self._pieces.copy()
        return other

    def put(self, nodes: Sequence[int], rows: Sequence[Tensor], start: int) -> None:
        """Keep the rows of some tokens; theirs are those from `start` on."""
        end = start + len(nodes)
        self._keep(Piece(tuple(nodes), tuple(row[..., start:end, :].clone() for row in rows)))

    def take(self, nodes: Sequence[int], rows: Sequence[Tensor], start: int) -> int:
        """Put back the rows of tokens that follow each other, from `start` on; returns how many there were.

        There are no gaps: a token comes here no later than those it follows, and so is forgotten no later.
        """
        found = 0
        while found < len(nodes) and nodes[found] in self._pieces:
            piece = self._pieces.pop(nodes[found])
            n = common_length(piece.nodes, nodes[found:])
            for target, kept in zip(rows, piece.rows, strict=True):
                target[..., start + found : start + found + n, :] = kept[..., :n, :]
            if n < len(piece.nodes):
                self._keep(piece.from_(n))
            found += n
        return found

    def _keep(self, piece: Piece) -> None:
        self._pieces[piece.nodes[0]] = piece
        while self.n_bytes > self.memory:
            self.forgotten.update(self._pieces.popitem(last=False)[1].nodes)


def common_length(left: Sequence[int], right: Sequence[int]) -> int:
    """How many numbers two rows have in common from their beginning on."""
    shorter = min(len(left), len(right))
    return next((n for n in range(shorter) if left[n] != right[n]), shorter)
