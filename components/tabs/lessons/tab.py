"""The Lessons tab: a screen for each lesson, with an interactive figure, the code and a question.

The screens share their components: head and body are one widget each, and one set of controls with a chart, a strip and
a table serves all figures. Only panels have components of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

import gradio as gr

from components.events import Events, clamp_slider_js
from components.i18n import Language, t
from components.localized import Localizer
from components.render import Control
from components.state.snapshot import Snapshot
from components.tabs.lessons import handlers
from components.tabs.lessons.components import LessonsComponents, LessonsState, is_lesson_open
from components.tabs.lessons.course import LESSONS
from components.tabs.lessons.lesson import Lesson
from components.tabs.lessons.pictures import PICTURES
from components.tabs.lessons.pictures.picture import MAX_TEXT_CHARS, Picture
from components.tabs.lessons.views import lesson_views
from components.widgets.chart import chart
from components.widgets.lesson import lesson_body, lesson_head
from components.widgets.sentence import sentence
from components.widgets.table import table
from components.widgets.tokens import tokens
from components.widgets.widget import placed
from gpt import GPTConfig, LoadedModel

NAME = "lessons"
SliderName = Literal["a", "b"]


def build_lessons(localizer: Localizer, events: Events, loaded: LoadedModel, tabs: handlers.OtherTabs) -> None:
    """Build and wire the tab. loaded: the model of the figures; tabs: what the lessons do in other tabs."""
    ui = _layout(localizer, events, loaded.model.config)
    views = lesson_views(loaded)
    events.renderer.add(NAME, views, handlers.analysis(loaded), controls=_controls(ui, loaded.model.config))

    latest: Any = {"trigger_mode": "always_last"}
    events.on(ui.head.select, partial(handlers.choose_lesson, loaded), [ui.head])
    events.on(ui.head.input, partial(handlers.open_film, loaded, tabs), queue="model")
    events.on(ui.body.select, partial(handlers.open_place, loaded, tabs), queue="model")
    events.on(ui.body.input, partial(handlers.answer, loaded), [ui.body])
    for name, slider in (("a", ui.a), ("b", ui.b)):
        events.on(
            slider.input, partial(handlers.move, loaded, name), [slider], js=clamp_slider_js(slider.elem_id), **latest
        )
    events.on(ui.choice.input, handlers.choose, [ui.choice], **latest)
    events.on(ui.text.input, handlers.type_text, [ui.text], **latest)


def _layout(localizer: Localizer, events: Events, config: GPTConfig) -> LessonsComponents:
    keys, topics = [lesson.key for lesson in LESSONS], [lesson.topic for lesson in LESSONS]
    parts: dict[str, Any] = {}
    with gr.Column(elem_classes="gb-card"):
        parts["head"] = placed(lesson_head(elem_id="lesson-head", keys=keys, topics=topics, view="lesson-head"))
    with gr.Row(elem_classes="gb-lesson-columns"):
        with gr.Column(elem_classes="gb-lesson-picture", min_width=320, scale=1):
            parts |= _picture(localizer, config)
            panels = _panels(localizer, events, [lesson for lesson in LESSONS if lesson.key not in PICTURES])
        with gr.Column(elem_classes="gb-card gb-lesson-text", min_width=320, scale=1):
            parts["body"] = placed(lesson_body(elem_id="lesson-body", keys=keys, view="lesson-body"))
    below = _panels(localizer, events, [lesson for lesson in LESSONS if lesson.key in PICTURES])
    return LessonsComponents(**parts, panels=panels | below)


def _picture(localizer: Localizer, config: GPTConfig) -> dict[str, Any]:
    """The card of the figure. Its sliders and its switch are built with the union of all lessons' ranges."""
    parts: dict[str, Any] = {}
    with gr.Column(elem_classes="gb-card gb-panel", visible=False) as parts["card"]:
        parts["text"] = localizer.build(
            gr.Textbox,
            {"label": "picture.text", "info": "picture.text.info"},
            max_length=MAX_TEXT_CHARS,
            visible=False,
            elem_id="lesson-text",
        )
        with gr.Row(elem_classes="gb-panel-controls"):
            for name in ("a", "b"):
                specs = [spec for picture in PICTURES.values() if (spec := getattr(picture, name)) is not None]
                low, high = min(spec.low for spec in specs), max(spec.top(config) for spec in specs)
                parts[name] = gr.Slider(low, high, label=name, visible=False, elem_id=f"lesson-{name}")
        parts["choice"] = localizer.build(
            gr.Radio,
            {"label": "picture.switch"},
            choices=[choice for key in PICTURES for choice in _choices(key, "en")],
            visible=False,
            elem_id="lesson-choice",
            elem_classes="gb-segments",
            container=False,
        )
        placed(sentence(kind="notice", elem_id="lesson-notice", view="lesson-notice"))
        placed(sentence(kind="lead", elem_id="lesson-says", view="lesson-says"))
        placed(tokens(selectable=False, elem_id="lesson-strip", view="lesson-strip"))
        placed(chart(elem_id="lesson-chart", view="lesson-chart"))
        placed(table(elem_id="lesson-table", view="lesson-table"))
    return parts


def _panels(localizer: Localizer, events: Events, lessons: Sequence[Lesson]) -> dict[str, gr.Column]:
    """The column of each lesson's panels."""
    columns: dict[str, gr.Column] = {}
    for lesson in lessons:
        if lesson.panels:
            with gr.Column(visible=False) as columns[lesson.key]:
                for build in lesson.panels:
                    build(localizer, events, NAME, partial(is_lesson_open, lesson.key))
    return columns


def _choices(key: str, language: Language) -> list[tuple[str, str]]:
    """(label, value) of the switch of a figure."""
    return [(t(f"picture.{key}.choice.{choice}", language), choice) for choice in PICTURES[key].choices]


def _lesson(s: Snapshot) -> str:
    return s.state(LessonsState).lesson


def _shown(s: Snapshot) -> Picture | None:
    """The figure of the open lesson."""
    return PICTURES.get(_lesson(s))


def _controls(ui: LessonsComponents, config: GPTConfig) -> list[Control]:
    """Controls that depend on the lesson, and on the language. A value is set when the lesson is opened."""

    def text(s: Snapshot) -> dict[str, Any]:
        picture = _shown(s)
        return {"value": s.state(LessonsState).text, "visible": picture is not None and picture.text is not None}

    def slider(name: SliderName, s: Snapshot) -> dict[str, Any]:
        spec = getattr(_shown(s), name, None)
        if spec is None:
            return {"visible": False}
        ends = {"minimum": spec.low, "maximum": spec.top(config), "step": spec.step}
        return {**ends, "value": getattr(s.state(LessonsState), name), "visible": True}

    def choice(s: Snapshot) -> dict[str, Any]:
        chosen = s.state(LessonsState).choice
        return {"value": chosen or None, "visible": bool(chosen)}

    def column(shown: Callable[[Snapshot], bool], component: gr.Column) -> Control:
        return Control(component, shown, lambda s: {"visible": shown(s)})

    def inputs(s: Snapshot) -> tuple[str, Language]:
        return _lesson(s), s.language

    def label(name: SliderName, s: Snapshot) -> dict[str, Any]:
        spec = getattr(_shown(s), name, None)
        return {} if spec is None else {"label": t(spec.label, s.language)}

    def choices(s: Snapshot) -> dict[str, Any]:
        picture = _shown(s)
        return {} if picture is None or not picture.choices else {"choices": _choices(_lesson(s), s.language)}

    return [
        column(lambda s: _shown(s) is not None, ui.card),
        *(column(partial(is_lesson_open, key), panels) for key, panels in ui.panels.items()),
        Control(ui.text, _lesson, text),
        Control(ui.a, _lesson, partial(slider, "a")),
        Control(ui.b, _lesson, partial(slider, "b")),
        Control(ui.choice, _lesson, choice),
        Control(ui.a, inputs, partial(label, "a")),
        Control(ui.b, inputs, partial(label, "b")),
        Control(ui.choice, inputs, choices),
    ]
