"""What the two share menus answer: the page as a link; the text as a file or a program; a file as the text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import gradio as gr

from components.errors import PageError, localize_error
from components.i18n import Language, t
from components.labels import visible
from components.share import files, menu
from components.share.link import MAX_LINK, encode
from components.share.opening import open_link
from components.share.telling import prompt_text
from components.share.telling import told as text_values
from components.state.session import Session
from components.state.settings import LIMITS
from components.tabs.playground import looking, starting, views
from components.tabs.playground.steering import adopt
from components.tabs.playground.views import Deed
from gpt import Generation, list_models
from gpt.documents.edit_text import format_edits
from gpt.documents.saved_document import SavedDocument
from gpt.documents.snippets import python_snippet

if TYPE_CHECKING:
    from components.tabs.playground.tab import Playground

Values = dict[Any, Any]


def wire_share(app_opened: Any, tabs: gr.Tabs, ui: Playground) -> None:
    """Every event of both menus, and the link that the page was opened with. app_opened: the event after which the
    language of the page is known."""
    from components.tabs.playground.tab import LOOKING, RUNNING

    everything, settings = ui.inputs(), [ui.prompt, ui.seed, *(getattr(ui, name) for name in LIMITS)]
    link, rest = ui.frame.link, ui.files
    answered = link.select(_with_event(ui, answer_link), everything, link, **LOOKING)
    answered.then(str, None, link, **LOOKING)  # what was delivered is forgotten here
    answered = rest.select(_with_event(ui, answer_files), everything, [*ui.outputs(), ui.prompt, rest], **RUNNING)
    answered.then(str, None, rest, **LOOKING)

    def follow(values: Values, request: gr.Request) -> Iterator[Values]:
        yield from open_link(ui, tabs, values, request)

    app_opened.then(follow, everything, [*ui.outputs(), *settings, ui.shading, tabs], **RUNNING)


def _with_event(ui: Playground, function: Callable[..., Iterator[Values]]) -> Callable[..., Iterator[Values]]:
    """A handler that also gets what the browser sent with the event: a dict of anything."""

    def handle(values: Values, event: gr.EventData) -> Iterator[Values]:
        yield from function(ui, values, event._data if isinstance(event._data, dict) else {})

    return handle


def answer_link(ui: Playground, values: Values, sent: Values) -> Iterator[Values]:
    """The address of what the page shows; where it would be too long, what to do instead."""
    language, document = values[ui.frame.language], values[ui.session].document
    if document is None:
        yield {ui.frame.link: menu.told(t("error.no_text", language))}
        return
    try:
        query = encode(page_values(ui, values, sent.get("tab")))
    except ValueError as problem:  # a seed that is no number
        yield {ui.frame.link: menu.told(localize_error(problem, language))}
        return
    if len(query) > MAX_LINK:
        says = t("share.too_long", language, n=f"{len(query):,}", limit=f"{MAX_LINK:,}")
        yield {ui.frame.link: menu.told(says)}
        return
    copied, manual = t("share.link.copied", language), t("share.manual", language)
    yield {ui.frame.link: menu.copied(query, copied, manual, query=True)}


def page_values(ui: Playground, values: Values, tab: object) -> dict[str, Any]:
    """The text and the view, as values of a link."""
    session: Session = values[ui.session]
    look = session.look
    told = text_values(session.document, looking.params_of(ui, values, seeded=True))
    told |= {"length": int(values[ui.length]), "layer": look.layer, "lang": values[ui.frame.language]}
    if edits := format_edits(session.edits):
        told["edits"] = edits
        if session.edits_on:
            told["edits_on"] = session.edits_on
    if tab != "playground" and isinstance(tab, str) and tab.isidentifier():
        told["tab"] = tab
    if look.position != views.NEWEST:
        told["position"] = look.at(session.document)
    if look.head is not None:
        told["head"] = look.head
    if look.shading != views.Look.shading:
        told["shading"] = look.shading
    return told


def answer_files(ui: Playground, values: Values, sent: Values) -> Iterator[Values]:
    """A file or a program of the text; or the text of a file, which takes its place."""
    language, session = values[ui.frame.language], values[ui.session]
    try:
        if sent.get("what") == "open":
            yield from _opened(ui, values, sent)
        elif session.document is None:
            yield {ui.files: menu.told(t("error.no_text", language))}
        elif sent.get("what") == "python":
            program = python_snippet(session.document, session.edits, session.edits_on)
            copied, manual = t("share.python.copied", language), t("share.manual", language)
            yield {ui.files: menu.copied(program, copied, manual)}
        else:
            file = _file(ui, values, sent.get("what"))
            yield {ui.files: menu.saved(file, t("share.saved", language, name=file.name))}
    except ValueError as problem:
        yield {ui.files: menu.told(_short(localize_error(problem, language)))}


def _file(ui: Playground, values: Values, what: object) -> files.File:
    """Raises ValueError for a name that no button has."""
    session: Session = values[ui.session]
    document = session.document
    if what == "text":
        return files.text_file(document)
    if what == "document":
        return files.json_file(document)
    if what == "csv":
        return files.csv_file(document, session.look.at(document), looking.params_of(ui, values))
    raise PageError("error.no_file", name=what)


def _opened(ui: Playground, values: Values, sent: Values) -> Iterator[Values]:
    """The document of a file, for the model that wrote it; where that was edited, the edits go to the Change tab, and
    the page shows the text as the model itself reads it. Raises ValueError with a sentence for a bad file."""
    language: Language = values[ui.frame.language]
    session: Session = values[ui.session]
    name, text, size = (sent.get(key) for key in ("name", "text", "size"))
    if not isinstance(text, str) or type(size) is not int or max(size, len(text)) > menu.LARGEST:
        megabytes = f"{size / 1e6:.1f}" if type(size) is int else "?"
        raise PageError("share.file_too_large", n=megabytes, limit=menu.LARGEST // 10**6)
    saved = SavedDocument.from_json(text)
    if saved.model not in list_models():
        raise PageError("share.unknown_model", model=_short(visible(saved.model), 80))
    loaded = yield from starting.loading(ui.status, saved.model, language)
    edits = saved.edits_for(loaded)
    document = Generation.from_json(replace(saved, edits="").to_json(), loaded)
    said = t("share.opened", language, name=_short(visible(str(name)), 80), n=f"{len(document.ids):,}")
    update = adopt(ui, session, document, prompt_text(document), Deed("status.ready", {}), values)
    if edits is not None:
        session.edits, session.edits_on = edits, ()
        said += t("share.opened.edits", language)
    yield {**update, ui.files: menu.told(said)}


def _short(text: str, most: int = 300) -> str:
    """What a file says about itself may be long."""
    return text if len(text) <= most else f"{text[: most - 1]}…"
