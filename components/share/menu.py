"""The share menus. The browser copies the server's response, or saves it as a file that it creates.

A click triggers `.select` with `evt._data` {"what", "tab"}: the button's name and the open tab's id. The
response is a value returned by `copied`, `saved` or `message`. A button named "open" lets a person choose a file; its
event also has "name", "size" and "text", with an empty "text" if the file is larger than `largest` bytes. Nothing is
stored on the server.
"""

from __future__ import annotations

from typing import Any

import gradio as gr

from components.i18n import t
from components.parts import Handler, Part
from components.share.files import File
from components.widgets.widget import placed, widget

LARGEST = 4_000_000  # maximum size of a document to open, in bytes

_TEMPLATE = """<div class="gb-share" role="group">
<div class="gb-share-row"></div>
<div class="gb-share-out" hidden>
<p class="gb-share-says" role="status"></p><button class="gb-share-close" type="button">×</button>
<textarea readonly spellcheck="false"></textarea>
</div>
<input type="file" accept=".json,application/json" hidden>
</div>"""


def link_menu() -> gr.HTML:
    """Return the frame's menu, which shares the page as a link."""
    return placed(menu("share-link"))


def files_menu(on: Handler) -> Part:
    """Return the menu below the text for saving programs and for saving or opening files."""
    return menu("share-files", largest=LARGEST, on=on, queue="model")


def menu(name: str, *, largest: int = 0, **wired: Any) -> Part:
    """Return a menu's buttons.

    View data: labels ("name" for screen readers, "close", and "items", each a dict with "what", "label" and optionally
    "title"; "opens" names the part of a class that opens in the browser; an item that itself has "items" is a submenu),
    and answer: a value from `copied`, `saved` or `message` with a unique number "n".
    """
    return widget("menu", name, template=_TEMPLATE, options={"largest": largest}, **wired)


def copied(content: str, text: str, manual: str, *, query: bool = False) -> dict[str, Any]:
    """Return a response that copies content to the clipboard and shows `text`.

    manual: the message if the browser does not allow copying. query: whether the content becomes the query of the
    page's address.
    """
    return {"how": "copy", "content": content, "says": text, "manual": manual, "query": query}


def saved(file: File, text: str) -> dict[str, Any]:
    """Return a response that saves a file."""
    return {"how": "save", "name": file.name, "mime": file.mime, "content": file.content, "says": text}


def message(text: str) -> dict[str, Any]:
    """Return a response that shows a message."""
    return {"how": "tell", "says": text}


def link_labels() -> dict[str, Any]:
    opened = [_item(name) | {"opens": name} for name in ("class", "present")]
    return _labels([_item("link"), *opened])


def file_labels() -> dict[str, Any]:
    kept = [{"what": what, "label": t(f"share.{what}")} for what in ("text", "document", "csv")]
    folded = {"label": t("share.save"), "items": kept}
    return _labels([_item("python"), folded, _item("open")])


def _labels(items: list[dict[str, Any]]) -> dict[str, Any]:
    return {"name": t("share.name"), "close": t("share.close"), "items": items}


def _item(what: str) -> dict[str, str]:
    return {"what": what, "label": t(f"share.{what}"), "title": t(f"share.{what}.title")}
