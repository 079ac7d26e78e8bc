"""The app running in a separate process, and the result of a trial."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

ROOT = Path(__file__).parents[2]
TRACEBACK = "Traceback (most recent call last)"
SECONDS = 300.0  # timeout, long enough for a busy machine


@dataclass(frozen=True)
class Result:
    """Result of a trial.

    n: Number of attempts.
    failures: Problems found.
    said: Text with the measurements.
    """

    name: str
    n: int
    failures: tuple[str, ...]
    said: str


@dataclass(frozen=True)
class AppProcess:
    """A running app.

    url: Address of the app, with a trailing slash.
    errors: Log of its standard error.
    """

    process: subprocess.Popen[str]
    url: str
    errors: Path

    @property
    def resident(self) -> int:
        """Resident memory in bytes."""
        pages = Path(f"/proc/{self.process.pid}/statm").read_text(encoding="utf-8").split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    @property
    def n_tracebacks(self) -> int:
        return self.log().count(TRACEBACK)

    def first_traceback(self) -> str:
        """Return the last lines of the log's first traceback."""
        return self.log().partition(TRACEBACK)[2].partition(TRACEBACK)[0].strip()[-1500:]

    def log(self) -> str:
        return self.errors.read_text(encoding="utf-8", errors="replace")

    def metric(self, name: str) -> float:
        """Return the value of a metric, summed over all labels."""
        text = httpx.get(f"{self.url}metrics", timeout=SECONDS).text
        return sum(map(float, re.findall(rf"^{name}(?:\{{.*\}})? (\S+)$", text, flags=re.MULTILINE)))

    def n_texts(self) -> int:
        """Return the number of texts that are being generated or are queued."""
        return int(self.metric("glassbox_texts_running") + self.metric("glassbox_texts_waiting"))


@contextmanager
def running_app(*options: str, **environment: str) -> Iterator[AppProcess]:
    """Run the app with these command-line options until the `with` block ends."""
    with tempfile.TemporaryDirectory() as folder:
        app = start_app(Path(folder), *options, **environment)
        try:
            yield app
        finally:
            app.process.terminate()
            app.process.communicate()


def start_app(folder: Path, *options: str, port: int | None = None, **environment: str) -> AppProcess:
    """Start the app and wait until it is ready. Raise RuntimeError if it fails to start.

    folder: Folder for the log.
    """
    errors, port = folder / "errors", port or free_port()
    with errors.open("w", encoding="utf-8") as file:
        process = subprocess.Popen(
            [sys.executable, "app.py", "--port", str(port), *options],
            cwd=ROOT,
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            stderr=file,
            text=True,
        )
    assert process.stdout is not None
    while "ready" not in (line := process.stdout.readline()):
        if not line:
            raise RuntimeError(f"the app did not start: {errors.read_text(encoding='utf-8')}")
    return AppProcess(process, f"http://127.0.0.1:{port}/", errors)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def seconds_until(done: object, limit: float = SECONDS) -> float:
    """Wait until `done()` is true and return the seconds, or infinity after `limit` seconds."""
    began = time.monotonic()
    while not done():  # type: ignore[operator]
        if time.monotonic() - began > limit:
            return float("inf")
        time.sleep(0.02)
    return time.monotonic() - began
