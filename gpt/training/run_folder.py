"""A training run that writes its files to a folder and shows its progress on the terminal.

vocab.tiktoken   the vocabulary (characters.json for a vocabulary of characters)
options.json     the options of the command that started the run
last.pt          the state to resume from: weights, optimizers, step, recipe
log.csv          one row per evaluation
samples.txt      sample texts from each evaluation
best/            the model with the lowest held-back loss, in our own layout
snapshots/       small copies of the weights on a log scale of steps; see `gpt.training.snapshots`
"""

from __future__ import annotations

import csv
import json
import os
import pickle
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
from tqdm import tqdm

from gpt.errors import GPTError
from gpt.models.checkpoints.untrusted import read_json
from gpt.models.checkpoints.vocabularies import BPE, CHARACTERS, Characters, write_vocabulary
from gpt.models.checkpoints.writing import save_model
from gpt.models.loading import LoadedModel
from gpt.tokenizer import Vocabulary, load_vocabulary
from gpt.training.data import StoryDataset, TextDataset, read_text, shakespeare_text
from gpt.training.evaluation import sample
from gpt.training.recipe import Recipe
from gpt.training.snapshots import save_snapshot, snapshot_steps
from gpt.training.trainer import Process, Trainer

SAMPLE_TOKENS = 100
LINE_STEPS = 20  # steps between updates of the progress bar, which shows their mean loss


@dataclass(frozen=True)
class LogRow:
    """One evaluation. Losses are in nats per token.

    train_loss: mean since the last row. rate: learning-rate factor."""

    step: int
    tokens: int
    train_loss: float
    val_loss: float
    bits_per_byte: float
    rate: float
    seconds: float


class RunFolder:
    """Reads and writes the files of one run. Replaces each file atomically."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.best, self.snapshots = self.path / "best", self.path / "snapshots"

    def options(self) -> dict[str, Any]:
        """Return the options of the command that started the run, or {} if they were not saved."""
        path = self.path / "options.json"
        return read_json(path, dict) if path.is_file() else {}

    def begin(self, tokenizer: Vocabulary, options: Mapping[str, object]) -> None:
        """Create the folder with the command's options, the vocabulary and an empty log."""
        self.path.mkdir(parents=True, exist_ok=True)
        (self.path / "options.json").write_text(json.dumps(options, indent=1) + "\n", encoding="utf-8")
        write_vocabulary(tokenizer, self.path)
        self._write_log([])

    def tokenizer(self) -> Vocabulary | None:
        """Return the vocabulary of a run on stories, or None if it has not been written yet."""
        if (self.path / CHARACTERS).is_file():
            return Characters(read_json(self.path / CHARACTERS, list))
        return load_vocabulary(self.path / BPE) if (self.path / BPE).is_file() else None

    def load(self) -> dict[str, Any]:
        """Load the latest saved state. Raises ValueError if there is none or its file cannot be read."""
        path = self.path / "last.pt"
        if not path.is_file():
            raise GPTError("training.nothing_to_resume", path=self.path, file=path.name)
        try:
            state = torch.load(path, map_location="cpu", weights_only=True)
        except (RuntimeError, ValueError, EOFError, pickle.UnpicklingError):
            state = None
        if not isinstance(state, dict) or not {"model", "optimizers", "step", "best", "recipe"} <= state.keys():
            raise GPTError("training.damaged_checkpoint", path=path)
        return state

    def save(self, state: dict[str, Any]) -> None:
        part = self.path / "last.pt.part"
        with part.open("wb") as file:  # given a path, torch would hide a disk-full error
            torch.save(state, file)
        os.replace(part, self.path / "last.pt")

    def log(self) -> list[LogRow]:
        with (self.path / "log.csv").open(newline="", encoding="utf-8") as file:
            _, *rows = csv.reader(file)
        return [LogRow(int(step), int(tokens), *map(float, numbers)) for step, tokens, *numbers in rows]

    def add_to_log(self, row: LogRow) -> None:
        """Add an evaluation. Drops rows for later steps, which were written before the run was resumed."""
        self._write_log([*(old for old in self.log() if old.step < row.step), row])

    def _write_log(self, rows: list[LogRow]) -> None:
        part = self.path / "log.csv.part"
        with part.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, [each.name for each in fields(LogRow)], lineterminator="\n")
            writer.writeheader()
            writer.writerows({k: round(v, 6) for k, v in asdict(row).items()} for row in rows)
        os.replace(part, self.path / "log.csv")

    def add_samples(self, step: int, texts: list[str]) -> None:
        with (self.path / "samples.txt").open("a", encoding="utf-8") as file:
            file.write(f"===== step {step} =====\n\n" + "".join(text + "\n\n" for text in texts))


class FolderRun:
    """One process of a training run in a folder.

    text: a file of stories; with `characters`, any text, one token per character, or None for Shakespeare's.
    begin_with: model whose weights and vocabulary the run starts from; None for random weights. Stories need a
        vocabulary with an end-of-text token; runs on characters need one without. options: the command's options,
        which are saved for resuming.
    Raises ValueError, without writing anything, for an invalid text, folder, recipe or vocabulary.
    """

    def __init__(
        self,
        text: Path | None,
        out: Path,
        recipe: Recipe,
        *,
        characters: bool = False,
        begin_with: LoadedModel | None = None,
        resume: bool = False,
        options: Mapping[str, object] | None = None,
    ) -> None:
        self.options = options or {}
        self.recipe, self.folder, self.begin_with = recipe, RunFolder(out), begin_with
        self.saved = self.folder.load() if resume else None
        if self.saved is not None:
            recipe.check_same(Recipe(**self.saved["recipe"]))
        elif out.exists() and any(out.iterdir()):
            raise GPTError("training.out_not_empty", path=out)
        self.data: TextDataset | StoryDataset
        tokenizer = None if begin_with is None else begin_with.tokenizer
        if characters or text is None:
            if tokenizer is not None and tokenizer.eot_id is not None:
                raise GPTError("training.begun_with_stories")
            self.data = TextDataset(
                shakespeare_text() if text is None else read_text(text),
                block_size=recipe.block_size,
                seed=recipe.seed,
                held_back=recipe.held_back,
                name="characters",
                vocabulary=tokenizer,
            )
        else:
            if tokenizer is not None and tokenizer.eot_id is None:
                raise GPTError("training.begun_with_characters")
            self.data = StoryDataset(text, recipe, tokenizer or self.folder.tokenizer())
        fingerprint = self.data.fingerprint
        if self.saved is not None and self.saved.get("text", fingerprint) != fingerprint:
            raise GPTError("training.other_text", text=text or "Shakespeare", folder=out)

    def train(
        self,
        process: Process,
        *,
        every: int = 250,
        snapshots: int = 0,
        compiled: bool = False,
        stop: Callable[[], bool] = lambda: False,
    ) -> bool:
        """Run the remaining updates. Returns True after the last one, or False if `stop()` returned True before that.

        Evaluates, samples and saves every `every` updates and after the last one. snapshots: number of small copies of
        the weights, on a log scale of steps. Raises ValueError if the loss becomes infinite; the last save is kept.
        """
        recipe = self.recipe
        model = recipe.new_model(self.data.vocabulary.n_vocab)
        if self.begin_with is not None:
            model.load_state_dict(self.begin_with.model.state_dict())
        trainer = Trainer(model, recipe, process, compiled=compiled)
        if self.saved is not None:
            trainer.load(self.saved)
        process.all_reduce(0.0)  # wait until every process has checked the folder
        if process.is_first and self.saved is None:
            self.folder.begin(self.data.vocabulary, self.options)
            self.folder.save(self.state(trainer))
        steps = snapshot_steps(recipe.steps, snapshots) if process.is_first else ()
        if trainer.step in steps:
            save_snapshot(self.folder.snapshots, trainer.step, model, self.data.vocabulary)
        batches = self.data.batches(recipe.batch_size, trainer.step)
        begun = trainer.n_tokens, trainer.seconds
        is_silent = None if process.is_first else True  # None: where there is no terminal
        with tqdm(total=recipe.steps, initial=trainer.step, unit="step", disable=is_silent) as bar:
            while trainer.step < recipe.steps and not process.all_reduce(stop())[0]:
                trainer.update(next(batches))
                speed = (trainer.n_tokens - begun[0]) / (trainer.seconds - begun[1])
                loss = fmean(trainer.losses[-LINE_STEPS:])
                bar.set_postfix_str(f"loss {loss:.4f}, {speed:,.0f} tokens/s", refresh=False)
                bar.update()
                if trainer.step in steps:
                    save_snapshot(self.folder.snapshots, trainer.step, model, self.data.vocabulary)
                if trainer.step % every == 0 or trainer.step == recipe.steps:
                    line = self.evaluate(trainer)
                    bar.write(line) if process.is_first else None
        if trainer.step < recipe.steps and process.is_first:
            self.folder.save(self.state(trainer))
        return trainer.step == recipe.steps

    def evaluate(self, trainer: Trainer) -> str:
        """Score, log, save and sample the current weights, and return a line with the losses."""
        score = trainer.score(self.data.vocabulary, self.data.held_back)
        row = LogRow(
            step=trainer.step,
            tokens=trainer.n_tokens,
            train_loss=fmean(trainer.losses),
            val_loss=score.loss,
            bits_per_byte=score.bits_per_byte,
            rate=self.recipe.lr_factor(trainer.step - 1),
            seconds=trainer.seconds,
        )
        is_best = score.loss < trainer.best
        trainer.best, trainer.losses = min(score.loss, trainer.best), []
        state, model, tokenizer = self.state(trainer), trainer.model, self.data.vocabulary
        if trainer.process.is_first:
            self.folder.add_to_log(row)
            if is_best:
                save_model(self.folder.best, model, tokenizer, dtype=torch.float16, overwrite=True)
            self.folder.save(state)
            loaded = LoadedModel("in training", model, tokenizer, trainer.process.device, "fp32")
            texts = [sample(loaded, prompt, seed=0, max_new_tokens=SAMPLE_TOKENS) for prompt in self.data.prompts]
            self.folder.add_samples(row.step, texts)
        return (
            f"step {row.step}: loss {row.train_loss:.4f}, held back {row.val_loss:.4f} nats per token, "
            f"{row.bits_per_byte:.4f} bits per byte{' (best)' if is_best else ''}"
        )

    def state(self, trainer: Trainer) -> dict[str, Any]:
        return {**trainer.state(), "recipe": asdict(self.recipe), "text": self.data.fingerprint}
