"""Load and failure tests: visitors, calls, lost connections, fuzzing, scripts, broken checkpoints, kills, long texts.

    python -m benchmarks.trial [--scale 1.0] [TRIAL ...]

Prints a row for each trial, and every failure. The exit code is 1 if anything failed. tests/trial runs the trials at a
tenth of their size (--scale 0.1).
"""

from __future__ import annotations

import argparse
import os
import sys
import time

from benchmarks.trials.calls import calls
from benchmarks.trials.checkpoints import checkpoints
from benchmarks.trials.fuzzing import fuzz
from benchmarks.trials.kills import kills
from benchmarks.trials.long_texts import long_texts
from benchmarks.trials.scripts import scripts
from benchmarks.trials.streams import cuts, generations, visitors

TRIALS = {
    trial.__name__: trial
    for trial in (visitors, generations, calls, cuts, fuzz, scripts, checkpoints, kills, long_texts)
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trials", nargs="*", metavar="TRIAL", choices=[*TRIALS, []], help=f"{', '.join(TRIALS)} (all)")
    parser.add_argument("--scale", type=float, default=1.0, metavar="X", help="fraction of the full test (1.0)")
    options = parser.parse_args()
    print("| test | count | result | failed | seconds | system load |\n|---|---|---|---|---|---|", flush=True)
    failures = 0
    for name in options.trials or TRIALS:
        began, result = time.monotonic(), TRIALS[name](options.scale)
        seconds, load = time.monotonic() - began, os.getloadavg()[0]
        failed = len(result.failures)
        print(f"| {result.name} | {result.n:,} | {result.said} | {failed} | {seconds:.0f} | {load:.1f} |", flush=True)
        for failure in result.failures:
            print(f"  {failure}", file=sys.stderr, flush=True)
        failures += failed
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
