"""The Loss tab: how surprised the model is by any text, as a whole and token by token."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from functools import cache, partial
from typing import Any

import gradio as gr

from components import text_views as views
from components.api import MAX_CHARACTERS, find_model
from components.errors import PageError, localize_error
from components.frame import Frame
from components.i18n import Language, t
from components.legacy import LOOKING, RUNNING
from components.localized import Words
from components.state.example import encodable_text
from components.tabs.loss import views as loss_views
from components.tabs.loss.views import Reading
from components.widgets.sentence import sentence
from components.widgets.tokens import selection, tokens
from gpt import LoadedModel
from gpt.background import run_with_progress
from gpt.experiments.text_loss import score_text

Values = dict[Any, Any]
MAX_TOKENS = 4096
EXAMPLES = {
    "loss.example.turn": (
        "Once upon a time, there was a little girl named Lily. She loved to play with her red ball in the park. "
        "One day, her ball rolled into the central bank and raised the interest rates."
    ),
    "loss.example.shuffled": (
        "ball red her with play to loved She. Lily named girl little a was there, time a upon Once. park the in"
    ),
    "loss.example.repeat": "The cat sat. The dog ran. The cat sat. The dog ran. The cat sat. The dog ran.",
}
STRIDES = (1, 2, 4, 8)  # parts of a context that each window moves on by
HALF = 2


@dataclass(frozen=True)
class TextLoss:
    """The components of the tab, and the visitor's reading."""

    frame: Frame
    session: gr.State
    text: gr.Textbox
    stride: gr.Dropdown
    examples: tuple[gr.Button, ...]
    measure: gr.Button
    stop: gr.Button
    notice: gr.HTML
    status: gr.HTML
    headline: gr.HTML
    says: gr.HTML
    strip: gr.HTML
    token: gr.HTML

    def inputs(self) -> set[Any]:
        """Everything that a handler reads."""
        return {self.session, self.text, self.stride, self.frame.model, self.frame.language}

    def outputs(self) -> list[Any]:
        """Everything that reading a text changes."""
        names = ("session", "measure", "stop", "notice", "status", "headline", "says", "strip", "token")
        return [getattr(self, name) for name in names]


def build_text_loss(words: Words, frame: Frame, tab: gr.Tab) -> TextLoss:
    """Lay the tab out and wire it; when it is first opened the page's model reads the text that stands there."""
    example = encodable_text(frame.example.loaded, next(iter(EXAMPLES.values())))
    parts: dict[str, Any] = {"frame": frame, "session": gr.State(None)}
    with gr.Column(elem_classes="gb-card gb-loss"):
        words.build(sentence, {"value": "loss.question"}, kind="question")
        words.build(sentence, {"value": partial(t, "loss.what", limit=f"{MAX_TOKENS:,}")}, kind="caption")
        parts["text"] = words.build(
            gr.Textbox,
            {"label": "loss.text", "placeholder": "loss.placeholder"},
            value=example,
            lines=3,
            max_lines=12,
            elem_id="loss-text",
        )
        with gr.Row(elem_classes="gb-examples"):
            parts["examples"] = tuple(
                words.build(gr.Button, {"value": key}, size="sm", min_width=0, elem_id=key.replace(".", "-"))
                for key in EXAMPLES
            )
        with gr.Row(elem_classes="gb-loss-tools"):
            with gr.Row(elem_classes="gb-buttons gb-short"):
                parts["measure"] = words.build(
                    gr.Button,
                    {"value": "loss.measure"},
                    variant="primary",
                    size="md",
                    elem_id="loss-measure",
                    min_width=0,
                )
                parts["stop"] = words.build(
                    gr.Button, {"value": "stop"}, size="md", elem_id="loss-stop", interactive=False, min_width=0
                )
            parts["stride"] = words.build(
                gr.Dropdown,
                {"label": "loss.stride", "info": "loss.stride.info", "choices": stride_choices},
                value=HALF,
                elem_id="loss-stride",
            )
        parts["notice"] = sentence(kind="notice", elem_id="loss-notice")
        parts["status"] = sentence(kind="status", elem_id="loss-status")
    with gr.Column(elem_classes="gb-card gb-loss"):
        parts["headline"] = sentence(kind="lead", elem_id="loss-headline")
        parts["says"] = sentence(kind="caption", elem_id="loss-says")
        parts["strip"] = tokens(elem_id="loss-strip", labels=strip_words("en"))
        parts["token"] = sentence(kind="lead", elem_id="loss-token")
    ui = TextLoss(**{field.name: parts[field.name] for field in fields(TextLoss)})
    _wire(ui, tab, cache(partial(read, frame.example.loaded, example)))
    return ui


def stride_choices(language: Language) -> list[tuple[str, int]]:
    """(what the picker says, into how many parts a context is cut)."""
    keys = ("loss.stride.whole", "loss.stride.half", "loss.stride.quarter", "loss.stride.eighth")
    return [(t(key, language), parts) for key, parts in zip(keys, STRIDES, strict=True)]


def strip_words(language: Language) -> dict[str, str]:
    """The words of the strip, which is shaded by surprisal."""
    named = views.strip_words(language, t("strip.empty", language))
    return named | {"surprisal": t("loss.surprisal", language), "bits": t("loss.bits", language)}


def read(loaded: LoadedModel, text: str) -> Reading:
    """A text that is known to fit the context, read at once."""
    ids = loaded.tokenizer.encode(text)
    result = score_text(loaded, ids)
    return Reading(loaded, result, loss_views.most_surprising(result))


def measure(ui: TextLoss, values: Values) -> Iterator[Values]:
    """Read the text, window by window; what cannot be read is said in place, and the last result stays."""
    language: Language = values[ui.frame.language]
    yield {**_buttons(ui, running=True), ui.notice: "", ui.status: t("loss.loading", language)}
    try:
        loaded = find_model(values[ui.frame.model])
        text = checked(values[ui.text])
        ids = loaded.tokenizer.encode(text)
        check_length(len(ids))
        stride = stride_of(values[ui.stride], loaded.model.config.block_size)
        result = yield from run_with_progress(
            lambda progress: score_text(loaded, ids, stride=stride, progress=progress),
            lambda n, total: {ui.status: t("loss.progress", language, n=n, total=total) if total else gr.skip()},
        )
    except ValueError as problem:
        yield {ui.notice: localize_error(problem, language)}
        return
    repaired = re.search("[\ud800-\udfff]", text) is not None
    reading = Reading(loaded, result, loss_views.most_surprising(result), repaired)
    shade, selected = loss_views.shading(reading), selection(reading.selected)
    yield {
        ui.session: reading,
        **_told(ui, reading, language),
        ui.strip: gr.update(value=loss_views.strip(reading), shade=shade, selected=selected),
    }


def checked(text: object) -> str:
    """The text as typed. Raises ValueError with a sentence for none and for far too much."""
    if not isinstance(text, str) or not text:
        raise PageError("loss.error.empty")
    if len(text) > MAX_CHARACTERS:
        raise PageError("loss.error.characters", n=f"{len(text):,}", limit=f"{MAX_CHARACTERS:,}")
    return text


def check_length(n: int) -> None:
    """Raise ValueError with a sentence for too few and too many tokens."""
    if n < 2:
        raise PageError("loss.error.one")
    if n > MAX_TOKENS:
        raise PageError("loss.error.tokens", n=f"{n:,}", limit=f"{MAX_TOKENS:,}")


def stride_of(parts: object, block_size: int) -> int:
    """A part of the context in tokens, never so long that a token would be left out."""
    divisor = parts if parts in STRIDES else HALF
    return max(1, min(block_size // divisor, block_size - 1))


def finish(ui: TextLoss, values: Values) -> Values:
    """After reading, however it ended."""
    return {**_buttons(ui, running=False), ui.status: ""}


def select(ui: TextLoss, values: Values, event: gr.EventData) -> Values:
    """Selection at the token that was clicked; what the browser sends may be anything."""
    reading: Reading | None = values[ui.session]
    index = event._data.get("index") if isinstance(event._data, dict) else None
    if reading is None or type(index) is not int or not 0 <= index < len(reading.result.ids):
        return gr.skip()
    reading = reading._replace(selected=index)
    return {ui.session: reading, ui.token: loss_views.token(reading, values[ui.frame.language])}


def open_first(ui: TextLoss, example: Callable[[], Reading], values: Values) -> Values:
    """The example, unless something was read already."""
    if values[ui.session] is not None:
        return gr.skip()
    reading, language = example(), values[ui.frame.language]
    return {
        **_told(ui, reading, language),
        ui.session: reading,
        ui.strip: gr.update(
            value=loss_views.strip(reading),
            labels=strip_words(language),
            shade=loss_views.shading(reading),
            selected=selection(reading.selected),
        ),
    }


def retell(ui: TextLoss, values: Values) -> Values:
    """Every sentence again, in the language chosen just now.

    The strip gets everything at once: of an update before its tab was ever open, the browser keeps only what is in it.
    """
    language, reading = values[ui.frame.language], values[ui.session]
    labels = strip_words(language)
    if reading is None:
        return {ui.strip: gr.update(labels=labels)}
    shade, selected = loss_views.shading(reading), selection(reading.selected)
    return _told(ui, reading, language) | {ui.strip: gr.update(labels=labels, shade=shade, selected=selected)}


def _told(ui: TextLoss, reading: Reading, language: Language) -> Values:
    return {
        ui.notice: "",
        ui.headline: loss_views.headline(reading, language),
        ui.says: loss_views.says(reading, language),
        ui.token: loss_views.token(reading, language),
    }


def _buttons(ui: TextLoss, *, running: bool) -> Values:
    return {ui.measure: gr.update(interactive=not running), ui.stop: gr.update(interactive=running)}


def _wire(ui: TextLoss, tab: gr.Tab, example: Callable[[], Reading]) -> None:
    def handler(function: Callable[..., Any]) -> Callable[..., Any]:
        return partial(function, ui)

    tab.select(partial(open_first, ui, example), ui.inputs(), ui.outputs(), **LOOKING)

    run = {"fn": handler(measure), "inputs": ui.inputs(), "outputs": ui.outputs(), **RUNNING}
    runs = [gr.on([ui.measure.click, ui.text.submit], **run)]
    for button, text in zip(ui.examples, EXAMPLES.values(), strict=True):
        runs.append(button.click(partial(str, text), None, ui.text, **LOOKING).then(**run))
    for event in runs:
        for ended in (event.then, event.failure):
            ended(handler(finish), ui.inputs(), [ui.measure, ui.stop, ui.status], **LOOKING)
    ui.stop.click(None, None, None, cancels=runs, api_visibility="private")

    def clicked(values: Values, event: gr.EventData) -> Values:
        return select(ui, values, event)

    ui.strip.select(clicked, ui.inputs(), [ui.session, ui.token], **LOOKING)
    told = [ui.notice, ui.headline, ui.says, ui.strip, ui.token]
    ui.frame.language.change(handler(retell), ui.inputs(), told, **LOOKING)
