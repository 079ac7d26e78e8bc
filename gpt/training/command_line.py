"""Train a GPT on a text file.

    python -m gpt.training stories.txt --out runs/stories              stories, byte-level BPE
    python -m gpt.training --characters FILE --out runs/characters     one text, character by character
    python -m gpt.training --preset shakespeare-cpu --out runs/plays   Shakespeare's plays (bundled)

The text must be UTF-8, with an <|endoftext|> line after each story. The command writes to the folder --out: the
vocabulary, the best weights so far (best/), a log, samples, and last.pt, the state for resuming a run that was stopped
or killed:

    python -m gpt.training --out runs/stories --resume

With torchrun, several processes share each batch, one per GPU:

    torchrun --nproc-per-node 4 -m gpt.training stories.txt --out runs/stories

With --snapshots N, a run saves N small copies of its weights, like the recorded training in the Learn tab. In a
checkout, `python -m tools.model_card FOLDER` measures them, and writes a model card with the curve of the loss.

The bundled model was first trained on stories with the defaults and --compile --every 200. Its model card describes the
second training run.
"""

from __future__ import annotations

import argparse
import csv
import os
import pickle
import signal
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields, replace
from functools import lru_cache
from pathlib import Path
from statistics import fmean
from types import FrameType
from typing import Any, NamedTuple, get_args

import torch
from tqdm import tqdm

from gpt.errors import GPTError, require
from gpt.models.checkpoints.vocabularies import find_vocabulary, write_vocabulary
from gpt.models.checkpoints.writing import save_model
from gpt.models.loading import LoadedModel
from gpt.models.sources import load_model
from gpt.training.data import StoryDataset, TextDataset, read_text, shakespeare_text
from gpt.training.evaluation import sample, score_stories
from gpt.training.recipe import RECIPE_PRESETS, Recipe
from gpt.training.snapshots import save_snapshot, snapshot_steps
from gpt.training.trainer import Process, Trainer, join_processes

EVERY = 250  # steps between evaluations
SAMPLE_TOKENS = 100
LINE_STEPS = 20  # steps between updates of the progress bar, which shows their mean loss
STATE = ("model", "optimizers", "step", "best", "losses", "seconds", "recipe", "text", "options")  # saved in last.pt


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code: 0, 1 after an error, or 128 + signal number if stopped."""
    try:
        with stop_signals() as received:
            options = parse_options(arguments)
            run = FolderRun(options)
            with join_processes(run.recipe.precision) as process:
                if not run.train(process, stop=lambda: bool(received)):
                    if process.rank == 0:
                        print(f"stopped; continue with --out {options.out} --resume", file=sys.stderr)
                    return 128 + (received[0] if received else signal.SIGTERM)
        if process.rank == 0:
            folder = run.folder / "best"
            best = load_model(folder)
            score = score_stories(best.model, best.tokenizer, run.data.held_back)
            print(f"{folder}: {score.bits_per_byte:.4f} bits per byte on the held-back text")
        return 0
    except OSError as error:
        problem = f"{error.filename}: {error.strerror}" if error.filename else error.strerror or str(error)
    except ValueError as error:
        problem = str(error)
    print(f"gpt.training: {problem}", file=sys.stderr)
    return 1


@contextmanager
def stop_signals() -> Iterator[list[int]]:
    """Yield a list that receives the number of the first Ctrl-C or SIGTERM. A second signal has its default effect."""
    received: list[int] = []

    def receive(number: int, frame: FrameType | None) -> None:
        received.append(number)
        signal.signal(number, signal.SIG_DFL)

    before = {number: signal.signal(number, receive) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def parse_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line. Exits with an error message if the options are invalid or no text is given."""
    parser = make_parser()
    options = parser.parse_args(arguments)
    if options.resume:
        parser.set_defaults(**load_state(options.out)["options"])
        options = parser.parse_args(arguments)
    options.preset = options.preset or default_preset(options)
    if options.preset in (None, "stories") and not options.text and not options.characters:
        parser.error("nothing to train on: give a file of stories, --characters FILE or --preset shakespeare-cpu")
    if not options.text and options.vocab_size is not None:
        parser.error("--vocab-size applies only to stories: here, the vocabulary is the characters of the text")
    return options


def default_preset(options: argparse.Namespace) -> str | None:
    return "stories" if options.text else "shakespeare-cpu" if options.characters else None


def make_parser() -> argparse.ArgumentParser:
    """Create the parser. The recipe's options come from its fields, and default to None."""

    def count(word: str) -> int:
        if int(word) < 1:
            raise ValueError
        return int(word)

    description, _, usage = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(
        prog="python -m gpt.training",
        usage="%(prog)s [TEXT | --characters FILE | --preset NAME] --out FOLDER [options]",
        description=description,
        epilog=usage,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("text", type=Path, nargs="?", metavar="TEXT", help="file of stories")
    what.add_argument("--characters", type=Path, metavar="FILE", help="any text, with one token per character")
    parser.add_argument(
        "--preset",
        choices=RECIPE_PRESETS,
        help="recipe that the options below change: stories; poems, for the file written by tools.poems; "
        "shakespeare, nanoGPT's character-level model for a GPU; or shakespeare-cpu, its smaller setting. Without a "
        "text, the last two train on Shakespeare's plays (stories; with --characters, shakespeare-cpu)",
    )
    parser.add_argument(
        "--out", type=Path, required=True, metavar="FOLDER", help="folder of the run: new, empty, or to resume"
    )
    parser.add_argument(
        "--init-from",
        metavar="MODEL",
        help="start from the weights, shape and vocabulary of a bundled model or of a folder; with --characters, "
        "of a character-level model",
    )
    parser.add_argument("--resume", action="store_true", help="continue the run in --out")
    parser.add_argument("--compile", action="store_true", help="use torch.compile: slow to start, then faster")
    number: dict[str, Any] = {"type": count, "metavar": "N"}
    parser.add_argument("--every", **number, default=EVERY, help=f"evaluate and save every N steps ({EVERY})")
    snapshots = "keep N small copies of the weights, on a log scale of steps (0)"
    parser.add_argument("--snapshots", **number, default=0, help=snapshots)
    presets = ""
    for name, preset in RECIPE_PRESETS.items():
        values = [(f.name, getattr(preset, f.name)) for f in fields(Recipe)]
        changed = ", ".join(f"{field} {value}" for field, value in values if value != getattr(Recipe(), field))
        presets += f"\n{textwrap.fill(f'{name}: {changed}.', 76)}" if changed else ""
    recipe = parser.add_argument_group("recipe", f"Defaults for stories are in parentheses.{presets}")
    for f in fields(Recipe):
        options: dict[str, Any] = {"help": f"{f.metadata['help']} ({f.default})"}
        if isinstance(f.default, bool):
            options["action"] = argparse.BooleanOptionalAction
        elif choices := get_args(f.type):
            options["choices"] = choices
        else:
            options |= {"type": type(f.default), "metavar": "X" if isinstance(f.default, float) else "N"}
        recipe.add_argument("--" + f.name.replace("_", "-"), **options)
    return parser


class LogRow(NamedTuple):
    """One evaluation. Losses are in nats per token.

    train_loss: mean since the last row. rate: learning-rate factor."""

    step: int
    tokens: int
    train_loss: float
    val_loss: float
    bits_per_byte: float
    rate: float
    seconds: float


def load_state(folder: Path) -> dict[str, Any]:
    """Load the latest saved state of a run. Raises ValueError if there is none or its file cannot be read."""
    path = folder / "last.pt"
    require(path.is_file(), "training.nothing_to_resume", path=folder, file=path.name)
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
        return {name: state[name] for name in STATE}
    except (RuntimeError, ValueError, EOFError, pickle.UnpicklingError, LookupError, TypeError):
        raise GPTError("training.damaged_checkpoint", path=path) from None


def read_log(folder: Path) -> list[LogRow]:
    if not (folder / "log.csv").is_file():
        return []
    with (folder / "log.csv").open(newline="", encoding="utf-8") as file:
        _, *rows = csv.reader(file)
    return [LogRow(int(step), int(tokens), *map(float, numbers)) for step, tokens, *numbers in rows]


@lru_cache(maxsize=1)
def begin_with(model: str | None) -> LoadedModel | None:
    """Load the model whose weights the run starts from. Raises ValueError if it cannot be loaded."""
    return load_model(model, trainable=True) if model else None


def chosen_recipe(options: argparse.Namespace) -> Recipe:
    """Return the preset after applying the given options and the dimensions of the initial model."""
    values = {f.name: getattr(options, f.name) for f in fields(Recipe)}
    recipe = replace(RECIPE_PRESETS[options.preset], **{name: x for name, x in values.items() if x is not None})
    if begun := begin_with(options.init_from):
        recipe = recipe.shaped_like(begun.model.config, characters=begun.tokenizer.eot_id is None)
    return recipe


class FolderRun:
    """One process of a training run, which writes its files to a folder and shows its progress on the terminal.

    vocab.tiktoken   the vocabulary (characters.json for a vocabulary of characters)
    last.pt          the state to resume from: weights, optimizers, step, recipe, and the options of the command
    log.csv          one row per evaluation
    samples.txt      sample texts from each evaluation
    best/            the model with the lowest held-back loss, in our own layout
    snapshots/       small copies of the weights on a log scale of steps; see `gpt.training.snapshots`

    options: see `make_parser`.

    Raises ValueError, without writing anything, for an invalid text, folder, recipe or vocabulary. Stories need a
    vocabulary with an end-of-text token; runs on characters need one without.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        self.options, self.recipe, self.folder = options, chosen_recipe(options), options.out
        self.saved = load_state(self.folder) if options.resume else None
        if self.saved is not None:
            for name, old in self.saved["recipe"].items():
                if old != (new := getattr(self.recipe, name)):
                    raise GPTError("training.other_recipe", name=name, old=old, new=new)
        elif self.folder.exists() and any(self.folder.iterdir()):
            raise GPTError("training.out_not_empty", path=self.folder)
        self.data = self._data()
        is_same = self.saved is None or self.saved["text"] == self.data.fingerprint
        text = options.text or options.characters or "Shakespeare"
        require(is_same, "training.other_text", text=text, folder=self.folder)

    def _data(self) -> TextDataset | StoryDataset:
        options, recipe, begun = self.options, self.recipe, begin_with(self.options.init_from)
        vocabulary = None if begun is None else begun.tokenizer
        if vocabulary is not None:
            require(vocabulary.eot_id is not None or not options.text, "training.begun_with_characters")
            require(vocabulary.eot_id is None or options.text, "training.begun_with_stories")
        if self.saved is not None and options.text:
            vocabulary = find_vocabulary(self.folder, len(self.saved["model"]["wte.weight"]))
        if options.text:
            return StoryDataset(options.text, recipe, vocabulary)
        text = read_text(options.characters) if options.characters else shakespeare_text()
        return TextDataset(
            text, block_size=recipe.block_size, seed=recipe.seed, held_back=recipe.held_back, vocabulary=vocabulary
        )

    def train(self, process: Process, *, stop: Callable[[], bool] = lambda: False) -> bool:
        """Run the remaining updates. Returns True after the last one, or False if `stop()` returned True before that.

        Raises ValueError if the loss becomes infinite; the last save is kept.
        """
        recipe = self.recipe
        model = recipe.new_model(self.data.vocabulary.n_vocab)
        if begun := begin_with(self.options.init_from):
            model.load_state_dict(begun.model.state_dict())
        trainer = Trainer(model, recipe, process, compiled=self.options.compile)
        if self.saved is not None:
            trainer.load(self.saved)
        process.all_reduce(0.0)  # wait until every process has checked the folder
        if process.rank == 0 and self.saved is None:
            self.folder.mkdir(parents=True, exist_ok=True)
            write_vocabulary(self.data.vocabulary, self.folder)
            self.save(self.state(trainer))
        steps = snapshot_steps(recipe.steps, self.options.snapshots) if process.rank == 0 else ()
        batches = self.data.batches(recipe.batch_size, trainer.step)
        is_silent = None if process.rank == 0 else True  # None: where there is no terminal
        row_tokens = recipe.batch_size * recipe.block_size
        with tqdm(
            total=recipe.steps, initial=trainer.step, unit=" tokens", unit_scale=row_tokens, disable=is_silent
        ) as bar:
            while True:
                if trainer.step in steps:
                    save_snapshot(self.folder / "snapshots", trainer.step, model, self.data.vocabulary)
                if trainer.step == recipe.steps or process.all_reduce(stop())[0]:
                    break
                trainer.update(next(batches))
                loss = fmean(trainer.losses[-LINE_STEPS:])
                bar.set_postfix_str(f"step {trainer.step:,}, loss {loss:.4f}", refresh=False)
                bar.update()
                if trainer.step % self.options.every == 0 or trainer.step == recipe.steps:
                    line = self.evaluate(trainer)
                    bar.write(line) if process.rank == 0 else None
        if trainer.step < recipe.steps and process.rank == 0:
            self.save(self.state(trainer))
        return trainer.step == recipe.steps

    def evaluate(self, trainer: Trainer) -> str:
        """Score, log, save and sample the current weights, and return a line with the losses."""
        score = trainer.score(self.data.vocabulary, self.data.held_back)
        loss, rate = fmean(trainer.losses), self.recipe.lr_factor(trainer.step - 1)
        row = LogRow(trainer.step, trainer.n_tokens, loss, score.loss, score.bits_per_byte, rate, trainer.seconds)
        is_best = score.loss < trainer.best
        trainer.best, trainer.losses = min(score.loss, trainer.best), []
        state, model, tokenizer = self.state(trainer), trainer.model, self.data.vocabulary
        if trainer.process.rank == 0:
            self.add_to_log(row)
            if is_best:
                save_model(self.folder / "best", model, tokenizer, dtype=torch.float16, overwrite=True)
            self.save(state)
            loaded = LoadedModel("in training", model, tokenizer, trainer.process.device, "fp32")
            texts = [each + sample(loaded, each, max_new_tokens=SAMPLE_TOKENS) for each in self.data.prompts]
            with (self.folder / "samples.txt").open("a", encoding="utf-8") as file:
                file.write(f"===== step {row.step} =====\n\n" + "".join(text + "\n\n" for text in texts))
        return (
            f"step {row.step}: loss {row.train_loss:.4f}, held back {row.val_loss:.4f} nats per token, "
            f"{row.bits_per_byte:.4f} bits per byte{' (best)' if is_best else ''}"
        )

    def add_to_log(self, row: LogRow) -> None:
        """Add an evaluation. Drops rows for later steps, which were written before the run was resumed."""
        rows, part = [old for old in read_log(self.folder) if old.step < row.step], self.folder / "log.csv.part"
        with part.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(LogRow._fields)
            writer.writerows([round(number, 6) for number in each] for each in (*rows, row))
        os.replace(part, self.folder / "log.csv")

    def save(self, state: dict[str, Any]) -> None:
        part = self.folder / "last.pt.part"
        with part.open("wb") as file:  # given a path, torch would hide a disk-full error
            torch.save(state, file)
        os.replace(part, self.folder / "last.pt")

    def state(self, trainer: Trainer) -> dict[str, Any]:
        options = {name: str(x.resolve()) if isinstance(x, Path) else x for name, x in vars(self.options).items()}
        recipe = asdict(self.recipe)
        return {**trainer.state(), "recipe": recipe, "text": self.data.fingerprint, "options": options}
