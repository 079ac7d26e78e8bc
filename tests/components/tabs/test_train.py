"""The Train tab without a browser: accepted inputs, the life of a visitor's runs, and the film of a training."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import torch

from components.figures.lines import ZERO_AT
from components.labels import percent
from components.state.session import Session
from components.tabs.inside.machine import ExamplePass
from components.tabs.train import choices
from components.tabs.train import tab as train
from components.tabs.train.film import (
    RECORDED,
    Film,
    Learned,
    Shown,
    choose_step,
    curve_card,
    curve_chart,
    film_card,
    learned,
    player_card,
    recorded,
    select,
    show_copying,
    shown_at,
)
from components.tabs.train.tab import OWN, Train, progress_of
from gpt import GPT, GPTConfig
from gpt.models.registry import get_model, list_models
from gpt.training import snapshots as recorded_run
from gpt.training.data import BYTES, TASKS, TaskDataset
from gpt.training.live_run import LiveRun, RunQueue
from gpt.training.recipe import Recipe
from gpt.training.snapshots import SnapshotFigures, bundled_recording, save_snapshot
from tests.components.drawing import Drawn, compute_now

TINY = Recipe(n_layer=1, n_head=1, n_embd=8, steps=1, batch_size=2, warmup=1)
ENDLESS = replace(TINY, steps=5000)


@pytest.fixture
def queue() -> Iterator[RunQueue]:
    made = RunQueue(max_running=1)
    yield made
    made.close()


@pytest.fixture
def visitors(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Session]]:
    """Two sessions whose runs are tiny."""
    monkeypatch.setattr(train, "_new_run", lambda state: LiveRun(TaskDataset(TASKS["add"]), state.recipe))
    monkeypatch.setattr(Train, "recipe", TINY, raising=False)
    sessions = [Session(None), Session(None)]
    yield sessions
    for session in sessions:
        session.close()


def start(queue: RunQueue, session: Session) -> LiveRun:
    train.start(queue, session)
    return session.state(Train).run


def finish(queue: RunQueue, session: Session) -> LiveRun:
    """Run a visitor's training from start to end."""
    run = start(queue, session)
    assert run.wait(120)
    return run


def opened(queue: RunQueue, session: Session) -> str:
    finish(queue, session)
    open_model(session)
    return session.model


def open_model(session: Session) -> None:
    """Open the model in every tab without generating."""
    list(train.open_model(lambda session: iter(()), session))


def known(name: str) -> bool:
    try:
        get_model(name)
    except ValueError:
        return False
    return True


def drawn(session: Session) -> dict:
    """Return the data of the views of a newly opened page."""
    session.sent.clear()
    cards = (
        train.run_card(RunQueue(), iter),
        curve_card(OWN, progress_of),
        player_card(OWN),
        film_card(OWN, ExamplePass),
    )
    return Drawn(session, train.tab, *cards).update()


def test_an_opened_model_is_its_visitors_until_the_session_closes(queue: RunQueue, visitors: list[Session]) -> None:
    before = list_models()
    mine, theirs = (opened(queue, session) for session in visitors)
    assert mine != theirs
    assert list_models() == before
    assert visitors[0].own_models == (mine,)
    visitors[0].close()
    assert not known(mine)
    assert known(theirs)


def test_one_more_model_takes_the_place_of_the_oldest_that_is_not_in_use(
    queue: RunQueue, visitors: list[Session]
) -> None:
    session = visitors[0]
    names = [opened(queue, session) for _ in range(train.MAX_TRAINED_MODELS)]
    session.model = names[0]
    finish(queue, session)
    session.model = names[0]
    open_model(session)
    assert names[0] in session.own_models
    assert names[1] not in session.own_models
    assert not known(names[1])
    assert len(session.own_models) == train.MAX_TRAINED_MODELS


def test_a_visitor_has_one_run_at_a_time_and_is_told_so(
    queue: RunQueue, visitors: list[Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Train, "recipe", ENDLESS)
    first = start(queue, visitors[0])
    assert start(queue, visitors[0]) is first
    assert drawn(visitors[0])["train-notice"]["text"]
    waiting = start(queue, visitors[1])
    assert waiting.state == "waiting"
    assert visitors[1].busy
    assert progress_of(visitors[1].snapshot()).queue_position == 1
    visitors[0].close()
    assert first.state == "cancelled"
    queue.position(waiting)
    assert waiting.state == "training"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "There is no text"),
        (" \n\t ", "There is no text"),
        ("too short", "9 characters long; at least 260"),
        ("ä" * 500_001, "1,000,002 bytes long; the limit is 1,000,000"),
    ],
)
def test_texts_that_cannot_be_learned_are_refused(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        choices.dataset_for("text", text)


STEPS = (0, 10, 100)
INDUCTION = {0: 0.01, 10: 0.2, 100: 0.9}  # of layer 1, head 0


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Snapshots of a tiny random model, with made-up figures."""
    folder = tmp_path_factory.mktemp("snapshots")
    config = GPTConfig(257, 128, n_layer=2, n_head=2, n_embd=16)
    for step in STEPS:
        model = GPT(config, generator=torch.Generator().manual_seed(step))
        save_snapshot(folder, step, model, BYTES)
    figures = [
        SnapshotFigures(
            step=step,
            tokens=64 * step,
            loss=5.0 - step / 100,
            bits_per_byte=2.0,
            copy_loss=5.5 - step / 50,
            induction=[[0.1, 0.1], [INDUCTION[step], 0.1]],
            previous_token=[[0.3, 0.7], [0.9, 0.1]],
            prompt="Once",
            sample=f" at step {step}",
        )
        for step in STEPS
    ]
    (folder / "figures.json").write_text(json.dumps([asdict(each) for each in figures]), encoding="utf-8")
    return folder


@pytest.fixture
def watching(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    """A visitor who opened the tab."""
    monkeypatch.setattr(recorded_run, "ASSETS", folder)
    bundled_recording.cache_clear()
    watching = Session(None)
    compute_now(watching, recorded)
    yield watching
    watching.close()
    bundled_recording.cache_clear()


def film_views(watching: Session, film: Film = RECORDED) -> dict:
    """Return the data of the views of a newly opened page."""
    watching.sent.clear()
    tab = train.tab if film is OWN else learned
    views = Drawn(watching, tab, player_card(film), curve_card(film), film_card(film, ExamplePass)).update()
    return {name.removeprefix(f"{film.name}-"): data for name, data in views.items()}


def marked_step(figure: dict) -> float:
    (mark,) = [shape for shape in figure["layout"]["shapes"] if shape.get("yref") == "paper"]
    return mark["x0"]


def test_everything_moves_with_the_step_and_the_head_stays(watching: Session) -> None:
    select(RECORDED, watching, {"layer": 1, "head": 0})
    flows = []
    for moment, step in enumerate(STEPS):
        choose_step(RECORDED, watching, {"moment": moment})
        shown = film_views(watching)
        assert (shown["player"]["moment"], len(shown["player"]["moments"])) == (moment, 3)
        assert marked_step(shown["curve"]["figure"]) == max(step, ZERO_AT)
        assert f"At step {step}, the loss is {5 - step / 100:.2f} nats" in shown["curve"]["text"]
        assert f"layer 1, head 0 puts {percent(INDUCTION[step])}" in shown["curve"]["text"]
        assert "between step 10 and step 100" in shown["curve"]["note"]
        assert shown["player"]["moments"][moment][1] == f"Once at step {step}"
        assert f"At step {step} the outlined head, layer 1, head 0" in shown["heads"]["text"]
        assert shown["heatmap"]["text"].startswith(f"At step {step}, layer 1, head 0")
        assert shown["heatmap"]["figure"]["data"][0]["zmax"] == 1
        flow = shown["flow"]
        assert (flow["layer"], flow["head"]) == (1, 0)
        flows.append(flow["strips"]["post"]["data"])
    assert len(set(flows)) == len(STEPS)


def test_the_moment_when_copying_appears_is_one_click_away(watching: Session) -> None:
    select(RECORDED, watching, {"layer": 0, "head": 0})
    show_copying(watching)
    assert watching.state(Learned).step == 0, "this head never copies"
    select(RECORDED, watching, {"layer": 1, "head": 0})
    show_copying(watching)
    assert watching.state(Learned).step == 100


@pytest.fixture(scope="module")
def run() -> LiveRun:
    recipe = Recipe(n_layer=2, n_head=2, n_embd=16, steps=6, batch_size=4, warmup=2)
    run = LiveRun(TaskDataset(TASKS["reverse"]), recipe)
    run.start()
    assert run.wait(120)
    return run


def at(run: LiveRun, step: int | None = None, **chosen: int) -> Shown:
    """Return the run at a step, by default the newest."""
    return shown_at(Train(step=step, **chosen), run, run.progress)


def test_the_curve_holds_the_numbers_of_the_run(run: LiveRun) -> None:
    progress = run.progress
    _, text, _ = curve_chart(at(run))
    assert f"{progress.evaluations[-1].val_loss:.3f} nats" in text
    assert f"{math.log(run.dataset.vocabulary.n_vocab):.2f}" in text
    assert "of 500 held-out examples" in text
    figure, early, _ = curve_chart(at(run, 0))
    assert f"{progress.evaluations[0].val_loss:.3f} nats" in early
    marks = [shape for shape in figure["layout"]["shapes"] if shape["x0"] == shape["x1"]]
    assert [mark["x0"] for mark in marks] == [ZERO_AT]


def test_a_step_clicked_in_the_curve_is_the_last_evaluated_until_then(watching: Session) -> None:
    for x, step in ((ZERO_AT, 0), (9.9, 0), (10.0, 10), (99.0, 10), (100.0, 100)):
        choose_step(RECORDED, watching, {"x": x})
        assert f"At step {step}, " in film_views(watching)["curve"]["text"]
