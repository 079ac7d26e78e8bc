"""Turned-up concepts: generation, views, files and links include them."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import pytest
import torch

from components.concepts import N_CHIPS, continuations, steer_data, turn, turned, unsteered
from components.share import handlers
from components.share.address import view_values
from components.share.files import json_file
from components.share.opening import open_link
from components.state.reads import is_ready
from components.state.session import Session
from components.tabs import concepts as tab
from components.tabs.concepts import activities
from components.tabs.playground import generation
from components.tabs.why import explained
from components.tabs.why.answer import switch_part
from components.tabs.why.tab import tab as causes
from gpt import Edits, Generation
from gpt.analysis.concepts import NamedConcept
from gpt.errors import GPTError
from tests.components.drawing import Drawn, as_read, compute_now
from tests.components.tabs import playground_session
from tests.gpt.analysis.concept_dictionary import axis_concepts
from tests.gpt.fake_models import tiny_model

NAMED = tuple(NamedConcept(0, i, {"en": f"idea {i}", "zh": f"概念{i}"}, 2.0) for i in range(6))
MODEL = replace(tiny_model(), concepts=axis_concepts(named=NAMED))


@pytest.fixture
def session() -> Session:
    return Session(as_read(MODEL, "the cat"), "the cat")


def measure(session: Session) -> None:
    compute_now(session, unsteered, continuations)


def chips(session: Session) -> dict[str, bool]:
    return {chip["name"]: chip["on"] for chip in steer_data(session.snapshot())["chips"]}


@torch.inference_mode()
def expected(session: Session, edits: Edits | None) -> torch.Tensor:
    return MODEL.model(torch.tensor([session.document.ids]), edits=edits)[0, -1].softmax(-1)


def test_a_chip_turns_a_concept_up_and_off_again(session):
    assert chips(session) == dict.fromkeys(["idea 0", "idea 1", "idea 2", "idea 3"], False)
    turn(session, {"place": [0, 0]})
    assert turned(session.document) == {(0, 0): 2.0}
    data = steer_data(session.snapshot())
    assert chips(session)["idea 0"]
    assert (data["slider"]["value"], data["more"]) == (2.0, "more ideas")
    turn(session, {"place": [0, 0]})
    assert session.document.edits == Edits()
    data = steer_data(session.snapshot())
    assert [data[name] for name in ("more", "slider", "note", "texts")] == ["", None, "", []]


def test_the_slider_goes_below_zero_and_several_concepts_stay_on_until_all_are_reset(session):
    turn(session, {"place": [0, 0], "strength": -99})
    turn(session, {"place": [0, 5], "strength": 1})
    assert turned(session.document) == {(0, 0): -1.0, (0, 5): 1.0}
    assert chips(session)["idea 5"], "what is on is shown, though it is not one of the first"
    turn(session, {"more": True})
    assert len(chips(session)) == len(NAMED) > N_CHIPS
    turn(session, {"reset": True})
    assert turned(session.document) == {}


@pytest.mark.parametrize(
    "sent", [{}, {"place": [0]}, {"place": "0.0"}, {"place": [True, None]}, {"place": [9, 0]}, {"place": [0, 99]}]
)
def test_an_invalid_concept_is_refused(session, sent):
    with suppress(GPTError):
        turn(session, sent)
    assert turned(session.document) == {}


def test_the_bars_show_both_predictions_and_the_texts_stand_side_by_side(session):
    turn(session, {"place": [0, 0], "strength": 4})
    measure(session)
    bars = {bar[4]["token"]: bar[1:3] for bar in playground_session.drawn(session, "bars")["bars"]}
    before, after = expected(session, None), expected(session, session.document.edits)
    token = int(after.argmax())
    assert bars[token] == pytest.approx([before[token].item(), after[token].item()], abs=1e-3)
    (_, without), (label, steered) = steer_data(session.snapshot())["texts"]
    session.settings = session.settings.with_value("temperature", 0.5)
    assert not is_ready(session.snapshot(), continuations)  # the texts were written with other settings
    assert is_ready(session.snapshot(), unsteered)
    assert label == "With idea 0"
    assert without != steered


def test_the_bar_of_a_concept_that_is_turned_down_is_empty_and_one_without_activity_says_so(session):
    session.loaded = MODEL
    layer, active = 0, max(range(16), key=lambda i: activity(session)[:, i].sum())
    silent = next(i for i in range(16) if not activity(session)[:, i].any())
    turn(session, {"place": [layer, active], "strength": -1})
    assert not activity(session)[:, active].any()
    measure(session)
    data = steer_data(session.snapshot())
    assert data["note"] == ""
    assert data["slider"]["min"] == data["slider"]["value"] == -1
    assert data["texts"][1][0].startswith("With less ")
    turn(session, {"reset": True})
    turn(session, {"place": [layer, silent], "strength": -0.5})
    measure(session)
    data = steer_data(session.snapshot())
    assert data["note"].endswith("is not active anywhere in your text so far, so there is nothing to remove.")
    assert torch.equal(expected(session, None), expected(session, session.document.edits))


def activity(session):
    """Return the activity of each feature along the session's text, (T, n)."""
    compute_now(session, activities)
    return activities.latest(session.snapshot()).by_layer[0]


def load(session, name):
    """Replace the function that loads a listed model."""
    yield
    return MODEL


def test_continue_writes_with_what_is_turned_up(session, monkeypatch):
    monkeypatch.setattr(generation, "load_with_progress", load)
    turn(session, {"place": [0, 0], "strength": 4})
    edits = session.document.edits
    session.settings = session.settings.with_value("length", 5)
    playground_session.write(session, None)
    assert session.document.edits is edits
    written = session.document.ids
    alone = Generation(MODEL, "the cat", edits=edits)
    list(alone.steps(session.document.origin(len(written) - 1).params, 5))
    assert alone.ids == written


def test_links_and_files_carry_what_is_turned_up(session, monkeypatch):
    turn(session, {"place": [0, 0]})
    session.edits = Edits({(0, 1): 0.0})
    assert view_values(session.snapshot())["edits"] == "h0.1=0,c0.0=2"
    other = Session(Generation(MODEL, "the dog"))
    other.document.read()
    list(open_link(other, "edits=h0.1%3D0%2Cc0.0%3D2", ("playground",), {}))
    assert (turned(other.document), other.edits) == ({(0, 0): 2.0}, session.edits)

    monkeypatch.setattr(handlers, "load_with_progress", load)
    monkeypatch.setattr(handlers, "list_models", lambda: [MODEL.name])
    text = json_file(session.document).content
    opened = Session(None)
    list(handlers.answer_files(opened, {"what": "open", "name": "a.json", "text": text, "size": len(text)}))
    assert (turned(opened.document), opened.edits) == ({(0, 0): 2.0}, Edits())


def test_the_tab_lists_the_features_of_the_selected_word_and_tints_the_text(session):
    session.loaded = MODEL
    drawn = Drawn(session, tab.tab)
    views = drawn.update()
    data = views["concepts-features"]
    assert data["selected"] == len(session.document.ids) - 1
    values = [feature["value"] for feature in data["features"]]
    assert values == sorted(values, reverse=True)
    assert values[0] == 1
    assert len(values) == 3  # the number of features active on a token
    assert views["concepts-lead"]["text"].startswith("At “t” the strongest concept is “")
    assert "concepts-title" not in views
    tab.pick(session, {"index": 0})
    tab.pick(session, {"place": [0, 0]})
    views = drawn.update()
    assert "no concepts" in views["concepts-lead"]["text"]
    assert views["concepts-title"]["text"] == "Concept: idea 0"
    assert "100 in 1,000" in views["concepts-about"]["text"]
    assert views["concepts-evidence"]["snippets"]
    assert views["concepts-slider"]["slider"]["value"] == 0


def test_a_model_without_concepts_says_how_to_find_them():
    session = Session(as_read(tiny_model(), "the cat"))
    assert "tools.concepts" in Drawn(session, tab.tab).update()["concepts-lead"]["text"]
    assert steer_data(session.snapshot()) == {"chips": []}
    turn(session, {"place": [0, 0]})
    assert session.document.edits is None


def test_the_flow_of_causes_goes_over_concepts_and_its_parts_can_be_switched_off(session):
    session.change(explained.Chosen, by="concepts")
    drawn = Drawn(session, causes)
    assert drawn.update()["why-flow"]["heads"] == []
    data = dict(drawn.views["why-paths"])
    words, early, late = (column["nodes"] for column in data["columns"])
    assert sum(map(len, (words, early, late))) <= 11  # plus the token itself
    assert [node["name"] for node in late[-2:]] == ["not explained by concepts", "other concepts"]
    logit = float(session.document.logits(session.document.n_read - 1)[explained.token(session.snapshot())])
    assert sum(node["adds"] for node in late) == pytest.approx(logit, abs=1e-3)
    assert data["after"] is None
    assert "Attention weights are held fixed" in data["says"]
    switch_part(session, {"node": late[0]["key"]})
    after = dict(drawn.update()["why-paths"])
    assert [node["off"] for node in after["columns"][2]["nodes"]].count(True) == 1
    assert after["after"] != data["before"]
    assert after["says"].startswith("Without “idea" if "idea" in late[0]["name"] else "Without")
    switch_part(session, {"all": True})
    assert drawn.update()["why-paths"]["after"] is None


def test_a_search_finds_features_by_word(session):
    session.loaded = MODEL
    drawn = Drawn(session, tab.tab)
    tab.Chosen.search.set(session, "idea 5")
    assert [feature["name"] for feature in drawn.update()["concepts-features"]["features"]] == ["idea 5"]
    tab.Chosen.search.set(session, "zebra")
    assert "No concept" in drawn.update()["concepts-lead"]["text"]
