"""The Lessons tab: one lesson at a time, with an interactive figure or a panel, code and questions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from typing import Any

from components.i18n import t
from components.kit import Tab, card, case, column, columns, picture, row, says, section
from components.kit.settings import Setting
from components.parts import Part, choice, slider, text_box, valueless
from components.state.admission import admitted
from components.state.adoption import adopt, load_with_progress
from components.state.example import first_prompt
from components.state.reads import Pending, Reads
from components.state.session import Session
from components.state.snapshot import Message
from components.tabs.lessons.code_view import Excerpt, coloured, excerpt, printed
from components.tabs.lessons.course import BY_KEY, LESSONS, SYNONYMS, Lesson
from components.tabs.lessons.figure import EXAMPLE, MAX_TOKENS, Drawn, Figure, Open, Reply, checked_ids
from components.tabs.lessons.pictures import FIGURES, PANELS
from components.tabs.lessons.questions import N_CHOICES, QUESTIONS
from components.widgets.simple import course, predictions, table
from components.widgets.tokens import tokens
from components.widgets.widget import widget
from gpt import PRESETS, Generation, GPTConfig, LoadedModel
from gpt.experiments.shapes import next_token_multiplications

CONTROL_KINDS = "text_box", "slider", "choice"
_BODY_TEMPLATE = """<div class="gb-lesson-body" hidden>
<h3 class="gb-try-title"></h3><ol class="gb-questions"></ol>
<button type="button" class="gb-lesson-go gb-button"></button>
<h3 class="gb-code-title"></h3><div class="gb-code gb-idea"></div>
<details class="gb-runs"><summary></summary><div class="gb-code"></div></details>
</div>"""


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
    body = widget(
        "lesson",
        "lesson-body",
        template=_BODY_TEMPLATE,
        draw=code_and_questions,
        on=valueless(partial(open_place, loaded, tabs)),
        queue="model",
        on_input=answer,
    )
    panels = {key: column(*sections) for key, sections in PANELS.items()}
    figures = {key: figure_section(key, figure) for key, figure in FIGURES.items()}
    below = {key: panel for key, panel in panels.items() if key in figures}
    tab = Tab("lessons")
    tab.cards(
        card("lesson-title", head),
        card(
            "lesson",
            columns(
                column(case("lesson-picture", lesson_key, panels | figures), min_width=320),
                section(body, classes="gb-lesson-text", grow=1),
            ),
            case("lesson-below", lesson_key, below),
            classes="",
        ),
    )
    return tab


def open_lesson(loaded: LoadedModel, session: Session, key: object) -> bool:
    """Open a lesson with its initial controls, unless it is open. Returns False if there is no lesson with this key."""
    if not isinstance(key, str) or key not in BY_KEY:
        return False
    if session.state(Open).lesson != key:
        begins = FIGURES[key].begins if key in FIGURES else {}
        text = first_prompt(loaded, begins["text"], most=MAX_TOKENS) if "text" in begins else ""
        session.change(Open, **begins | {"lesson": key, "loaded": loaded, "text": text, "replies": {}})
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
    right = question.right(s)
    values = {"right": "…" if right is None else f"{right:,g}"}

    def text(part: str) -> str:
        return lesson_text(lesson, part if n == 1 else f"{n}.{part}", s[Open].loaded, **values)

    shown = reply.verdict or ("goal" if question.kind == "goal" else "")
    reason = text(reply.text) if reply.text else ""
    return {
        "kind": question.kind,
        "question": text("question"),
        "choices": [text(f"choice.{n}") for n in range(1, N_CHOICES + 1)] if question.kind == "choice" else [],
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
    reached = [n for n, question in enumerate(QUESTIONS.get(s[Open].lesson, ()), 1) if question.is_reached(s)]
    return {**s[Open].replies, **dict.fromkeys(reached, Reply("right"))}


LABELS = {  # of other settings: picture.<name>
    "layer": "attention.layer",
    "shared_layer": "attention.layer",
    "head": "attention.head",
    "x": "activations.x",
    "n_embd": "shapes.n_embd",
    "n_head": "shapes.n_head",
    "temperature": "temperature",
    "cached": "picture.tokens",
}


@cache
def control(name: str) -> Part:
    """Return the control of a setting, which all figures that show it share."""
    of: Setting = getattr(Open, name)
    on = partial(set_control, of)
    if name == "text":
        return text_box(of, "picture.text", info="picture.text.info", on=on)
    if of.choices is not None:
        return choice(of, "picture.switch", on=on)
    return slider(of, LABELS.get(name, f"picture.{name}"), on=on)


def set_control(of: Setting, session: Session, value: object) -> None:
    """Set a control, and remember the goals that the figure has reached."""
    session.change(Open, replies=replies(Reads(session.snapshot())))
    of.set(session, value)


def figure_section(key: str, figure: Figure) -> Part:
    """Return a figure and its controls: a sentence, tokens, bars, a chart and a table, which are hidden if empty."""

    def shown(s: Any) -> Drawn:
        try:
            return s.cached(figure.draw)
        except ValueError:
            raise Pending from None  # the last drawing stays, and a notice explains why

    def problem(s: Any) -> ValueError | None:
        try:
            s.cached(figure.draw)
        except ValueError as found:
            return found
        return None

    controls = [control(name) for name in figure.begins]
    texts, sliders, choices = ([each for each in controls if each.kind == kind] for kind in CONTROL_KINDS)
    name = f"figure-{key}"
    return section(
        *texts,
        row(*sliders),
        *choices,
        says(f"{name}-notice", problem, kind="notice"),
        says(f"{name}-says", lambda s: shown(s).summary),
        tokens(f"{name}-strip", selectable=False, draw=lambda s: {"lines": shown(s).strip, "doc": key}),
        predictions(f"{name}-bars", selectable=False, draw=lambda s: shown(s).bars),
        picture(f"{name}-chart", lambda s: shown(s).chart),
        table(f"{name}-table", classes=("gb-sideways",), draw=lambda s: {"rows": shown(s).table}),
        classes="gb-panel gb-figure",
    )


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
    values = place.settings | {name: getattr(state, name) for name in place.follows}
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
    state = session.state(Open)
    place, settings = BY_KEY[state.lesson].place, FIGURES[state.lesson].begins if state.lesson in FIGURES else {}
    if place.model:
        loaded = yield from load_with_progress(session, place.model)  # meanwhile, another lesson may be opened
    if "text" in settings or place.model:
        text = state.text if "text" in settings else place.text or EXAMPLE
        ids, document = checked_ids(loaded, text), session.document
        if document is None or document.loaded is not loaded or document.ids != ids or document.held:
            with admitted(session, loaded) as waiting:
                yield from waiting
                adopt(session, Generation(loaded, ids), text, Message("status.lesson"))
    if place.head is not None:
        session.select(layer=place.head[0], head=place.head[1])
    if place.selects_head:
        session.select(layer=state.layer, head=state.head if "head" in settings else None)
