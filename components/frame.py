"""The frame around the tabs: title, model, language, theme, and the text in every tab."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import gradio as gr

from components.cards.card import Card
from components.concepts import turned_names
from components.i18n import LANGUAGES, t
from components.kit import button, column, fold, row, says
from components.labels import listed, placed, quoted
from components.model_names import model_choices
from components.parts import Handler, Part, check_box, choice, select, title
from components.precision_notice import notice
from components.render import Lines
from components.share.handlers import link_menu
from components.state.selection import NEWEST
from components.state.session import Session
from components.text_views import attention_shade, document_lines, head_name, shading_legend
from components.widgets.frame import frame_widget
from components.widgets.tokens import tokens
from components.words import word_name, words_of

MAX_NAMED = 3  # hidden words named
INSIDE = ("inside", "why", "concepts", "change", "activations", "embeddings")
STEERED = ("playground", *INSIDE)  # tabs in which concepts are turned up


@dataclass(frozen=True)
class Frame:
    """What all tabs share.

    client: the browser tab's id. saved: the session saved by the page. updates: receives the frames from
    `components.render`. cards: the first row, and the text, which every tab without a larger view of it shows.
    """

    client: gr.Textbox
    saved: gr.Textbox
    updates: gr.HTML
    cards: tuple[Card, Card]


def build_frame(pick_model: Handler, select_token: Handler, stop: Handler) -> Frame:
    """Build the frame: title and purpose, model picker, language switch, menu; below them the text and a Stop button.

    pick_model, select_token, stop: handlers.
    """
    client = gr.Textbox(visible="hidden", elem_id="client")
    saved = gr.Textbox(visible="hidden", elem_id="saved")
    updates = frame_widget()
    model = select(
        "model",
        lambda s: model_choices(s.own_models),
        label="model",
        value=lambda s: s.model,
        on=pick_model,
        queue="model",
    )
    language = choice(
        "language",
        [(name, language) for language, name in LANGUAGES.items()],
        label="language",
        value=lambda s: s.language,
        on=choose_language,
    )
    numbers = check_box("numbers", label="numbers", info="numbers.info", value=lambda s: s.numbers, on=choose_numbers)
    theme, api = button("theme", "theme"), button("api", "page.api")  # handled in page.js
    name = column(title("page.title"), says("precision", notice, kind="caption"), classes="gb-title")
    menu = fold("more", "page.more", column(_always(numbers), link_menu(), theme, api, classes="gb-menu"))
    first = row(name, model, _always(language), menu, classes="gb-frame")
    dock = row(
        tokens("dock", draw=strip, one_line=True, on=select_token),
        says("dock-legend", shading_legend, kind="caption"),
        says("in-force", in_force, kind="caption"),
        says("selected", selected, kind="caption"),
        button("dock-stop", "stop", stop, queue="stop", enabled=lambda s: s.generating),
        classes="gb-dock",
    )
    skip = says("skip", lambda s: t("skip"), kind="skip")
    return Frame(client, saved, updates, (Card("frame", skip, first, classes=""), Card("dock", dock, classes="")))


def _always(part: Part) -> Part:
    """Return a control that also works while the page follows another."""
    return replace(part, fixed={**part.fixed, "always": True})


def choose_language(session: Session, language: object) -> None:
    if isinstance(language, str) and language in LANGUAGES:
        session.language = language


def choose_numbers(session: Session, on: object) -> None:
    """Choose between full-precision and rounded numbers. on: from the browser, unchecked."""
    session.numbers = on is True


def strip(s: Any) -> dict[str, Any]:
    data = {"selected": NEWEST, "by": s.selection.shading}
    if s.text is None:
        return data | {"lines": Lines(), "doc": "", "shade": ""}
    return data | {
        "lines": document_lines(s.text.document, s.token_statistics),
        "doc": str(s.text.document.key),
        "selected": NEWEST if s.selection.position == NEWEST else s.text.framed(s.selection),
        "shade": attention_shade(s.text, s.selection),
    }


def selected(s: Any) -> str:
    if s.text is None:
        return ""
    position = s.text.framed(s.selection)
    token = placed(quoted(s.text.tokenizer, s.text.ids[position]), position)
    return t("selected", token=token, layer=s.selection.layer, head=head_name(s.selection.head))


def in_force(s: Any) -> str:
    """Name the hidden words and the concepts that are turned up or down, or state that the open tab ignores them."""
    if s.written is None:
        return ""
    words = [word for word in words_of(s.written.tokenizer, s.written.ids) if word.start in s.hidden]
    names = [word_name(s.written.tokenizer, s.written.ids, word) for word in words]
    if len(names) > MAX_NAMED:
        names = [t("hidden.words", n=len(names))]
    said = []
    for key, each, tabs in (("hidden", names, (*STEERED, "lessons")), ("turned", turned_names(s), STEERED)):
        if each:
            key = f"in_force.{key}" if s.tab in tabs else f"in_force.{key}.ignored"
            said.append(t(key, names=listed(each)))
    return " · ".join(said)
