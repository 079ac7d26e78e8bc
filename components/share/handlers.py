"""The two share menus: one to share the page as a link, one to save files or programs and to open a file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, get_args

from components.errors import PageError, localize_error
from components.i18n import t
from components.labels import shortened
from components.parts import Part
from components.share import files, menu
from components.share.address import page_values
from components.share.document_link import shown_prompt
from components.share.link import MAX_LINK, encode
from components.state.adoption import adopt, load_with_progress
from components.state.hidden import hidden_values, hide_again
from components.state.session import Session
from components.state.snapshot import Message
from gpt import Edits, Generation, list_models
from gpt.documents.saved_document import SavedDocument
from gpt.documents.snippets import Engine, engine_snippet, python_snippet

MAX_PROBLEM_CHARS = 300  # maximum length of an error message, which may quote a long text from a file
MAX_NAME_CHARS = 80
_numbers = count(1)  # unique numbers for the responses; the browser acts on each response once


@dataclass(frozen=True)
class ShareState:
    """Each menu's last response."""

    link: dict[str, Any] | None = None
    file: dict[str, Any] | None = None

    __hash__ = None  # type: ignore[assignment]


def link_menu() -> Part:
    """Return the frame's menu, which shares the page as a link."""
    items = ["link", "class", "present"]
    return menu.menu("share-link", items, draw=lambda s: {"answer": s[ShareState].link}, on=answer_link)


def files_menu() -> Part:
    """Return the menu below the text for saving programs and for saving or opening files."""
    elsewhere, save = ["elsewhere", *get_args(Engine)], ["save", "text", "document", "csv"]
    items: list[str | list[str]] = ["python", elsewhere, save, "open"]
    wired: dict[str, Any] = {"draw": lambda s: {"answer": s[ShareState].file}, "on": answer_files, "queue": "model"}
    return menu.menu("share-files", items, largest=menu.LARGEST, **wired)


def answer_link(session: Session, sent: dict[str, Any]) -> None:
    """Send the page's link, or an error if the link is too long."""

    def answer(content: dict[str, Any]) -> None:
        session.change(ShareState, link={"n": next(_numbers), **content})

    if session.document is None:
        answer(menu.message(t("error.no_text")))
        return
    try:
        with session.lock.reading():
            query = encode(page_values(session.snapshot()))
    except ValueError as problem:  # an invalid seed
        answer(menu.message(localize_error(problem)))
        return
    if len(query) > MAX_LINK:
        answer(menu.message(t("share.too_long", n=f"{len(query):,}", limit=f"{MAX_LINK:,}")))
        return
    answer(menu.copied(query, t("share.link.copied"), t("share.manual"), query=True))


def answer_files(session: Session, sent: dict[str, Any]) -> Iterator[None]:
    """Send the text as a file or program, or open the text in a file."""
    try:
        if sent.get("what") == "open":
            answer = menu.message((yield from _open(session, sent)))
        elif (document := session.document) is None:
            answer = menu.message(t("error.no_text"))
        else:
            with session.lock.reading():
                answer = _saved(session, document, sent.get("what"))
    except ValueError as problem:
        answer = menu.message(_short(localize_error(problem)))
    session.change(ShareState, file={"n": next(_numbers), **answer})


def _saved(session: Session, document: Generation, what: object) -> dict[str, Any]:
    """Return the response to a click on a save button. Raises ValueError for an unknown button."""
    if what == "python":
        hidden = sorted(session.snapshot().hidden)
        program = python_snippet(document, session.edits, session.edits_on, hidden)
        return menu.copied(program, t("share.python.copied"), t("share.manual"))
    if isinstance(what, str) and what in get_args(Engine):
        params = replace(session.settings.sampling(), seed=session.settings.typed_seed())
        program = engine_snippet(what, document.ids, params, session.settings.length)
        return menu.copied(program, t("share.elsewhere.copied"), t("share.manual"))
    if what == "text":
        file = files.text_file(document)
    elif what == "document":
        file = files.json_file(document, **hidden_values(session.snapshot()))
    elif what == "csv":
        text = session.snapshot().text
        assert text is not None
        file = files.csv_file(text.document, text.at(session.selection), session.settings.sampling())
    else:
        raise PageError("share.no_file", name=str(what))
    return menu.saved(file, t("share.saved", name=file.name))


def _open(session: Session, sent: dict[str, Any]) -> Any:
    """Open the document stored in a file, with its model. Raises ValueError for an invalid file.

    Concepts that are turned up stay active. Other edits move to the "Change it" tab, and the text is read without them.
    """
    name, text, size = (sent.get(key) for key in ("name", "text", "size"))
    if not isinstance(text, str) or type(size) is not int or max(size, len(text)) > menu.LARGEST:
        megabytes = f"{size / 1e6:.1f}" if type(size) is int else "?"
        raise PageError("share.file_too_large", n=megabytes, limit=menu.LARGEST // 10**6)
    saved = SavedDocument.from_json(text)
    if saved.model not in list_models():
        raise PageError("share.unknown_model", model=shortened(saved.model, MAX_NAME_CHARS))
    loaded = yield from load_with_progress(session, saved.model)
    edits = saved.edits_for(loaded)
    document = Generation.from_json(replace(saved, edits="").to_json(), loaded)
    if edits is not None:
        document.edit(Edits(steering=edits.steering))
        edits = replace(edits, steering=())
    caption = t("share.opened", name=shortened(str(name), MAX_NAME_CHARS), n=f"{len(document.ids):,}")
    adopt(session, document, shown_prompt(document), Message("status.ready"))
    hide_again(session, json.loads(text))
    if edits not in (None, Edits()):
        session.edits, session.edits_on = edits, ()
        caption += t("share.opened.edits")
    return caption


def _short(text: str, most: int = MAX_PROBLEM_CHARS) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
