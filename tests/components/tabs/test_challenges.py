"""Every challenge is solvable on the bundled model, not solved at the start, and safe against invalid browser input."""

from __future__ import annotations

from itertools import count

import pytest

from components.concepts import position_of
from components.i18n import LANGUAGES, t
from components.labels import percent
from components.state.session import Session
from components.tabs.challenges import tab as challenges
from components.tabs.challenges.goals import BY_KEY, STRANGE
from components.tabs.challenges.tab import Play, latest
from gpt import Generation, get_model
from tests.components.drawing import Drawn
from tests.gpt.fake_models import tiny_model

BACK, FIND = (4, 1), (6, 0)  # the previous-token head and the induction head
EVERY = [(layer, head) for layer in range(8) for head in range(6)]
NEEDED = [(2, 0), (7, 2), (7, 5), (4, 1), (1, 1), (1, 0), (4, 3), (5, 1)]
SPARE = [each for each in EVERY if each not in NEEDED]  # 40 of the 48 heads


def token(index):
    return challenges.pick_token, {"index": index}


def head(layer, head):
    return challenges.pick_head, {"layer": layer, "head": head}


def switch(layer, head, on=False):
    return challenges.switch_head, {"layer": layer, "head": head, "on": on}


def layer(number):
    return challenges.pick_layer, number


def concept(layer, number, strength):
    return challenges.turn_concept, {"on": [[layer, number, position_of(strength)]]}


def feature(layer, number):
    return challenges.pick_feature, {"place": [layer, number]}


EDITED = count(1)  # milliseconds of the browser's clock


def text(written):
    def write(session, sent):
        challenge = session.state(Play).challenge
        challenges.type_text(session, {"text": sent, "edited": next(EDITED), "document": challenge})

    return write, written


SOLUTIONS = {
    "copied": [token(4)],
    "back": [head(*BACK)],
    "find": [head(*FIND)],
    "hops": [token(4)],
    "off": [switch(*BACK), switch(*BACK, on=True), switch(*FIND)],
    "put_back": [token(4), layer(4)],
    "sure": [text("They lived happily ever")],
    "torn": [text("One day, a little")],
    "rare": [text("The red volcano. The red")],
    "story": [text(STRANGE.replace("Griselda", "Lily").replace("thermometer", "toys").replace("volcano", "park"))],
    "matters": [token(3)],
    "first": [head(1, 5)],
    "lens": [layer(6)],
    "dragon": [switch(1, 3), switch(5, 1)],
    "spare": [switch(*each) for each in SPARE],
    "rain": [concept(2, 905, 4), concept(2, 905, 2)],
    "speak": [token(12), feature(3, 246)],
    "twin": [token(16), layer(6)],
}
WRONG = {
    "copied": [token(1)],
    "back": [head(*FIND)],
    "find": [head(*BACK)],
    "hops": [token(9)],
    "off": [switch(*BACK), switch(*FIND)],
    "put_back": [token(3), layer(4)],
    "sure": [text("Once upon a")],
    "torn": [text("There was a")],
    "rare": [text("volcano")],
    "story": [text("Once upon a time, there was a little girl named Lily.")],
    "matters": [token(6)],
    "first": [head(*FIND)],
    "lens": [layer(7)],
    "dragon": [switch(1, 3)],
    "spare": [switch(*each) for each in SPARE[:-1]],
    "rain": [concept(2, 905, 1)],
    "speak": [feature(5, 1553)],  # the concept "dog"
    "twin": [token(3), layer(6)],
}


def drawn_of(loaded):
    return Drawn(Session(Generation(loaded, "The dog ran")), challenges.tab)


@pytest.fixture
def drawn():
    return drawn_of(get_model())


@pytest.fixture
def session(drawn):
    return drawn.session


def judged(drawn):
    drawn.update()
    return latest(drawn.session.snapshot())


def after(drawn, key, actions):
    """Return the result of a challenge after some actions, each judged before the next."""
    assert challenges.open_challenge(drawn.session, key)
    result = judged(drawn)
    for handler, sent in actions:
        handler(drawn.session, sent)
        result = judged(drawn)
    return result


@pytest.mark.thorough
@pytest.mark.parametrize("key", BY_KEY)
def test_each_challenge_is_solved_by_its_solution_and_by_nothing_less(drawn, key):
    assert not after(drawn, key, []).verdict.done
    assert not drawn.views["challenge-foot"]["solved"]
    assert not drawn.views["challenge-foot"]["tried"]
    assert not after(drawn, key, WRONG[key]).verdict.done
    assert after(drawn, key, SOLUTIONS[key]).verdict.done
    assert drawn.views["challenge-foot"]["solved"]
    assert {"challenge-features:select", "challenge-features:input"} <= drawn.actions.keys()  # features, words
    assert ("challenge-bars" in drawn.views) == BY_KEY[key].bars
    shown = {view.name for view in drawn.renderer.shown(drawn.session.snapshot())}  # the browser keeps what was drawn
    expected = BY_KEY[key].tool not in ("text", "feature"), BY_KEY[key].tool == "switches"
    assert ("challenge-text" in shown, "challenge-switches-heads" in shown) == expected


@pytest.mark.parametrize(
    ("key", "written", "reason"),
    [
        ("sure", "Once upon a", "own.deleted"),
        ("sure", "Once upon", "own.deleted"),
        ("sure", "volcano volcano volcano volcano volcano volcano", "own.repeated"),
        ("sure", "He looked at the thermomet", "own.piece"),
        ("rare", "volcano volcano volcano volcano volcano volcano", "own.repeated"),
    ],
)
def test_a_text_that_reaches_a_goal_by_deleting_or_repeating_is_told_so(drawn, key, written, reason):
    verdict = after(drawn, key, [text(written)]).verdict
    assert (verdict.key, verdict.done) == (reason, False)


def test_attempts_are_counted_until_the_goal_is_reached(drawn, session):
    def attempts():
        return session.state(Play).attempts

    after(drawn, "matters", [token(6), token(6), token(5)])
    assert attempts() == 2, "the same answer again is no attempt"
    assert drawn.views["challenge-foot"]["attempts"] == "Attempts: 2"
    assert drawn.views["challenge-foot"]["tried"]
    challenges.pick_token(session, {"index": 3})
    assert judged(drawn).verdict.done
    assert attempts() == 3
    challenges.pick_token(session, {"index": 4})
    assert attempts() == 3
    challenges.choose(session, {"again": True})
    judged(drawn)
    assert attempts() == 0
    after(drawn, "sure", [])
    for written in ("T", "Th", "The"):
        handler, sent = text(written)
        handler(session, sent)
    assert attempts() == 1, "what is typed before it is judged is one attempt"


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_verdict_says_the_model_s_own_numbers(drawn, session, language):
    session.language = language
    result = after(drawn, "off", SOLUTIONS["off"])
    copied = result.reading.ids[result.reading.circuit.source]
    said = drawn.views["challenge-foot"]["verdict"]
    assert percent(result.reading.before[copied].item()) in said
    assert percent(result.after[copied].item()) in said  # the induction head is off
    assert drawn.views["challenge-switches-heads"]["marked"] == [[*BACK], [*FIND]]


def test_the_bundled_model_judges_whatever_model_is_chosen_and_a_note_says_so():
    drawn = drawn_of(tiny_model(block_size=128))
    assert after(drawn, "sure", SOLUTIONS["sure"]).verdict.done
    assert "Stories" in drawn.views["challenge-note"]["text"]


def test_an_empty_or_long_text_gets_a_sentence_and_a_bar_writes_its_token(drawn, session):
    after(drawn, "sure", [])
    challenges.append_token(session, drawn.views["challenge-bars"]["bars"][0][4])
    assert session.state(Play).answer.text == BY_KEY["sure"].text + " little"
    challenges.append_token(session, {"token": 1})  # a bar for the text before
    assert session.state(Play).answer.text == BY_KEY["sure"].text + " little"
    for written, said in (("", t("challenges.empty")), (" dog" * 97, t("challenges.long", n=97, limit=96))):
        handler, sent = text(written)
        handler(session, sent)
        judged(drawn)
        foot = drawn.views["challenge-foot"]
        assert (foot["verdict"], foot["solved"]) == (said, False)
    for late in ({"edited": 0, "document": "sure"}, {"edited": next(EDITED), "document": "torn"}, {"document": "sure"}):
        challenges.type_text(session, {"text": "late", **late})
    assert session.state(Play).answer.text == " dog" * 97


def test_a_typed_text_and_its_time_change_together(drawn, session, monkeypatch):
    after(drawn, "sure", [])
    monkeypatch.setattr(session, "change", lambda _, **changes: frames.append(changes.keys() & {"answer", "edited"}))
    frames = []
    challenges.type_text(session, {"text": "They", "edited": next(EDITED), "document": "sure"})
    assert frames == [{"answer", "edited"}], "a frame between the two would put the older text back into the box"
