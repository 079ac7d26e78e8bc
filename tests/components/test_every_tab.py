"""Every tab shows the same prediction: under the sampling settings, without hidden words, with concepts turned up."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from plotly.utils import PlotlyJSONEncoder

import components
from components import concepts
from components.frame import in_force
from components.labels import percent
from components.render import Renderer, analyse
from components.state.example import example
from components.state.hidden import hide
from components.state.session import Session
from components.tabs.activations import swapped
from components.tabs.change.edits import effect
from components.tabs.inside.scene import STEPS, Chosen
from gpt import Edits, Generation, get_model

OF_THE_TEXT = ("inside", "why", "concepts", "change", "activations", "embeddings")  # of what the model has read
RAINING = (2, 3)  # " rain" "ing"
OWN_SOFTMAX = {  # not the probabilities of a next token
    "tabs/challenges/goals.py",  # a text's loss
    "tabs/lessons/pictures/model_pictures.py",  # attention
}


def new_session() -> Session:
    """A session with the first text, whose next token is "outside"."""
    return Session(example(get_model()).copy())


def views_of(renderer: Renderer, session: Session, *tabs: str) -> dict[str, dict]:
    """Open tabs one after the other, and return the data of all their views."""
    views: dict[str, dict] = {}

    def show() -> None:
        for name, fields in json.loads(renderer.frame(session) or "{}").get("views", {}).items():
            views.setdefault(name, {}).update(fields)

    for session.tab in tabs:
        show()
        for _ in analyse(renderer, session):
            show()
    return views


@pytest.fixture(scope="module")
def drawn(renderer: Renderer) -> dict:
    session = new_session()
    session.film = "next"
    session.change(Chosen, step="numbers")
    session.settings = session.settings.with_value("temperature", 1.5)
    logits = session.document.logits(len(session.document.ids) - 1)
    shares = [(logits / temperature).softmax(0).max().item() for temperature in (1.5, 1)]
    says = {"p": shares[0], "says": percent(shares[0]), "at one": percent(shares[1])}
    return views_of(renderer, session, "playground", *OF_THE_TEXT) | says


def test_the_top_token_has_one_probability_in_every_tab(drawn: dict) -> None:
    film, p = drawn["film"]["film"], drawn["p"]
    numbers = {
        "write": drawn["bars"]["bars"][0][2],
        "inside": drawn["flow"]["next"][0][1],
        "film": min(film["draw"]["pieces"], key=lambda piece: piece[1])[2],
        "causes": drawn["why-flow"]["before"],
        "change": drawn["change-bars"]["bars"][0][1],
    }
    assert numbers == pytest.approx(dict.fromkeys(numbers, p), abs=1e-3)
    sentences = {
        "inside": drawn["flow-lead"]["text"],
        "next": film["words"]["next"]["says"],
        "reason": drawn["reason"]["text"],
        "why": drawn["why-because"]["text"],
        "lead": drawn["why-lead"]["text"],
        "change": drawn["change-says"]["text"],
        "activations": drawn["activation-swapped"]["text"],
        "caption": drawn["flow"]["words"]["next"],
        "film": percent(film["guesses"][-1]["p"]),
    }
    assert [name for name, says in sentences.items() if drawn["says"] not in says] == []


def test_any_other_probability_is_labelled(drawn: dict) -> None:
    assert drawn["says"] != drawn["at one"]
    for says in (drawn["why-cell"]["text"], drawn["why-path"]["text"], drawn["flow"]["words"]["next"]):
        assert drawn["at one"] in says
        assert "temperature 1" in says


def comparable(shown: dict) -> str:
    """Return a view's data without the document's key, hidden words, and its tokens, which record their origin."""
    data = {name: value for name, value in shown.items() if name not in ("doc", "lines", "hidden")}
    return json.dumps(data, cls=PlotlyJSONEncoder)


def test_every_tab_shows_the_text_without_its_hidden_words(renderer: Renderer) -> None:
    session, shorter = new_session(), new_session()
    hide(session, RAINING)
    document = session.document
    shorter.document = Generation(document.loaded, [i for at, i in enumerate(document.ids) if at not in RAINING])
    shorter.document.read()
    for step in STEPS:
        for each in (session, shorter):
            each.change(Chosen, step=step)
        tabs = OF_THE_TEXT if step == "heads" else ("inside",)
        ours, theirs = (views_of(renderer, each, *tabs) for each in (session, shorter))
        differ = {name for name in ours if comparable(ours[name]) != comparable(theirs[name])}
        assert {name for name in differ if not name.startswith("card.")} <= {"in-force"}
    session.select(position=4)
    assert (session.selection.position, session.snapshot().position) == (6, 4)


@pytest.mark.parametrize(
    ("tab", "says"),
    [
        ("why", "Hidden: “raining” · Concepts: dog"),
        ("lessons", "Hidden: “raining” · In this tab no concept is turned up"),
    ],
)
def test_the_page_names_what_is_in_force_or_says_that_the_tab_ignores_it(tab: str, says: str) -> None:
    session = new_session()
    hide(session, RAINING)
    offered = session.document.loaded.concepts.offered[0]
    concepts.turn(session, {"on": [[offered.layer, offered.feature, 75]]})
    session.tab = tab
    assert in_force(session.snapshot()) == says


def test_concepts_are_turned_up_in_every_tab(renderer: Renderer) -> None:
    session = new_session()
    document, concept = session.document, session.document.loaded.concepts.offered[0]
    concepts.turn(session, {"on": [[concept.layer, concept.feature, 75]]})
    session.edits = Edits(attn_scale={0: 0.0})
    views_of(renderer, session, "change", "activations", "embeddings")
    position = len(document.ids) - 1
    both = Generation(document.loaded, document.ids, edits=replace(session.edits, steering=document.edits.steering))
    both.read()
    original, edited = session.snapshot()[effect].logits(position)
    for found in (original, session.snapshot()[swapped][0]):
        torch.testing.assert_close(found, document.logits(position), atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(edited, both.logits(position), atol=1e-4, rtol=1e-4)


def test_no_view_turns_logits_into_probabilities_by_itself() -> None:
    folder = Path(components.__file__).parent
    sources = {str(path.relative_to(folder)): path.read_text(encoding="utf-8") for path in folder.rglob("*.py")}
    found = {name for name, source in sources.items() if ".softmax(" in source}
    assert found <= OWN_SOFTMAX
