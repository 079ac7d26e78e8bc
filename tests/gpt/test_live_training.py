"""A run in the background: what can be done to it, what it shows, what it leaves."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from gpt.models.checkpoints import open_checkpoint
from gpt.models.registry import get_model, list_models, remove_model
from gpt.training.learner import Batch
from gpt.training.live_run import LOOKS, LiveRun
from gpt.training.own_text import TextMaterial
from gpt.training.recipe import Recipe
from gpt.training.tasks import TASKS, TaskMaterial, answer

TINY = Recipe(n_layer=2, n_head=2, n_embd=16, steps=12, batch_size=8, warmup=2)
LONG = Recipe(n_layer=1, n_head=2, n_embd=8, steps=5000, batch_size=1, warmup=2)
PATIENCE = 120  # seconds until a test gives up


class Gate(TaskMaterial):
    """The sums, but each batch waits until the test lets it through."""

    def __init__(self) -> None:
        super().__init__(TASKS["add"])
        self.wanted, self.given = threading.Semaphore(0), threading.Semaphore(0)

    def batch(self, step: int, size: int) -> Batch:
        self.wanted.release()
        assert self.given.acquire(timeout=PATIENCE)
        return super().batch(step, size)

    def let(self, count: int) -> None:
        """Let so many batches through, and wait until the one after them is asked for."""
        for _ in range(count):
            self.given.release()
            assert self.wanted.acquire(timeout=PATIENCE)

    def reach(self) -> None:
        """Wait until the first batch is asked for."""
        assert self.wanted.acquire(timeout=PATIENCE)


@pytest.fixture
def gated() -> Iterator[tuple[Gate, LiveRun]]:
    """A run that makes one update whenever the test says so."""
    gate = Gate()
    run = LiveRun(gate, LONG)
    run.start()
    gate.reach()
    yield gate, run
    run.cancel()
    gate.given.release()


def finished(material: TaskMaterial | TextMaterial | None = None, recipe: Recipe = TINY) -> LiveRun:
    run = LiveRun(material or TaskMaterial(TASKS["add"]), recipe)
    run.start()
    assert run.wait(PATIENCE)
    return run


def test_a_run_ends_after_its_steps_with_a_model_that_has_learned() -> None:
    run = finished()
    progress = run.progress
    assert (progress.state, progress.step, progress.steps, progress.over, progress.problem) == (
        "finished",
        12,
        12,
        True,
        None,
    )
    assert [point.step for point in progress.losses] == list(range(1, 13))
    assert progress.losses[-1].loss < progress.losses[0].loss
    assert progress.looks[-1].val_loss < progress.looks[0].val_loss
    assert run.loaded.model.config.n_embd == 16
    assert run.progress.seconds == progress.seconds  # the clock has stopped


def test_a_run_steps_aside_for_everybody_else_in_its_own_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    aside: list[int] = []
    monkeypatch.setattr("gpt.training.live_run.lower_priority", lambda: aside.append(threading.get_ident()))
    finished()
    assert len(aside) == 1
    assert aside != [threading.get_ident()]


def test_looks_come_before_the_first_step_at_even_distances_and_at_the_end() -> None:
    progress = finished(recipe=Recipe(**{**vars(TINY), "steps": 2 * LOOKS + 3, "n_embd": 8, "batch_size": 1})).progress
    assert [look.step for look in progress.looks] == [*range(0, 2 * LOOKS + 3, 2), 2 * LOOKS + 3]


def test_a_look_shows_the_attention_of_the_same_example_as_it_changes() -> None:
    run = finished()
    T = len(run.material.watched)
    for look in run.progress.looks:
        assert look.attn_weights.shape == (2, 2, T, T)
        assert np.allclose(look.attn_weights.astype(float).sum(axis=-1), 1, atol=5e-3)
        assert not np.triu(look.attn_weights, k=1).any()
        assert 0 <= look.accuracy <= 1
        assert len(look.samples) == 4
    first, last = run.progress.looks[0], run.progress.looks[-1]
    assert not np.array_equal(first.attn_weights, last.attn_weights)


def test_the_seed_decides_everything_whatever_else_draws_random_numbers() -> None:
    def run(seed: int) -> LiveRun:
        return LiveRun(TaskMaterial(TASKS["add"], seed), Recipe(**{**vars(TINY), "seed": seed}))

    runs = [run(1), run(1), run(2)]
    for each in runs:
        each.start()
    while not all(each.wait(0.01) for each in runs):
        torch.rand(3)
    one, same, other = ([point.loss for point in each.progress.losses] for each in runs)
    assert one == same != other
    assert torch.equal(runs[0].loaded.model.wte.weight, runs[1].loaded.model.wte.weight)


def test_a_paused_run_makes_no_step_until_it_goes_on(gated: tuple[Gate, LiveRun]) -> None:
    gate, run = gated
    gate.let(2)
    assert (run.state, run.progress.step) == ("training", 2)
    run.pause()
    gate.given.release()  # the update at hand is made
    assert not gate.wanted.acquire(timeout=0.3)  # and no other one begun
    assert (run.state, run.progress.step) == ("paused", 3)
    run.pause()
    run.go_on()
    gate.reach()
    assert run.state == "training"
    assert 0.1 <= run.progress.paused <= run.progress.seconds


def test_a_changed_rate_counts_from_the_next_update(gated: tuple[Gate, LiveRun]) -> None:
    gate, run = gated
    gate.let(3)
    run.change_rate(0.5)
    gate.let(2)
    rates = [point.rate for point in run.progress.losses]
    expected = [LONG.muon_lr * LONG.rate(step) for step in range(5)]
    assert rates[:3] == expected[:3]
    assert rates[4] == expected[4] / 2
    assert run.progress.factor == 0.5


@pytest.mark.parametrize("factor", [-1, 101, float("nan"), float("inf")])
def test_rates_out_of_bounds_are_refused(factor: float) -> None:
    with pytest.raises(ValueError, match=f"multiplied by 0 to 100, not {factor:g}"):
        LiveRun(TaskMaterial(TASKS["add"]), TINY).change_rate(factor)


def test_a_cancelled_run_stops_and_leaves_no_model(gated: tuple[Gate, LiveRun]) -> None:
    gate, run = gated
    gate.let(1)
    run.cancel()
    assert run.wait(0)
    gate.given.release()
    assert not gate.wanted.acquire(timeout=0.3)
    assert run.state == "cancelled"
    for use in (lambda: run.loaded, lambda: run.save("nowhere"), run.open):
        with pytest.raises(ValueError, match="this training is cancelled: there is a model when it has finished"):
            use()
    run.go_on()
    run.cancel()
    assert not run.start()
    assert run.state == "cancelled"


def test_a_paused_run_can_be_cancelled(gated: tuple[Gate, LiveRun]) -> None:
    gate, run = gated
    run.pause()
    gate.given.release()
    run.cancel()
    assert run.state == "cancelled"


def test_a_run_whose_time_is_over_keeps_what_it_has_learned() -> None:
    run = LiveRun(TaskMaterial(TASKS["add"]), LONG, time_limit=0.0)
    run.start()
    assert run.wait(PATIENCE)
    assert str(run.progress.problem) == "the limit of 0 seconds ended the training 5,000 steps early"
    assert run.loaded.model.config.n_embd == 8


def test_time_passes_in_a_pause_too() -> None:
    run = LiveRun(TaskMaterial(TASKS["add"]), LONG, time_limit=1.0)
    run.start()
    run.pause()
    assert run.wait(PATIENCE)
    assert run.state == "finished"
    assert "the limit of 1 seconds" in str(run.progress.problem)


def test_a_loss_that_runs_away_ends_the_run_with_a_sentence() -> None:
    run = LiveRun(TaskMaterial(TASKS["add"]), Recipe(**{**vars(TINY), "muon_lr": 1e30, "adamw_lr": 1e30}))
    run.start()
    assert run.wait(PATIENCE)
    assert run.state == "failed"
    assert run.progress.problem.key == "training.loss_infinite"


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_run_that_breaks_off_says_so() -> None:
    class Broken(TaskMaterial):
        def batch(self, step: int, size: int) -> Batch:
            raise RuntimeError("a wire is loose")

    run = finished(Broken(TASKS["add"]))
    for thread in threading.enumerate():
        if thread.name == "live training":
            thread.join(PATIENCE)  # its traceback belongs to this test
    assert run.state == "failed"
    assert run.progress.problem.key == "training.broke_off"


@pytest.mark.parametrize(
    ("name", "most"), [("n_layer", 4), ("n_head", 8), ("n_embd", 128), ("batch_size", 64), ("steps", 5000)]
)
def test_runs_too_large_to_be_watched_are_refused(name: str, most: int) -> None:
    large = Recipe(**{**vars(TINY), name: 2 * most})
    with pytest.raises(ValueError, match=f"{name} must be at most {most} for a training to be watched, not {2 * most}"):
        LiveRun(TaskMaterial(TASKS["add"]), large)


def test_a_context_too_long_to_be_watched_is_refused() -> None:
    with pytest.raises(ValueError, match="block_size must be at most 128"):
        LiveRun(TextMaterial("abc " * 1000, block_size=256), TINY)


@pytest.mark.parametrize("units", ["characters", "bytes"])
def test_a_text_is_learned_and_written(units: str) -> None:
    text = "".join(f"{n} Flaschen Tee: 茶\n" for n in range(99))
    run = finished(TextMaterial(text, units=units, block_size=16))
    look = run.progress.looks[-1]
    assert look.accuracy is None
    assert look.samples[0].right is None
    assert look.samples[0].prompt == "0"
    assert look.samples[0].text
    assert look.attn_weights.shape == (2, 2, 16, 16)


@pytest.mark.parametrize("units", ["characters", "bytes", None])
def test_a_saved_model_is_the_one_that_was_learned(tmp_path: Path, units: str | None) -> None:
    text = TextMaterial("tea for two\n" * 30, units=units, block_size=8) if units else None
    run = finished(text)
    run.save(tmp_path / "model")
    opened = open_checkpoint(tmp_path / "model")
    idx = torch.tensor([run.material.watched])
    with torch.inference_mode():
        assert torch.equal(opened.build()(idx), run.loaded.model(idx))
    for token_id in range(opened.config.vocab_size):
        assert opened.tokenizer.token_bytes(token_id) == run.material.vocabulary.token_bytes(token_id)


def test_an_opened_model_is_like_any_other_but_in_nobodys_list() -> None:
    run = finished()
    before = list_models()
    name = run.open()
    try:
        opened = get_model(name)
        assert list_models() == before
        example = run.material.tested[0]
        given = [answer(loaded, example.prompt, 4) for loaded in (opened, run.loaded)]
        assert given[0] == given[1]
        other = run.open()
        assert other != name
        remove_model(other)
    finally:
        remove_model(name)
    with pytest.raises(ValueError, match="there is no model") as error:
        get_model(name)
    assert name not in str(error.value).partition("known models")[2]
