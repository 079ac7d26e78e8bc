"""Turned-up concepts: generation, views, files and links include them."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from components import concepts
from components.concepts import (
    GOES_ON_TOKENS,
    continuation_settings,
    continuations,
    marked_differences,
    repeated,
    steer_data,
    turn,
    turned,
    unsteered,
)
from components.share import handlers
from components.share.address import Places, view_values
from components.share.handlers import json_file
from components.share.opening import open_link
from components.state.reads import is_ready
from components.state.session import Session
from components.tabs import concepts as tab
from components.tabs.concepts import activities
from components.tabs.playground import generation
from components.tabs.why import explained
from components.tabs.why.answer import switch
from components.tabs.why.tab import tab as causes
from components.tabs.why.tab import token
from gpt import Edits, Generation
from gpt.analysis.concepts import NamedConcept
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


def positions(session: Session) -> dict[str, float]:
    return {name: position for *_, name, position in steer_data(session.snapshot())["sliders"]}


@torch.inference_mode()
def expected(session: Session, edits: Edits | None) -> torch.Tensor:
    return MODEL.model(torch.tensor([session.document.ids]), edits=edits)[0, -1].softmax(-1)


def test_a_slider_turns_a_concept_up_or_down_and_its_centre_changes_nothing(session):
    assert positions(session) == dict.fromkeys([f"idea {i}" for i in range(6)], 50)
    turn(session, {"on": [[0, 0, 75], [0, 1, 25], [0, 2, 50], [0, 3, 999], [0, 4, -1]]})
    assert turned(session.document) == {(0, 0): 2.0, (0, 1): -0.5, (0, 3): 4.0, (0, 4): -1.0}
    assert list(positions(session).values()) == [75, 25, 50, 100, 0, 50]
    turn(session, {"on": []})
    assert session.document.edits is None
    assert steer_data(session.snapshot())["texts"] == []


@pytest.mark.parametrize(
    ("plain", "steered", "differ"),
    [("He met a dog.\nIt ran", "He saw the dog.\nIt ran", ["saw the"]), ("春风吹来", "春雨吹来", ["雨"])],
)
def test_words_that_differ_are_marked(plain, steered, differ):
    before, after = marked_differences(plain, steered)
    assert [text for text, differs in after if differs] == differ
    assert "".join(text for text, _ in before) == f"{plain} …"


def test_a_text_babbles_if_the_model_as_it_is_would_not_write_it_or_if_words_repeat(session, monkeypatch):
    turn(session, {"on": [[0, 0, 100]]})
    measure(session)
    found, ids = continuations.latest(session.snapshot()), session.document.ids
    losses = []
    for edits in (None, session.document.edits):
        written = Generation(MODEL, ids, edits=edits)
        list(written.steps(continuation_settings(session.snapshot()), GOES_ON_TOKENS))
        read = torch.tensor(written.ids)
        logits = MODEL.model(read[None, :-1])[0, len(ids) - 1 :]
        losses.append(torch.nn.functional.cross_entropy(logits, read[len(ids) :]).item())
    assert found.surprise == pytest.approx(losses[1] - losses[0], abs=1e-3)
    assert repeated("Bark, dog! The dog barked.") == pytest.approx(0.2)
    for surprise, repeats, babbles in ((99, 1, False), (found.surprise - 0.1, 1, True), (99, -1, True)):
        monkeypatch.setattr(concepts, "SURPRISE", surprise)
        monkeypatch.setattr(concepts, "REPEATS", repeats)
        assert ("Too much" in steer_data(session.snapshot())["note"]) == babbles


def test_the_bars_show_both_predictions_and_the_texts_stand_side_by_side(session):
    turn(session, {"on": [[0, 0, 100]]})
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
    turn(session, {"on": [[layer, active, 0]]})
    assert not activity(session)[:, active].any()
    measure(session)
    data = steer_data(session.snapshot())
    assert "not active" not in data["note"]
    assert data["texts"][1][0].startswith("With less ")
    turn(session, {"on": [[layer, silent, 25]]})
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
    turn(session, {"on": [[0, 0, 100]]})
    edits = session.document.edits
    session.settings = session.settings.with_value("length", 5)
    playground_session.write(session, None)
    assert session.document.edits is edits
    written = session.document.ids
    alone = Generation(MODEL, "the cat", edits=edits)
    list(alone.steps(session.document.origin(len(written) - 1).params, 5))
    assert alone.ids == written


def test_links_and_files_carry_what_is_turned_up(session, monkeypatch):
    turn(session, {"on": [[0, 0, 75]]})
    session.edits = Edits({(0, 1): 0.0})
    assert view_values(session.snapshot(), {})["edits"] == "h0.1=0,c0.0=2"
    other = Session(Generation(MODEL, "the dog"))
    other.document.read()
    list(open_link(other, "edits=h0.1%3D0%2Cc0.0%3D2", Places(("playground",), {}, {}, "stories")))
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
    assert views["concepts-slider"]["sliders"] == [[0, 0, "idea 0", 50]]


def test_the_flow_of_causes_goes_over_concepts_and_its_parts_can_be_switched_off(session):
    session.change(explained.Chosen, by="concepts")
    drawn = Drawn(session, causes)
    data = dict(drawn.update()["why-flow"])
    words, early, late = (column["nodes"] for column in data["columns"])
    assert sum(map(len, (words, early, late))) <= 11  # plus the token itself
    assert [node["name"] for node in late[-2:]] == ["not explained by concepts", "other concepts"]
    logit = float(session.document.logits(session.document.n_read - 1)[token(session.snapshot())])
    assert sum(node["adds"] for node in late) == pytest.approx(logit, abs=1e-3)
    assert data["after"] is None
    assert "Attention weights are held fixed" in data["says"]
    switch(session, {"key": late[0]["key"]})
    after = dict(drawn.update()["why-flow"])
    assert after["off"] == [late[0]["key"]]
    assert after["after"] != data["before"]
    assert after["says"].startswith("Without “idea" if "idea" in late[0]["name"] else "Without")
    switch(session, {"all": True})
    assert drawn.update()["why-flow"]["after"] is None
