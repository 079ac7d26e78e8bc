"""The probability of a next token is the same in every tab, or its label says that it is at temperature 1."""

from __future__ import annotations

from pathlib import Path

import pytest

import components
from components.labels import percent
from components.panels import skeleton
from components.state.example import example
from components.state.session import Session
from components.tabs.activations import tab as activations
from components.tabs.change.handlers import measurement
from components.tabs.change.views import VIEWS as CHANGE
from components.tabs.inside.analysis import analysis as inside
from components.tabs.inside.views import VIEWS as INSIDE
from components.tabs.playground.handlers import reason
from components.tabs.playground.views import VIEWS as WRITE
from components.tabs.why import analysis as why
from components.tabs.why.views import VIEWS as CAUSES
from gpt import get_model
from tests.components.drawing import Drawn

ANALYSES = (reason.ANALYSIS, inside(2**28), why.ANALYSIS, measurement.ANALYSIS, skeleton.ANALYSIS)
VIEWS = (*WRITE, *INSIDE, *CAUSES, *CHANGE, *skeleton.VIEWS)
OWN_SOFTMAX = {  # what is not a probability that a view shows
    "api/text.py",  # log-probabilities of an endpoint
    "tabs/challenges/goals/text.py",  # a text's loss
    "tabs/compare/views/columns.py",  # a divergence
    "tabs/lessons/pictures/model_pictures.py",  # attention
}


@pytest.fixture(scope="module", params=[0.8, 1.5])
def drawn(request: pytest.FixtureRequest) -> dict:
    """All views of the first text, whose next token is "outside"."""
    session = Session(example(get_model()).copy())
    session.settings = session.settings.with_value("temperature", request.param)
    session.film = "next"
    for each in ANALYSES:
        while each.wanted(session.snapshot()) is not None:
            list(each.run(session))
    snapshot = session.snapshot()
    logits = snapshot.text.document.logits(snapshot.position)
    shares = [(logits / temperature).softmax(0).max().item() for temperature in (request.param, 1)]
    views = {view.name: view.draw(snapshot) for view in VIEWS} | Drawn(session, activations).update()
    return views | {"p": shares[0], "says": percent(shares[0]), "at one": percent(shares[1])}


def test_the_top_token_has_one_probability_in_every_tab(drawn: dict) -> None:
    film, p = drawn["flow"]["film"], drawn["p"]
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
        "film": film["guesses"][-1]["p"],
    }
    assert [name for name, says in sentences.items() if drawn["says"] not in says] == []


def test_any_other_probability_is_labelled(drawn: dict) -> None:
    assert drawn["says"] != drawn["at one"]
    for says in (drawn["why-cell"]["text"], drawn["why-path"]["text"], drawn["flow"]["words"]["next"]):
        assert drawn["at one"] in says
        assert "temperature 1" in says


def test_no_view_turns_logits_into_probabilities_by_itself() -> None:
    folder = Path(components.__file__).parent
    found = {
        str(path.relative_to(folder)) for path in folder.rglob("*.py") if "softmax(" in path.read_text(encoding="utf-8")
    }
    assert found <= OWN_SOFTMAX
