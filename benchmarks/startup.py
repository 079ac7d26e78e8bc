"""Compare the time from `python app.py` to the first page with the time to import torch and gradio.

    python -m benchmarks.startup [--rounds 5]

Each measurement runs in a new process, and the two take turns. Prints the medians and their ratio.
"""

from __future__ import annotations

import argparse
import os
import socket
import statistics
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).parent.parent


def imports() -> float:
    """Return the seconds taken by a process that only imports torch and gradio."""
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import torch, gradio"], check=True)
    return time.perf_counter() - began


def page() -> float:
    """Return the seconds from starting app.py to the first page it serves."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    began = time.perf_counter()
    process = subprocess.Popen([sys.executable, "app.py", "--port", str(port)], cwd=ROOT, stdout=subprocess.PIPE)
    try:
        process.stdout.readline()
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/") as answer:
            answer.read()
        return time.perf_counter() - began
    finally:
        process.terminate()
        process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    imports(), page()  # read all files into the disk cache
    times = [(imports(), page()) for _ in range(rounds)]
    alone, ready = (statistics.median(column) for column in zip(*times, strict=True))
    print(f"system load: {os.getloadavg()[0]:.1f}")
    print(f"import torch, gradio: {alone:.2f} s; app.py to page: {ready:.2f} s; ratio {ready / alone:.2f}")


if __name__ == "__main__":
    main()
