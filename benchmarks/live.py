"""Measure how long a tiny GPT takes to learn each task of the Train tab.

    python -m benchmarks.live [TASK ...] [--steps N] [--seed N]

Trains in the background on one core, as the page does. For each task, prints the first evaluation with at least 99%
accuracy on test examples, the final accuracy, the wall-clock time and the CPU time.
"""

from __future__ import annotations

import argparse
import os
import time
from dataclasses import replace

from gpt.training.data import TASKS, TaskDataset
from gpt.training.live_run import LiveRun
from gpt.training.recipe import LIVE_RECIPES
from gpt.training.snapshots import RunProgress

GOAL = 0.99
TICK_SECONDS = 0.05


def learn(name: str, steps: int | None, seed: int) -> tuple[str, ...]:
    """Train on a task and return a table row."""
    recipe = LIVE_RECIPES[name]
    run = LiveRun(TaskDataset(TASKS[name], seed), replace(recipe, steps=steps or recipe.steps, seed=seed))
    clock, processor = time.monotonic(), time.process_time()
    reached: tuple[int, float, float] | None = None
    run.start()
    while not run.wait(TICK_SECONDS):
        reached = reached or first_good(run.progress, clock, processor)
    reached = reached or first_good(run.progress, clock, processor)
    progress = run.progress
    whole = (progress.step, time.monotonic() - clock, time.process_time() - processor)
    last = progress.evaluations[-1].accuracy
    run.close()
    return (name, *(_row(reached) if reached else ("-",) * 3), f"{last:.3f}", *_row(whole))


def first_good(progress: RunProgress, clock: float, processor: float) -> tuple[int, float, float] | None:
    """Return (step, seconds, CPU seconds) if the goal has been reached, else None."""
    good = [
        evaluation.step
        for evaluation in progress.evaluations
        if evaluation.accuracy is not None and evaluation.accuracy >= GOAL
    ]
    return (good[0], time.monotonic() - clock, time.process_time() - processor) if good else None


def _row(numbers: tuple[int, float, float]) -> tuple[str, ...]:
    return (str(numbers[0]), f"{numbers[1]:.1f}", f"{numbers[2]:.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="*", metavar="TASK", choices=[*TASKS, []], help=f"{', '.join(TASKS)} (all)")
    parser.add_argument("--steps", type=int, metavar="N", help="number of updates (as on the page)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of examples and initial weights (0)")
    options = parser.parse_args()
    columns = ("task", "99% at step", "seconds", "CPU s", "accuracy", "steps", "seconds", "CPU s", "load")
    print("".join(f"{column:>14}" for column in columns))
    for name in options.tasks or TASKS:
        row = (*learn(name, options.steps, options.seed), f"{os.getloadavg()[0]:.1f}")
        print("".join(f"{cell:>14}" for cell in row), flush=True)


if __name__ == "__main__":
    main()
