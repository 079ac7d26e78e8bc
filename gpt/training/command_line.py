"""Train a GPT on a text file.

    python -m gpt.training stories.txt --out runs/stories

The text is UTF-8; a line <|endoftext|> ends each story. The folder of --out gets the vocabulary, the best
weights so far (best/, with a model card at the end), a log with its curve, samples, and last.pt, from which a
run that was stopped or killed can be resumed:

    python -m gpt.training stories.txt --out runs/stories --resume

Under torchrun several processes share each batch, one per GPU:

    torchrun --nproc-per-node 4 -m gpt.training stories.txt --out runs/stories

The bundled model was trained with the defaults and --compile --every 200.
"""

from __future__ import annotations

import argparse
import importlib.util
import shlex
import signal
import sys
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from types import FrameType

from gpt.errors import GPTError
from gpt.training.folder_run import FolderRun
from gpt.training.model_card import CardText, write_card
from gpt.training.process import join_processes
from gpt.training.recipe import Recipe

PACKAGES = ("tokenizers", "matplotlib")  # needed for training only: imported where they are used


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code: 0, 1 after an error printed as a sentence, 128 + signal after a stop."""
    options = make_parser().parse_args(arguments)
    try:
        for package in PACKAGES:
            if importlib.util.find_spec(package) is None:
                raise GPTError("training.package", package=package)
        recipe = Recipe(**{f.name: getattr(options, f.name) for f in fields(Recipe)})
        with StopSignal() as stop, join_processes(recipe.precision) as process:
            run = FolderRun(options.text, options.out, recipe, resume=options.resume or options.card)
            if not options.card and not run.train(process, every=options.every, compiled=options.compile, stop=stop):
                if process.is_first:
                    print(f"stopped; the same command with --resume continues in {options.out}", file=sys.stderr)
                return 128 + (stop.number or signal.SIGTERM)
        if process.is_first:
            text = CardText(options.data, options.hardware, options.dataset, options.license)
            command = repeat_command(options, process.world_size)
            score = write_card(run.folder, recipe, command, run.training, run.held_back, text)
            print(f"{run.folder.best}: {score.bits_per_byte:.4f} bits a byte on {len(run.held_back)} held-back stories")
    except OSError as error:
        return failed(f"{error.filename}: {error.strerror}" if error.filename else error.strerror or str(error))
    except ValueError as error:
        return failed(str(error))
    return 0


class StopSignal:
    """Turns Ctrl-C and SIGTERM into a stop after the current update; a second one has its default effect."""

    def __init__(self) -> None:
        self.number = 0

    def __enter__(self) -> StopSignal:
        self._before = {number: signal.signal(number, self._receive) for number in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def __call__(self) -> bool:
        """Whether a signal was received."""
        return self.number != 0

    def _receive(self, number: int, frame: FrameType | None) -> None:
        self.number = number
        signal.signal(number, signal.SIG_DFL)


def failed(sentence: str) -> int:
    """Print an error to the standard error stream; returns the exit code."""
    print(f"gpt.training: {sentence}", file=sys.stderr)
    return 1


def make_parser() -> argparse.ArgumentParser:
    """The options; those of the recipe come from its fields."""

    def count(word: str) -> int:
        if int(word) < 1:
            raise ValueError
        return int(word)

    description, _, usage = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(
        prog="python -m gpt.training",
        description=description,
        epilog=usage,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("text", type=Path, help="the stories")
    parser.add_argument("--out", type=Path, required=True, help="folder of the run: new, empty, or to resume")
    parser.add_argument("--resume", action="store_true", help="continue the run in --out where it stopped")
    parser.add_argument("--compile", action="store_true", help="torch.compile: a slow start, then faster steps")
    parser.add_argument("--every", type=count, default=250, metavar="N", help="evaluate and save every N steps (250)")
    card = parser.add_argument_group("model card")
    card.add_argument("--card", action="store_true", help="train nothing: write the card of the run in --out again")
    card.add_argument("--data", default=CardText.data, help="what the text is, where from, its licence; Markdown")
    card.add_argument("--hardware", default=CardText.hardware, help="what it was trained on")
    card.add_argument("--dataset", help="the text's id on the Hugging Face hub")
    card.add_argument("--license", default=CardText.license, help="licence of the weights, as the hub spells it")
    recipe = parser.add_argument_group("recipe")
    for f in fields(Recipe):
        choices = f.metadata["choices"] or None
        recipe.add_argument(
            option_name(f.name),
            type=type(f.default),
            default=f.default,
            choices=choices,
            metavar=None if choices else "X" if isinstance(f.default, float) else "N",
            help=f"{f.metadata['help']} ({f.default})",
        )
    return parser


def option_name(field: str) -> str:
    """n_layer -> --n-layer."""
    return "--" + field.replace("_", "-")


def repeat_command(options: argparse.Namespace, world_size: int) -> str:
    """The command that repeats the run: what differs from the defaults, without this machine's folders."""
    words = ["python"] if world_size == 1 else ["torchrun", "--nproc-per-node", str(world_size)]
    words += ["-m", "gpt.training", options.text.name, "--out", options.out.resolve().name]
    if options.compile:
        words.append("--compile")
    defaults = make_parser().parse_args([options.text.name, "--out", "out"])
    for name in ("every", *(f.name for f in fields(Recipe))):
        value = getattr(options, name)
        if value != getattr(defaults, name):
            words += [option_name(name), str(value)]
    return shlex.join(words)
