"""The Lessons tab: one lesson at a time, with an interactive figure, code and questions.

All figures share one set of controls, a sentence, a chart, a strip and a table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Literal

from components.i18n import t
from components.kit import Tab, card, case, column, columns, picture, row, says, section
from components.parts import Part, choice, slider, text_box, valueless
from components.state.admission import admitted
from components.state.adoption import adopt, load_with_progress
from components.state.example import first_prompt
from components.state.reads import Pending, Reads
from components.state.session import Session
from components.state.snapshot import Message
from components.tabs.lessons.code_view import Excerpt, coloured, excerpt, printed
from components.tabs.lessons.course import BY_KEY, LESSONS, SYNONYMS, Lesson
from components.tabs.lessons.figure import (
    EXAMPLE,
    MAX_TEXT_CHARS,
    MAX_TOKENS,
    Drawn,
    Open,
    Picture,
    Reply,
    SliderSpec,
    checked_ids,
)
from components.tabs.lessons.pictures import PANELS, PICTURES
from components.tabs.lessons.questions import QUESTIONS, ChoiceQuestion, GoalQuestion, NumberQuestion
from components.widgets.simple import course, predictions, table
from components.widgets.tokens import tokens
from components.widgets.widget import widget
from gpt import PRESETS, Generation, GPTConfig, LoadedModel
from gpt.experiments.shapes import next_token_multiplications

KINDS = {NumberQuestion: "number", ChoiceQuestion: "choice", GoalQuestion: "goal"}


def lessons(loaded: LoadedModel, tabs: OtherTabs) -> Tab:
    keys, topics = [lesson.key for lesson in LESSONS], [lesson.topic for lesson in LESSONS]
    head = course(
        "lesson-head",
        "lessons",
        keys,
        topics,
        draw=partial(path, loaded),
        on=lambda session, sent: open_lesson(loaded, session, sent.get("open")),
        on_input=valueless(partial(open_film, loaded, tabs)),
        input_queue="model",
    )
    body = lesson_body(
        "lesson-body",
        draw=code_and_questions,
        on=valueless(partial(open_place, loaded, tabs)),
        queue="model",
        on_input=answer,
    )
    panels = {key: column(*sections) for key, sections in PANELS.items()}
    instead = case("lesson-instead", lesson_key, {key: part for key, part in panels.items() if key not in PICTURES})
    below = case("lesson-below", lesson_key, {key: part for key, part in panels.items() if key in PICTURES})
    tab = Tab("lessons")
    tab.cards(
        card("lesson-title", head),
        card(
            "lesson",
            columns(
                column(figure_part(loaded.model.config), instead, classes="gb-lesson-picture", min_width=320),
                section(body, classes="gb-lesson-text", grow=1),
            ),
            below,
            classes="",
        ),
    )
    return tab


def open_lesson(loaded: LoadedModel, session: Session, key: object) -> bool:
    """Open a lesson with its initial controls, unless it is open. Returns False if there is no lesson with this key."""
    if not isinstance(key, str) or key not in BY_KEY:
        return False
    if session.state(Open).lesson != key:
        picture, config = PICTURES.get(key, NO_PICTURE), loaded.model.config
        session.change(
            Open,
            lesson=key,
            loaded=loaded,
            text=first_prompt(loaded, picture.text, most=MAX_TOKENS) if picture.text else "",
            a=picture.a.clamped(None, config) if picture.a else 0,
            b=picture.b.clamped(None, config) if picture.b else 0,
            choice=next(iter(picture.choices), ""),
            is_new=True,
            replies={},
        )
    return True


def lesson_key(s: Any) -> str | None:
    return s.state(Open).lesson or None


def path(loaded: LoadedModel, s: Any) -> dict[str, Any]:
    items = [
        {
            "title": t(f"lesson.{each.key}.title"),
            "says": lesson_text(each, "says", loaded),
            "part": t(f"lessons.part.{each.part}"),
            "words": SYNONYMS[each.key],
        }
        for each in LESSONS
    ]
    lesson = BY_KEY.get(s[Open].lesson)
    if lesson is None:
        return {"open": None, "items": items}
    n = LESSONS.index(lesson)
    title, says = f"{n + 1} · {items[n]['title']}", items[n]["says"]
    return {"open": lesson.key, "items": items, "title": title, "says": says, "has_film": lesson.beat != ""}


def code_and_questions(s: Any) -> dict[str, Any]:
    lesson = BY_KEY.get(s[Open].lesson)
    if lesson is None:
        return {"open": None}
    return {
        "open": lesson.key,
        "idea": [listing(printed(lesson.key))],
        "code": [listing(excerpt(code)) for code in lesson.code.split()],
        "questions": [question_data(lesson, n, s) for n in range(1, len(QUESTIONS[lesson.key]) + 1)],
        "show": t("lessons.answer"),
        "place": t(f"lessons.open.{lesson.place.tab}"),
    }


def listing(found: Excerpt) -> dict[str, Any]:
    place = (found.file, found.name, t("lessons.line", line=found.line))
    return {"caption": " · ".join(place), "lines": coloured(found.text).split("\n")}


def question_data(lesson: Lesson, n: int, s: Any) -> dict[str, Any]:
    """Return a question with its kind and answer, and the verdict on the visitor's answer. `n` is 1-based."""
    question, reply = QUESTIONS[lesson.key][n - 1], replies(s).get(n, Reply())
    right = question.expected(s) if isinstance(question, NumberQuestion) else None
    values = {"right": "…" if right is None else f"{right:,g}"}

    def text(part: str) -> str:
        return lesson_text(lesson, part if n == 1 else f"{n}.{part}", s[Open].loaded, **values)

    n_choices = question.n_choices if isinstance(question, ChoiceQuestion) else 0
    shown = reply.verdict or ("goal" if isinstance(question, GoalQuestion) else "")
    reason = text(reply.text) if reply.text else ""
    return {
        "kind": KINDS[type(question)],
        "question": text("question"),
        "choices": [text(f"choice.{n}") for n in range(1, n_choices + 1)],
        "verdict": reply.verdict,
        "feedback": t(f"lessons.{shown}", text=reason) if shown else "",
        "answer": text("answer"),
    }


def lesson_text(lesson: Lesson, part: str, loaded: LoadedModel, **values: str) -> str:
    return t(f"lesson.{lesson.key}.{part}", **facts(loaded.model.config), **values)


@lru_cache(maxsize=8)
def facts(config: GPTConfig) -> dict[str, str]:
    """Return values for the lessons' texts. times: GPT-2's multiplications without a KV cache over those with one."""
    gpt2 = PRESETS["gpt2"]
    cached, uncached = (next_token_multiplications(gpt2, gpt2.block_size, cached=cached) for cached in (True, False))
    return {
        "n_layer": str(config.n_layer),
        "n_embd": f"{config.n_embd:,}",
        "vocab_size": f"{config.vocab_size:,}",
        "chance": f"{100 / config.vocab_size:.2g}",
        "uniform": f"{math.log(config.vocab_size):.2f}",
        "times": f"{uncached // cached:,}",
    }


def answer(session: Session, sent: dict[str, Any]) -> None:
    """Check the answer to one of the lesson's questions.

    `sent` contains "question", the 1-based number of the question, and "answer": the typed number, or the 1-based
    number of the choice.
    """
    s, n = Reads(session.snapshot()), sent.get("question")
    questions = QUESTIONS.get(s[Open].lesson, ())
    if type(n) is int and 1 <= n <= len(questions):
        reply = questions[n - 1].reply(sent.get("answer"), s)
        if reply is not None:
            session.change(Open, replies={**replies(s), n: reply})


def replies(s: Any) -> dict[int, Reply]:
    """Return the reply to the last answer to each question, and to each goal that the figure has reached."""
    goals = enumerate(QUESTIONS.get(s[Open].lesson, ()), 1)
    reached = [n for n, goal in goals if isinstance(goal, GoalQuestion) and goal.is_reached(s)]
    return {**s[Open].replies, **dict.fromkeys(reached, Reply("right"))}


NO_PICTURE, NO_SLIDER = Picture(lambda s: None), SliderSpec("", 0, 1, 1, 0)


def picture_of(s: Any) -> Picture:
    return PICTURES.get(s.state(Open).lesson, NO_PICTURE)


def figure_part(config: GPTConfig) -> Part:
    text = text_box(
        "lesson-text",
        label="picture.text",
        info="picture.text.info",
        max_length=MAX_TEXT_CHARS,
        value=lambda s: s[Open].text,
        on=type_text,
        show=lambda s: picture_of(s).text is not None,
    )
    switch = choice(
        "lesson-choice",
        choices=lambda s: [(t(f"picture.{s[Open].lesson}.choice.{each}"), each) for each in picture_of(s).choices],
        label="picture.switch",
        value=lambda s: s[Open].choice,
        on=choose,
        show=lambda s: bool(s[Open].choice),
    )
    return section(
        text,
        row(slider_part("a", config), slider_part("b", config)),
        switch,
        says("lesson-notice", problem, kind="notice"),
        says("lesson-says", lambda s: shown(s).summary),
        tokens("lesson-strip", selectable=False, draw=lambda s: {"lines": shown(s).strip, "doc": s[Open].lesson}),
        predictions("lesson-bars", selectable=False, draw=lambda s: shown(s).bars),
        picture("lesson-chart", lambda s: shown(s).chart),
        table("lesson-table", draw=lambda s: {"rows": shown(s).table}),
        classes="gb-panel",
        name="lesson-figure",
        show=lambda s: picture_of(s) is not NO_PICTURE,
    )


def slider_part(name: Literal["a", "b"], config: GPTConfig) -> Part:
    def of(field: Callable[[SliderSpec], Any]) -> Callable[[Any], Any]:
        return lambda s: field(getattr(picture_of(s), name) or NO_SLIDER)

    return slider(
        f"lesson-{name}",
        low=of(lambda spec: spec.low),
        high=of(lambda spec: max(spec.top(config), spec.low + spec.step)),
        step=of(lambda spec: spec.step),
        label=of(lambda spec: spec.label and t(spec.label)),
        value=lambda s: getattr(s[Open], name),
        on=partial(move, name),
        show=lambda s: getattr(picture_of(s), name) is not None,
    )


def figure(s: Any) -> Drawn:
    """Draw the open lesson's figure. Raises ValueError if it cannot be drawn with its controls."""
    drawn = picture_of(s).draw(s)
    return drawn if isinstance(drawn, Drawn) else Drawn(chart=drawn)


def shown(s: Any) -> Drawn:
    """Return the figure, and an empty one until it can be drawn for the first time since the lesson was opened."""
    try:
        return s.cached(figure)
    except (Pending, ValueError):
        if not s[Open].is_new:
            raise Pending from None  # the last drawing stays, and a notice explains a ValueError
        return Drawn(t("lessons.learning") if picture_of(s).takes_time() else "")


def problem(s: Any) -> ValueError | None:
    """Return the reason why the figure does not match its controls."""
    try:
        s.cached(figure)
    except ValueError as found:
        return found
    return None


def move(name: Literal["a", "b"], session: Session, value: object) -> None:
    spec, loaded = getattr(picture_of(session), name), session.state(Open).loaded
    if spec is not None and loaded is not None:
        set_control(session, name, spec.clamped(value, loaded.model.config))


def choose(session: Session, choice: object) -> None:
    if choice in picture_of(session).choices:
        set_control(session, "choice", choice)


def type_text(session: Session, text: object) -> None:
    if picture_of(session).text is not None and isinstance(text, str):
        set_control(session, "text", text[: MAX_TEXT_CHARS + 1])


def set_control(session: Session, name: str, value: object) -> None:
    """Set a control, and remember the goals that the figure has reached."""
    reached = replies(Reads(session.snapshot()))
    session.change(Open, **{name: value}, is_new=False, replies=reached)


_BODY_TEMPLATE = """<div class="gb-lesson-body" hidden>
<h3 class="gb-try-title"></h3><ol class="gb-questions"></ol>
<button type="button" class="gb-lesson-go gb-button"></button>
<h3 class="gb-code-title"></h3><div class="gb-code gb-idea"></div>
<details class="gb-runs"><summary></summary><div class="gb-code"></div></details>
</div>"""


def lesson_body(name: str, **wired: Any) -> Part:
    """Return code, questions and answers.

    Raises `.input` with the payload {"question": 1-based number, "answer": typed text, or a choice's 1-based number},
    and `.select` for the button that goes to the corresponding place in the app.

    View data: see `code_and_questions`.
    """
    return widget("lesson", name, template=_BODY_TEMPLATE, **wired)


@dataclass(frozen=True)
class OtherTabs:
    """The lessons' actions in other tabs: set a configuration, with or without blocks; score a text; open a beat."""

    set_shape: Callable[[Session, GPTConfig, bool], None]
    score_text: Callable[..., Iterator[None]]
    open_film: Callable[[Session, str], None]


def open_place(loaded: LoadedModel, tabs: OtherTabs, session: Session) -> Iterator[None]:
    state = session.state(Open)
    lesson = BY_KEY.get(state.lesson)
    if lesson is None:
        return
    place = lesson.place
    values = place.settings | {name: getattr(state, slider) for name, slider in place.sliders.items()}
    for name, value in values.items():
        session.settings = session.settings.with_value(name, value)
    if place.shape is not None:
        tabs.set_shape(session, place.shape, place.skeleton)
    yield from _take_text(loaded, session)
    session.tab = place.tab
    session.more_controls = True
    if place.tab == "loss":
        yield from tabs.score_text(session, text=state.text)


def open_film(loaded: LoadedModel, tabs: OtherTabs, session: Session) -> Iterator[None]:
    lesson = BY_KEY.get(session.state(Open).lesson)
    if lesson is not None and lesson.beat:
        yield from _take_text(loaded, session)
        tabs.open_film(session, lesson.beat)


def _take_text(loaded: LoadedModel, session: Session) -> Iterator[None]:
    """Make the figure's text the document of the lesson's model, unless it already is, and select the figure's head.

    Raises ValueError if the text is empty or too long.
    """
    state, place, picture = session.state(Open), BY_KEY[session.state(Open).lesson].place, picture_of(session)
    if place.model:
        loaded = yield from load_with_progress(session, place.model)  # meanwhile, another lesson may be opened
    if picture.text is not None or place.model:
        text = place.text or EXAMPLE if picture.text is None else state.text
        ids, document = checked_ids(loaded, text), session.document
        if document is None or document.loaded is not loaded or document.ids != ids or document.held:
            with admitted(session, loaded) as waiting:
                yield from waiting
                adopt(session, Generation(loaded, ids), text, Message("status.lesson"))
    if place.head is not None:
        session.select(layer=place.head[0], head=place.head[1])
    if place.selects_head:
        session.select(layer=int(state.a), head=None if picture.b is None else int(state.b))
