"""The handlers of the Playground that change the text by hand: choose, type, undo, go back, switch branches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import gradio as gr

from components.api import checked_text, error
from components.i18n import Language, t
from components.labels import quoted, visible
from components.state.session import Left, Session
from components.tabs.playground import steer_views, views
from components.tabs.playground.looking import controls, fit, look, params_of, steady, told
from components.tabs.playground.views import Deed
from components.widgets.tokens import selection
from gpt import Generation
from gpt.errors import GPTError

if TYPE_CHECKING:
    from components.tabs.playground.tab import Playground

Values = dict[Any, Any]
LONGEST = 24  # characters of what was typed, where it is told of


def choose(ui: Playground, values: Values, sent: Values) -> Values:
    """Put what was clicked, a token or a text, behind the token that it was shown for."""

    def change(session: Session, document: Generation) -> Deed | None:
        after = _position(document, sent)
        if after is None:
            return None
        token, text = sent.get("token"), sent.get("text")
        if type(token) is int:
            _check_room(document, after, 1)
            document.append(token, after=after)
            return Deed("status.chosen", {"token": quoted(document.loaded.tokenizer, token)})
        return _type(document, text, after) if isinstance(text, str) else None

    return _changed(ui, values, change)


def type_text(ui: Playground, values: Values) -> Values:
    """Put what stands in the box behind the selected token."""
    text = values[ui.box] or ""

    def change(session: Session, document: Generation) -> Deed | None:
        after = steer_views.selected(document, session.look)
        return _type(document, text, after) if text else None

    return _changed(ui, values, change)


def undo(ui: Playground, values: Values) -> Values:
    """Take the last action back; where this text has none left, go back to the one before."""
    session: Session = values[ui.session]
    if session.earlier and not (session.document is not None and session.document.can_undo):
        return _return(ui, values, session.earlier, session.later, Deed("status.undone", {}))

    def change(session: Session, document: Generation) -> Deed | None:
        if not document.can_undo:
            return None
        document.undo()
        return Deed("status.undone", {})

    return _changed(ui, values, change, new=False)


def redo(ui: Playground, values: Values) -> Values:
    """Do again what was undone last."""
    session: Session = values[ui.session]
    if session.later and not (session.document is not None and session.document.can_redo):
        return _return(ui, values, session.later, session.earlier, Deed("status.redone", {}))

    def change(session: Session, document: Generation) -> Deed | None:
        if not document.can_redo:
            return None
        document.redo()
        return Deed("status.redone", {})

    return _changed(ui, values, change, new=False)


def go_back(ui: Playground, values: Values) -> Values:
    """Let the text end at the selected token."""

    def change(session: Session, document: Generation) -> Deed | None:
        position = steer_views.selected(document, session.look)
        if position == len(document.ids) - 1:
            return None
        document.go_back(position)
        return Deed("status.back", {"token": quoted(document.loaded.tokenizer, document.ids[-1])})

    return _changed(ui, values, change)


def switch(ui: Playground, values: Values, sent: Values) -> Values:
    """Let the branch that was clicked be the text."""

    def change(session: Session, document: Generation) -> Deed | None:
        node = sent.get("node")
        if type(node) is not int or sent.get("document") != str(document.key) or node == document.path[-1]:
            return None
        document.switch(node)
        return Deed("status.switched", {})

    return _changed(ui, values, change)


@steady
def search(ui: Playground, values: Values) -> Values:
    """While one types into the box: what that could be."""
    session: Session = values[ui.session]
    session.query = (values[ui.box] or "")[:200]
    document = session.document
    if document is None or document.n_read == 0:
        return {ui.hits: ""}
    return {ui.hits: steer_views.found(document, session.look, session.query, values[ui.frame.language])}


def _position(document: Generation, sent: Values) -> int | None:
    """The position that something was shown for; None where it is not in the text any more."""
    node = sent.get("behind")
    if type(node) is not int or sent.get("document") != str(document.key) or node not in document.path:
        return None
    return document.path.index(node)


def _type(document: Generation, text: str, after: int) -> Deed:
    ids = document.loaded.tokenizer.encode(checked_text("text", text))
    _check_room(document, after, len(ids))
    document.append_text(ids, after=after)
    shown = text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
    return Deed("status.typed", {"text": visible(shown)})


def _check_room(document: Generation, after: int, count: int) -> None:
    room, limit = document.block_size - after, document.block_size
    if room < 1:
        raise GPTError("context.full", limit=limit)
    if count > room:
        raise GPTError("context.no_room", n=count, limit=limit, room=room)


def _changed(
    ui: Playground, values: Values, change: Callable[[Session, Generation], Deed | None], *, new: bool = True
) -> Values:
    """Stop what is being written, change the document, read what is new, and show all of it.

    change: says what it did; None where what was asked for makes no sense any more. Its ValueError is told.
    new: whether it leads away from what was undone.
    """
    session: Session = values[ui.session]
    with session.changing():
        document = session.document
        if document is None:
            return controls(ui, session)
        try:
            deed = change(session, document)
            document.read()
        except ValueError as problem:
            raise error(problem, values[ui.frame.language]) from None
        if deed is not None:
            if new:
                session.later.clear()
            session.deed, session.meter, session.finish_reason = deed, None, None
            session.look = replace(session.look, position=views.NEWEST)
        return whole(ui, session, values)


def adopt(ui: Playground, session: Session, document: Generation, prompt: str, deed: Deed, values: Values) -> Values:
    """Let another document be the visitor's; whatever is being written stops. prompt: what the box is to say."""
    with session.changing():
        session.leave()
        return _adopted(ui, session, document, prompt, deed, values)


def _return(ui: Playground, values: Values, source: list[Left], other: list[Left], deed: Deed) -> Values:
    """Let the newest of `source` be the document again; what it takes the place of is kept in `other`."""
    session: Session = values[ui.session]
    with session.changing():
        if not source:  # somebody was quicker
            return whole(ui, session, values)
        back = source.pop()
        try:
            document = Generation.from_json(back.file)
            document.history = back.history
        except ValueError as problem:  # its model is gone
            raise error(problem, values[ui.frame.language]) from None
        if session.document is not None:
            other.append(session.left())
        return _adopted(ui, session, document, back.prompt, deed, values)


def _adopted(ui: Playground, session: Session, document: Generation, prompt: str, deed: Deed, values: Values) -> Values:
    """Another document, for whoever holds the turn."""
    document.read()
    session.document, session.prompt, session.deed = document, prompt, deed
    session.meter = session.finish_reason = None
    session.look = session.look.fitting(document.loaded.model.config, position=views.NEWEST)
    values = values | {ui.prompt: prompt, ui.frame.model: document.loaded.name}
    return {
        **whole(ui, session, values),
        **fit(ui, session, document.loaded, values),
        ui.prompt: prompt,
        ui.frame.model: document.loaded.name,
    }


def whole(ui: Playground, session: Session, values: Values) -> Values:
    """Everything that shows the document; for whoever holds the turn."""
    language, document = values[ui.frame.language], session.document
    if document is None:
        return controls(ui, session)
    shade = views.shading(document, session.look)
    strip = views.strip(document, session.known)
    return {
        **look(ui, session, params_of(ui, values), language),
        **controls(ui, session),
        ui.strip: gr.update(value=strip, selected=selection(session.look.position), shade=shade),
        ui.tree: steer_views.tree(document, language),
        ui.status: told(session, language),
        ui.notice: remark(session, language),
        ui.use_tail: gr.update(visible=False),
    }


def remark(session: Session, language: Language) -> str:
    """What a person should know of this text, if anything."""
    document = session.document
    remarks = []
    if document.loaded.name == "untrained":
        remarks.append(t("untrained.note", language))
    elif not session.prompt:
        remarks.append(t("prompt.started_empty", language))
    if document.forgotten:
        remarks.append(t("tree.forgotten", language, n=f"{len(document.forgotten):,}"))
    return " ".join(remarks)
