"""The beam search of the Compare tab without a browser: its contents, and rejected inputs."""

from __future__ import annotations

import contextlib
import itertools
import json
import math

import pytest

from components.errors import localize_error
from components.state.jobs import stop
from components.tabs.compare.handlers import beam_search, columns
from components.tabs.compare.state import BeamState
from components.tabs.compare.views import beam_search as beam_views
from gpt import Generation, get_model
from gpt.documents.beam_search import BeamSearch
from tests.components.drawing import spoken_in
from tests.components.tabs.compare_session import PROMPT, drawn, new_session


@pytest.fixture
def session(monkeypatch):
    return new_session(monkeypatch)


@pytest.fixture(scope="module")
def search():
    made = BeamSearch(Generation(get_model(), PROMPT), 3, 5)
    for _ in made.steps():
        pass
    return made


def test_the_lines_of_the_tree_add_up(search):
    rows = [json.loads(line) for line in beam_views.tree_lines(search, search.candidates)]
    nodes = [row for row in rows if isinstance(row, list)]
    assert len(nodes) == len(search.candidates)
    for number, (parent, _, depth, log_p, total, score, outcome) in enumerate(nodes):
        assert -1 <= parent < number
        before, above = (0.0, 0) if parent < 0 else (nodes[parent][4], nodes[parent][2])
        assert total == pytest.approx(before + log_p, abs=1e-4)
        assert score == pytest.approx(total / depth, rel=1e-5)
        assert depth == above + 1
        assert outcome in beam_views.tree_labels()
    assert rows[-1] == {"best": search.best.candidate, "done": True}


def test_the_best_text_is_said_and_leads_the_table(search):
    text = get_model().tokenizer.decode(list(search.best.ids))
    assert text.strip() in beam_views.best_sentence(search, search.candidates).replace("·", " ")
    assert "得分最高的文本" in spoken_in("zh", beam_views.best_sentence, search, search.candidates)
    _head, first, *rest = beam_views.finished_rows(search)
    scores = [float(row[3].replace("−", "-")) for row in (first, *rest)]
    assert text.strip() in first[0]
    assert scores == sorted(scores, reverse=True)
    assert len(scores) == search.width


def test_the_tree_grows_and_a_click_chooses_another_way_unless_there_is_none(session):
    trees = [drawn(session)["beams-tree"]["lines"] for _ in beam_search.search(session)]
    candidates = [[line for line in tree if line.startswith("[")] for tree in trees]
    assert all(after[: len(before)] == before for before, after in itertools.pairwise(candidates))
    state = session.state(BeamState)
    assert beam_views.picked(state) == state.search.best.candidate
    beam_search.choose(session, {"candidate": 3})
    assert "step 1" in drawn(session)["beams-chosen"]["text"]
    assert drawn(session)["beams-tree"]["chosen"] == 3
    for wrong in (-1, 10**6, True, "3", None):
        beam_search.choose(session, {"candidate": wrong})
        assert beam_views.picked(session.state(BeamState)) == 3


def test_a_search_that_is_stopped_keeps_what_it_has(session):
    session.change(BeamState, length=30)
    run = beam_search.search(session)
    for _ in range(4):
        next(run)
    stop(BeamState, session)
    list(run)
    shown = drawn(session)
    assert "No text has ended yet" in shown["beams-says"]["text"]
    assert "stopped" in shown["beams-status"]["text"]
    assert not session.state(BeamState).busy


def test_a_search_that_cannot_be_is_one_sentence(session):
    columns.type_prompt(session, "word " * 300)
    list(beam_search.search(session))
    assert "the prompt has" in drawn(session)["beams-notice"]["text"]
    assert session.state(BeamState).search is None


@pytest.mark.parametrize(("name", "value"), [("width", 9), ("width", 2.5), ("penalty", math.nan), ("length", 0)])
def test_a_setting_of_the_search_out_of_its_range_is_refused(session, name, value):
    with pytest.raises(ValueError, match=r"between|number") as refused:
        beam_search.set_value(name, session, value)
    assert spoken_in("zh", localize_error, refused.value) != localize_error(refused.value)


def test_steps_are_shown_one_by_one_after_a_quick_search_has_given_back_its_place(session, monkeypatch):
    naps = []
    monkeypatch.setattr(beam_search, "STEP_SECONDS", 100)
    monkeypatch.setattr(beam_search.time, "sleep", lambda seconds: naps.append(beam_search.SEARCHES.n_admitted))
    depths = []
    for _ in beam_search.search(session):
        shown = beam_views.shown(session.state(BeamState))
        depths.append(shown[-1].depth if shown else 0)
        assert not shown or beam_views.best(shown) <= shown[-1].number
    assert depths == [0, 1, 2, 3, 4]
    assert naps == [0, 0, 0]


def test_the_chosen_way_becomes_the_text_as_tokens_chosen_by_hand(session):
    list(beam_search.search(session))
    ids = session.state(BeamState).search.ids(beam_views.picked(session.state(BeamState)))
    beam_search.adopt(session)
    document = session.document
    assert document.ids[-len(ids) :] == list(ids)
    assert document.origin(len(document.ids) - 1).kind == "chosen"
    assert session.tab == "playground"
    assert session.can_undo


def test_searches_keep_the_memory_of_four_at_most_and_none_after_a_stop(session, monkeypatch):
    running = beam_search.search(session)
    while (found := session.state(BeamState).search) is None or found._cache is None:
        next(running)
    queue = beam_search.SEARCHES
    with contextlib.ExitStack() as others:
        for _ in range(queue.limit - 1):
            others.enter_context(queue.enter())
        other = new_session(monkeypatch)
        waits = beam_search.search(other)
        while other.progress is None or other.progress.key != "status.waiting":
            next(waits)
        stop(BeamState, session)
        list(running)
        assert found._cache is None
        assert other.state(BeamState).search.candidates == []
        assert list(waits)
        assert other.state(BeamState).search.done
