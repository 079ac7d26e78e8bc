"""The programs in `examples`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from components.state.session import Session
from components.tabs.playground.upload import choose_files, open_upload
from examples.fine_tune import fine_tune
from gpt import SamplingParams, generate, load_model
from gpt.models.registry import remove_model

pytestmark = pytest.mark.thorough

RHYME = "Twinkle, twinkle, little star, how I wonder what you are! Up above the world so high. "


def test_fine_tuning_into_what_exists_is_refused_before_it_begins(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("mine")
    with pytest.raises(FileExistsError):
        fine_tune(RHYME, tmp_path / "out", model="no such model")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"caf\xe9", "is not UTF-8 text: byte 3 is not part of a character"),
        (b"\xef\xbb\xbf \r\n", "contains no text"),
        (b"a", "nothing to predict"),
        (None, "there is no file"),
    ],
)
def test_a_file_that_cannot_be_learned_from_is_refused_in_words(tmp_path: Path, data: bytes | None, said: str) -> None:
    if data is not None:
        (tmp_path / "text.txt").write_bytes(data)
    arguments = [str(tmp_path / "text.txt"), str(tmp_path / "out")]
    ran = subprocess.run([sys.executable, "-m", "examples.fine_tune", *arguments], capture_output=True, text=True)
    assert ran.returncode == 1
    assert said in ran.stderr
    assert "Traceback" not in ran.stderr


def test_a_model_fine_tuned_on_a_text_opens_in_the_page_and_writes_it(tmp_path: Path) -> None:
    losses = fine_tune(RHYME * 8, tmp_path / "rhyme", steps=25, batch_size=2)
    assert losses[-1] < losses[0] / 2
    session = Session(None)
    choose_files(session, [str(file) for file in sorted((tmp_path / "rhyme").iterdir())])
    list(open_upload(session))
    prompt, greedy = "Twinkle, twinkle, little star, how", SamplingParams(temperature=0)
    try:
        written = "".join(step.text for step in generate(session.loaded, prompt, greedy, 6))
    finally:
        remove_model(session.model)
    before = load_model("stories", device="cpu")
    assert written.startswith(" I wonder what you")
    assert not "".join(step.text for step in generate(before, prompt, greedy, 6)).startswith(" I wonder what you")
