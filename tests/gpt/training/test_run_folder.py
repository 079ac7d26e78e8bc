"""Runs of the command: their folder, refusals, and starts from another model."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from gpt import GPT, GPTConfig
from gpt.models.checkpoints.writing import save_model
from gpt.models.sources import BUNDLED, load_model
from gpt.tokenizer import load_vocabulary
from gpt.training.command_line import FolderRun, main, read_log
from gpt.training.data import with_repeats
from gpt.training.evaluation import Score
from gpt.training.recipe import Recipe
from gpt.training.trainer import Trainer
from tests.gpt.training.tiny_run import TINY, assert_one_sentence, assert_same_weights, contents, weights
from tools.model_card import main as write_card


class Killed(BaseException):
    """Ends a run without saving, like a kill signal."""


def kill() -> None:
    raise Killed


@pytest.mark.thorough
def test_a_run_leaves_log_curve_samples_best_weights_and_a_card(run_with_card: Path) -> None:
    assert [row.step for row in read_log(run_with_card)] == [5, 10, 12]
    assert [row.tokens for row in read_log(run_with_card)] == [5 * 64, 10 * 64, 12 * 64]
    assert (run_with_card / "best" / "curve.png").read_bytes().startswith(b"\x89PNG")
    samples = (run_with_card / "samples.txt").read_text(encoding="utf-8")
    assert [line for line in samples.splitlines() if line.startswith("=====")] == [
        f"===== step {n} =====" for n in (5, 10, 12)
    ]
    assert samples.count("Once") >= 3
    files = {"README.md", "config.json", "curve.png", "model.safetensors", "vocab.tiktoken"}
    assert {path.name for path in (run_with_card / "best").iterdir()} == files
    assert not list(run_with_card.rglob("*.part"))


@pytest.mark.thorough
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_run_resumes_at_its_step_and_ends_in_the_same_weights(
    tmp_path: Path, whole_run: Path, train: Callable[..., int], at_step: Callable[..., None], number: signal.Signals
) -> None:
    handler = signal.getsignal(number)
    at_step(7, lambda: os.kill(os.getpid(), number))
    assert train(tmp_path / "stopped") == 128 + number
    assert signal.getsignal(number) == handler
    assert torch.load(tmp_path / "stopped" / "last.pt", weights_only=True)["step"] == 7
    assert main(["--out", str(tmp_path / "stopped"), "--resume"]) == 0
    assert_same_weights(whole_run, tmp_path / "stopped")
    for one, other in zip(read_log(whole_run), read_log(tmp_path / "stopped"), strict=True):
        assert (one.step, one.train_loss, one.val_loss) == (other.step, other.train_loss, other.val_loss)


@pytest.mark.thorough
def test_a_killed_run_resumes_from_its_last_save_and_ends_in_the_same_weights(
    tmp_path: Path,
    whole_run: Path,
    train: Callable[..., int],
    at_step: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    at_step(3, kill)
    with pytest.raises(Killed):
        train(tmp_path / "killed")
    save = FolderRun.save
    with monkeypatch.context() as patched:  # the next kill comes between the row of the log and its save
        patched.setattr(FolderRun, "save", lambda self, state: kill() if state["step"] == 10 else save(self, state))
        with pytest.raises(Killed):
            train(tmp_path / "killed", "--resume")
    assert [row.step for row in read_log(tmp_path / "killed")] == [5, 10]
    assert torch.load(tmp_path / "killed" / "last.pt", weights_only=True)["step"] == 5
    assert train(tmp_path / "killed", "--resume") == 0
    assert_same_weights(whole_run, tmp_path / "killed")
    assert [row.step for row in read_log(tmp_path / "killed")] == [5, 10, 12]


@pytest.mark.thorough
def test_the_best_weights_are_those_of_the_lowest_held_back_loss(
    tmp_path: Path, train: Callable[..., int], monkeypatch: pytest.MonkeyPatch
) -> None:
    losses = {5: 3.0, 10: 2.0, 12: 2.5}
    kept = {}

    def score(trainer: Trainer, *_: object) -> Score:
        kept[trainer.step] = trainer.model.wte.weight.detach().half().float()
        return Score(losses[trainer.step], 1, 1)

    monkeypatch.setattr(Trainer, "score", score)
    assert train(tmp_path / "out") == 0
    best = load_model(tmp_path / "out" / "best", device="cpu").model
    assert torch.equal(best.wte.weight, kept[10])
    assert not torch.equal(best.wte.weight, kept[12])


# A thread left over from the process group can crash Python at exit. That is rare, so list the threads here.
TRAIN_AND_LIST_THREADS = """
import sys
from contextlib import suppress
from pathlib import Path

from gpt.training import command_line
from gpt.training.command_line import main

command_line.SAMPLE_TOKENS = 5
code, threads = main(), []
for task in Path("/proc/self/task").glob("*"):
    with suppress(OSError):  # it has ended
        threads.append(task.joinpath("comm").read_text())
assert not any("gloo" in name for name in threads), threads
sys.exit(code)
"""


@pytest.mark.thorough
def test_two_processes_end_in_the_weights_of_one(tmp_path: Path, stories_file: Path, train: Callable[..., int]) -> None:
    options = ["--optimizer", "adamw", "--dropout", "0", "--steps", "6", "--every", "3"]
    assert train(tmp_path / "one", *options) == 0
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    script = tmp_path / "train_and_look.py"
    script.write_text(TRAIN_AND_LIST_THREADS)
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "GLOO_SOCKET_IFNAME": "lo"}
    environment["PYTHONPATH"] = str(Path(__file__).parents[3])
    command = [*launch, str(script), str(stories_file), "--out", str(tmp_path / "two"), *TINY, *options]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    one, two = weights(tmp_path / "one"), weights(tmp_path / "two")
    for name, value in one.items():
        assert (value - two[name]).abs().max() <= 1e-5, name
    logs = [[row.val_loss for row in read_log(tmp_path / name)] for name in ("one", "two")]
    assert logs[0] == pytest.approx(logs[1], abs=1e-5)


def test_a_failed_save_leaves_the_previous_one(
    tmp_path: Path,
    train: Callable[..., int],
    at_step: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def cut(state: object, file: object) -> None:
        file.write(b"half")
        raise OSError(28, "No space left on device")

    out = tmp_path / "out"
    at_step(9, lambda: monkeypatch.setattr(torch, "save", cut))
    assert train(out) == 1
    assert torch.load(out / "last.pt", weights_only=True)["step"] == 5
    assert capsys.readouterr().err == "gpt.training: No space left on device\n"


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ([], "is not empty"),
        (["--resume", "--seed", "3"], "started with seed 1337, not 3"),
    ],
)
def test_a_run_is_not_overwritten_nor_resumed_with_another_recipe(
    whole_run: Path,
    stories_file: Path,
    train: Callable[..., int],
    capsys: pytest.CaptureFixture[str],
    more: list[str],
    sentence: str,
) -> None:
    before = contents(whole_run)
    assert train(whole_run, *more) == 1
    assert contents(whole_run) == before
    assert_one_sentence(capsys, sentence)
    stories_file.write_text(stories_file.read_text(encoding="utf-8").replace("ball", "bell"), encoding="utf-8")
    assert train(whole_run, "--resume") == 1
    assert_one_sentence(capsys, "is not the text that the run")


@pytest.mark.parametrize(
    ("content", "more", "sentence"),
    [
        (None, [], "there is no file"),
        (b"", [], "contains no text"),
        (b"abc \xff", [], "is not UTF-8 text"),
        (b"Too short.", [], "the training text has"),
        (b"This text is long enough, but its end is not. " * 3, [], "the held-back text has"),
        (b"some text", ["--vocab-size", "200"], "vocab_size must be a number of at least 257, not 200"),
        (b"some text", ["--n-head", "3"], "must be divisible by n_head (3)"),
        (b"some text", ["--resume"], "last.pt is missing"),
    ],
)
def test_invalid_runs_are_refused_in_a_sentence_and_leave_no_folder(
    tmp_path: Path,
    stories_file: Path,
    train: Callable[..., int],
    capsys: pytest.CaptureFixture[str],
    content: bytes | None,
    more: list[str],
    sentence: str,
) -> None:
    if content is None:
        stories_file.unlink()
    else:
        stories_file.write_bytes(content)
    assert train(tmp_path / "out", *more) == 1
    assert not (tmp_path / "out").exists()
    assert_one_sentence(capsys, sentence)


@pytest.mark.parametrize("optimizer", ["muon", "adamw"])
def test_a_learning_rate_that_diverges_ends_in_a_sentence(
    tmp_path: Path, train: Callable[..., int], capsys: pytest.CaptureFixture[str], optimizer: str
) -> None:
    assert train(tmp_path / "out", "--optimizer", optimizer, "--adamw-lr", "1e30", "--muon-lr", "1e30") == 1
    assert_one_sentence(capsys, "try lower rates than adamw_lr 1e+30")
    assert torch.load(tmp_path / "out" / "last.pt", weights_only=True)["step"] == 0


def test_invalid_arguments_exit_with_the_code_of_argparse(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (
        ["stories.txt"],
        ["--steps", "many"],
        ["--out", "x"],
        ["stories.txt", "--characters", "novel.txt", "--out", "x"],
        ["--characters", "novel.txt", "--out", "x", "--vocab-size", "300"],
    ):
        with pytest.raises(SystemExit) as error:
            main(arguments)
        assert error.value.code == 2
    assert "usage: python -m gpt.training" in capsys.readouterr().err


ROWS = np.full((16, 257), 7, dtype=np.int32)

TOKENIZER = load_vocabulary(BUNDLED / "vocab.tiktoken")

RECIPE = replace(Recipe(), steps=101, repeats_first=0.5, repeats_last=0.1)


def n_repeated(step: int) -> int:
    return int((with_repeats(ROWS, TOKENIZER, RECIPE, step).targets == -100).any(dim=1).sum())


def test_a_repeated_row_is_one_random_sequence_again_and_again_and_only_its_repetition_is_a_target() -> None:
    batch = with_repeats(ROWS, TOKENIZER, replace(RECIPE, repeats_first=1.0), 0)
    starts = set()
    for idx, targets in zip(batch.idx, batch.targets, strict=True):
        uncounted = int((targets == -100).sum())
        assert (targets[uncounted:] != -100).all()
        start = int(idx[0] == TOKENIZER.eot_id)
        length = uncounted - start
        assert 8 <= length <= 120
        text = torch.cat([idx[start:], targets[-1:]])
        assert torch.equal(text[length:], text[:-length])
        assert torch.equal(targets[uncounted:], text[length + 1 :])
        assert not (text[:length] == TOKENIZER.eot_id).any()
        starts.add(start)
    assert starts == {0, 1}


def test_the_share_of_repeated_rows_changes_in_a_line() -> None:
    assert [RECIPE.repeats(step) for step in (0, 50, 100)] == pytest.approx([0.5, 0.3, 0.1])
    assert n_repeated(0) == 8
    assert np.mean([n_repeated(step) for step in range(101)]) == pytest.approx(16 * 0.3, abs=0.3)


def test_a_run_begins_with_the_weights_the_shape_and_the_vocabulary_of_a_model(
    tmp_path: Path, whole_run: Path, train: Callable[..., int]
) -> None:
    best = load_model(whole_run / "best", device="cpu")
    out = tmp_path / "continued"
    still = ("--adamw-lr", "0", "--muon-lr", "0", "--n-layer", "2")
    assert train(out, "--init-from", str(whole_run / "best"), "--repeats-first", "0.5", *still) == 0
    for name, weight in best.model.state_dict().items():
        assert torch.equal(weights(out)[name], weight)
    assert write_card([str(out)]) == 0
    card = (out / "best" / "README.md").read_text(encoding="utf-8")
    assert "Trained from the weights of best with" in card
    assert "--init-from best" in card
    assert load_model(out / "best", device="cpu").tokenizer.encode("Tom saw") == best.tokenizer.encode("Tom saw")


def test_a_model_that_no_recipe_makes_is_refused(
    tmp_path: Path, whole_run: Path, train: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    tokenizer = load_model(whole_run / "best", device="cpu").tokenizer
    other = GPTConfig(tokenizer.n_vocab, 16, n_layer=1, n_head=2, n_embd=16, activation="relu")
    save_model(tmp_path / "relu", GPT(other), tokenizer)
    assert train(tmp_path / "out", "--init-from", str(tmp_path / "relu")) == 1
    assert_one_sentence(capsys, "no recipe creates a model with activation relu")
