"""The process that runs a learner's programs; see `gpt.course.child`."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from gpt.course import child

POLL_SECONDS = 0.02  # maximum interval between checks for an answer
START_SECONDS = 60.0  # time limit for importing torch

Answer = dict[str, Any]  # see `gpt.course.child`


class LearnerProcess:
    """A Python process in isolated mode. It runs one job after another until it exits or a job takes too long.

    folder: folder for the jobs, the answers and the programs' output.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.n_asked = folder, 0
        with (folder / "printed").open("wb") as printed:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-X", "utf8", child.__file__, str(folder)],
                stdin=subprocess.PIPE,
                stdout=printed,
                stderr=subprocess.STDOUT,
            )

    def ask(
        self,
        program: Path,
        run: str,
        inputs: dict[str, Any],
        seconds: float,
        on_wait: Callable[[], None] = lambda: None,
    ) -> Answer:
        """Run lines in a program's namespace and return the answer.

        The answer is the error "late" if the job exceeds its time limit, or "ended" if the process exits. on_wait:
        called repeatedly while waiting. If it raises an exception, the process is killed.
        """
        number, self.n_asked = self.n_asked, self.n_asked + 1
        job, path = {"path": str(program.resolve()), "run": run, "inputs": inputs}, self.folder / f"{number}.pt"
        torch.save(job, self.folder / f"{number}.job")
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.write(b"%d\n" % number)
            self._process.stdin.flush()
        pause = POLL_SECONDS / 32
        until = time.monotonic() + seconds + (START_SECONDS if number == 0 else 0)
        try:
            while not path.exists():
                if self._process.poll() is not None and not path.exists():
                    return {"error": "ended", "message": "", "line": 0, "code": ""}
                if time.monotonic() > until:
                    self.close()
                    return {"error": "late", "message": f"{seconds:g}", "line": 0, "code": ""}
                on_wait()
                time.sleep(pause)
                pause = min(2 * pause, POLL_SECONDS)
        except BaseException:
            self.close()
            raise
        answer: Answer = torch.load(path)
        for file in (path, self.folder / f"{number}.job"):
            file.unlink()
        return answer

    def close(self) -> None:
        """Kill the process."""
        self._process.kill()
        self._process.communicate()
