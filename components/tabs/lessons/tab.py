"""The Lessons tab: one lesson at a time, with an interactive figure, code and questions.

The head and the body are each a single widget. All figures share one set of controls, a chart, a strip and a table.
Only the open lesson's panels are on the page.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

from components.cards.card import Card, add_cards
from components.events import Events
from components.i18n import t
from components.parts import Part, case, choice, column, columns, row, section, slider, text_box, valueless
from components.state.snapshot import Snapshot
from components.tabs.lessons import handlers
from components.tabs.lessons.course import LESSONS
from components.tabs.lessons.pictures import PICTURES
from components.tabs.lessons.pictures.picture import MAX_TEXT_CHARS, Picture
from components.tabs.lessons.state import LessonsState
from components.tabs.lessons.views import lesson_views
from components.widgets.chart import chart
from components.widgets.lesson import lesson_body, lesson_head
from components.widgets.sentence import sentence
from components.widgets.table import table
from components.widgets.tokens import tokens
from gpt import GPTConfig, LoadedModel

NAME = "lessons"


def build_lessons(events: Events, loaded: LoadedModel, tabs: handlers.OtherTabs) -> None:
    """Build and wire the tab. `loaded` is the model for figures; `tabs` are the lessons' actions in other tabs."""
    panels = {lesson.key: column(*lesson.panels) for lesson in LESSONS if lesson.panels}
    keys, topics = [lesson.key for lesson in LESSONS], [lesson.topic for lesson in LESSONS]
    head = lesson_head(
        "lesson-head",
        keys=keys,
        topics=topics,
        on=partial(handlers.choose_lesson, loaded),
        on_input=valueless(partial(handlers.open_film, loaded, tabs)),
        input_queue="model",
    )
    body = lesson_body(
        "lesson-body",
        keys=keys,
        on=valueless(partial(handlers.open_place, loaded, tabs)),
        queue="model",
        on_input=partial(handlers.answer, loaded),
    )
    instead = _panels("lesson-instead", {key: own for key, own in panels.items() if key not in PICTURES})
    below = _panels("lesson-below", {key: own for key, own in panels.items() if key in PICTURES})
    cards = [
        Card("lesson-title", head),
        Card(
            "lesson",
            columns(
                column(_picture(loaded), instead, classes="gb-lesson-picture", min_width=320),
                section(body, classes="gb-lesson-text", grow=1),
                classes="gb-lesson-columns",
            ),
            below,
            classes="",
        ),
    ]
    add_cards(events, NAME, cards, lesson_views(loaded), handlers.analysis(loaded))


def _picture(loaded: LoadedModel) -> Part:
    """Build the figure's card."""
    config = loaded.model.config

    def has_text(s: Snapshot) -> bool:
        picture = _shown(s)
        return picture is not None and picture.text is not None

    text = text_box(
        "lesson-text",
        label="picture.text",
        info="picture.text.info",
        max_length=MAX_TEXT_CHARS,
        value=lambda s: s.state(LessonsState).text,
        on=handlers.type_text,
        show=has_text,
    )
    switch = choice(
        "lesson-choice",
        _choices,
        label="picture.switch",
        value=lambda s: s.state(LessonsState).choice,
        on=handlers.choose,
        show=lambda s: bool(s.state(LessonsState).choice),
    )
    return section(
        text,
        row(_slider("a", loaded, config), _slider("b", loaded, config), classes="gb-panel-controls"),
        switch,
        sentence("lesson-notice", kind="notice"),
        sentence("lesson-says", kind="lead"),
        tokens("lesson-strip", selectable=False),
        chart("lesson-chart"),
        table("lesson-table"),
        classes="gb-panel",
        name="lesson-figure",
        show=lambda s: _shown(s) is not None,
    )


def _slider(name: Literal["a", "b"], loaded: LoadedModel, config: GPTConfig) -> Part:
    """Build one of the figure's sliders."""

    def spec(s: Snapshot) -> Any:
        return getattr(_shown(s), name, None)

    def end(of: Any, otherwise: float) -> Any:
        return lambda s: otherwise if spec(s) is None else of(spec(s))

    return slider(
        f"lesson-{name}",
        end(lambda found: found.low, 0),
        end(lambda found: found.top(config), 1),
        end(lambda found: found.step, 1),
        label=lambda s: "" if spec(s) is None else t(spec(s).label),
        value=lambda s: getattr(s.state(LessonsState), name),
        on=partial(handlers.move, loaded, name),
        show=lambda s: spec(s) is not None,
    )


def _panels(name: str, panels: dict[str, Part]) -> Part:
    """Build the open lesson's panels."""
    return case(name, lambda s: s.state(LessonsState).lesson, panels)


def _choices(s: Snapshot) -> list[tuple[str, str]]:
    """Return the (label, value) pairs of the figure's switch."""
    key, picture = s.state(LessonsState).lesson, _shown(s)
    return [] if picture is None else [(t(f"picture.{key}.choice.{each}"), each) for each in picture.choices]


def _shown(s: Snapshot) -> Picture | None:
    """Return the open lesson's figure."""
    return PICTURES.get(s.state(LessonsState).lesson)
