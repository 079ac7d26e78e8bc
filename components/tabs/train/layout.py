"""Layout of the Train tab."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

import gradio as gr

from components.i18n import Language, t
from components.localized import Localizer
from components.tabs.train import choices
from components.tabs.train.components import Source
from components.widgets.chart import chart
from components.widgets.flow import flow
from components.widgets.heads import heads
from components.widgets.player import player
from components.widgets.sentence import sentence
from components.widgets.table import table
from components.widgets.widget import placed
from gpt.training.recipe import LIVE_RECIPES


def build_task(localizer: Localizer) -> dict[str, Any]:
    """The choice of a task or a text."""
    task = _switch(localizer, "task", choices.KINDS, lambda kind, language: t(f"train.task.{kind}", language))
    placed(sentence(kind="caption", elem_id="train-about", view="train-about"))
    with gr.Column(visible=False, elem_classes="gb-train-own") as own:
        text = localizer.build(
            gr.Textbox,
            {"label": "train.text", "placeholder": "train.text.placeholder"},
            lines=4,
            max_lines=8,
            max_length=choices.MAX_TEXT_BYTES,
            elem_id="train-text",
        )
        with gr.Row(elem_classes="gb-examples"):
            file = localizer.build(
                gr.UploadButton,
                {"label": "train.upload"},
                size="sm",
                min_width=0,
                elem_id="train-file",
                type="filepath",
            )
            code = localizer.build(gr.Button, {"value": "train.example"}, size="sm", min_width=0, elem_id="train-code")
        placed(sentence(kind="caption", elem_id="train-source", view="train-source"))
    return {"task": task, "own": own, "text": text, "file": file, "code": code}


def build_settings(localizer: Localizer) -> dict[str, Any]:
    """The configuration of the model and its recipe, collapsed."""
    recipe = LIVE_RECIPES[choices.KINDS[0]]
    parts: dict[str, Any] = {}
    with localizer.build(gr.Accordion, {"label": "train.settings"}, open=False, elem_id="train-settings"):
        with gr.Row(elem_classes="gb-train-settings"):
            for name, values in choices.SHAPE.items():
                parts[name] = _switch(localizer, name, values, value=getattr(recipe, name), container=True)
        with gr.Row(elem_classes="gb-train-settings"):
            parts["steps"] = _slider(localizer, "steps", *choices.STEPS, recipe.steps, 50)
            parts["seconds"] = _slider(localizer, "seconds", *choices.SECONDS, choices.SECONDS[1], 10)
            parts["rate"] = localizer.build(
                gr.Number,
                {"label": "train.rate", "info": "train.rate.info"},
                value=recipe.learning_rate,
                minimum=choices.RATES[0],
                maximum=choices.RATES[1],
                elem_id="train-rate",
                min_width=160,
            )
    return parts


def build_buttons(localizer: Localizer) -> dict[str, Any]:
    """The buttons that control a run."""

    def button(name: str, **options: Any) -> gr.Button:
        built = {"size": "md", "min_width": 0, "elem_id": f"train-{name}", **options}
        return localizer.build(gr.Button, {"value": f"train.{name}"}, **built)

    with gr.Row(elem_classes="gb-train-tools"):
        with gr.Row(elem_classes="gb-buttons gb-short"):
            start = button("start", variant="primary")
            pause = gr.Button(t("train.pause", "en"), size="md", min_width=0, interactive=False, elem_id="train-pause")
            cancel = button("cancel", interactive=False)
        factor = _switch(localizer, "factor", choices.FACTORS, value=1.0, container=True, interactive=False)
    placed(sentence(kind="notice", elem_id="train-notice", view="train-notice"))
    placed(sentence(kind="status", elem_id="train-status", view="train-status"))
    with gr.Row(elem_classes="gb-buttons gb-short"):
        opened = button("open", visible=False)
        download = button("download", visible=False)
    return {
        "start": start,
        "pause": pause,
        "cancel": cancel,
        "factor": factor,
        "open": opened,
        "download": download,
    }


def build_film(localizer: Localizer) -> dict[str, Any]:
    """Whose training is shown, and the player of its steps, which stays in view."""
    words = {"value": "train.film.save"}
    with gr.Column(elem_classes="gb-card"):
        localizer.sentence("train.film.question", kind="question")
        source = localizer.build(
            gr.Radio,
            {"label": "train.film.source", "choices": source_choices},
            value="recorded",
            elem_id="train-source-of-film",
            elem_classes="gb-segments",
            container=False,
            min_width=0,
            visible=False,
        )
        placed(sentence(kind="lead", elem_id="train-film", view="train-film"))
    with gr.Row(elem_classes="gb-card gb-train-player"):
        bar = placed(player(elem_id="train-player", view="train-player"))
        save = localizer.build(gr.Button, words, size="sm", min_width=0, elem_id="train-save")
    return {"source": source, "player": bar, "save": save}


def source_choices(language: Language) -> list[tuple[str, str]]:
    """The trainings that can be shown."""
    return [(t(f"train.film.source.{source}", language), source) for source in get_args(Source)]


def build_samples(localizer: Localizer) -> None:
    """What the model of the displayed step writes."""
    localizer.sentence("train.samples.question", kind="question")
    placed(sentence(kind="caption", elem_id="train-samples-says", view="train-samples-says"))
    placed(table(elem_id="train-samples", view="train-samples"))
    placed(sentence(kind="lead", elem_id="train-sample", view="train-sample"))


def build_attention(localizer: Localizer) -> dict[str, Any]:
    """All heads on one example, one of them enlarged, and the whole model on it."""
    with gr.Column(elem_classes="gb-card"):
        localizer.sentence("train.attention.question", kind="question")
        with gr.Row(elem_classes="gb-columns"):
            with gr.Column(min_width=300):
                grid = placed(heads(elem_id="train-heads", view="train-heads"))
            with gr.Column(min_width=300):
                placed(chart(elem_id="train-heatmap", view="train-heatmap"))
    with gr.Column(elem_classes="gb-card"):
        localizer.sentence("train.machine.question", kind="question")
        localizer.sentence("train.machine.lead", kind="lead")
        picture = placed(flow(elem_id="train-flow", view="train-flow"))
    return {"heads": grid, "flow": picture}


def _switch(
    localizer: Localizer,
    name: str,
    values: tuple[Any, ...],
    label: Callable[[Any, Language], str] = lambda value, _: f"{value:g}",
    *,
    value: Any = None,
    container: bool = False,
    interactive: bool | None = None,
) -> gr.Radio:
    """A radio with a few choices; the default is the first."""

    def labelled(language: Language) -> list[tuple[str, Any]]:
        return [(label(each, language), each) for each in values]

    return localizer.build(
        gr.Radio,
        {"label": f"train.{name}", "choices": labelled},
        value=values[0] if value is None else value,
        elem_id=f"train-{name.replace('_', '-')}",
        elem_classes="gb-segments",
        container=container,
        interactive=interactive,
        min_width=0,
    )


def _slider(localizer: Localizer, name: str, low: int, high: int, value: int, step: int) -> gr.Slider:
    words_of = {"label": f"train.{name}", "info": f"train.{name}.info"}
    limits = {"minimum": low, "maximum": high, "step": step, "value": value}
    return localizer.build(gr.Slider, words_of, **limits, elem_id=f"train-{name}", min_width=200)
