"""Parts that a person hides from the model: words in the text, and attention."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from components.state.session import Session
from components.state.snapshot import Snapshot
from components.state.text import AtPosition, Text
from gpt.documents.document_cache import common_prefix_length


@dataclass(frozen=True, eq=False)
class WithoutWords(AtPosition):
    """The prediction at a position when some words in the text are hidden.

    hidden: hidden positions. logits: next-token logits, (vocab_size,). off: the logits with attention switched off, if
    requested. goes_on, off_goes_on: the text's continuations with and without attention.
    """

    hidden: frozenset[int]
    logits: Tensor
    off: Tensor | None = None
    goes_on: str = ""
    off_goes_on: str = ""


@dataclass(frozen=True)
class HiddenState:
    """The parts that a person has hidden from the model.

    ids: the text up to the last hidden word; positions: the hidden words' positions. attention_off: whether the
    prediction without attention is also shown. measured: the last prediction.
    """

    ids: tuple[int, ...] = ()
    positions: frozenset[int] = frozenset()
    attention_off: bool = False
    measured: WithoutWords | None = None

    def hidden_in(self, text: Text) -> frozenset[int]:
        """Return the hidden positions within the prefix that a text shares with the text whose words were hidden."""
        n = common_prefix_length(self.ids, text.ids)
        return frozenset(position for position in self.positions if position < n)


def hide(session: Session, positions: Iterable[object]) -> None:
    """Hide exactly the tokens at these positions, unless none would be left to predict from.

    positions: unchecked; positions that do not exist are ignored.
    """
    with session.lock.reading():
        s = session.snapshot()
    if s.text is None:
        return
    hidden = frozenset(each for each in positions if type(each) is int and 0 <= each < len(s.text.ids))
    if not hidden.issuperset(range(s.text.at(s.selection) + 1)):
        session.change(HiddenState, ids=s.text.ids[: max(hidden, default=-1) + 1], positions=hidden)


def show_all(session: Session) -> None:
    """Show everything again."""
    session.change(HiddenState, ids=(), positions=frozenset())


def hidden_values(s: Snapshot) -> dict[str, Any]:
    """Return the hidden parts as values for a link or file."""
    state = s.state(HiddenState)
    values: dict[str, Any] = {}
    if s.text is not None and (hidden := state.hidden_in(s.text)):
        values["hidden"] = tuple(sorted(hidden))
    if state.attention_off:
        values["attention"] = "off"
    return values


def hide_again(session: Session, values: Mapping[str, Any]) -> None:
    """Hide exactly the parts named by the values from a link or file. values: unchecked."""
    hidden = values.get("hidden")
    show_all(session)
    if isinstance(hidden, list | tuple):
        hide(session, hidden)
    session.change(HiddenState, attention_off=values.get("attention") == "off")
