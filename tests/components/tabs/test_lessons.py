"""The Lessons tab without a browser: its course and code, what opens a lesson, its controls, and where it leads."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import math
import re
from functools import partial
from itertools import groupby
from pathlib import Path

import pytest

from components.i18n import t
from components.share.address import LinkedPage
from components.share.opening import open_link
from components.state.session import Session
from components.tabs.inside.handlers import open_film
from components.tabs.inside.views.film import BEATS
from components.tabs.lessons import code_view, handlers
from components.tabs.lessons.code_view import Code, excerpt
from components.tabs.lessons.components import LessonsState, is_lesson_open
from components.tabs.lessons.course import LESSONS
from components.tabs.lessons.pictures import PICTURES, picture, text_pictures
from components.tabs.lessons.questions import QUESTIONS, parse_number
from components.tabs.lessons.views import MINIMAL, facts, lesson_views
from gpt import Generation, get_model

IDEAS = {lesson.key: [Code(MINIMAL, name) for name in lesson.idea] for lesson in LESSONS}
CODES = [code for lesson in LESSONS for code in (*IDEAS[lesson.key], *lesson.code)]
INDEX = {lesson.key: index for index, lesson in enumerate(LESSONS)}
ROOT = Path(__file__).parents[3]
LANGUAGES = ("en", "zh")


@pytest.fixture
def loaded():
    return get_model()


@pytest.fixture
def session(loaded):
    document = Generation(loaded, "The dog ran")
    document.read()
    return Session(document)


def finish(steps):
    for _ in steps:
        pass


def opened(session, key):
    assert handlers.open_lesson(get_model(), session, INDEX[key])
    return drawn(session)


def drawn(session):
    """The views after everything that is wanted was computed."""
    analysis = handlers.analysis(get_model())
    finish(analysis.run(session))
    assert analysis.wanted(session.snapshot()) is None
    return shown(session)


def shown(session):
    snapshot = session.snapshot()
    return {view.name.removeprefix("lesson-"): view.draw(snapshot) for view in lesson_views(get_model())}


@pytest.mark.parametrize("code", CODES, ids=lambda code: f"{code.module}.{code.name}")
def test_each_excerpt_is_what_python_finds_under_that_name(code):
    found = importlib.import_module(code.module)
    for part in code.name.split("."):
        found = getattr(found, part)
    shown = excerpt(code)
    file = (ROOT / shown.file).read_text(encoding="utf-8")
    source = inspect.getsource(inspect.unwrap(found)) if callable(found) else file
    lines = [line.strip() for line in shown.text.split("\n") if line]
    assert lines
    assert set(lines) <= {line.strip() for line in source.split("\n")} | {"@contextmanager", "@dataclass(frozen=True)"}
    assert file.split("\n")[shown.line - 1].strip() == lines[0]
    assert '"""' not in shown.text


def test_an_idea_has_at_most_twelve_lines_that_fit_and_an_excerpt_stays_on_a_screen():
    for lesson in LESSONS:
        lines = [line for code in IDEAS[lesson.key] for line in excerpt(code).text.split("\n")]
        assert len(lines) <= 12, lesson.key
        assert max(map(len, lines)) <= 88, lesson.key
        assert sum(len(excerpt(code).lines) for code in lesson.code) <= 20, lesson.key


@pytest.mark.parametrize(
    "code", [Code("gpt.nothing", "GPT"), Code("gpt.model", "GPT.nothing"), Code("gpt.model", "GPT.loss", ("x =",))]
)
def test_what_is_not_there_is_not_shown(code):
    with pytest.raises(LookupError):
        excerpt(code)


def test_colours_change_no_letter():
    text = inspect.getsource(code_view)
    assert ["".join(piece for _, piece in line) for line in code_view.colour(text)] == text.split("\n")
    kinds = dict(code_view.colour("def f(x):  # why")[0])
    assert kinds == {"k": "def", "d": "f", "c": "# why", "": "(x):  "}
    assert code_view.colour("a = '''b\nc'''")[1] == (("s", "c'''"),)


def test_every_lesson_is_whole_in_both_languages(session):
    assert len(LESSONS) == len({lesson.key for lesson in LESSONS})
    assert QUESTIONS.keys() == {lesson.key for lesson in LESSONS}
    assert PICTURES.keys() <= QUESTIONS.keys()
    for lesson in LESSONS:
        assert lesson.key in PICTURES or lesson.panels
        handlers.open_lesson(get_model(), session, INDEX[lesson.key])
        for session.language in LANGUAGES:
            views = shown(session)
            assert views["head"]["index"] == views["body"]["index"] == INDEX[lesson.key]
            assert views["body"]["idea"][0]["lines"]
            assert views["body"]["code"][0]["lines"]
            entry, body = views["head"]["lessons"][INDEX[lesson.key]], views["body"]
            assert "{" not in "".join([*entry.values(), body["question"], *body["choices"], body["answer"]])


def test_a_number_may_be_typed_as_people_write_it():
    read = {text: parse_number(text) for text in ("12", " −1 ", "10,000", "0,5", "38.6 %", "1,234.5", "1e3")}
    assert [*read.values()] == [12, -1, 10_000, 0.5, 38.6, 1234.5, 1000]
    for wrong in ("", "ten", "nan", "inf", "1 2", "9" * 41, 12, None, [1]):
        assert parse_number(wrong) is None


@pytest.mark.parametrize(
    ("lesson", "right", "wrong"),
    [
        ("greedy", "12", "11"),
        ("tokenizer", "2", "1"),
        ("positions", 1, 2),
        ("layer_norm", "-1", "-0.71"),  # with the unbiased variance
        ("feed_forward", "768", "192"),
        ("shortcuts", "25", "6"),
        ("model", "3", "8"),
        ("loss", "2", "0.69"),
        ("untrained", "0.024", "2.4"),
        ("dropout", "2", "0.5"),
        ("initialisation", "0.20", "0.29"),
        ("parameters", "38.6", "124"),
        ("configuration", "24", "25"),
    ],
)
def test_an_answer_is_checked_and_a_wrong_one_gets_a_hint(session, loaded, lesson, right, wrong):
    assert opened(session, lesson)["body"]["verdict"] == ""
    handlers.answer(loaded, session, {"answer": wrong})
    body = shown(session)["body"]
    assert (body["verdict"], body["feedback"]) == (
        "wrong",
        f"Not yet. {t(f'lesson.{lesson}.hint', 'en', **facts(loaded.model.config))}",
    )
    handlers.answer(loaded, session, {"answer": right})
    assert shown(session)["body"]["verdict"] == "right"
    opened(session, "loss" if lesson == "greedy" else "greedy")
    assert opened(session, lesson)["body"]["verdict"] == ""


def test_whatever_a_browser_sends_as_an_answer_is_right_only_if_it_is(session, loaded):
    opened(session, "greedy")
    handlers.answer(loaded, session, {"answer": "many"})
    assert shown(session)["body"]["feedback"] == "Enter a number."
    opened(session, "block")
    for wrong in ("2", 0, 4, True, None, 2.0):
        handlers.answer(loaded, session, {"answer": wrong})
        assert session.state(LessonsState).verdict == ""
    opened(session, "sampling")
    handlers.answer(loaded, session, {"answer": "0"})
    assert session.state(LessonsState).verdict == ""


@pytest.mark.parametrize(
    ("lesson", "moves"), [("sampling", {"a": 0}), ("attention", {"a": 2, "b": 5}), ("activations", {"a": -0.75})]
)
def test_a_goal_is_reached_with_the_controls_and_stays_reached(session, loaded, lesson, moves):
    assert opened(session, lesson)["body"]["verdict"] == ""
    first = {name: getattr(session.state(LessonsState), name) for name in moves}
    for name, value in moves.items():
        handlers.move(loaded, name, session, value)
    assert drawn(session)["body"]["verdict"] == "right"
    for name, value in first.items():
        handlers.move(loaded, name, session, value)
    assert drawn(session)["body"]["verdict"] == "right"


@pytest.mark.parametrize(
    ("lesson", "english", "chinese"),
    [
        ("model", "decoder-only", "仅解码器（decoder-only）"),
        ("greedy", "autoregressive", "自回归（autoregressive）"),
        ("positions", "sinusoidal positions", "正弦位置编码"),
        ("block", "post-norm", "post-norm"),
    ],
)
def test_the_terms_of_the_curriculum_are_named_where_they_belong(lesson, english, chinese):
    for language, term in zip(LANGUAGES, (english, chinese), strict=True):
        said = t(f"lesson.{lesson}.says", language) + t(f"lesson.{lesson}.question", language)
        assert re.search(term, re.sub(r"{\w+}", "", said)), said


def test_the_facts_are_of_the_model(loaded):
    config = loaded.model.config
    assert facts(config)["uniform"] == f"{math.log(config.vocab_size):.2f}"


def test_the_course_begins_with_the_prediction_and_ends_with_the_details_and_has_every_topic():
    parts = [part for part, _ in groupby(lesson.part for lesson in LESSONS)]
    assert parts == ["prediction", "tokens", "sampling", "attention", "block", "model", "training", "details"]
    assert LESSONS[-1].key == "configuration"
    assert {lesson.topic for lesson in LESSONS} == {*range(1, 21)}


def test_before_a_lesson_is_open_the_widget_is_left_to_ask_for_one(session, loaded):
    views = shown(session)
    assert views["head"]["index"] is None
    assert views["body"] == {"index": None}
    for wrong in (-1, len(LESSONS), "3", None, True, 1.0):
        handlers.choose_lesson(loaded, session, {"lesson": wrong})
        assert session.state(LessonsState).lesson == ""
    handlers.choose_lesson(loaded, session, {"lesson": INDEX["tokenizer"]})
    assert is_lesson_open("tokenizer", session.snapshot())
    handlers.choose_lesson(loaded, session, {"lesson": INDEX["shortcuts"]})
    assert handlers.wanted(session.snapshot()) is None, "a lesson of panels has no picture of its own"


def test_a_lesson_opens_with_its_controls_as_they_begin_and_asking_for_it_again_leaves_them(session, loaded):
    assert "Layer 0, head 0: “·little”" in opened(session, "attention")["chart"]["text"]
    handlers.move(loaded, "a", session, 3)
    handlers.type_text(session, "The dog ran to the")
    assert "Layer 3, head 0: “·the”" in opened(session, "attention")["chart"]["text"]
    opened(session, "loss")
    assert session.state(LessonsState).a == 0
    assert "Layer 0, head 0: “·little”" in opened(session, "attention")["chart"]["text"]


def test_whatever_a_browser_sends_a_control_keeps_a_value_that_it_can_have(session, loaded):
    opened(session, "attention")
    last = loaded.model.config.n_layer - 1
    for sent, kept in ((10**9, last), (-1, 0), ("2", 0), (None, 0), (True, 0), (math.nan, 0)):
        handlers.move(loaded, "a", session, sent)
        assert session.state(LessonsState).a == kept
    for sent in (None, 7, ["a"]):
        handlers.type_text(session, sent)
        handlers.choose(session, sent)
    assert (session.state(LessonsState).text, session.state(LessonsState).choice) == (picture.EXAMPLE, "")
    handlers.type_text(session, "x" * 10**5)
    assert "too long" in drawn(session)["notice"]["text"]
    opened(session, "next")
    handlers.move(loaded, "b", session, 3)
    handlers.choose(session, "gpt2-xl")
    handlers.choose(session, "gpt3")
    assert (session.state(LessonsState).b, session.state(LessonsState).choice) == (0, "gpt2-xl")


def test_what_cannot_be_drawn_is_said_in_the_language_of_the_page_and_the_picture_stays(session, loaded):
    before = opened(session, "configuration")
    handlers.move(loaded, "b", session, 10)
    views = drawn(session)
    assert "768" in views["notice"]["text"]
    assert (views["chart"], views["says"]) == (before["chart"], before["says"])
    session.language = "zh"
    assert "宽度 768" in drawn(session)["notice"]["text"]
    handlers.move(loaded, "b", session, 8)
    views = drawn(session)
    assert views["notice"]["text"] == ""
    assert views["says"] != before["says"]


def test_the_picture_of_another_lesson_is_never_shown(session, loaded):
    opened(session, "greedy")
    handlers.open_lesson(loaded, session, INDEX["loss"])
    views = shown(session)
    assert views["chart"]["figure"] is None
    assert (views["says"]["text"], views["strip"]["lines"]) == ("", [])


def test_while_the_tiny_model_learns_the_page_says_so(session, loaded):
    text_pictures._run.cache_clear()
    handlers.open_lesson(loaded, session, INDEX["training"])
    assert "is being trained" in shown(session)["says"]["text"]
    assert drawn(session)["says"]["text"].startswith("After 0 updates it writes:")
    opened(session, "greedy")
    handlers.open_lesson(loaded, session, INDEX["training"])
    assert shown(session)["says"]["text"] == "", "it is learned once"


def test_a_picture_that_writes_waits_for_a_place_and_gives_it_back(session, loaded):
    admission = loaded.engine.admission
    handlers.open_lesson(loaded, session, INDEX["greedy"])
    with contextlib.ExitStack() as others:
        for _ in range(admission.limit):
            others.enter_context(admission.enter())
        steps = handlers.draw_picture(loaded, session)
        next(steps)
        assert session.state(LessonsState).drawn is None
    finish(steps)
    assert len(shown(session)["strip"]["lines"]) > 12
    assert admission.n_admitted == 0


class OtherTabs:
    """What was asked of other tabs."""

    def __init__(self):
        self.shapes, self.scored, self.beats = [], [], []

    def set_shape(self, session, config, skeleton=False):
        self.shapes.append((config, skeleton))

    def score_text(self, session, *, text):
        self.scored.append(text)
        yield

    def open_film(self, session, beat):
        self.beats.append(beat)


def test_the_button_leads_to_the_place_with_the_text_settings_layer_and_shape_of_the_lesson(session, loaded):
    tabs, own = OtherTabs(), session.document

    def go():
        finish(handlers.open_place(loaded, tabs, session))

    go()
    assert session.tab == "playground", "no lesson is open"
    opened(session, "attention")
    handlers.move(loaded, "a", session, 3)
    handlers.move(loaded, "b", session, 2)
    handlers.type_text(session, "The dog ran to the")
    go()
    assert (session.tab, session.selection.layer, session.selection.head) == ("inside", 3, 2)
    assert session.document.ids == loaded.tokenizer.encode("The dog ran to the")
    assert session.document.n_read == len(session.document.ids)
    assert session.undo_stack[-1].file == own.to_json()
    carried = session.document
    go()
    assert session.document is carried, "it is the text already"
    handlers.type_text(session, "")
    with pytest.raises(ValueError, match=r"\w"):
        go()
    opened(session, "feed_forward")
    go()
    assert (session.selection.layer, session.selection.head) == (0, 2), "it has no head to say"
    opened(session, "sampling")
    handlers.move(loaded, "a", session, 0.5)
    handlers.move(loaded, "b", session, 7)
    go()
    assert (session.tab, session.settings.temperature, session.settings.top_k) == ("playground", 0.5, 7)
    assert tabs.shapes == tabs.scored == []
    opened(session, "loss")
    go()
    assert (session.tab, tabs.scored) == ("loss", [PICTURES["loss"].text])
    for key in ("parameters", "skeleton"):
        opened(session, key)
        go()
        place = LESSONS[INDEX[key]].place
        assert (session.tab, tabs.shapes.pop()) == ("shapes", (place.shape, key == "skeleton"))


def test_the_film_of_a_lesson_shows_its_text(session, loaded):
    tabs = OtherTabs()
    for key in ("skeleton", "attention"):
        opened(session, key)
        finish(handlers.open_film(loaded, tabs, session))
    assert tabs.beats == ["scores"]
    assert session.document.ids == loaded.tokenizer.encode(picture.EXAMPLE)


def test_every_beat_of_a_lesson_is_one_of_the_film(session):
    for lesson in LESSONS:
        if lesson.beat:
            open_film(session, lesson.beat)
            assert BEATS[session.film - 1].name == lesson.beat


def test_a_link_opens_a_lesson_and_leaves_the_text(session, loaded):
    text = session.document
    page = LinkedPage("lessons", partial(handlers.open_lesson_number, loaded), handlers.lesson_number)
    finish(open_link(session, "lesson=7", ["lessons"], {"lesson": page}))
    assert (session.tab, session.state(LessonsState).lesson) == ("lessons", LESSONS[6].key)
    assert session.document is text
    for wrong in ("0", "x"):
        finish(open_link(session, f"lesson={wrong}", ["lessons"], {"lesson": page}))
        assert "lesson" in session.notice.values["note"]
    assert session.state(LessonsState).lesson == LESSONS[6].key
