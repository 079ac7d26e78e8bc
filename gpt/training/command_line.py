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
import signal
import sys
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from types import FrameType
from typing import Any

from gpt.models.sources import load_model
from gpt.training.evaluation import score_stories
from gpt.training.recipe import RECIPE_PRESETS, Recipe
from gpt.training.run_folder import FolderRun, load_state
from gpt.training.trainer import join_processes

EVERY = 250  # steps between evaluations


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
    parser.add_argument(
        "--every", type=count, default=EVERY, metavar="N", help=f"evaluate and save every N steps ({EVERY})"
    )
    parser.add_argument(
        "--snapshots",
        type=count,
        default=0,
        metavar="N",
        help="keep N small copies of the weights, on a log scale of steps (0)",
    )
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
        elif f.metadata["choices"]:
            options["choices"] = f.metadata["choices"]
        else:
            options |= {"type": type(f.default), "metavar": "X" if isinstance(f.default, float) else "N"}
        recipe.add_argument("--" + f.name.replace("_", "-"), **options)
    return parser
