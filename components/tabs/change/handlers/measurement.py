"""Measurement of the edits' effect while the tab is open."""

from __future__ import annotations

from collections.abc import Generator, Hashable, Iterator

from components.render import Analysis
from components.state.selection import NEWEST
from components.state.session import Session
from components.state.snapshot import Snapshot
from components.state.text import Text
from components.tabs.change.effect import ReadText, fitting_edits, measure, read_document, read_prompt, turned_in
from components.tabs.change.state import (
    ChangeState,
    DroppedEdits,
    prompt_to_try,
    written_pair,
)
from gpt import Edits, encode_prompt
from gpt.documents.edit_text import format_edits
from gpt.tokenizer import plain_text


def text_source(s: Snapshot) -> Hashable:
    """Return a key for the text on which the edits are measured, or None if there is no text.

    In order of preference: the unedited model's generated text, the prompt in `Session.edits_on`, the text in Write.
    """
    if s.text is None or s.text.n_read == 0:
        return None
    pair = written_pair(s)
    if pair is not None and pair.read is not None:
        return pair.read.source
    if prompt := prompt_to_try(s):
        return "prompt", prompt, s.text.document.key
    return s.text.version, s.text.n_read


def wanted(s: Snapshot) -> Hashable:
    """Return a key for the text and the edits to measure, or None during generation or if there is nothing to do."""
    state, source = s.state(ChangeState), text_source(s)
    if source is None or s.generating or state.writing is not None:
        return None
    effect, edits = state.effect, format_edits(s.edits)
    if effect is not None and (effect.text.source, format_edits(effect.edits)) == (source, edits):
        return None
    return source, edits


def run(session: Session) -> Iterator[None]:
    """Measure the effect of the session's edits, dropping unsupported ones."""
    text = _read(session)
    if text is None:
        return
    before = session.state(ChangeState).text
    if before is not None and before is not text:
        session.change(ChangeState, experiment="", notice=None, dropped=None)
    kept, dropped = fitting_edits(session.edits, text.loaded)
    if dropped != Edits():
        session.edits = kept
        session.change(ChangeState, dropped=DroppedEdits(dropped, (before or text).config))
    session.change(ChangeState, effect=measure(text, kept))
    yield


def _read(session: Session) -> ReadText | None:
    """Return the text to measure, reading it with the unedited model if necessary."""
    with session.lock.reading():
        s = session.snapshot()
        source, state = text_source(s), s.state(ChangeState)
        if source is None or s.text is None:
            return None
        if state.text is not None and state.text.source == source:
            return state.text
        pair, prompt = written_pair(s), prompt_to_try(s)
        if pair is not None and pair.read is not None:
            return pair.read
        if not prompt:
            session.edits_on = ()
            return read_document(s.text.document, source)
    return _read_prompt(session, s.text, prompt, source)


def _read_prompt(session: Session, text: Text, prompt: tuple[int, ...], source: Hashable) -> ReadText | None:
    """Read the prompt from a link.

    If the edits include a patch, the patch's text and this prompt become the two prompts for activation patching.
    """
    loaded = text.loaded
    try:
        found = read_prompt(loaded, encode_prompt(loaded, list(prompt)), source, turned_in(text.document))
    except ValueError:  # the ids belong to another vocabulary
        session.edits_on = ()
        return _read(session)
    tried = session.state(ChangeState).tried_on
    if tried is None or tried[0] is not prompt:
        session.change(ChangeState, position=NEWEST, tried_on=(prompt, text.version))
        for patch in session.edits.patches[:1]:
            clean, corrupted = (plain_text(loaded.tokenizer, ids) for ids in (patch.ids or (), prompt))
            session.change(ChangeState, clean=clean, corrupted=corrupted)
    return found


ANALYSIS = Analysis(wanted, run)


def up_to_date(session: Session) -> Generator[None, None, ReadText | None]:
    """Return the tab's text, measuring it first if necessary."""
    with session.lock.reading():
        missing = wanted(session.snapshot())
    if missing is not None:
        yield from run(session)
    return session.state(ChangeState).text
