"""Parts that a person hides from the model: words in the text, and attention."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from components.state.session import Session
from components.state.snapshot import Snapshot
from components.state.text import HiddenWords
from components.state.typed_text import words_of

CLICKS = ("prompt", "submit")  # counts the clicks on words in the box, see `Session.is_new`


def hide(session: Session, positions: Iterable[object]) -> None:
    """Hide exactly the tokens at these positions in the text as written, unless none would be left to predict from.

    positions: unchecked; positions that do not exist are ignored.
    """
    text = session.snapshot().written
    if text is None:
        return
    hidden = frozenset(each for each in positions if type(each) is int and 0 <= each < len(text.ids))
    if not hidden.issuperset(range(text.at(session.selection) + 1)):
        session.hidden = HiddenWords(text.ids[: max(hidden, default=-1) + 1], hidden)


def show_word(session: Session, position: object) -> None:
    """Show the hidden word again that this position in the text as written belongs to. position: unchecked."""
    s = session.snapshot()
    if s.written is not None:
        words = words_of(s.written.tokenizer, s.written.ids)
        hide(session, s.hidden.difference(*(word for word in words if position in word)))


def show_all(session: Session) -> None:
    session.hidden = HiddenWords()


def hidden_values(s: Snapshot) -> dict[str, Any]:
    """Return the hidden parts as values for a link or file."""
    values: dict[str, Any] = {}
    if s.hidden:
        values["hidden"] = tuple(sorted(s.hidden))
    if s.attention_off:
        values["attention"] = "off"
    return values


def hide_again(session: Session, values: Mapping[str, Any]) -> None:
    """Hide exactly the parts named by the values from a link or file. values: unchecked."""
    hidden = values.get("hidden")
    show_all(session)
    if isinstance(hidden, list | tuple):
        hide(session, hidden)
    session.attention_off = values.get("attention") == "off"
