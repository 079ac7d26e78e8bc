"""Live runs: records, endings, results, controls, and their queue."""

from __future__ import annotations

import gc
import weakref
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from gpt.models.checkpoints.checkpoint import open_checkpoint
from gpt.models.registry import get_model, list_models
from gpt.training.data import BYTES, TASKS, TaskDataset, TextDataset
from gpt.training.evaluation import sample
from gpt.training.live_run import LiveRun, RunQueue
from gpt.training.trainer import Batch
from tests.gpt.training.live_runs import LONG, TIMEOUT, TINY, Gate, finished


@pytest.fixture(autouse=True, scope="module")
def short_evaluations() -> Iterator[None]:
    """Evaluate twice per run, on 20 examples, with samples of a few tokens."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gpt.training.live_run.N_EVALUATIONS", 2)
        patch.setattr("gpt.training.data.N_TEST_EXAMPLES", 20)
        patch.setattr("gpt.training.data.SAMPLE_TOKENS", 5)
        yield


@pytest.fixture(scope="module")
def done() -> Iterator[LiveRun]:
    """A finished run, which must not be modified."""
    run = finished()
    yield run
    run.close()


def test_a_run_ends_after_its_steps_with_a_model_that_has_learned(done: LiveRun) -> None:
    snapshot = done.progress
    assert (snapshot.state, snapshot.step, snapshot.steps, snapshot.ended) == ("finished", 12, 12, True)
    assert snapshot.losses[-1] < snapshot.losses[0]
    assert snapshot.evaluations[-1].val_loss < snapshot.evaluations[0].val_loss
    assert done.loaded.model.config.n_embd == 16
    assert done.n_parameters == sum(parameter.numel() for parameter in done.loaded.model.parameters())
    assert done.progress.seconds == snapshot.seconds  # the clock has stopped


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


@pytest.mark.parametrize("vocabulary", [None, BYTES])
def test_a_text_is_learned_and_continued_and_the_archive_holds_the_model(tmp_path: Path, vocabulary) -> None:
    text = "".join(f"{n} Flaschen Tee: 茶\n" for n in range(99))
    run = finished(TextDataset(text, vocabulary=vocabulary, block_size=16))
    evaluation = run.progress.evaluations[-1]
    assert evaluation.accuracy is None
    (sample,) = evaluation.samples
    assert (sample.prompt, sample.correct) == ("0", None)
    assert sample.text
    assert evaluation.attn_weights.shape == (2, 2, 16, 16)
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


def test_a_registered_model_equals_the_trained_one_until_the_run_is_closed(tmp_path: Path) -> None:
    before, run = list_models(), finished()
    name = run.register()
    assert name == run.register() == run.registered_name
    assert list_models() == before
    prompt = run.dataset.start
    texts = [sample(each, prompt, max_new_tokens=4, temperature=0) for each in (get_model(name), run.loaded)]
    assert texts[0] == texts[1]
    model = weakref.ref(run.loaded.model)
    for _ in range(2):
        run.close()
        assert (run.state, run.progress.losses, run.progress.evaluations) == ("cancelled", (), ())
        assert run.registered_name is None
        with pytest.raises(ValueError, match="there is no model") as error:
            get_model(name)
        assert name not in str(error.value).partition("known models")[2]
        for use in (lambda: run.loaded, lambda: run.write_archive(tmp_path), run.register):
            with pytest.raises(ValueError, match="this training run is cancelled"):
                use()
        run.start()
    del error
    gc.collect()
    assert model() is None


@pytest.fixture
def gated() -> Iterator[tuple[Gate, LiveRun]]:
    """A run that waits for the test's permission at its first batch."""
    gate = Gate()
    run = LiveRun(gate, LONG)
    run.start()
    gate.reach()
    yield gate, run
    gate.open()
    run.close()


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
    assert (run.state, run.progress.step) == ("finished", 3)  # the current update was still completed
    assert 0 < run.progress.paused_seconds <= run.progress.seconds


def test_a_rate_factor_applies_from_the_next_update(gated: tuple[Gate, LiveRun]) -> None:
    gate, run = gated
    gate.let(3)
    run.rate_factor = 0.5
    gate.let(2)
    rates = run.progress.rates
    expected = [LONG.muon_lr * LONG.lr_factor(step) for step in range(5)]
    assert list(rates[:3]) == expected[:3]
    assert rates[4] == expected[4] / 2


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
        with pytest.raises(
            ValueError, match="this training run is cancelled: its model is available when it has finished"
        ):
            use()
    run.resume()
    run.start()
    gate.open()
    run._thread.join(TIMEOUT)
    assert (run.state, run.progress.step) == ("cancelled", 2)
    assert not gate.requested.acquire(blocking=False)


@pytest.fixture
def runs() -> Iterator[list[LiveRun]]:
    """Four runs that have not been started. Each stops at its first batch."""
    runs = [LiveRun(Gate(), LONG) for _ in range(4)]
    yield runs
    for run in runs:
        end(run)


def end(run: LiveRun) -> None:
    run.dataset.open()
    run.close()


def status(queue: RunQueue, runs: list[LiveRun]) -> list[tuple[str, int]]:
    return [(run.state, queue.position(run)) for run in runs]


def test_runs_start_in_the_order_of_their_submission(runs: list[LiveRun]) -> None:
    queue = RunQueue(max_running=2)
    for run in runs:
        queue.submit(run)
    assert status(queue, runs) == [("training", 0), ("training", 0), ("waiting", 1), ("waiting", 2)]
    end(runs[0])
    runs[2].dataset.reach()
    assert status(queue, runs[1:]) == [("training", 0), ("training", 0), ("waiting", 1)]


@pytest.mark.parametrize("leave", [LiveRun.cancel, LiveRun.close])
def test_cancelling_a_waiting_run_advances_those_behind_it(runs: list[LiveRun], leave) -> None:
    queue = RunQueue(max_running=1)
    for run in runs[:3]:
        queue.submit(run)
    leave(runs[1])
    assert status(queue, runs[:3]) == [("training", 0), ("cancelled", 0), ("waiting", 1)]
    end(runs[0])
    runs[2].dataset.reach()
    assert runs[2].state == "training"


def test_a_full_queue_refuses_runs_until_one_leaves_it(runs: list[LiveRun], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpt.training.live_run.MAX_WAITING", 2)
    queue = RunQueue(max_running=1)
    for run in runs[:3]:
        queue.submit(run)
    with pytest.raises(ValueError, match="2 trainings are waiting already"):
        queue.submit(runs[3])
    runs[1].cancel()
    queue.submit(runs[3])
    assert status(queue, runs[2:]) == [("waiting", 1), ("waiting", 2)]


def test_an_owner_has_part_of_the_queue(runs: list[LiveRun], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpt.training.live_run.MAX_WAITING_OF_OWNER", 1)
    queue = RunQueue(max_running=1)
    for run in runs[:2]:
        queue.submit(run, "a")
    with pytest.raises(ValueError, match="1 trainings from one address wait"):
        queue.submit(runs[2], "a")
    queue.submit(runs[2], "b")
    assert status(queue, runs[1:3]) == [("waiting", 1), ("waiting", 2)]


def test_closing_ends_all_runs_and_their_threads(runs: list[LiveRun]) -> None:
    queue = RunQueue(max_running=2)
    for run in runs:
        queue.submit(run)
        run.dataset.open()
    threads = [run._thread for run in runs[:2]]
    queue.close()
    assert status(queue, runs) == [("cancelled", 0)] * 4
    assert not any(thread.is_alive() for thread in threads)
