"""Live runs: records, endings and results."""

from __future__ import annotations

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
from gpt.training.data import TextDataset
from gpt.training.live_run import LiveRun
from gpt.training.snapshots import snapshot_steps
from gpt.training.tasks import TASKS, TaskDataset, answer
from gpt.training.trainer import Batch
from tests.gpt.training.live_runs import TIMEOUT, TINY, finished

pytestmark = pytest.mark.usefixtures("few_examples")


@pytest.fixture(scope="module")
def done() -> Iterator[LiveRun]:
    """A finished run, which must not be modified."""
    run = finished()
    yield run
    run.close()


@pytest.fixture
def few_evaluations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpt.training.live_run.N_EVALUATIONS", 2)


def test_a_run_ends_after_its_steps_with_a_model_that_has_learned(done: LiveRun) -> None:
    snapshot = done.progress
    assert (snapshot.state, snapshot.step, snapshot.steps, snapshot.ended) == ("finished", 12, 12, True)
    assert [point.step for point in snapshot.losses] == list(range(1, 13))
    assert snapshot.losses[-1].loss < snapshot.losses[0].loss
    assert snapshot.evaluations[-1].val_loss < snapshot.evaluations[0].val_loss
    assert done.loaded.model.config.n_embd == 16
    assert done.n_parameters == sum(parameter.numel() for parameter in done.loaded.model.parameters())
    assert done.progress.seconds == snapshot.seconds  # the clock has stopped


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
    with pytest.raises(ValueError, match=f"{name} must be at most {limit} for live training, not {value}"):
        LiveRun(TaskDataset(TASKS["add"]), replace(TINY, **{name: value}))
    with pytest.raises(ValueError, match="block_size must be at most 128"):
        LiveRun(TextDataset("abc " * 1000, block_size=256), TINY)


@pytest.mark.usefixtures("few_evaluations")
@pytest.mark.parametrize("units", ["characters", "bytes"])
def test_a_text_is_learned_and_continued(units: str) -> None:
    text = "".join(f"{n} Flaschen Tee: 茶\n" for n in range(99))
    evaluation = finished(TextDataset(text, units=units, block_size=16)).progress.evaluations[-1]
    assert evaluation.accuracy is None
    (sample,) = evaluation.samples
    assert (sample.prompt, sample.correct) == ("0", None)
    assert sample.text
    assert evaluation.attn_weights.shape == (2, 2, 16, 16)


@pytest.mark.usefixtures("few_evaluations")
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
