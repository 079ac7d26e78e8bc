"""The share menus. The browser copies the server's response, or saves it as a file that it creates.

A click triggers `.select` with `evt._data` {"what", "tab"}: the button's name and the open tab's id. The
response is a value returned by `copied`, `saved` or `message`. A button named "open" lets a person choose a file; its
event also has "name", "size" and "text", with an empty "text" if the file is larger than `largest` bytes. Nothing is
stored on the server.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from components.parts import Part
from components.share.files import File
from components.widgets.widget import widget

LARGEST = 4_000_000  # maximum size of a document to open, in bytes

_TEMPLATE = """<div class="gb-share" role="group">
<div class="gb-share-row"></div>
<div class="gb-share-out" hidden>
<p class="gb-share-says" role="status"></p><button class="gb-share-close" type="button">×</button>
<textarea readonly spellcheck="false"></textarea>
</div>
<input type="file" accept=".json,application/json" hidden>
</div>"""


def menu(name: str, items: Sequence[str | list[str]], *, largest: int = 0, **wired: Any) -> Part:
    """Return a menu's buttons. items: their names; a list is the name of a submenu, followed by those of its buttons.

    View data: answer, a value from `copied`, `saved` or `message` with a unique number "n".
    """
    return widget("menu", name, template=_TEMPLATE, options={"items": items, "largest": largest}, **wired)


def copied(content: str, text: str, manual: str, *, query: bool = False) -> dict[str, Any]:
    """Return a response that copies content to the clipboard and shows `text`.

    manual: the message if the browser does not allow copying. query: whether the content becomes the query of the
    page's address.
    """
    return {"how": "copy", "content": content, "says": text, "manual": manual, "query": query}


def saved(file: File, text: str) -> dict[str, Any]:
    return {"how": "save", "name": file.name, "mime": file.mime, "content": file.content, "says": text}


def message(text: str) -> dict[str, Any]:
    return {"how": "tell", "says": text}
