"""The folder of a training run.

vocab.tiktoken   the vocabulary; characters.json for one of characters
last.pt          the state to resume from: weights, optimizers, step, recipe
log.csv          a row per evaluation; curve.png is its plot, where matplotlib is installed
samples.txt      texts of the model at each evaluation
best/            the model with the lowest held-back loss, in our own layout
snapshots/       small copies of the weights on a log scale of steps, see `gpt.training.snapshots`
"""

from __future__ import annotations

import csv
import importlib.util
import os
import pickle
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import torch

from gpt.errors import GPTError
from gpt.model import GPT
from gpt.models.checkpoints import save_model
from gpt.models.checkpoints.vocabularies import BPE, write_vocabulary
from gpt.tokenizer import Tokenizer, Vocabulary, load_vocabulary
from gpt.training.snapshots import save_snapshot


@dataclass(frozen=True)
class LogRow:
    """One evaluation. Losses in nats per token, train_loss a mean since the last row; rate: factor on the rates."""

    step: int
    tokens: int
    train_loss: float
    val_loss: float
    bits_per_byte: float
    rate: float
    seconds: float


class RunFolder:
    """Reads and writes the files of one run; each is replaced atomically."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.best, self.snapshots = self.path / "best", self.path / "snapshots"

    def check_free(self) -> None:
        """Raise ValueError if the path exists and is not an empty folder."""
        if self.path.exists() and not self.path.is_dir():
            raise GPTError("training.out_is_file", "{path} is a file: --out needs a folder", path=self.path)
        if self.path.exists() and any(self.path.iterdir()):
            raise GPTError(
                "training.out_not_empty",
                "{path} is not empty: continue its run (--resume) or choose another folder",
                path=self.path,
            )

    def begin(self, tokenizer: Vocabulary) -> None:
        """Create the folder, with the vocabulary and an empty log."""
        self.path.mkdir(parents=True, exist_ok=True)
        write_vocabulary(tokenizer, self.path)
        self._write_log([])

    def tokenizer(self) -> Tokenizer | None:
        """The BPE vocabulary of the run, None before it has one."""
        return load_vocabulary(self.path / BPE) if (self.path / BPE).is_file() else None

    def load(self) -> dict[str, Any]:
        """The state that `save` wrote last. Raises ValueError if there is none or its file cannot be read."""
        path = self.path / "last.pt"
        if not path.is_file():
            raise GPTError(
                "training.nothing_to_resume",
                "{path} has no run to continue: there is no {file}",
                path=self.path,
                file=path.name,
            )
        try:
            state = torch.load(path, map_location="cpu", weights_only=True)
        except (RuntimeError, ValueError, EOFError, pickle.UnpicklingError):
            raise GPTError(
                "training.damaged_checkpoint", "{path} cannot be read: it is damaged, or not a checkpoint", path=path
            ) from None
        if not isinstance(state, dict) or not {"model", "optimizers", "step", "best", "recipe"} <= state.keys():
            raise GPTError(
                "training.other_checkpoint", "{path} is a checkpoint, but not of a run of this program", path=path
            )
        return state

    def save(self, state: dict[str, Any]) -> None:
        """Write the state to resume from."""
        part = self.path / "last.pt.part"
        with part.open("wb") as file:  # with a path, torch hides the error of a full disk
            torch.save(state, file)
        os.replace(part, self.path / "last.pt")

    def save_best(self, model: GPT, tokenizer: Vocabulary) -> None:
        """Write the model in half precision, with its vocabulary."""
        save_model(self.best, model, tokenizer)

    def save_snapshot(self, step: int, model: GPT, tokenizer: Vocabulary) -> None:
        """Write a small copy of the weights after `step` updates."""
        save_snapshot(self.snapshots, step, model, tokenizer)

    def log(self) -> list[LogRow]:
        """The evaluations so far."""
        with (self.path / "log.csv").open(newline="", encoding="utf-8") as file:
            _, *rows = csv.reader(file)
        return [LogRow(int(step), int(tokens), *map(float, numbers)) for step, tokens, *numbers in rows]

    def add_to_log(self, row: LogRow) -> None:
        """Add an evaluation, and drop the rows of later steps, which are from before a resumption."""
        self._write_log([*(old for old in self.log() if old.step < row.step), row])

    def _write_log(self, rows: list[LogRow]) -> None:
        part = self.path / "log.csv.part"
        with part.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, [each.name for each in fields(LogRow)], lineterminator="\n")
            writer.writeheader()
            writer.writerows({k: round(v, 6) for k, v in asdict(row).items()} for row in rows)
        os.replace(part, self.path / "log.csv")

    def add_samples(self, step: int, texts: list[str]) -> None:
        """Add texts of the model at a step."""
        with (self.path / "samples.txt").open("a", encoding="utf-8") as file:
            file.write(f"===== step {step} =====\n\n" + "".join(text + "\n\n" for text in texts))

    def draw_curve(self, path: Path | None = None) -> None:
        """Plot the log as a PNG, by default curve.png: both losses over the tokens read, the best evaluation marked.

        Without matplotlib, nothing is written.
        """
        if importlib.util.find_spec("matplotlib") is None:
            return
        from matplotlib.figure import Figure  # noqa: PLC0415 - not needed by the app

        rows = self.log()
        best = min(rows, key=lambda row: row.val_loss)
        tokens = [row.tokens / 1e6 for row in rows]
        figure = Figure(figsize=(7, 4), dpi=120, layout="constrained")
        axes = figure.subplots()
        axes.plot(
            tokens, [row.train_loss for row in rows], "--", color="#6b7280", label="training (mean between points)"
        )
        axes.plot(tokens, [row.val_loss for row in rows], "-o", color="#2563eb", markersize=3, label="held-back text")
        axes.plot(best.tokens / 1e6, best.val_loss, "D", color="#c2410c", label=f"best: {best.val_loss:.3f}")
        axes.set(xlabel="tokens read, in millions", ylabel="loss, nats per token")
        axes.grid(alpha=0.3)
        axes.legend()
        part = self.path / "curve.png.part"
        figure.savefig(part, format="png")
        os.replace(part, path or self.path / "curve.png")
