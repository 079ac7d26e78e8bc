"""Live runs: their records, controls, results, and what `close` frees."""

from __future__ import annotations

import gc
import threading
import weakref
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from gpt.models.checkpoints import open_checkpoint
from gpt.models.registry import get_model, list_models
from gpt.trace import Trace
from gpt.training.dataset import Dataset
from gpt.training.live_run import N_EVALUATIONS, LiveRun
from gpt.training.recipe import Recipe
from gpt.training.snapshots import snapshot_steps
from gpt.training.tasks import TASKS, TaskDataset, answer
from gpt.training.text_dataset import TextDataset
from gpt.training.trainer import Batch

TINY = Recipe(n_layer=2, n_head=2, n_embd=16, steps=12, batch_size=8, warmup=2)
LONG = Recipe(n_layer=1, n_head=2, n_embd=8, steps=5000, batch_size=1, warmup=2)
TIMEOUT = 120  # seconds until a test gives up


class Gate(TaskDataset):
    """The sums, but each batch waits until the test permits it."""

    def __init__(self) -> None:
        super().__init__(TASKS["add"])
        self.requested, self.permitted = threading.Semaphore(0), threading.Semaphore(0)

    def batch(self, step: int, size: int) -> Batch:
        self.requested.release()
        assert self.permitted.acquire(timeout=TIMEOUT)
        return super().batch(step, size)

    def reach(self) -> None:
        """Wait until a batch is requested."""
        assert self.requested.acquire(timeout=TIMEOUT)

    def let(self, count: int) -> None:
        """Permit `count` batches, and wait until the next one is requested."""
        for _ in range(count):
            self.permitted.release()
            self.reach()

    def open(self) -> None:
        """Permit every batch."""
        self.permitted.release(LONG.steps)


@pytest.fixture(scope="module", autouse=True)
def few_examples() -> Iterator[None]:
    """An evaluation of these runs is of 20 examples."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gpt.training.tasks.N_TEST_EXAMPLES", 20)
        yield


@pytest.fixture
def gated() -> Iterator[tuple[Gate, LiveRun]]:
    """A run that waits at its first batch for the test to permit it."""
    gate = Gate()
    run = LiveRun(gate, LONG)
    run.start()
    gate.reach()
    yield gate, run
    gate.open()
    run.close()


def finished(dataset: Dataset | None = None, recipe: Recipe = TINY) -> LiveRun:
    run = LiveRun(dataset or TaskDataset(TASKS["add"]), recipe)
    run.start()
    assert run.wait(TIMEOUT)
    return run


@pytest.fixture(scope="module")
def done() -> Iterator[LiveRun]:
    """A finished run; must not be changed."""
    run = finished()
    yield run
    run.close()


def test_a_run_ends_after_its_steps_with_a_model_that_has_learned(done: LiveRun) -> None:
    snapshot = done.progress
    assert (snapshot.state, snapshot.step, snapshot.steps, snapshot.ended) == ("finished", 12, 12, True)
    assert [point.step for point in snapshot.losses] == list(range(1, 13))
    assert snapshot.losses[-1].loss < snapshot.losses[0].loss
    assert snapshot.evaluations[-1].val_loss < snapshot.evaluations[0].val_loss
    assert done.loaded.model.config.n_embd == 16
    assert done.n_parameters == sum(parameter.numel() for parameter in done.loaded.model.parameters())
    assert done.progress.seconds == snapshot.seconds  # the clock has stopped


def test_a_run_trains_at_low_priority_in_its_own_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[int] = []
    monkeypatch.setattr("gpt.training.live_run.lower_priority", lambda: threads.append(threading.get_ident()))
    finished()
    assert len(threads) == 1
    assert threads != [threading.get_ident()]


def test_evaluations_come_before_the_first_step_on_a_log_scale_and_at_the_end() -> None:
    recipe = replace(TINY, steps=40, n_embd=8, batch_size=1)
    progress = finished(recipe=recipe).progress
    assert tuple(evaluation.step for evaluation in progress.evaluations) == snapshot_steps(40, N_EVALUATIONS)


def test_a_run_takes_fewer_snapshots_where_they_would_take_too_much_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    n_parameters = LiveRun(TaskDataset(TASKS["add"]), TINY).n_parameters
    monkeypatch.setattr("gpt.training.live_run.MAX_SNAPSHOT_BYTES", 4 * n_parameters)
    assert [evaluation.step for evaluation in finished().progress.evaluations] == [*snapshot_steps(12, 4)]


def test_the_model_of_an_evaluation_is_the_one_that_was_evaluated(done: LiveRun) -> None:
    idx = torch.tensor([done.dataset.example])
    for evaluation in (done.progress.evaluations[0], done.progress.evaluations[-1]):
        trace = Trace()
        with torch.inference_mode():
            done.loaded_at(evaluation).model.hidden_states(idx, trace=trace)
        weights = torch.stack([layer.attn_weights[0] for layer in trace.layers]).numpy()
        assert np.allclose(weights, evaluation.attn_weights, atol=0.02)


def test_every_evaluation_has_the_attention_weights_of_the_same_example(done: LiveRun) -> None:
    T = len(done.dataset.example)
    for evaluation in done.progress.evaluations:
        assert evaluation.attn_weights.shape == (2, 2, T, T)
        assert np.allclose(evaluation.attn_weights.astype(float).sum(axis=-1), 1, atol=5e-3)
        assert not np.triu(evaluation.attn_weights, k=1).any()
        assert 0 <= evaluation.accuracy <= 1
        assert len(evaluation.samples) == 4
    first, *_, last = done.progress.evaluations
    assert not np.array_equal(first.attn_weights, last.attn_weights)


def test_the_seed_determines_a_run_independently_of_the_global_generator() -> None:
    runs = [LiveRun(TaskDataset(TASKS["add"], seed), replace(TINY, seed=seed)) for seed in (1, 1, 2)]
    for run in runs:
        run.start()
    while not all(run.wait(0.01) for run in runs):
        torch.rand(3)
    one, same, other = ([point.loss for point in run.progress.losses] for run in runs)
    assert one == same != other
    assert torch.equal(runs[0].loaded.model.wte.weight, runs[1].loaded.model.wte.weight)


def test_a_paused_run_makes_no_update_until_it_is_resumed(gated: tuple[Gate, LiveRun]) -> None:
    gate, run = gated
    gate.let(2)
    run.pause()
    run.pause()
    assert (run.state, run.progress.step) == ("paused", 2)
    run.resume()
    gate.let(1)
    assert (run.state, run.progress.step) == ("training", 3)


def test_a_pause_lasts_until_the_time_limit_at_most(gated: tuple[Gate, LiveRun]) -> None:
    gate, run = gated
    gate.let(2)
    run.pause()
    run.time_limit_seconds = run.progress.seconds + 0.2
    gate.open()
    assert run.wait(TIMEOUT)
    assert (run.state, run.progress.step) == ("finished", 3)  # the current update was completed
    assert 0 < run.progress.paused_seconds <= run.progress.seconds


def test_a_run_at_its_time_limit_finishes_with_its_current_weights() -> None:
    run = LiveRun(TaskDataset(TASKS["add"]), LONG, time_limit_seconds=0.0)
    run.start()
    assert run.wait(TIMEOUT)
    assert (run.state, run.progress.step, run.progress.steps) == ("finished", 0, 5000)
    assert run.loaded.model.config.n_embd == 8


def test_a_rate_factor_applies_from_the_next_update(gated: tuple[Gate, LiveRun]) -> None:
    gate, run = gated
    gate.let(3)
    run.set_rate_factor(0.5)
    gate.let(2)
    rates = [point.rate for point in run.progress.losses]
    expected = [LONG.muon_lr * LONG.lr_factor(step) for step in range(5)]
    assert rates[:3] == expected[:3]
    assert rates[4] == expected[4] / 2
    assert run.progress.rate_factor == 0.5
    for factor in (-1, 101, float("nan"), float("inf")):
        with pytest.raises(ValueError, match=f"multiplied by 0 to 100, not {factor:g}"):
            run.set_rate_factor(factor)


@pytest.mark.parametrize("paused", [False, True])
def test_a_cancelled_run_stops_after_the_current_update_and_leaves_no_model(
    gated: tuple[Gate, LiveRun], paused: bool
) -> None:
    gate, run = gated
    gate.let(1)
    if paused:
        run.pause()
    run.cancel()
    assert run.wait(0)
    for use in (lambda: run.loaded, lambda: run.save("nowhere"), run.register):
        with pytest.raises(ValueError, match="this training is cancelled: there is a model when it has finished"):
            use()
    run.resume()
    assert not run.start()
    gate.open()
    run._thread.join(TIMEOUT)
    assert (run.state, run.progress.step) == ("cancelled", 2)
    assert not gate.requested.acquire(blocking=False)


def test_a_loss_that_diverges_ends_the_run() -> None:
    assert finished(recipe=replace(TINY, muon_lr=1e30, adamw_lr=1e30)).state == "diverged"


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_an_unexpected_error_ends_the_run_as_crashed() -> None:
    class Broken(TaskDataset):
        def batch(self, step: int, size: int) -> Batch:
            raise RuntimeError("broken")

    run = finished(Broken(TASKS["add"]))
    run._thread.join(TIMEOUT)  # its traceback is printed during this test
    assert run.state == "crashed"


@pytest.mark.parametrize(
    ("name", "limit"),
    [("n_layer", 4), ("n_head", 8), ("n_embd", 128), ("batch_size", 64), ("steps", 5000)],
)
def test_recipes_beyond_the_limits_are_refused(name: str, limit: int) -> None:
    value = 2 * limit
    with pytest.raises(ValueError, match=f"{name} must be at most {limit} for a training to be watched, not {value}"):
        LiveRun(TaskDataset(TASKS["add"]), replace(TINY, **{name: value}))
    with pytest.raises(ValueError, match="block_size must be at most 128"):
        LiveRun(TextDataset("abc " * 1000, block_size=256), TINY)


@pytest.mark.parametrize("units", ["characters", "bytes"])
def test_a_text_is_learned_and_continued(units: str) -> None:
    text = "".join(f"{n} Flaschen Tee: 茶\n" for n in range(99))
    evaluation = finished(TextDataset(text, units=units, block_size=16)).progress.evaluations[-1]
    assert evaluation.accuracy is None
    (sample,) = evaluation.samples
    assert (sample.prompt, sample.correct) == ("0", None)
    assert sample.text
    assert evaluation.attn_weights.shape == (2, 2, 16, 16)


@pytest.mark.parametrize("units", ["characters", "bytes", None])
def test_the_archive_holds_the_model_that_was_trained(tmp_path: Path, units: str | None) -> None:
    run = finished(TextDataset("tea for two\n" * 30, units=units, block_size=8) if units else None)
    (tmp_path / "files").mkdir()
    path = run.write_archive(tmp_path / "files")
    assert list(path.parent.iterdir()) == [path]
    with zipfile.ZipFile(path) as archive:
        assert len(archive.namelist()) == 3
        archive.extractall(tmp_path)
    opened = open_checkpoint(tmp_path)
    idx = torch.tensor([run.dataset.example])
    with torch.inference_mode():
        assert torch.equal(opened.build()(idx), run.loaded.model(idx))
    for token_id in range(opened.config.vocab_size):
        assert opened.tokenizer.token_bytes(token_id) == run.dataset.vocabulary.token_bytes(token_id)
    run.close()


def test_a_registered_model_equals_the_trained_one_and_is_not_listed() -> None:
    before, run = list_models(), finished()
    name = run.register()
    assert name == run.register() == run.registered_name
    assert list_models() == before
    prompt = run.dataset.start
    assert answer(get_model(name), prompt, 4) == answer(run.loaded, prompt, 4)
    run.close()
    with pytest.raises(ValueError, match="there is no model") as error:
        get_model(name)
    assert name not in str(error.value).partition("known models")[2]


def test_closing_frees_the_model_and_its_name_and_can_be_repeated(tmp_path: Path) -> None:
    run = finished()
    name, model = run.register(), weakref.ref(run.loaded.model)
    for _ in range(2):
        run.close()
        assert (run.state, run.progress.losses, run.progress.evaluations) == ("cancelled", (), ())
        assert run.registered_name is None
        with pytest.raises(ValueError, match="there is no model"):
            get_model(name)
        for use in (lambda: run.loaded, lambda: run.write_archive(tmp_path), run.register):
            with pytest.raises(ValueError, match="this training is cancelled"):
                use()
        assert not run.start()
    gc.collect()
    assert model() is None


def test_a_waiting_run_can_be_closed() -> None:
    run = LiveRun(TaskDataset(TASKS["add"]), TINY)
    run.close()
    assert (run.state, run.start()) == ("cancelled", False)


@pytest.mark.parametrize("paused", [False, True])
def test_closing_ends_the_thread_of_a_run(gated: tuple[Gate, LiveRun], paused: bool) -> None:
    gate, run = gated
    gate.let(1)
    if paused:
        run.pause()
    gate.open()
    run.close()
    assert not run._thread.is_alive()
    assert run.state == "cancelled"
