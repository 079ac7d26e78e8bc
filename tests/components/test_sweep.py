"""Every tab is drawn with every choice set, before and after another model has been picked, and nothing in it fails."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from random import Random
from typing import Any

import pytest

from components.cards.card import EVENTS, Card
from components.parts import Part
from components.render import Renderer, analyse
from components.state.example import example, first_prompt, opening
from components.state.reads import Pending, Reads
from components.state.session import Session
from components.tabs.playground import generation
from gpt import GPT, Generation, GPTConfig, SamplingParams, add_model, get_model
from gpt.models.checkpoints.vocabularies import Characters
from gpt.models.checkpoints.writing import save_model
from gpt.models.registry import remove_model
from tests.components.tabs.playground_session import set_run
from tests.gpt.fake_models import family_model

BUNDLED = ("stories", "poems", "stories-llama", "untrained")
SMALL = "small"  # has fewer layers, heads, positions and tokens than the bundled models
MODELS = (*BUNDLED, SMALL)
FAMILIES = ("gpt_neox", "gemma3", "olmo2", "smollm3")  # which together have every kind of block
# Buttons that replace the text or open another tab, whose work goes on after the event, or that take seconds.
NOT_PRESSED = ("example-", "use-", "undo", "redo", "clear", "change-keep", "beams-adopt", "open-film", "shape-start")
NOT_PRESSED += ("compare-start", "compare-seeds", "compare-temperatures", "train-", "notebook-", "positions-start")
NOT_PRESSED += ("masks-start", "kernels-", "layers-", "change-try-costliest", "learned-save", "trace-save")


@pytest.fixture(scope="module", autouse=True)
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder = tmp_path_factory.mktemp("small") / SMALL
    save_model(
        folder, GPT(GPTConfig(28, 24, n_layer=2, n_head=2, n_embd=8)), Characters(list(" abcdefghijklmnopqrstuvwxyz."))
    )
    add_model(folder, name=SMALL)
    yield
    remove_model(SMALL)


@pytest.mark.parametrize(
    ("before", "others", "queues"),
    [
        ("stories", (SMALL,), ("interactive",)),
        *(pytest.param(each, MODELS, (*EVENTS,), marks=pytest.mark.thorough) for each in MODELS),
        *(pytest.param(each, (), ("interactive",), marks=pytest.mark.thorough) for each in FAMILIES),
    ],
)
def test_every_tab_draws_every_choice_before_and_after_another_model_is_picked(
    renderer: Renderer, before: str, others: Sequence[str], queues: Sequence[str]
) -> None:
    loaded = family_model(before, block_size=48) if before in FAMILIES else get_model(before)
    long = before in BUNDLED
    document = Generation(loaded, loaded.tokenizer.decode([*range(700, 712)]) if long else "the rain")
    [*document.steps(SamplingParams(seed=0), 4)]
    session = opening(document)
    set_run(session)
    for tab in tabs_of(renderer):
        draw(renderer, session, tab, analyses=before != "stories" or "model" in queues)
        for card in cards_of(renderer, tab):
            for part in card.root.everything():
                for value in values_of(part, session):
                    use(part, session, value, queues)
                    draw(renderer, session, tab, analyses=False)
    for other in others:
        again = session.copy()
        set_run(again)
        again.set_typed(first_prompt(get_model(other)), is_current=False)
        [*generation.pick_model(again, other)]
        assert again.document.loaded.name == other, again.notice
        for tab in tabs_of(renderer):
            draw(renderer, again, tab)


NAMES = ("index", "position", "x", "y", "layer", "head", "token", "candidate", "moment", "lesson", "question", "answer")
NAMES += ("node", "place", "part", "on", "hidden", "edits", "rows", "key", "challenge", "text", "edited", "n")
ODD = (0, 1, 2, -1, 10**9, 10**20, 1.5, math.nan, math.inf, True, None, "", "1", "x" * 9999)


@pytest.mark.parametrize("has_text", [True, False])
def test_whatever_a_browser_sends_no_handler_breaks_and_every_tab_is_drawn(renderer: Renderer, has_text: bool) -> None:
    session, chance = opening(example(get_model()).copy()), Random(0)
    if not has_text:
        generation.clear(session)
    for tab in tabs_of(renderer):
        draw(renderer, session, tab)
        for part in (part for card in cards_of(renderer, tab) for part in card.root.everything()):
            payloads = [
                {name: chance.choice((*ODD, [], [1], [0, 1], [[0, 0]])) for name in chance.sample(NAMES, 12)}
                for _ in range(20)
            ]
            for value in {"button": (), "widget": payloads}.get(part.kind, ODD):
                use(part, session, value, ())
        draw(renderer, session, tab, analyses=False)


def tabs_of(renderer: Renderer) -> list[str]:
    return [tab for tab in renderer.views if tab]


def cards_of(renderer: Renderer, tab: str) -> list[Card]:
    owners = [getattr(view.draw, "__self__", None) for view in renderer.views[tab]]
    return [each for each in owners if isinstance(each, Card)]


def draw(renderer: Renderer, session: Session, tab: str, *, analyses: bool = True) -> None:
    """Draw a tab and compute what it lacks."""
    session.tab = tab
    for _ in analyse(renderer, session) if analyses else ():
        check(renderer, session)
    check(renderer, session)


def check(renderer: Renderer, session: Session) -> None:
    frame = json.loads(renderer.frame(session) or "{}")
    for name, fields in frame.get("views", {}).items():
        failed = [
            each for each, value in (("", fields), *fields.items()) if isinstance(value, dict) and value.get("failed")
        ]
        assert not failed, (session.tab, name, failed)


def values_of(part: Part, session: Session) -> list[Any]:
    """Return values for a control: all choices, both ends of a slider, and a click on everything that may exist."""
    with session.lock.reading():
        s = session.snapshot()

    def of(name: str) -> Any:
        found = part.live.get(name, part.fixed.get(name))
        with suppress(Pending):
            return found(Reads(s)) if callable(found) else found
        return ()  # nothing to choose from yet

    match part.kind:
        case "choice" | "select":
            return [value for _, value in of("choices")]
        case "pick_list":
            return [*([value] for _, value in of("choices")[-1:]), ["e"]]
        case "slider":
            return [of("low"), of("high")]
        case "check_box" | "fold":
            return [False, True]
        case "text_box":
            return ["7", "the"]
        case "number_box":
            return [1]
        case "button":
            return [] if part.name.startswith(NOT_PRESSED) else [None]
        case "widget":
            return [payload for n in (0, 1) for payload in clicks(session, n)]
    return []


def clicks(session: Session, n: int) -> list[dict[str, Any]]:
    """Return payloads that widgets send for clicks on the first of everything or, for n = 1, on the last."""
    assert session.document is not None
    loaded, config = session.document.loaded, session.document.loaded.model.config
    layer, head, token = n * (config.n_layer - 1), n * (config.n_head - 1), n * (config.vocab_size - 1)
    last = n * (len(session.document.ids) - 1)
    features = {} if loaded.concepts is None else loaded.concepts.dictionaries
    places = [[at, len(features[at].bias) - 1] for at in sorted(features)[:: 1 - 2 * n][:1]]
    return [
        *({name: last} for name in ("index", "position", "candidate", "moment", "lesson")),
        {"layer": layer, "head": head, "on": False},
        {"x": last, "y": layer, "customdata": token, "token": token},
        *({"place": place} for place in places),
    ]


def use(part: Part, session: Session, value: Any, queues: Sequence[str]) -> None:
    """Let a control or widget send a value. Only buttons send to the queues that run the model."""
    for action in part.actions.values():
        if action.queue == "interactive" or (part.kind in ("button", "choice") and action.queue in queues):
            with suppress(ValueError):
                made = action.handler(session, value)
                list(made if isinstance(made, Iterator) else ())
