"""A process that runs a learner's programs: python -I process.py FOLDER. This file imports nothing from the package.

A number n on standard input requests the job in FOLDER/n.job, {"path", "run", "inputs"}. The answer is written to
FOLDER/n.pt: {"result"}, or {"error", "message", "line", "code"}. The process exits when its standard input is closed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

POLL_SECONDS = 0.005  # interval between checks for an answer

Answer = dict[str, Any]  # see above


class LearnerProcess:
    """A Python process in isolated mode. It runs one job after another until it exits or a job takes too long.

    on_wait: called repeatedly while waiting for an answer.
    """

    def __init__(self, on_wait: Callable[[], None] = lambda: None) -> None:
        self._temporary = TemporaryDirectory(prefix="glassbox-course-")
        self.on_wait, self._numbers = on_wait, count()
        self.folder = Path(self._temporary.name)
        with (self.folder / "printed").open("wb") as printed:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-u", "-X", "utf8", __file__, str(self.folder)],
                stdin=subprocess.PIPE,
                stdout=printed,
                stderr=subprocess.STDOUT,
            )

    def ask(self, program: Path, run: str, inputs: dict[str, Any], seconds: float) -> Answer:
        """Run lines in a program's namespace and return the answer.

        The answer is the error "late" if the job exceeds its time limit, or "ended" if the process exits.
        """
        number = next(self._numbers)  # an interrupted job's answer is not taken for that of the next job
        job, path = self.folder / f"{number}.job", self.folder / f"{number}.pt"
        torch.save({"path": str(program.resolve()), "run": run, "inputs": inputs}, job)
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.write(b"%d\n" % number)
            self._process.stdin.flush()
        began = time.monotonic()
        while not path.exists():
            if self._process.poll() is not None and not path.exists():
                return {"error": "ended", "message": "", "line": 0, "code": ""}
            if job.exists():  # the process has not taken it yet, because it is importing torch
                began = time.monotonic()
            if time.monotonic() > began + seconds:
                self._process.kill()
                return {"error": "late", "message": f"{seconds:g}", "line": 0, "code": ""}
            self.on_wait()
            time.sleep(POLL_SECONDS)
        answer: Answer = torch.load(path)
        path.unlink()
        return answer

    def printed(self) -> str:
        return (self.folder / "printed").read_text(encoding="utf-8", errors="replace").strip()

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()
        self._temporary.cleanup()


class WrongNames(Exception):
    """Raised when a module's parameters differ from those in the course."""


class WrongType(Exception):
    """Raised when a result is neither a tensor nor a number nor a string."""


def copy_weights(module: nn.Module, weights: dict[str, Tensor]) -> nn.Module:
    """Copy weights by name, and switch to evaluation mode. Raises WrongNames if the names or shapes differ."""
    parameters = dict(module.named_parameters(remove_duplicate=False))
    problems = [f"- {name}" for name in weights if name not in parameters]
    problems += [f"+ {name}" for name in parameters if name not in weights]
    problems += [
        f"{name}: {tuple(parameters[name].shape)} != {tuple(value.shape)}"
        for name, value in weights.items()
        if name in parameters and parameters[name].shape != value.shape
    ]
    if problems:
        raise WrongNames("\n".join(problems[:6]))
    with torch.no_grad():
        for name, value in weights.items():
            parameters[name].copy_(value)
    return module.eval()


class Pass(dict[str, Tensor]):
    """Tensors from one forward pass, keyed by name; see `record`."""


@torch.no_grad()
def record(model: nn.Module, idx: Tensor, factors: dict[str, Tensor | float], everything: bool) -> Pass:
    """Record the inputs and outputs of a GPT's modules.

    For module h.0, "h.0" is its output, "h.0.in" its input, and "h.0.attn.weights" the attention weights that it
    stores. "logits" contains only the last position. factors: scale inputs and outputs. everything: whether to record
    all tensors, or only those that a cache needs.
    """
    found, names = Pass(), {module: name for name, module in model.named_modules() if name}

    def keep(name: str, value: Any) -> Any:
        if name in factors:
            value = value * factors[name]
        if isinstance(value, Tensor) and (everything or name == "lm_head.in" or name.endswith(".c_attn")):
            found[name] = value
        return value

    def read(module: nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        return (keep(f"{names[module]}.in", inputs[0]), *inputs[1:]) if module in names else inputs

    def write(module: nn.Module, inputs: tuple[Any, ...], output: Any) -> Any:
        if module not in names:
            return output
        keep(f"{names[module]}.weights", getattr(module, "weights", None))
        return keep(names[module], output)

    with register_module_forward_pre_hook(read), register_module_forward_hook(write):  # type: ignore[arg-type]
        found["logits"] = model(idx)[:, -1]
    return found


def run_lines(names: dict[str, Any], run: str, inputs: dict[str, Any], path: str = "") -> Answer:
    scope = {**names, **inputs, "torch": torch, "nn": nn, "copy_weights": copy_weights, "record": record}
    torch.manual_seed(0)
    try:
        exec(run, scope)
        return {"result": plain(scope["result"])}
    except (Exception, SystemExit) as error:
        return failure(error, path)


def plain(value: Any) -> Any:
    """Convert a result to a value that can be saved: a tensor without its graph, a number, a string or a dictionary."""
    if isinstance(value, Pass):
        return {name: plain(tensor) for name, tensor in value.items()}
    if isinstance(value, Tensor):
        return value.detach().cpu().clone()
    if isinstance(value, (list, tuple)) and all(isinstance(item, (int, float)) for item in value):
        return torch.tensor(value)
    if isinstance(value, (int, float, str)):
        return value
    raise WrongType(type(value).__name__)


def failure(error: BaseException, path: str) -> Answer:
    """Describe an error and the line of the program that raised it, or line 0 if it was raised elsewhere."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
    line, code = (frames[-1].lineno, frames[-1].line) if frames else (0, "")
    if isinstance(error, SyntaxError):
        line, code = error.lineno, (error.text or "").strip()
    return {"error": type(error).__name__, "message": str(error), "line": line, "code": code}


@cache
def program(path: str) -> dict[str, Any]:
    """Import a program as the module my_gpt, and return its namespace."""
    module = ModuleType("my_gpt")
    module.__file__ = path
    sys.modules["my_gpt"] = module
    sys.path.insert(0, str(Path(path).parent))
    exec(compile(Path(path).read_bytes(), path, "exec"), vars(module))
    return vars(module)


def main(folder: Path) -> None:
    torch.set_num_threads(1)
    numbers = os.fdopen(os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # programs that read standard input find it empty
    for number in map(int, numbers):
        file = folder / f"{number}.job"
        job = torch.load(file)
        file.unlink()
        path = job["path"]
        try:
            answer = run_lines(program(path), job["run"], job["inputs"], path)
        except (Exception, SystemExit) as error:  # raised when the program is imported
            answer = failure(error, path)
        torch.save(answer, folder / "new.pt")
        os.replace(folder / "new.pt", folder / f"{number}.pt")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
