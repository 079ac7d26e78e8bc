"""The share menus: quiet buttons whose answers stay in the browser, copied or saved as a file that is made there.

A click raises `.select` with an `evt._data` of {"what", "tab"}: the name of the button, and the id of the tab that is
open. The answer is a value made by `copied`, `saved` or `told`. A button named "open" lets a person pick a file, and
its event has "name", "size" and "text" as well, "text" empty where the file is larger than `largest` bytes. Nothing
is left on the server.
"""

from __future__ import annotations

import json
import secrets
from pathlib import Path
from typing import Any

import gradio as gr

from components.i18n import Language, t
from components.localized import Words
from components.share.files import File
from components.widgets.script import widget

_FOLDER = Path(__file__).parent
_SCRIPT = (_FOLDER / "menu.js").read_text(encoding="utf-8")
LARGEST = 4_000_000  # bytes of a document that is opened

_TEMPLATE = """<div class="gb-share" role="group">
<div class="gb-share-row"></div>
<div class="gb-share-out" hidden>
<p class="gb-share-says" role="status"></p><button class="gb-share-close" type="button">×</button>
<textarea readonly spellcheck="false"></textarea>
</div>
<input type="file" accept=".json,application/json" hidden>
</div>"""


def link_menu(words: Words) -> gr.HTML:
    """The one of the frame: the page as a link."""
    return words.build(menu, {"labels": _link_labels}, elem_id="share-link")


def files_menu(words: Words) -> gr.HTML:
    """The one under the text: programs and files."""
    return words.build(menu, {"labels": _file_labels}, elem_id="share-files", largest=LARGEST)


def menu(*, elem_id: str, labels: dict[str, Any], largest: int = 0) -> gr.HTML:
    """labels: "name" for screen readers, "close", and "items", each a dict of "what", "label" and perhaps "title";
    one with "items" of its own is folded."""
    return widget("", _TEMPLATE, _SCRIPT, elem_id, labels=labels, largest=largest)


def copied(content: str, says: str, manual: str, *, query: bool = False) -> str:
    """Put this on the clipboard and show it. manual: what is said where the browser allows no copying. query: it
    becomes the query of the page's own address."""
    return _value(how="copy", content=content, says=says, manual=manual, query=query)


def saved(file: File, says: str) -> str:
    """Save a file."""
    return _value(how="save", name=file.name, mime=file.mime, content=file.content, says=says)


def told(says: str) -> str:
    """A sentence, and nothing else."""
    return _value(how="tell", says=says)


def _value(**content: Any) -> str:
    """Never the same twice: the browser takes no notice of a value that equals the last."""
    return json.dumps({"n": secrets.token_hex(4), **content}, separators=(",", ":")).replace("<", "\\u003c")


def _link_labels(language: Language) -> dict[str, Any]:
    return _labels(language, [_item("link", language)])


def _file_labels(language: Language) -> dict[str, Any]:
    kept = [{"what": what, "label": t(f"share.{what}", language)} for what in ("text", "document", "csv")]
    folded = {"label": t("share.save", language), "items": kept}
    return _labels(language, [_item("python", language), folded, _item("open", language)])


def _labels(language: Language, items: list[dict[str, Any]]) -> dict[str, Any]:
    return {"name": t("share.name", language), "close": t("share.close", language), "items": items}


def _item(what: str, language: Language) -> dict[str, str]:
    return {"what": what, "label": t(f"share.{what}", language), "title": t(f"share.{what}.title", language)}
