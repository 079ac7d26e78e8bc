"""The beam search of the Compare tab without a browser: its contents, and rejected inputs."""

from __future__ import annotations

import contextlib
import itertools
import json

import pytest

from components.state.jobs import stop
from components.tabs.compare import beams, columns
from components.tabs.compare.beams import Beams
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
    rows = [json.loads(line) for line in beams.tree_lines(search, search.candidates)]
    nodes = [row for row in rows if isinstance(row, list)]
    assert len(nodes) == len(search.candidates)
    for number, (parent, _, depth, log_p, total, score, outcome) in enumerate(nodes):
        assert -1 <= parent < number
        before, above = (0.0, 0) if parent < 0 else (nodes[parent][4], nodes[parent][2])
        assert total == pytest.approx(before + log_p, abs=1e-4)
        assert score == pytest.approx(total / depth, rel=1e-5)
        assert depth == above + 1
        assert outcome in ("kept", "pruned", "finished", "best")
    assert rows[-1] == {"best": search.best.candidate, "done": True}


def test_the_best_text_is_said_and_leads_the_table(search):
    text = get_model().tokenizer.decode(list(search.best.ids))
    assert text.strip() in beams.best_sentence(search, search.candidates).replace("·", " ")
    assert "得分最高的文本" in spoken_in("zh", beams.best_sentence, search, search.candidates)
    _head, first, *rest = beams.finished_rows(search)
    scores = [float(row[3].replace("−", "-")) for row in (first, *rest)]
    assert text.strip() in first[0]
    assert scores == sorted(scores, reverse=True)
    assert len(scores) == search.width


def test_the_tree_grows_and_a_click_chooses_another_way_unless_there_is_none(session):
    trees = [drawn(session)["beams-tree"]["lines"] for _ in beams.search(session)]
    candidates = [[line for line in tree if line.startswith("[")] for tree in trees]
    assert all(after[: len(before)] == before for before, after in itertools.pairwise(candidates))
    state = session.state(Beams)
    assert beams.picked(state) == state.search.best.candidate
    beams.choose(session, {"candidate": 3})
    assert "step 1" in drawn(session)["beams-chosen"]["text"]
    assert drawn(session)["beams-tree"]["chosen"] == 3
    for wrong in (-1, 10**6, True, "3", None):
        beams.choose(session, {"candidate": wrong})
        assert beams.picked(session.state(Beams)) == 3


def test_a_search_that_is_stopped_keeps_what_it_has(session):
    session.change(Beams, length=30)
    run = beams.search(session)
    for _ in range(4):
        next(run)
    stop(Beams, session)
    list(run)
    shown = drawn(session)
    assert "No text has ended yet" in shown["beams-says"]["text"]
    assert "stopped" in shown["beams-status"]["text"]
    assert session.state(Beams).job is None


def test_a_search_that_cannot_be_is_one_sentence(session):
    columns.type_prompt(session, "word " * 300)
    list(beams.search(session))
    assert "the prompt has" in drawn(session)["beams-notice"]["text"]
    assert session.state(Beams).search is None


def test_steps_are_shown_one_by_one_after_a_quick_search_has_given_back_its_place(session, monkeypatch):
    naps = []
    monkeypatch.setattr(beams, "STEP_SECONDS", 100)
    monkeypatch.setattr(beams.time, "sleep", lambda seconds: naps.append(beams.SEARCHES.n_admitted))
    depths = []
    for _ in beams.search(session):
        shown = beams.shown(session.state(Beams))
        depths.append(shown[-1].depth if shown else 0)
        assert not shown or beams.best(shown) <= shown[-1].number
    assert depths == [0, 1, 2, 3, 4]
    assert naps == [0, 0, 0]


def test_the_chosen_way_becomes_the_text_as_tokens_chosen_by_hand(session):
    list(beams.search(session))
    ids = session.state(Beams).search.ids(beams.picked(session.state(Beams)))
    beams.adopt(session)
    document = session.document
    assert document.ids[-len(ids) :] == list(ids)
    assert document.origin(len(document.ids) - 1).kind == "chosen"
    assert session.tab == "playground"
    assert session.can_undo


def test_searches_keep_the_memory_of_four_at_most_and_none_after_a_stop(session, monkeypatch):
    running = beams.search(session)
    while (found := session.state(Beams).search) is None or found._cache is None:
        next(running)
    queue = beams.SEARCHES
    with contextlib.ExitStack() as others:
        for _ in range(queue.limit - 1):
            others.enter_context(queue.enter())
        other = new_session(monkeypatch)
        waits = beams.search(other)
        while other.progress is None or other.progress.key != "status.waiting":
            next(waits)
        stop(Beams, session)
        list(running)
        assert found._cache is None
        assert other.state(Beams).search.candidates == []
        assert list(waits)
        assert other.state(Beams).search.done
