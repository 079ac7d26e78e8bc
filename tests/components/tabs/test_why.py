"""Causes for one visitor: every panel belongs to the selected position and the explained token."""

from __future__ import annotations

import copy
import re
from dataclasses import replace

import pytest

from components.i18n import speaking
from components.labels import percent, quoted
from components.state.session import Session
from components.tabs.why import analysis, handlers, predictions
from components.tabs.why.state import WhyState
from components.tabs.why.views import VIEWS, tokens
from gpt import Generation
from gpt.analysis.lens import LENS_POINTS, lens_top_tokens
from tests.components.tabs.why_session import TEXT, read_text


@pytest.fixture(scope="module")
def document():
    return read_text()


@pytest.fixture
def session(document):
    """A session with the tab open at the last token."""
    opened = Session(document.copy(), TEXT)
    opened.tab = "why"
    return opened


def answered(session):
    for _ in analysis.analyse(session):
        pass
    assert analysis.wanted(session.snapshot()) is None
    snapshot = session.snapshot()
    return {view.name: view.draw(snapshot) for view in VIEWS}


def test_every_panel_is_about_the_selected_position(session):
    drawn = answered(session)
    here = session.document.tokenizer.decode(session.document.ids[-1:]).strip()
    assert f"After “{here}”" in drawn["why-lead"]["text"]
    assert re.search(
        r"^“.+”.* is the main reason: if you hide it, “.+” drops from \d+% to .*\. Among the heads, layer \d, head \d",
        drawn["why-because"]["text"],
    )
    session.select(position=4)
    assert analysis.wanted(session.snapshot()) is not None
    drawn = answered(session)
    assert "After “.”" in drawn["why-lead"]["text"]
    with speaking("en", exact=True):
        assert "position 4," in answered(session)["why-lead"]["text"]
    assert drawn["why-strip"]["selected"] == 4
    assert all(
        drawn[f"why-{name}"]["figure"] for name in ("influence", "lens", "cell", "path", "parts", "heads", "head")
    )


def test_until_the_causes_are_measured_the_probability_is_said_and_room_is_kept(session):
    snapshot = session.snapshot()
    drawn = {view.name: view.draw(snapshot) for view in VIEWS}
    known = predictions.predict(snapshot.text, snapshot.position)
    p = known.probabilities(snapshot.settings.sampling())[known.token].item()
    assert percent(p) in drawn["why-because"]["text"]
    assert "the app hides each word" in drawn["why-because"]["text"]
    assert drawn["why-flow"]["is_pending"]
    assert "is_pending" not in answered(session)["why-flow"]


def test_the_sentence_the_ribbons_and_the_evidence_name_the_same_word_and_numbers(session):
    drawn = answered(session)
    word, before, after = re.match(
        r"“(.+)”.* is the main reason: if you hide it, .*? drops from (\d+%) to (.+?)\.", drawn["why-because"]["text"]
    ).groups()
    flow = drawn["why-flow"]
    _, name, without = min(flow["tokens"], key=lambda token: token[2])
    assert (name, percent(flow["before"]), percent(without)) == (word, before, after)
    texts = [text for trace in drawn["why-influence"]["figure"]["data"] for text in trace.get("text", ())]
    assert after in [text.strip("\u00a0") for text in texts]
    _, _, top = max(flow["heads"], key=lambda head: -head[2])
    assert f"to {percent(top)}." in drawn["why-because"]["text"]


def switched(session, **sent):
    for _ in handlers.switch(session, sent):
        pass
    return next(view for view in VIEWS if view.name == "why-flow").draw(session.snapshot())


def test_what_is_switched_off_in_the_flow_is_measured_at_once(session):
    drawn = answered(session)
    flow = drawn["why-flow"]
    assert flow["heads"] == sorted(flow["heads"], key=lambda head: head[2])
    assert all(sum(row) <= 1.001 for row in flow["weights"])
    layer, head, without = flow["heads"][0]
    drawn = switched(session, part="heads", place=[layer, head])
    assert drawn["after"] == pytest.approx(without, abs=1e-3)  # same as the answer
    assert re.search(rf"^Without layer {layer}, head {head}, “.*” goes from .* to ", drawn["says"])
    position = flow["tokens"][0][0]
    drawn = switched(session, part="reads", place=[layer, head, position])
    assert drawn["off"] == {"tokens": [], "heads": [[layer, head]], "reads": [[layer, head, position]]}
    drawn = switched(session, part="tokens", place=[position])
    assert drawn["off"]["tokens"] == [[position]]
    drawn = switched(session, all=True)
    assert (drawn["after"], drawn["off"]) == (None, {"tokens": [], "heads": [], "reads": []})


def test_only_what_the_flow_shows_can_be_switched(session):
    answered(session)
    before = session.state(WhyState).shown
    places = {"heads": (None, [99, 0]), "n_bytes": ([1],), "tokens": (["1"], [10**9])}
    sent = [{"part": part, "place": place} for part, tried in places.items() for place in tried]
    for each in ({}, {"part": "heads"}, {"part": ["heads"], "place": [0, 0]}, *sent):
        assert [*handlers.switch(session, each)] == [], each
    assert session.state(WhyState).shown is before


def test_the_only_token_of_a_text_cannot_be_left_out(session):
    session.select(position=0)
    flow = answered(session)["why-flow"]
    assert [*handlers.switch(session, {"part": "tokens", "place": [0]})] == []
    assert all(place == 0 for place, _ in flow.get("tokens", []))


def test_a_question_is_forgotten_at_another_position(session):
    answered(session)
    handlers.choose_token(session, 7)
    answered(session)
    assert session.state(WhyState).shown.prediction.token == 7
    handlers.choose_against(session, 9)
    answered(session)
    assert (session.state(WhyState).shown.prediction.token, session.state(WhyState).shown.against) == (7, 9)
    handlers.choose_position(session, {"index": 4})
    answered(session)
    assert session.state(WhyState).shown.prediction.token == session.document.ids[5]
    assert session.state(WhyState).shown.against is None


def test_watched_tokens_stay_at_another_position_and_leave_with_their_vocabulary(session):
    best = int(session.document.logits(28).argmax())
    handlers.watch(session, ["", 7, " girl", "no token has this", 10**9, best])
    drawn = answered(session)
    girl = session.document.tokenizer.encode(" girl")[0]
    assert session.state(WhyState).shown.paths.tokens == (best, 7, girl)
    assert [line.get("name") for line in drawn["why-path"]["figure"]["data"][::2]][2] == "·girl"
    rank = 1 + int((session.document.logits(28) > session.document.logits(28)[girl]).sum())
    assert re.search(rf"“girl” starts at rank [\d,]+ and ends at rank {rank:,} with", drawn["why-path"]["note"])
    assert "No token contains “no·token·has·this”" in drawn["why-path"]["note"]
    session.select(position=4)
    answered(session)
    assert session.state(WhyState).shown.paths.tokens == (session.document.ids[5], 7, girl)
    before = session.state(WhyState).watched
    handlers.watch(session, [7, " girl", "no token has this"])  # the page also sends back what the server has set
    assert session.state(WhyState).watched is before
    other = replace(session.document.loaded, tokenizer=copy.copy(session.document.tokenizer))
    session.document = Generation(other, "Lily saw")
    session.document.read()
    answered(session)
    assert len(session.state(WhyState).shown.paths.tokens) == 1


def test_only_what_a_choice_changes_is_computed_again(session):
    answered(session)
    before = session.state(WhyState).shown
    handlers.choose("method", predictions.METHODS, session, "gradient")
    answered(session)
    after = session.state(WhyState).shown
    assert after.traced is before.traced
    assert after.lens is before.lens
    assert before.influence is None
    assert after.influence is not None


def test_results_belong_to_the_choices_that_they_were_computed_for(session, monkeypatch):
    run, lens = analysis.analyse(session), predictions.lens

    def interrupted(*arguments):
        handlers.choose("stage", LENS_POINTS, session, "resid_mid")
        handlers.choose_cell(session, {"x": 15, "y": 3})
        analysis.update(session, session.state(WhyState).shown, graph_off=frozenset("x"))
        return lens(*arguments)

    monkeypatch.setattr(predictions, "lens", interrupted)
    list(run)
    assert session.state(WhyState).shown.graph_off == frozenset("x")
    said = answered(session)["why-cell"]["text"]
    shown = session.state(WhyState).shown
    place = shown.prediction.position - shown.traced.first
    top = lens_top_tokens(shown.traced.model, shown.traced.trace, 3, "resid_mid", place)
    assert said.startswith("In layer 3 after attention")
    assert f"the top token is {quoted(shown.traced.loaded.tokenizer, int(top.token[0]))}" in said


def test_nothing_is_computed_while_the_text_is_written_and_the_status_says_so(session):
    session.lock.begin()
    snapshot = session.snapshot()
    assert analysis.wanted(snapshot) is None
    assert "writing" in tokens.status(snapshot)["text"]


def test_what_a_browser_sends_may_be_anything(session):
    answered(session)
    before = session.selection
    for sent in ({}, {"index": "4"}, {"index": -2}, {"index": 10**9}, {"x": 1.5, "y": None}, {"customdata": [0]}):
        for handler in (handlers.choose_position, handlers.choose_cell, handlers.choose_head, handlers.choose_bar):
            handler(session, sent)
        handlers.choose_token(session, sent)
    handlers.choose("role", ("induction",), session, "nothing")
    assert session.selection == before


def test_without_a_text_the_tab_says_so(session):
    session.document = None
    drawn = answered(session)
    assert "no text" in drawn["why-lead"]["text"]
    assert drawn["why-lens"]["figure"] is None
