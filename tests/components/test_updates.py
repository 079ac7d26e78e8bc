"""Who writes alone sees every token; who writes among many gets several at once, and the same text."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from components import updates
from components.api import Endpoints
from components.state.settings import LIMITS
from components.tabs.playground import starting, writing
from components.updates import COST, SHARE, update_gap
from gpt import SamplingParams, generate, get_model
from gpt.inference.admission import Seats
from tests.components.test_undo import UI, opening_with

PROMPT = "Once upon a time"


@pytest.fixture
def crowd(monkeypatch):
    """Twenty others hold a seat, and updates are so dear that between the first and the last none is due."""
    monkeypatch.setattr(updates, "COST", 60.0)
    with ExitStack() as stack:
        for _ in range(20):
            stack.enter_context(get_model().engine.seats.taken())
        yield


def test_seats_know_how_many_are_taken():
    seats = Seats(2)
    assert seats.busy == 0
    with seats.taken():
        assert seats.busy == 1
        with seats.taken(), seats.taken():
            assert seats.busy == 2  # and one waits
    assert seats.busy == 0


def test_the_gap_grows_with_those_who_write_at_once():
    loaded = get_model()
    with loaded.engine.seats.taken():
        assert update_gap(loaded) == 0
        with loaded.engine.seats.taken(), loaded.engine.seats.taken():
            assert update_gap(loaded) == pytest.approx(2 * COST / SHARE)


def test_the_endpoint_gives_the_whole_text_in_fewer_pieces_to_a_crowd(crowd):
    steps = list(generate(get_model(), PROMPT, SamplingParams(temperature=0.8, seed=3), 12))
    found = list(Endpoints("").generate(PROMPT, 12, 0.8, seed=3, model="stories"))
    assert found == ["", steps[0].text, "".join(step.text for step in steps)]


@pytest.mark.parametrize("pace", [0, 5000])
def test_the_page_draws_the_whole_text_in_fewer_pieces_to_a_crowd(crowd, pace):
    values = opening_with({name: limit.default for name, limit in LIMITS.items()} | {"pace": pace, "length": 12})
    for _ in starting.begin(UI, values):
        pass
    drawn = list(writing.write(UI, values))
    assert len(drawn) == 3  # the prompt, the first token, and the end
    document = values["session"].document
    assert len(document.ids) - document.n_prompt == 12
    assert drawn[-1]["strip"].count("\n") == 1 + len(document.ids)
    assert values["session"].finish_reason == "max_new_tokens"
