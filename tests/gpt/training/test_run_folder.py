from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from gpt.models.sources import load_model
from gpt.training.command_line import main
from gpt.training.evaluation import Score
from gpt.training.run_folder import RunFolder
from gpt.training.trainer import Trainer
from tests.gpt.training.tiny_run import TINY, assert_same_weights, weights

pytestmark = pytest.mark.thorough


class Killed(BaseException):
    """Ends a run without saving, like a kill signal."""


def kill() -> None:
    raise Killed


def test_a_run_leaves_log_curve_samples_best_weights_and_a_card(whole_run: Path) -> None:
    folder = RunFolder(whole_run)
    assert [row.step for row in folder.log()] == [5, 10, 12]
    assert [row.tokens for row in folder.log()] == [5 * 64, 10 * 64, 12 * 64]
    assert (whole_run / "curve.png").read_bytes().startswith(b"\x89PNG")
    samples = (whole_run / "samples.txt").read_text(encoding="utf-8")
    assert [line for line in samples.splitlines() if line.startswith("=====")] == [
        f"===== step {n} =====" for n in (5, 10, 12)
    ]
    assert samples.count("Once") >= 3
    files = {"README.md", "config.json", "curve.png", "model.safetensors", "vocab.tiktoken"}
    assert {path.name for path in (whole_run / "best").iterdir()} == files
    assert not list(whole_run.rglob("*.part"))


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
    for one, other in zip(RunFolder(whole_run).log(), RunFolder(tmp_path / "stopped").log(), strict=True):
        assert (one.step, one.train_loss, one.val_loss) == (other.step, other.train_loss, other.val_loss)


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
    save = RunFolder.save
    with monkeypatch.context() as patched:  # the next kill comes between the row of the log and its save
        patched.setattr(RunFolder, "save", lambda self, state: kill() if state["step"] == 10 else save(self, state))
        with pytest.raises(Killed):
            train(tmp_path / "killed", "--resume")
    assert [row.step for row in RunFolder(tmp_path / "killed").log()] == [5, 10]
    assert torch.load(tmp_path / "killed" / "last.pt", weights_only=True)["step"] == 5
    assert train(tmp_path / "killed", "--resume") == 0
    assert_same_weights(whole_run, tmp_path / "killed")
    assert [row.step for row in RunFolder(tmp_path / "killed").log()] == [5, 10, 12]


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

from gpt.training import run_folder
from gpt.training.command_line import main

run_folder.SAMPLE_TOKENS = 5
code, threads = main(), []
for task in Path("/proc/self/task").glob("*"):
    with suppress(OSError):  # it has ended
        threads.append(task.joinpath("comm").read_text())
assert not any("gloo" in name for name in threads), threads
sys.exit(code)
"""


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
    logs = [[row.val_loss for row in RunFolder(tmp_path / name).log()] for name in ("one", "two")]
    assert logs[0] == pytest.approx(logs[1], abs=1e-5)
