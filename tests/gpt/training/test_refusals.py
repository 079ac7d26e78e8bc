from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from gpt.model import GPT
from gpt.training.command_line import main
from tests.gpt.training.tiny_run import assert_one_sentence, contents


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
        (["--resume", "--n-embd", "32"], "started with n_embd 16, not 32"),
        (["--resume", "--steps", "400"], "started with steps 12, not 400"),
    ],
)
def test_a_run_is_not_overwritten_nor_resumed_with_another_recipe(
    whole_run: Path, train: Callable[..., int], capsys: pytest.CaptureFixture[str], more: list[str], sentence: str
) -> None:
    before = contents(whole_run)
    assert train(whole_run, *more) == 1
    assert contents(whole_run) == before
    assert_one_sentence(capsys, sentence)


def test_another_text_is_refused(
    whole_run: Path, stories_file: Path, train: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
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


def test_an_unreadable_last_checkpoint_is_refused(
    tmp_path: Path, train: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "out").mkdir()
    for content in (b"", b"no checkpoint at all"):
        (tmp_path / "out" / "last.pt").write_bytes(content)
        assert train(tmp_path / "out", "--resume") == 1
        assert_one_sentence(capsys, "cannot be read")
    torch.save({"weights": 1}, tmp_path / "out" / "last.pt")
    assert train(tmp_path / "out", "--resume") == 1
    assert_one_sentence(capsys, "not from a run of this program")


@pytest.mark.parametrize("optimizer", ["muon", "adamw"])
def test_a_learning_rate_that_diverges_ends_in_a_sentence(
    tmp_path: Path, train: Callable[..., int], capsys: pytest.CaptureFixture[str], optimizer: str
) -> None:
    assert train(tmp_path / "out", "--optimizer", optimizer, "--adamw-lr", "1e30", "--muon-lr", "1e30") == 1
    assert_one_sentence(capsys, "try lower rates than adamw_lr 1e+30")
    assert torch.load(tmp_path / "out" / "last.pt", weights_only=True)["step"] == 0


def test_a_loss_that_becomes_nan_leaves_the_last_finite_checkpoint(
    tmp_path: Path,
    train: Callable[..., int],
    at_step: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out, before = tmp_path / "out", {}
    loss = GPT.loss

    def break_it() -> None:
        before.update(contents(out))
        monkeypatch.setattr(GPT, "loss", lambda *arguments: loss(*arguments) * float("nan"))

    at_step(8, break_it)
    assert train(out) == 1
    assert_one_sentence(capsys, "infinite at step 8")
    assert contents(out) == before
    assert torch.load(out / "last.pt", weights_only=True)["step"] == 5


def test_invalid_arguments_exit_with_the_code_of_argparse(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (
        ["stories.txt"],
        ["stories.txt", "--out", "x", "--every", "0"],
        ["--steps", "many"],
        ["--out", "x"],
        ["--preset", "stories", "--out", "x"],
        ["stories.txt", "--characters", "novel.txt", "--out", "x"],
        ["--characters", "novel.txt", "--out", "x", "--vocab-size", "300"],
    ):
        with pytest.raises(SystemExit) as error:
            main(arguments)
        assert error.value.code == 2
    assert "usage: python -m gpt.training" in capsys.readouterr().err
