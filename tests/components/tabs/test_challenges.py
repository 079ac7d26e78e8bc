"""Every challenge is solvable on the bundled model, not solved at the start, and safe against invalid browser input."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

import pytest

from components.i18n import LANGUAGES, has_text, t
from components.labels import percent
from components.share.address import LinkedPage
from components.share.opening import open_link
from components.state.session import Session
from components.tabs.challenges import handlers
from components.tabs.challenges.goals.circuit import Circuit
from components.tabs.challenges.state import ChallengesState, latest
from components.tabs.challenges.table import BY_KEY, CHALLENGES, STRANGE
from components.tabs.challenges.views import VIEWS, shows
from gpt import Generation, get_model
from tests.components.drawing import in_its_language
from tests.gpt.fake_models import tiny_model

BACK, FIND = (4, 1), (6, 0)  # the previous-token head and the induction head
EVERY = [(layer, head) for layer in range(8) for head in range(6)]
NEEDED = [(2, 0), (7, 2), (7, 5), (4, 1), (1, 1), (1, 0), (4, 3), (5, 1)]
SPARE = [each for each in EVERY if each not in NEEDED]  # 40 of the 48 heads


def token(index):
    return handlers.pick_token, {"index": index}


def head(layer, head):
    return handlers.pick_head, {"layer": layer, "head": head}


def switch(row, column, on=False):
    return handlers.toggle, {"row": row, "column": column, "on": on}


def concept(layer, number, strength):
    return handlers.turn_concept, {"place": [layer, number], "strength": strength}


def feature(layer, number):
    return handlers.pick_feature, {"place": [layer, number]}


EDITED = count(1)  # milliseconds of the browser's clock


def text(written):
    def write(session, sent):
        challenge = session.state(ChallengesState).challenge
        handlers.type_text(session, {"text": sent, "edited": next(EDITED), "document": challenge})

    return write, written


SOLUTIONS = {
    "copied": [token(4)],
    "back": [head(*BACK)],
    "find": [head(*FIND)],
    "hops": [token(4)],
    "off": [switch(*BACK), switch(*BACK, on=True), switch(*FIND)],
    "put_back": [token(4), switch(0, 4)],
    "sure": [text("They lived happily ever")],
    "torn": [text("One day, a little")],
    "rare": [text("The red volcano. The red")],
    "story": [text(STRANGE.replace("Griselda", "Lily").replace("thermometer", "toys").replace("volcano", "park"))],
    "matters": [token(3)],
    "first": [head(1, 5)],
    "lens": [switch(0, 6)],
    "dragon": [switch(1, 3), switch(5, 1)],
    "spare": [switch(*each) for each in SPARE],
    "rain": [concept(2, 905, 4), concept(2, 905, 2)],
    "speak": [token(12), feature(3, 246)],
    "twin": [token(16), switch(0, 1)],
}
WRONG = {
    "copied": [token(1)],
    "back": [head(*FIND)],
    "find": [head(*BACK)],
    "hops": [token(9)],
    "off": [switch(*BACK), switch(*FIND)],
    "put_back": [token(3), switch(0, 4)],
    "sure": [text("Once upon a")],
    "torn": [text("There was a")],
    "rare": [text("volcano")],
    "story": [text("Once upon a time, there was a little girl named Lily.")],
    "matters": [token(6)],
    "first": [head(*FIND)],
    "lens": [switch(0, 7)],
    "dragon": [switch(1, 3)],
    "spare": [switch(*each) for each in SPARE[:-1]],
    "rain": [concept(2, 905, 1)],
    "speak": [feature(5, 1553)],  # the concept "dog"
    "twin": [token(3), switch(0, 1)],
}


def session_of(loaded):
    return Session(Generation(loaded, "The dog ran"))


@pytest.fixture
def session():
    return session_of(get_model())


def analysed(session):
    for _ in handlers.ANALYSIS.run(session):
        pass
    assert handlers.ANALYSIS.wanted(session.snapshot()) is None
    return latest(session.state(ChallengesState))


def after(session, key, actions):
    """Return the result of a challenge after some actions, each judged before the next."""
    assert handlers.open_challenge(session, key)
    result = analysed(session)
    for handler, sent in actions:
        handler(session, sent)
        result = analysed(session)
    return result


@in_its_language
def drawn(session):
    snapshot = session.snapshot()
    return {view.name: view.draw(snapshot) for view in VIEWS}


@pytest.mark.thorough
@pytest.mark.parametrize("key", BY_KEY)
def test_each_challenge_is_solved_by_its_solution_and_by_nothing_less(session, key):
    assert not after(session, key, []).verdict.done
    assert not drawn(session)["challenge-foot"]["solved"]
    assert not after(session, key, WRONG[key]).verdict.done
    assert after(session, key, SOLUTIONS[key]).verdict.done
    views = drawn(session)
    assert views["challenge-foot"]["solved"]
    assert bool(views["challenge-bars"]["bars"]) == shows("bars", session.snapshot())
    has_own_text = any(shows(piece, session.snapshot()) for piece in ("typing", "features"))
    assert bool(views["challenge-text"]["tokens"]) != has_own_text


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
def test_a_text_that_reaches_a_goal_by_deleting_or_repeating_is_told_so(session, key, written, reason):
    verdict = after(session, key, [text(written)]).verdict
    assert (verdict.key, verdict.done) == (reason, False)


def test_attempts_are_counted_until_the_goal_is_reached(session):
    def attempts():
        return session.state(ChallengesState).attempts

    after(session, "matters", [token(6), token(6), token(5)])
    assert attempts() == 2, "the same answer again is no attempt"
    assert drawn(session)["challenge-foot"]["attempts"] == "Attempts: 2"
    handlers.pick_token(session, {"index": 3})
    assert analysed(session).verdict.done
    assert attempts() == 3
    handlers.pick_token(session, {"index": 4})
    assert attempts() == 3
    handlers.choose(session, {"again": True})
    analysed(session)
    assert attempts() == 0
    after(session, "sure", [])
    for written in ("T", "Th", "The"):
        handler, sent = text(written)
        handler(session, sent)
    assert attempts() == 1, "what is typed before it is judged is one attempt"


def test_the_record_of_heads_is_the_number_of_those_that_are_off(session):
    assert after(session, "spare", SOLUTIONS["spare"]).verdict.score == 40
    assert drawn(session)["challenge-foot"]["score"] == 40
    handlers.toggle(session, {"row": 5, "column": 1, "on": False})
    assert analysed(session).verdict.score == 41
    assert after(session, "spare", WRONG["spare"]).verdict.score is None


def test_each_challenge_has_its_words_and_twelve_follow_the_hunt():
    for challenge in CHALLENGES:
        for part in ("title", "goal", "hint", "learned"):
            assert has_text(f"challenge.{challenge.key}.{part}")
    assert [challenge.group for challenge in CHALLENGES] == ["hunt"] * 6 + ["goals"] * 12


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_verdict_says_the_model_s_own_numbers(session, language):
    session.language = language
    result = after(session, "off", SOLUTIONS["off"])
    copied = result.reading.ids[result.reading.circuit.source]
    said = drawn(session)["challenge-foot"]["verdict"]
    assert percent(result.reading.before[copied].item()) in said
    assert percent(result.after[copied].item()) in said  # the induction head is off
    assert drawn(session)["challenge-toggles"]["marked"] == [BACK, FIND]


def test_another_model_is_judged_by_its_own_numbers_and_a_note_says_so():
    session = session_of(tiny_model(block_size=128))
    for key in BY_KEY:
        after(session, key, [])
        views = drawn(session)
        assert views["challenge-foot"]["verdict"]
        assert views["challenge-note"]["text"]
        assert ("does not copy" in views["challenge-foot"]["verdict"]) == isinstance(BY_KEY[key].goal, Circuit)
    assert not after(session, "sure", SOLUTIONS["sure"]).verdict.done


def test_input_that_no_challenge_has_changes_nothing(session):
    for wrong in ({}, {"challenge": "none"}, {"challenge": 3}, {"again": True}):
        handlers.choose(session, wrong)
    assert session.state(ChallengesState).challenge == ""
    after(session, "dragon", [])
    before = session.state(ChallengesState)
    for handler, sent in (token(1), head(0, 0), text("x"), switch(99, 0), switch("0", 0), switch(None, None)):
        handler(session, sent)
    handlers.append_token(session, {"token": 1})
    after(session, "copied", [])
    for index in (-1, 99, "1", None, True):
        handlers.pick_token(session, {"index": index})
    assert session.state(ChallengesState).answer.token is None
    assert before.answer == replace(before.answer, text=BY_KEY["dragon"].text)


def test_an_empty_or_long_text_gets_a_sentence_and_a_bar_writes_its_token(session):
    after(session, "sure", [])
    handlers.append_token(session, drawn(session)["challenge-bars"]["bars"][0][4])
    assert session.state(ChallengesState).answer.text == BY_KEY["sure"].text + " little"
    handlers.append_token(session, {"token": 1})  # a bar for the text before
    assert session.state(ChallengesState).answer.text == BY_KEY["sure"].text + " little"
    for written, said in (("", t("challenges.empty")), (" dog" * 97, t("challenges.long", n=97, limit=96))):
        handler, sent = text(written)
        handler(session, sent)
        analysed(session)
        foot = drawn(session)["challenge-foot"]
        assert (foot["verdict"], foot["solved"]) == (said, False)
    for late in ({"edited": 0, "document": "sure"}, {"edited": next(EDITED), "document": "torn"}, {"document": "sure"}):
        handlers.type_text(session, {"text": "late", **late})
    assert session.state(ChallengesState).answer.text == " dog" * 97


def test_a_link_opens_a_challenge(session):
    pages = {"challenge": LinkedPage("challenges", handlers.open_challenge, handlers.challenge_key)}
    for query, refused in (("challenge=dragon", False), ("challenge=none", True)):
        for _ in open_link(session, query, ["challenges"], pages):
            pass
        assert (session.tab, pages["challenge"].current(session.snapshot())) == ("challenges", "dragon")
        assert (session.notice is not None) == refused
