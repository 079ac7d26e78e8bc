"""The film of a training: everything shown belongs to one step, and a chosen head stays chosen."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from components.errors import PageError
from components.figures.lines import ZERO_AT
from components.labels import percent
from components.state.session import Session
from components.tabs.inside.machine import ExamplePass
from components.tabs.train import learned
from components.tabs.train import tab as train
from components.tabs.train.curve import choose_step, curve_card
from components.tabs.train.film import Film, choose_head, choose_moment, film_card, select_in_machine
from components.tabs.train.learned import RECORDED, Learned, recorded, show_copying
from components.tabs.train.tab import OWN
from gpt import GPT, GPTConfig
from gpt.trace import Trace
from gpt.training import recorded_run
from gpt.training.data import byte_vocabulary
from gpt.training.live_run import LiveRun
from gpt.training.recipe import Recipe
from gpt.training.recorded_run import RecordedRun, bundled_recording
from gpt.training.run_queue import RunQueue
from gpt.training.snapshots import SnapshotFigures, Snapshots, save_snapshot
from gpt.training.tasks import TASKS, TaskDataset
from tests.components.drawing import Drawn, compute_now

STEPS = (0, 10, 100)
INDUCTION = {0: 0.01, 10: 0.2, 100: 0.9}  # of layer 1, head 0


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Snapshots of a tiny random model, with made-up figures."""
    folder = tmp_path_factory.mktemp("snapshots")
    config = GPTConfig(257, 128, n_layer=2, n_head=2, n_embd=16)
    for step in STEPS:
        model = GPT(config, generator=torch.Generator().manual_seed(step))
        save_snapshot(folder, step, model, byte_vocabulary())
    Snapshots(folder).save_figures(
        [
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
    )
    return folder


@pytest.fixture
def session(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    """A visitor who opened the tab."""
    monkeypatch.setattr(recorded_run, "ASSETS", folder)
    bundled_recording.cache_clear()
    session = Session(None)
    compute_now(session, recorded)
    yield session
    session.close()
    bundled_recording.cache_clear()


def drawn(session: Session, film: Film = RECORDED) -> dict:
    """Return the data of the views of a newly opened page."""
    session.sent.clear()
    tab = train.tab if film is OWN else learned.tab
    views = Drawn(session, tab, curve_card(film), film_card(film, ExamplePass)).update()
    return {name.removeprefix(f"{film.name}-"): data for name, data in views.items()}


def marked_step(figure: dict) -> float:
    (mark,) = [shape for shape in figure["layout"]["shapes"] if shape.get("yref") == "paper"]
    return mark["x0"]


def test_the_recording_has_the_attention_of_each_snapshot(folder: Path) -> None:
    run = RecordedRun(folder)
    assert [each.step for each in run.progress.evaluations] == list(STEPS)
    ids = run.dataset.example
    assert ids[run.dataset.query] in ids[: run.dataset.query]
    for evaluation in run.progress.evaluations:
        trace = Trace()
        with torch.inference_mode():
            run.loaded_at(evaluation).model.hidden_states(torch.tensor([ids]), trace=trace)
        assert np.allclose(evaluation.attn_weights[1, 0], trace.layers[1].attn_weights[0, 0], atol=1e-3)


def test_induction_appears_between_the_last_step_below_one_half_and_the_first_above(folder: Path) -> None:
    run = RecordedRun(folder)
    assert run.appearance(1, 0) == (10, 100)
    assert run.appearance(0, 0) is None


def test_everything_moves_with_the_step_and_the_head_stays(session: Session) -> None:
    choose_head(RECORDED, session, {"layer": 1, "head": 0})
    flows = []
    for moment, step in enumerate(STEPS):
        choose_moment(RECORDED, session, {"moment": moment})
        shown = drawn(session)
        assert (shown["player"]["moment"], shown["player"]["moments"]) == (moment, 3)
        assert marked_step(shown["curve"]["figure"]) == max(step, ZERO_AT)
        assert f"At step {step}, the loss is {5 - step / 100:.2f} nats" in shown["curve"]["text"]
        assert f"layer 1, head 0 puts {percent(INDUCTION[step])}" in shown["curve"]["text"]
        assert "between step 10 and step 100" in shown["curve"]["note"]
        assert shown["sample"]["text"] == f"Once at step {step}"
        assert f"At step {step} the outlined head, layer 1, head 0" in shown["heads"]["text"]
        assert shown["heatmap"]["text"].startswith(f"At step {step}, layer 1, head 0")
        assert shown["heatmap"]["figure"]["data"][0]["zmax"] == 1
        flow = shown["flow"]
        assert (flow["layer"], flow["head"]) == (1, 0)
        flows.append(flow["strips"]["post"]["data"])
    assert len(set(flows)) == len(STEPS)


def test_the_curve_beside_the_loss_is_that_of_the_chosen_head_and_of_the_one_before_it(session: Session) -> None:
    choose_head(RECORDED, session, {"layer": 1, "head": 0})
    lines = drawn(session)["curve"]["figure"]["data"]
    curves = {line["name"]: np.frombuffer(b64decode(line["y"]["bdata"]), "f4") for line in lines}
    assert list(curves["layer 1, head 0: induction"]) == pytest.approx([1, 20, 90])
    assert list(curves["layer 0, head 1: previous token"]) == pytest.approx([70, 70, 70])


def test_a_click_in_the_whole_model_keeps_a_token_a_layer_or_a_head(session: Session) -> None:
    choose_head(RECORDED, session, {"layer": 1, "head": 0})
    select_in_machine(RECORDED, session, {"position": 5})
    select_in_machine(RECORDED, session, {"head": 1})
    select_in_machine(RECORDED, session, {"layer": 2})  # no such layer
    state = session.state(Learned)
    assert (state.position, state.layer, state.head) == (5, 1, 1)
    assert drawn(session)["flow"]["selected"] == 5


def test_a_step_clicked_in_the_curve_is_the_last_evaluated_until_then(session: Session) -> None:
    for x, step in ((ZERO_AT, 0), (9.9, 0), (10.0, 10), (99.0, 10), (100.0, 100)):
        choose_step(RECORDED, session, {"x": x})
        assert f"At step {step}, " in drawn(session)["curve"]["text"]


def test_the_moment_when_copying_appears_is_one_click_away(session: Session) -> None:
    choose_head(RECORDED, session, {"layer": 0, "head": 0})
    show_copying(session)
    assert session.state(Learned).step is None, "this head never copies"
    choose_head(RECORDED, session, {"layer": 1, "head": 0})
    show_copying(session)
    assert session.state(Learned).step == 100


def test_a_training_of_ones_own_is_shown_in_its_tab_and_the_recorded_one_stays_as_it_is(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpt.training.tasks.N_TEST_EXAMPLES", 4)
    run = LiveRun(TaskDataset(TASKS["add"]), Recipe(n_layer=1, n_head=2, n_embd=8, steps=2, batch_size=2, warmup=1))
    monkeypatch.setattr(train, "_new_run", lambda state: run)
    queue = RunQueue(max_running=1)
    assert "player" not in drawn(session, OWN)
    train.start(queue, session)
    assert run.wait(120)
    shown = drawn(session, OWN)
    assert (shown["flow"]["n_layer"], shown["player"]["moments"]) == (1, 3)
    assert drawn(session)["flow"]["n_layer"] == 2
    queue.close()


def test_without_a_recording_the_page_names_the_command_that_makes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "README.md").write_text((recorded_run.ASSETS / "README.md").read_text())
    monkeypatch.setattr(recorded_run, "ASSETS", tmp_path)
    bundled_recording.cache_clear()
    session = Session(None)
    compute_now(session, recorded)
    assert "player" not in drawn(session)
    assert "python -m gpt.training tinystories.txt --out stories-small" in learned.about(session.snapshot())
    bundled_recording.cache_clear()


def test_without_a_run_there_is_nothing_to_steer_or_open() -> None:
    session = Session(None)
    train.pause(session)
    train.cancel(session)
    choose_moment(RECORDED, session, {"moment": 3})
    choose_step(RECORDED, session, {"x": 3})
    select_in_machine(RECORDED, session, {"layer": 0})
    with pytest.raises(PageError):
        list(train.open_model(iter, session))
    assert session.state(Learned).step is None
