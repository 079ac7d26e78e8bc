"""The page as link values: the current place is written to the address and restored on Back and Forward."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

from components.errors import PageError
from components.render import View, is_own
from components.share.link import MAX_LINK, decode, document_values, encode
from components.share.sequence import sequence_values
from components.state.adoption import return_to
from components.state.hidden import hidden_values
from components.state.session import Session
from components.state.snapshot import Message, Snapshot
from components.state.text import NEWEST, Selection, Shading, Text
from gpt.documents.edit_text import format_edits


@dataclass(frozen=True)
class LinkedPage:
    """One of a tab's pages, such as a lesson, named by a link parameter.

    open: opens the page with a given value; returns False if there is none. current: returns the open page's value,
    or None if none is open.
    """

    tab: str
    open: Callable[[Session, Any], bool]
    current: Callable[[Snapshot], Any]


Pages = Mapping[str, LinkedPage]  # by parameter


@dataclass(frozen=True)
class Opening:
    """The start of a visit: the text's version, its model, and the selection."""

    version: tuple[int, int]
    model: str
    selection: Selection

    @classmethod
    def of(cls, session: Session) -> Opening:
        assert session.document is not None
        return cls(Text.of(session.document).version, session.model, session.selection)


@dataclass(frozen=True)
class Places:
    """Everything other than the text that a link can refer to.

    tabs: ids of the tabs. openings: the initial states by language. model: default for addresses with a text but no
    model.
    """

    tabs: Sequence[str]
    pages: Pages
    openings: Mapping[str, Opening]
    model: str


def address_view(places: Places) -> View:
    """Return the view with the address. It is None until the page's link has been opened."""

    def draw(s: Any) -> dict[str, Any]:
        return {"shown": {"query": address(s, places), "at": s.navigated} if s.link_opened else None}

    return View("address", draw, is_own)


def address(s: Snapshot, places: Places) -> str:
    """Return the query of the page's address: tab, selection and text.

    The text is omitted if it is the example, unfinished, or too long for a link.
    """
    values = view_values(s, places.pages) | sequence_values(s)
    if s.written is not None and any(opening.model != s.written.loaded.name for opening in places.openings.values()):
        values["model"] = s.written.loaded.name
    if s.written is None or s.generating:
        return encode(values)
    if (opened := next((o for o in places.openings.values() if o.version == s.written.version), None)) is not None:
        values.pop("model", None)  # the language determines which model opens
        is_initial = s.selection == opened.selection and values.keys() <= {"layer", "head"}
        return "" if is_initial else encode(values)
    try:
        of_text = text_values(s)
        if "model" not in values:
            del of_text["model"]
        query = encode(values | of_text)
    except ValueError:  # invalid seed, or tokens dropped from the text
        return encode(values)
    return query if len(query) <= MAX_LINK else encode(values)


def view_values(s: Snapshot, pages: Pages) -> dict[str, Any]:
    selection = s.selection
    shown = {name: page.current(s) for name, page in pages.items() if page.tab == s.tab}
    values: dict[str, Any] = {"layer": selection.layer} | {name: x for name, x in shown.items() if x is not None}
    steering = () if s.written is None or s.written.document.edits is None else s.written.document.edits.steering
    fitting = s.edits if s.written is None else s.edits.fitting(s.written.config)  # a link has to fit its model
    if edits := format_edits(replace(fitting, steering=steering)):
        values["edits"] = edits
        if s.edits_on:
            values["edits_on"] = s.edits_on
    if s.tab != "playground":
        values["tab"] = s.tab
    if s.film is not None:
        values["film"] = s.film
    if s.written is not None and selection.position != NEWEST:
        values["position"] = s.written.at(selection)
    if selection.head is not None:
        values["head"] = selection.head
    if selection.shading != Selection.shading:
        values["shading"] = selection.shading
    return values | hidden_values(s)


def text_values(s: Snapshot) -> dict[str, Any]:
    """Return the text and the settings as link values.

    Raises ValueError if the seed is invalid or tokens have been dropped from the text.
    """
    assert s.written is not None
    params = replace(s.settings.sampling(), seed=s.settings.typed_seed())
    return document_values(s.written.document, params) | {"length": s.settings.length}


def page_values(s: Snapshot, pages: Pages) -> dict[str, Any]:
    """Return the whole page as link values. Raises the same errors as `text_values`."""
    return text_values(s) | view_values(s, pages) | {"lang": s.language}


def page_query(pages: Pages, session: Session) -> str:
    """Return the query of a link to the page. Raises ValueError if it is too long, or as `text_values` does."""
    if session.document is None:
        raise PageError("error.no_text")
    with session.lock.reading():
        query = encode(page_values(session.snapshot(), pages))
    if len(query) > MAX_LINK:
        raise PageError("share.too_long", n=f"{len(query):,}", limit=f"{MAX_LINK:,}")
    return query


def navigate(places: Places, session: Session, sent: dict[str, Any]) -> None:
    """Restore the tab and selection from an address, keeping the current text.

    If the address names another model, the newest text written with that model is restored.

    sent: "query", and "at", the time of Back or Forward in ms on the browser's clock; unchecked. Later clicks take
    precedence.
    """
    query, at = sent.get("query"), sent.get("at")
    if not isinstance(query, str) or isinstance(at, bool) or not isinstance(at, int | float):
        return
    if not at > session.navigated:  # also true for NaN
        return
    values, _ = decode(query)
    opening = places.openings[session.language]
    has_text = not values.keys().isdisjoint({"prompt", "prompt_ids"})
    _return_to_model(session, values.get("model", places.model if has_text else opening.model))
    session.navigated, session.tab, session.film = at, "playground", None
    if session.document is not None:
        config = session.document.loaded.model.config
        session.selection = replace(opening.selection.clamped_to(config, position=NEWEST), shading=Selection.shading)
    show_place(session, values, places)


def show_place(session: Session, values: Mapping[str, Any], places: Places) -> list[str]:
    """Show the tab, the film, the selection and the pages that link values name; return the names of invalid values."""
    session.film = values.get("film", session.film)
    document, sizes = session.document, (0, 0, 0)
    if document is not None:
        sizes = len(document.ids), document.loaded.model.config.n_layer, document.loaded.model.config.n_head
    known: dict[str, Sequence[Any]] = {"tab": places.tabs, "shading": get_args(Shading)}
    known |= zip(("position", "layer", "head"), map(range, sizes), strict=True)
    refused = [name for name, allowed in known.items() if name in values and values[name] not in allowed]
    chosen = {name: values[name] for name in known if name in values and name not in refused}
    session.tab = chosen.pop("tab", session.tab)
    average = {"head": None} if "layer" in chosen else {}
    session.selection = replace(session.selection, **average | chosen)
    for name, page in places.pages.items():
        if name in values and page.open(session, values[name]):
            session.tab = page.tab
        elif name in values:
            refused.append(name)
    return refused


def _return_to_model(session: Session, model: str) -> None:
    """Undo or redo until the model's newest text is restored, if it has one."""
    for source, other in ((session.undo_stack, session.redo_stack), (session.redo_stack, session.undo_stack)):
        if any(archived.model == model for archived in source):
            with session.lock.changing():
                while source and session.document is not None and session.document.loaded.name != model:
                    return_to(session, source, other, Message("status.undone"))
