"""The Playground: type a prompt, watch the model write, see what it expected and where it looked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import gradio as gr

from components.api import SLOTS
from components.frame import Frame
from components.i18n import Language, Words, say
from components.playground import looking, views, writing
from components.playground.upload import Upload, build_upload, open_upload
from components.session import EXAMPLE_PROMPT, Session
from components.settings import LIMITS, sampling_params
from components.widgets.chart import chart
from components.widgets.sentence import sentence
from components.widgets.tokens import tokens
from gpt import Generation

EXAMPLES = {
    "example.story": EXAMPLE_PROMPT,
    "example.dialogue": 'Tom saw a big dog in the park. "Hello, dog!" Tom said. The dog',
    "example.who": "Lily and Tom went to the zoo. Tom was scared of the lion, so Lily held his",
    "example.repeat": "The cat sat. The dog ran. The cat sat. The dog ran. The cat",
    "example.surprise": "The stock market fell by 3% because the central bank",
}
PACES = (5, 20, 50, 0)
DEFAULT_LENGTH = 100
SESSION_SECONDS = 3600  # without a change, until a visitor's document is forgotten
# Looking must not wait behind writing: two queues.
_QUIET = {"show_progress": "hidden", "concurrency_limit": SLOTS, "api_visibility": "private"}
LOOKING = {**_QUIET, "concurrency_id": "look"}
RUNNING = {**_QUIET, "concurrency_id": "model"}


@dataclass(frozen=True)
class Playground:
    """The components of the tab, and the visitor's session."""

    frame: Frame
    session: gr.State
    prompt: gr.Textbox
    prompt_strip: gr.HTML
    prompt_count: gr.HTML
    examples: tuple[gr.Button, ...]
    generate: gr.Button
    step: gr.Button
    stop: gr.Button
    clear: gr.Button
    temperature: gr.Slider
    top_k: gr.Slider
    top_p: gr.Slider
    min_p: gr.Slider
    repetition_penalty: gr.Slider
    length: gr.Slider
    seed: gr.Textbox
    pace: gr.Dropdown
    notice: gr.HTML
    use_tail: gr.Button
    strip: gr.HTML
    hint: gr.HTML
    shading: gr.Radio
    status: gr.HTML
    bars: gr.HTML
    layer: gr.Dropdown
    head: gr.Dropdown
    heatmap: gr.HTML

    def inputs(self) -> set[Any]:
        """Everything that a handler reads; it gets {component: value}."""
        names = (*LIMITS, "session", "prompt", "length", "seed", "pace", "layer", "head", "shading")
        return {*(getattr(self, name) for name in names), self.frame.model, self.frame.language}

    def outputs(self) -> list[Any]:
        """Everything that a run of the model changes."""
        pictures = ("strip", "hint", "bars", "heatmap", "status", "notice", "use_tail")
        controls = ("generate", "step", "stop", "prompt_strip", "prompt_count", "layer", "head", "length")
        return [*(getattr(self, name) for name in (*pictures, *controls)), self.frame.model]


def build_playground(words: Words, frame: Frame, *, uploads: bool = False) -> Playground:
    """Lay the tab out; the first screen shows a finished example. uploads: with the panel for own checkpoints."""
    parts: dict[str, Any] = {"frame": frame, "session": gr.State(Session(frame.example), time_to_live=SESSION_SECONDS)}
    with gr.Row(elem_classes="gb-playground"):
        with gr.Column(elem_classes="gb-controls", min_width=280):
            parts |= _prompt(words, frame.example)
            parts |= _settings(words, frame.example)
            upload = build_upload(words) if uploads else None
        with gr.Column(elem_classes="gb-stage", min_width=320):
            parts |= _text(words, frame.example)
            with gr.Row(elem_classes="gb-cards"):
                with gr.Column(elem_classes="gb-card", min_width=300):
                    parts |= _bars(words, frame.example)
                with gr.Column(elem_classes="gb-card", min_width=300):
                    parts |= _attention(words, frame.example)
    ui = Playground(**{field.name: parts[field.name] for field in fields(Playground)})
    _wire(ui, upload)
    return ui


def _prompt(words: Words, document: Generation) -> dict[str, Any]:
    ids = document.ids[: document.n_prompt]
    with gr.Column(elem_classes="gb-card gb-prompt"):
        prompt = words.build(
            gr.Textbox,
            {"label": "prompt", "placeholder": "prompt.placeholder"},
            value=EXAMPLE_PROMPT,
            lines=3,
            max_lines=8,
            elem_id="prompt",
        )
        strip = tokens(
            views.prompt_strip(document.loaded.tokenizer, ids),
            elem_id="prompt-strip",
            ids=True,
            selectable=False,
        )
        count = sentence(
            views.count_sentence(len(ids), document.loaded.model.config.block_size, "en"),
            kind="caption",
            elem_id="prompt-count",
        )
        with gr.Row(elem_classes="gb-buttons"):
            generate = words.build(
                gr.Button, {"value": "generate"}, variant="primary", size="md", elem_id="generate", min_width=0
            )
            step = words.build(gr.Button, {"value": "step"}, size="md", elem_id="step", min_width=0)
            stop = words.build(gr.Button, {"value": "stop"}, size="md", elem_id="stop", interactive=False, min_width=0)
            clear = words.build(gr.Button, {"value": "clear"}, size="md", elem_id="clear", min_width=0)
        words.build(sentence, {"value": "examples"}, kind="caption")
        with gr.Row(elem_classes="gb-examples"):
            examples = tuple(
                words.build(gr.Button, {"value": key}, size="sm", min_width=0, elem_id=key.replace(".", "-"))
                for key in EXAMPLES
            )
    return {
        "prompt": prompt,
        "prompt_strip": strip,
        "prompt_count": count,
        "generate": generate,
        "step": step,
        "stop": stop,
        "clear": clear,
        "examples": examples,
    }


def _settings(words: Words, document: Generation) -> dict[str, Any]:
    parts: dict[str, Any] = {}
    with words.build(gr.Accordion, {"label": "settings"}, open=True, elem_classes="gb-card gb-settings"):
        for name, limit in LIMITS.items():
            parts[name] = words.build(
                gr.Slider,
                {"label": name, "info": f"{name}.info"},
                minimum=limit.low,
                maximum=limit.high,
                step=limit.step,
                value=limit.default,
                elem_id=name.replace("_", "-"),
            )
        block_size = document.loaded.model.config.block_size
        parts["length"] = words.build(
            gr.Slider,
            {"label": "length", "info": "length.info"},
            minimum=1,
            maximum=block_size,
            step=1,
            value=min(DEFAULT_LENGTH, block_size),
            elem_id="length",
        )
        with gr.Row():
            parts["seed"] = words.build(
                gr.Textbox,
                {"label": "seed", "placeholder": "seed.placeholder"},
                max_length=18,
                elem_id="seed",
                min_width=110,
            )
            parts["pace"] = words.build(
                gr.Dropdown,
                {"label": "pace", "choices": _pace_choices},
                value=50,
                elem_id="pace",
                min_width=110,
            )
    return parts


def _pace_choices(language: Language) -> list[tuple[str, int]]:
    return [(str(pace) if pace else say("pace.full", language), pace) for pace in PACES]


def _text(words: Words, document: Generation) -> dict[str, Any]:
    with gr.Column(elem_classes="gb-card gb-text"):
        status = words.build(sentence, {"value": "status.example"}, kind="status", elem_id="status")
        notice = sentence(kind="notice", elem_id="notice")
        use_tail = gr.Button(visible=False, size="sm", elem_id="use-tail")
        strip = words.build(tokens, {"labels": _strip_words}, value=views.strip(document), elem_id="strip")
        with gr.Row(elem_classes="gb-strip-tools"):
            hint = words.build(sentence, {"value": "strip.hint"}, kind="caption", elem_id="hint")
            shading = words.build(
                gr.Radio,
                {"label": "strip.shading", "choices": _shading_choices},
                value="probability",
                elem_id="shading",
                elem_classes="gb-segments",
                container=False,
            )
    return {
        "status": status,
        "notice": notice,
        "use_tail": use_tail,
        "strip": strip,
        "hint": hint,
        "shading": shading,
    }


def _strip_words(language: Language) -> dict[str, str]:
    """The words of the strip: its name for screen readers, its tooltip, its button."""
    keys = ("name", "empty", "token", "id", "probability", "rank", "attention", "marks")
    return {key: say(f"strip.{key}", language) for key in keys}


def _shading_choices(language: Language) -> list[tuple[str, str]]:
    return [(say(f"strip.shading.{kind}", language), kind) for kind in ("probability", "attention")]


def _bars(words: Words, document: Generation) -> dict[str, Any]:
    params = sampling_params(temperature=LIMITS["temperature"].default)
    words.build(sentence, {"value": "bars.question"}, kind="question")
    return {"bars": chart(views.bars(document, views.Look(), params, "en"), elem_id="bars")}


def _attention(words: Words, document: Generation) -> dict[str, Any]:
    config = document.loaded.model.config
    with gr.Row(elem_classes="gb-card-head"):
        words.build(sentence, {"value": "attention.question"}, kind="question")
        layer = words.build(
            gr.Dropdown,
            {"label": "attention.layer"},
            choices=list(range(config.n_layer)),
            value=0,
            elem_id="layer",
            min_width=72,
        )
        head = words.build(
            gr.Dropdown,
            {"label": "attention.head"},
            choices=looking.head_choices(config.n_head, "en"),
            value=looking.AVERAGE,
            elem_id="head",
            min_width=120,
        )
    heatmap = chart(views.heatmap(document, views.Look(), "en"), elem_id="heatmap", clickable=True)
    return {"layer": layer, "head": head, "heatmap": heatmap}


def _wire(ui: Playground, upload: Upload | None) -> None:
    """Every event of the tab; each handler gets the panel and {component: value}."""
    everything, outputs = ui.inputs(), ui.outputs()

    def handler(function: Callable[..., Any]) -> Callable[..., Any]:
        return partial(function, ui)

    typed = [ui.prompt_strip, ui.prompt_count]
    ui.prompt.change(handler(looking.show_prompt), everything, typed, trigger_mode="always_last", **LOOKING)

    stream = {"fn": handler(writing.stream), "inputs": everything, "outputs": outputs, **RUNNING}
    streams = [gr.on([ui.generate.click, ui.prompt.submit], **stream)]
    for button, key in zip(ui.examples, EXAMPLES, strict=True):
        filled = button.click(partial(str, EXAMPLES[key]), None, ui.prompt, **LOOKING)
        streams.append(filled.then(**stream))
    shortened = ui.use_tail.click(handler(writing.use_tail), everything, ui.prompt, **LOOKING)
    streams.append(shortened.then(**stream))
    streams.append(ui.frame.model.input(**stream))
    if upload is not None:
        given = [upload.files, upload.n_head, ui.frame.language]
        changed = [upload.n_head, upload.message, ui.frame.model]
        opened = upload.open.click(partial(open_upload, upload, ui.frame), given, changed, **RUNNING)
        streams.append(opened.success(**stream))
    for event in streams:
        for ended in (event.then, event.failure):
            ended(handler(writing.finish), everything, outputs, **LOOKING)

    ui.step.click(handler(writing.step), everything, outputs, **RUNNING)
    ui.stop.click(None, None, None, cancels=streams, api_visibility="private")
    ui.clear.click(handler(writing.clear), everything, [*outputs, ui.prompt], cancels=streams, **LOOKING)

    seen = [ui.strip, ui.hint, ui.bars, ui.heatmap]
    for widget, select in ((ui.strip, looking.select_token), (ui.heatmap, looking.select_row)):
        widget.select(_with_event(ui, select), everything, seen, **LOOKING)
    latest = {"trigger_mode": "always_last", **LOOKING}
    pickers = [ui.layer.input, ui.head.input, ui.shading.input]
    gr.on(pickers, handler(looking.select_head), everything, [ui.strip, ui.hint, ui.heatmap], **latest)
    sliders = [getattr(ui, name).change for name in LIMITS]
    gr.on(sliders, handler(looking.show_bars), everything, ui.bars, **latest)
    retold = [*seen, *typed, ui.head, ui.status]
    ui.frame.language.change(handler(looking.retell), everything, retold, **LOOKING)


def _with_event(ui: Playground, function: Callable[..., Any]) -> Callable[..., Any]:
    """A handler that also gets what the browser sent with the event: a dict of anything."""

    def handle(values: looking.Values, event: gr.EventData) -> looking.Values:
        return function(ui, values, event._data if isinstance(event._data, dict) else {})

    return handle
