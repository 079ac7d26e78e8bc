"""The two share menus: one to share the page as a link, one to save files or programs and to open a file."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from typing import Any, get_args

import numpy as np

from components.errors import PageError, message_of
from components.i18n import t
from components.labels import shortened, token_text
from components.parts import Handler, Part, Queue
from components.share.address import Pages, page_query
from components.state.adoption import adopt, load_with_progress
from components.state.example import shown_prompt
from components.state.hidden import hidden_values, hide_again
from components.state.session import Session
from components.state.snapshot import Message
from components.widgets.widget import widget
from gpt import Edits, Generation, SamplingParams, distribution, list_models
from gpt.documents.saved_document import SavedDocument
from gpt.documents.snippets import Engine, engine_snippet, python_snippet

LARGEST = 4_000_000  # maximum size of a document to open, in bytes

_TEMPLATE = """<div class="gb-share" role="group">
<div class="gb-share-row"></div>
<div class="gb-share-out" hidden>
<p class="gb-share-says" role="status"></p><button class="gb-share-close" type="button">×</button>
<textarea readonly spellcheck="false"></textarea>
</div>
<input type="file" accept=".json,application/json" hidden>
</div>"""


COLUMNS = ("id", "token", "logit", "raw_probability", "final_probability")


@dataclass(frozen=True)
class File:
    name: str
    mime: str
    content: str


def json_file(document: Generation, **hidden: Any) -> File:
    """Return the document with all its branches as a JSON file. hidden: the hidden words (see `hidden_values`)."""
    content = json.dumps(json.loads(document.to_json()) | hidden, indent=1)
    return File(f"{file_stem(document)}.json", "application/json", content)


def csv_file(document: Generation, position: int, params: SamplingParams) -> File:
    r"""Return the next-token distribution at a position: one row per token in the vocabulary, most probable first.

    Each token is a quoted JSON string: spaces and line breaks are visible, invalid bytes are \xNN, and no spreadsheet
    evaluates it as a formula.
    """
    logits = document.logits(position)
    stages = distribution(logits, params, previous_ids=document.ids[: position + 1])
    scores, raw, final = (row.cpu().numpy() for row in (logits.float(), stages.raw, stages.final))
    table = io.StringIO(newline="")
    writer = csv.writer(table, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    for i in np.lexsort((np.arange(len(raw)), -scores, -final)).tolist():
        text = json.dumps(token_text(document.tokenizer, i), ensure_ascii=False)
        writer.writerow((i, text, f"{scores[i]:.9g}", f"{raw[i]:.9g}", f"{final[i]:.9g}"))
    return File(f"{file_stem(document)}-after-{position}.csv", "text/csv", table.getvalue())


def file_stem(document: Generation) -> str:
    """Return a portable file name made from the model and the text's first words."""
    words = re.findall("[a-z0-9]+", document.text[:200].lower())[:4]
    model = re.findall("[a-z0-9]+", document.loaded.name.lower())[-2:]
    return "-".join(["glassbox", *model, *words])[:60].rstrip("-")


MAX_PROBLEM_CHARS = 300  # maximum length of an error message, which may quote a long text from a file
MAX_NAME_CHARS = 80
_numbers = count(1)  # unique numbers for the responses; the browser acts on each response once


@dataclass(frozen=True)
class ShareState:
    """Each menu's last response (see `act` in menu.js)."""

    link: dict[str, Any] | None = None
    files: dict[str, Any] | None = None


def link_menu(pages: Pages) -> Part:
    """Return the frame's menu, which shares the page as a link."""
    return _menu("link", ["link", "class", "present"], partial(answer_link, pages), "interactive")


def files_menu() -> Part:
    elsewhere, save = ["elsewhere", *get_args(Engine)], ["save", "text", "document", "csv"]
    return _menu("files", ["python", elsewhere, save, "open"], answer_files, "model")


def _menu(name: str, items: Sequence[str | list[str]], on: Handler, queue: Queue) -> Part:
    """Return a menu. items: names of its buttons; a list is the name of a submenu, followed by those of its buttons."""
    options = {"items": items, "largest": LARGEST}

    def draw(s: Any) -> dict[str, Any]:
        return {"answer": getattr(s[ShareState], name)}

    return widget("menu", f"share-{name}", template=_TEMPLATE, options=options, draw=draw, on=on, queue=queue)


def answer_link(pages: Pages, session: Session, sent: dict[str, Any]) -> None:
    """Send the page's link, or an error if the link is too long."""
    try:
        answer = _copied(page_query(pages, session), "share.link.copied") | {"query": True}
    except ValueError as problem:  # or an invalid seed
        answer = _told(message_of(problem))
    session.change(ShareState, link=answer)


def answer_files(session: Session, sent: dict[str, Any]) -> Iterator[None]:
    what = sent.get("what")
    try:
        if what == "open":
            answer = _told((yield from _open(session, sent)))
        else:
            with session.lock.reading():
                answer = _saved(session, what)
    except ValueError as problem:
        answer = _told(message_of(problem))
    session.change(ShareState, files=answer)


def _told(text: str) -> dict[str, Any]:
    text = text if len(text) <= MAX_PROBLEM_CHARS else f"{text[: MAX_PROBLEM_CHARS - 1]}…"
    return {"n": next(_numbers), "how": "tell", "says": text}


def _copied(content: str, says: str) -> dict[str, Any]:
    return {"n": next(_numbers), "how": "copy", "content": content, "says": t(says), "manual": t("share.manual")}


def _saved(session: Session, what: object) -> dict[str, Any]:
    """Return the response to a click on a save button. Raises ValueError for an unknown button or without a text."""
    s = session.snapshot()
    if s.text is None or s.written is None:
        raise PageError("error.no_text")
    document = s.written.document
    if what == "python":
        program = python_snippet(document, session.edits, session.edits_on, sorted(s.hidden))
        return _copied(program, "share.python.copied")
    if isinstance(what, str) and what in get_args(Engine):
        params = replace(session.settings.sampling(), seed=session.settings.typed_seed())
        return _copied(engine_snippet(what, document.ids, params, session.settings.length), "share.elsewhere.copied")
    if what == "text":
        file = File(f"{file_stem(document)}.txt", "text/plain", document.text)
    elif what == "document":
        file = json_file(document, **hidden_values(s))
    elif what == "csv":
        file = csv_file(s.text.document, s.text.at(s.selection), s.settings.sampling())
    else:
        raise PageError("share.no_file", name=str(what))
    return {"n": next(_numbers), "how": "save", **vars(file), "says": t("share.saved", name=file.name)}


def _open(session: Session, sent: dict[str, Any]) -> Any:
    """Open the document stored in a file, with its model. Raises ValueError for an invalid file.

    Concepts that are turned up stay active. Other edits move to the "Change it" tab, and the text is read without them.
    """
    name, text, size = (sent.get(key) for key in ("name", "text", "size"))
    if not isinstance(text, str) or type(size) is not int or max(size, len(text)) > LARGEST:
        megabytes = f"{size / 1e6:.1f}" if type(size) is int else "?"
        raise PageError("share.file_too_large", n=megabytes, limit=LARGEST // 10**6)
    found = SavedDocument.from_json(text)
    if found.model not in list_models():
        raise PageError("share.unknown_model", model=shortened(found.model, MAX_NAME_CHARS))
    loaded = yield from load_with_progress(session, found.model)
    document = Generation.from_json(text, loaded)
    edits = document.edits or Edits()
    document.edit(Edits(steering=edits.steering))
    edits = replace(edits, steering=())
    caption = t("share.opened", name=shortened(str(name), MAX_NAME_CHARS), n=f"{len(document.ids):,}")
    adopt(session, document, shown_prompt(document), Message("status.ready"))
    hide_again(session, json.loads(text))
    if edits != Edits():
        session.edits, session.edits_on = edits, ()
        caption += t("share.opened.edits")
    return caption
