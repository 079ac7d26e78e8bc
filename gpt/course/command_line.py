"""The command line of the course: python -m gpt.course start, check, watch, solution or notebooks."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NoReturn

import torch

from gpt.course.check import Verdict, check, explain, line
from gpt.course.notebook import write_notebooks
from gpt.course.steps import LANGUAGES, PROGRAM, STEPS, Step, find_step, language_of, say, start, steps_before
from gpt.errors import GPTError, require

WATCH_SECONDS = 0.3  # interval between checks of the file


def main(
    arguments: Sequence[str] | None = None,
    program: str = "python -m gpt.course",
    write_books: Callable[[Path], list[Path]] | None = None,
) -> int:
    """Run the command line. Returns 0, or 1 if a step is unfinished or an error message was printed.

    write_books: writes the book to a folder and returns its files; None omits the command "book".
    """
    writers = {"notebooks": write_notebooks} | ({"book": write_books} if write_books else {})
    options = parse(arguments, program, writers)
    torch.set_num_threads(1)  # same sums as in the learner's process; more threads do not speed up a small model
    try:
        if options.command == "start":
            start(options.folder, options.language)
            print(say("started", path=options.folder / PROGRAM, folder=options.folder).of(options.language))
        elif options.command == "solution":
            print(find_step(options.step).solution(options.language))
        elif options.command in writers:
            print(*writers[options.command](options.folder), sep="\n")
        else:
            folder, steps = place(options.where)
            if options.command == "watch":
                watch(folder, steps)
            return 0 if report(folder, steps) else 1
    except (GPTError, OSError) as problem:
        print(problem, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        pass
    return 0


def place(words: Sequence[str]) -> tuple[Path, list[Step]]:
    """Parse a folder and a step, in either order. Defaults to the current folder and all steps."""
    keys = [word for word in words if word in STEPS and not (Path(word) / PROGRAM).exists()]
    folders = [word for word in words if word not in keys]
    require(len(keys) < 2 and len(folders) < 2, "course.arguments", steps=", ".join(STEPS))
    return Path(*folders), steps_before(STEPS[keys[0]]) if keys else [*STEPS.values()]


def watch(folder: Path, steps: list[Step]) -> NoReturn:
    seen = 0.0
    while True:
        saved = (folder / PROGRAM).stat().st_mtime if language_of(folder) else 0.0
        if saved != seen:
            seen = saved
            print("\033[2J\033[H" if sys.stdout.isatty() else "", end="")
            report(folder, steps)
        time.sleep(WATCH_SECONDS)


def report(folder: Path, steps: list[Step]) -> bool:
    """Check the steps, printing one line per step and the first problem. Returns whether all steps are ok."""
    language, verdicts = language_of(folder), list[Verdict]()
    for verdict in check(folder / PROGRAM, steps):
        print(line(verdict.step, verdict.state, language), flush=True)
        verdicts.append(verdict)
    for step in steps[len(verdicts) :]:
        print(line(step, "gap", language))
    is_ok = verdicts[-1].state == "ok"
    if not is_ok:
        print("\n" + explain(verdicts[-1], language), flush=True)
    elif len(steps) == len(STEPS):
        print("\n" + say("done").of(language))
    return is_ok


def parse(arguments: Sequence[str] | None, program: str, writers: Iterable[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=program, description="Build your own GPT, checked step by step.")
    commands = parser.add_subparsers(dest="command", required=True)
    begin = commands.add_parser("start", help="create a folder with the program to fill in")
    begin.add_argument("folder", type=Path)
    for name, text in (("check", "check the steps in order"), ("watch", "check whenever the program is saved")):
        command = commands.add_parser(name, help=text)
        command.add_argument("where", nargs="*", metavar="[FOLDER] [STEP]", help="default: this folder, all steps")
    show = commands.add_parser("solution", help="show the solution to a step")
    show.add_argument("step")
    for name in writers:
        form = "notebook" if name == "notebooks" else "printable book"
        command = commands.add_parser(name, help=f"write the course as a {form} in each language")
        command.add_argument("folder", type=Path)
    for command in (begin, show):
        command.add_argument("--language", choices=LANGUAGES, default="en")
    return parser.parse_args(arguments)
