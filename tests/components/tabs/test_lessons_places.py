"""Where a lesson leads: the place of its button, the film, and links."""

from __future__ import annotations

from functools import partial

import pytest

from components.share.address import LinkedPage
from components.share.opening import open_link
from components.tabs.inside.film import NAMES, open_film
from components.tabs.lessons.course import LESSONS
from components.tabs.lessons.figure import EXAMPLE, Open
from components.tabs.lessons.pictures import PICTURES
from components.tabs.lessons.places import OtherTabs, open_place
from components.tabs.lessons.places import open_film as open_lesson_film
from components.tabs.lessons.tab import lesson_key, move, open_lesson, type_text
from gpt import get_model
from gpt.models.sources import LLAMA_MODEL
from tests.components.tabs.lesson_session import INDEX, finish, new_page


@pytest.fixture
def loaded():
    return get_model()


@pytest.fixture
def session():
    session = new_page().session
    session.tab = "playground"
    return session


def other_tabs(calls, open_film=None):
    """Return actions in other tabs that are recorded in `calls`."""

    def score_text(session, *, text):
        calls.append(text)
        yield

    def set_shape(session, config, skeleton=False):
        calls.append((config, skeleton))

    return OtherTabs(set_shape, score_text, open_film or (lambda session, beat: calls.append(beat)))


def test_the_button_leads_to_the_place_with_the_text_settings_layer_and_shape_of_the_lesson(session, loaded):
    calls, own = [], session.document

    def go():
        finish(open_place(loaded, other_tabs(calls), session))

    go()
    assert session.tab == "playground", "no lesson is open"
    open_lesson(loaded, session, "attention")
    move("a", session, 3)
    move("b", session, 2)
    type_text(session, "The dog ran to the")
    go()
    assert (session.tab, session.selection.layer, session.selection.head) == ("inside", 3, 2)
    assert session.document.ids == loaded.tokenizer.encode("The dog ran to the")
    assert session.document.n_read == len(session.document.ids)
    assert session.undo_stack[-1].file == own.to_json()
    carried = session.document
    go()
    assert session.document is carried, "it is the text already"
    type_text(session, "")
    with pytest.raises(ValueError, match=r"\w"):
        go()
    open_lesson(loaded, session, "feed_forward")
    go()
    assert (session.selection.layer, session.selection.head) == (0, 2), "it has no head to say"
    open_lesson(loaded, session, "sampling")
    move("a", session, 0.5)
    move("b", session, 7)
    go()
    assert (session.tab, session.settings.temperature, session.settings.top_k) == ("playground", 0.5, 7)
    assert calls == []
    open_lesson(loaded, session, "loss")
    go()
    assert (session.tab, calls.pop()) == ("loss", PICTURES["loss"].text)
    for key in ("parameters", "skeleton"):
        open_lesson(loaded, session, key)
        go()
        place = LESSONS[INDEX[key]].place
        assert (session.tab, calls.pop()) == ("shapes", (place.shape, key == "skeleton"))


def test_the_film_of_a_lesson_shows_its_text(session, loaded):
    calls = []
    for key in ("skeleton", "attention"):
        open_lesson(loaded, session, key)
        finish(open_lesson_film(loaded, other_tabs(calls), session))
    assert calls == ["answer"]
    assert session.document.ids == loaded.tokenizer.encode(EXAMPLE)


@pytest.mark.parametrize(
    "lesson", [lesson for lesson in LESSONS if lesson.part == "llama"], ids=lambda lesson: lesson.key
)
def test_film_and_place_of_a_lesson_on_llama_show_its_model(session, loaded, lesson):
    open_lesson(loaded, session, lesson.key)
    finish(open_place(loaded, other_tabs([]), session))
    assert session.document.loaded.name == session.model == session.loaded.name == LLAMA_MODEL
    assert session.document.loaded.model.config.gated
    finish(open_lesson_film(loaded, other_tabs([], open_film), session))
    assert (session.tab, session.document.loaded.name) == ("inside", LLAMA_MODEL)
    assert session.film == lesson.beat
    if lesson.key == "rotary":
        open_lesson(loaded, session, "attention")
        finish(open_place(loaded, other_tabs([]), session))
        assert session.document.loaded is loaded, "and an earlier lesson its own again"


def test_every_beat_of_a_lesson_is_one_of_the_film(session):
    for lesson in LESSONS:
        if lesson.beat:
            assert lesson.beat in NAMES
            open_film(session, lesson.beat)
            assert session.film == lesson.beat


def test_a_link_opens_a_lesson_by_its_name_and_leaves_the_text(session, loaded):
    text = session.document
    page = LinkedPage("lessons", partial(open_lesson, loaded), lesson_key)
    finish(open_link(session, "lesson=layer_norm", ["lessons"], {"lesson": page}))
    assert (session.tab, page.current(session.snapshot())) == ("lessons", "layer_norm")
    assert session.document is text
    for wrong in ("0", "x", "X!"):
        finish(open_link(session, f"lesson={wrong}", ["lessons"], {"lesson": page}))
        assert "lesson" in session.notice.values["note"]
    assert session.state(Open).lesson == "layer_norm"
