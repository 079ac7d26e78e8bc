"""The frame around the tabs: title, model, language, theme, and the text in every tab."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import gradio as gr

from components.cards.card import Card
from components.concepts import turned_names
from components.errors import localize_error
from components.i18n import LANGUAGES, t
from components.kit import button, column, fold, row, says
from components.labels import listed, percent
from components.parts import Handler, Lines, Part, check_box, choice, select, title
from components.share.address import Pages
from components.share.handlers import link_menu
from components.state.reads import Computed
from components.state.session import Session
from components.state.text import NEWEST
from components.state.typed_text import word_name, words_of
from components.text_views import attention_shade, document_lines, model_choices, shading_legend, text_strip
from gpt import LoadedModel
from gpt.models.checkpoints.gguf import bits_of
from gpt.models.registry import PrecisionError, precision_error


def frame_widget() -> gr.HTML:
    """Return the hidden gr.HTML. It raises these events:

    - `.retry` when the browser has missed a frame
    - `.tick` when the open tab needs an analysis
    - `.controls` when a frame changes gradio's components
    - `.navigate` on Back and Forward
    - `.classroom` for requests about a class
    """
    return gr.HTML(
        "",
        html_template="<div></div>",
        js_on_load='glassbox.receive(trigger, watch, props, "controls", "navigate", "classroom")',
        apply_default_css=False,
        visible="hidden",
        elem_id="frame",
    )


@Computed
def measured(s: Any) -> PrecisionError | ValueError | None:
    return error_of(s.loaded)


def error_of(loaded: LoadedModel) -> PrecisionError | ValueError | None:
    """Return a model's error against its float32 copy, or why it can't be measured; None for a float32 model."""
    if loaded.precision == "fp32":
        return None
    try:
        return precision_error(loaded)
    except ValueError as problem:
        return problem


def precision_sentence(loaded: LoadedModel, error: PrecisionError | ValueError | None) -> str:
    """Return a sentence about the error; "" for a float32 model."""
    if error is None:
        return ""
    precision = loaded.weight_format
    if isinstance(error, ValueError):
        return t("precision.unknown", precision=precision, problem=localize_error(error))
    numbers = {"kl": f"{error.kl:.2g}", "logit": f"{error.logit:.2g}", "top_1": percent(error.top_1)}
    return t("precision", precision=precision, **numbers)


def notice(s: Any) -> str:
    """Return the bits of quantised weights, the error in reduced precision, and why the vocabulary cannot be read."""
    if s.loaded is None:
        return ""
    problem = getattr(s.loaded.tokenizer, "problem", None)
    unread = "" if problem is None else t("vocabulary.unread", reason=localize_error(problem))
    kind, precision = s.loaded.stored_as, s.loaded.weight_format
    stored = t("weights.quantised", bits=bits_of(kind), kind=kind, precision=precision) if bits_of(kind) < 16 else ""
    error = None if s.loaded.precision == "fp32" else s.ready(measured)
    return " ".join(filter(None, (unread, stored, precision_sentence(s.loaded, error))))


MAX_NAMED = 3  # hidden words named
INSIDE = ("inside", "why", "concepts", "change", "activations", "embeddings")
STEERED = ("playground", *INSIDE)  # tabs in which concepts are turned up
DOCKED = (*INSIDE, "lessons")  # tabs that show the row of tokens; page.css hides it in the others


@dataclass(frozen=True)
class Frame:
    """What all tabs share.

    client: its value is the browser tab's id, or what the page sends in its place. updates: receives the frames from
    `components.render`. cards: the first row, and the text, which every tab without a larger view of it shows.
    """

    client: gr.HTML
    updates: gr.HTML
    cards: tuple[Card, Card]


def build_frame(pick_model: Handler, select_token: Handler, stop: Handler, pages: Pages) -> Frame:
    """Build the frame: title, purpose, model picker, language switch, menu; below them the text and a Stop button.

    pages: those that a link to the page may name.
    """
    client = gr.HTML(visible="hidden", elem_id="client")
    updates = frame_widget()
    model = select(
        "model",
        choices=lambda s: model_choices(s.own_models),
        label="model",
        value=lambda s: s.model,
        on=pick_model,
        queue="model",
    )
    language = choice(
        "language",
        choices=[(name, language) for language, name in LANGUAGES.items()],
        label="language",
        value=lambda s: s.language,
        on=choose_language,
    )
    numbers = check_box("numbers", label="numbers", info="numbers.info", value=lambda s: s.numbers, on=choose_numbers)
    theme, api = button("theme", "theme"), button("api", "page.api")  # handled in page.js
    name = column(title("page.title"), classes="gb-title")
    items = column(_always(numbers), link_menu(pages), theme, api, classes="gb-menu")
    menu = fold("more", "page.more", items, classes="gb-drop")
    first = row(name, model, _always(language), menu, classes="gb-frame")
    dock = row(
        text_strip("dock", draw=strip, one_line=True, on=select_token),
        says("dock-legend", shading_legend, kind="caption"),
        says("in-force", in_force, kind="caption"),
        button("dock-stop", "stop", stop, queue="stop", enabled=lambda s: s.generating),
        classes="gb-dock",
    )
    skip = says("skip", lambda s: t("skip"), kind="skip")
    text = Card("dock", dock, classes="", opened=lambda s: s.tab in DOCKED)
    weights = says("precision", notice, kind="caption")
    return Frame(client, updates, (Card("frame", skip, first, weights, classes=""), text))


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
        "doc": str(s.written.document.key),
        "selected": NEWEST if s.selection.position == NEWEST else s.text.framed(s.selection),
        "shade": attention_shade(s.text, s.selection),
    }


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
