"""Handlers that hide words from the model and switch attention off."""

from __future__ import annotations

from typing import Any

from components.causes import falls_of, main_word
from components.state.hidden import CLICKS, HiddenState, hide, show_all
from components.state.session import Session
from components.state.snapshot import Snapshot
from components.tabs.playground.state import ReasonState
from components.words import words_of


def hide_words(session: Session, sent: dict[str, Any]) -> None:
    """Hide exactly these words, unless a later click has been handled or the text has been edited since.

    `sent` is an unvalidated payload from `components.widgets.composer`. "hidden" is a list with the position of any
    token in each word.
    """
    given, n = sent.get("hidden"), sent.get("n", 0)
    with session.lock.reading():  # two clicks may arrive at the same time, in any order
        s = _snapshot(session)
        is_old = type(n) is int and n > 0 and not session.is_new(*CLICKS, n)
        is_edited = sent.get("edited", session.edited) != session.edited
        if s.written is None or not isinstance(given, list) or is_old or is_edited:
            return
        wanted = {each for each in given if type(each) is int}
        words = [word for word in words_of(s.written.tokenizer, s.written.ids) if wanted & {*word}]
        hide(session, [position for word in words for position in word])


def hide_main(session: Session) -> None:
    """Hide the word that the prediction depends on most. If any words are hidden, show all words instead."""
    s = _snapshot(session)
    reason = s.state(ReasonState).reason
    if s.text is None:
        return
    if s.hidden:
        show_all(session)
    elif reason is not None and reason.belongs_to(s.text, s.text.at(s.selection)):
        falls = falls_of(reason.causes, s.text.ids[: reason.position + 1], s.settings.sampling())
        if (word := main_word(falls)) is not None:
            hide(session, word.place)


def switch_attention(session: Session) -> None:
    """Show or hide the prediction without attention beside the one with attention."""
    session.change(HiddenState, attention_off=not session.state(HiddenState).attention_off)


def _snapshot(session: Session) -> Snapshot:
    return session.snapshot()
