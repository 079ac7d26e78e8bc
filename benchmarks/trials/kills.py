"""Run `kill -9` in the middle of a download, a training run, a save and text generation."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import httpx
import torch

from benchmarks.trials.app_process import ROOT, SECONDS, Result, free_port, running_app, start_app
from benchmarks.trials.streams import stream
from gpt import load_model
from gpt.config import GPTConfig
from gpt.model import GPT
from gpt.models.checkpoints.tokenizer_formats import write_gpt2_files
from gpt.models.checkpoints.writing import save_hugging_face, save_model
from gpt.models.sources import BUNDLED
from tests.gpt.models.hub_server import REPO, Handler, Hub

TRAINING = (
    "--block-size 16 --n-layer 1 --n-head 2 --n-embd 16 --batch-size 4 --warmup 2 --steps 40 --every 2 --precision fp32"
)
SAVE = """
import sys
from gpt import load_model
from gpt.models.checkpoints.writing import save_model
one, other = (load_model(path, device="cpu", trainable=True) for path in sys.argv[1:3])
print("ready", flush=True)
while True:
    for loaded in (one, other):
        save_model(sys.argv[3], loaded.model, loaded.tokenizer, overwrite=True)
"""


class HalfHandler(Handler):
    """Sends half of the weights, then waits until the test lets it continue."""

    server: HalfHub

    def send_content(self, name: str, data: bytes) -> None:
        if name == "model.safetensors" and self.command == "GET" and not self.server.may_end.is_set():
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data[: len(data) // 2])
            self.server.is_halfway.set()
            self.server.may_end.wait(SECONDS)
            self.close_connection = True
            return
        super().send_content(name, data)


class HalfHub(Hub):
    """A hub whose first download stops halfway."""

    def __init__(self, files: dict[str, bytes]) -> None:
        super().__init__(files)
        self.RequestHandlerClass = HalfHandler
        self.is_halfway, self.may_end = threading.Event(), threading.Event()


def kills(scale: float = 1.0) -> Result:
    """Kill each process ten times, and check that the next one starts cleanly and finds all completed work."""
    n, failures = max(1, round(10 * scale)), list[str]()
    for trial in (download, training, saving, writing):
        for number in range(n):
            with tempfile.TemporaryDirectory() as folder:
                try:
                    trial(Path(folder), random.Random(number))
                except (AssertionError, RuntimeError, ValueError, OSError) as problem:
                    failures.append(f"{trial.__name__} {number}: {problem}")
    said = f"{4 * n - len(failures)} clean starts"
    return Result("kill -9 while downloading, training, saving, generating", 4 * n, tuple(failures), said)


def download(folder: Path, chance: random.Random) -> None:
    """Kill the app while it downloads a model, and restart it."""
    files, bundled = folder / "files", load_model(BUNDLED, device="cpu")
    config = GPTConfig(vocab_size=bundled.tokenizer.n_vocab, block_size=16, n_layer=2, n_head=2, n_embd=64)
    save_hugging_face(GPT(config, generator=torch.Generator().manual_seed(0)), files, bundled.tokenizer)
    write_gpt2_files(bundled.tokenizer, files)
    hub = HalfHub({file.name: file.read_bytes() for file in files.iterdir()})
    threading.Thread(target=hub.serve_forever, daemon=True).start()
    environment = {
        "HF_ENDPOINT": hub.url,
        "HF_HOME": str(folder / "home"),
        "HF_HUB_OFFLINE": "0",
        "NO_PROXY": "127.0.0.1",
    }
    try:
        first = subprocess.Popen(
            [sys.executable, "app.py", "--port", str(free_port()), "--model", REPO],
            cwd=ROOT,
            env={**os.environ, **environment},
            stderr=subprocess.DEVNULL,
        )
        assert hub.is_halfway.wait(SECONDS), "nothing was downloaded"
        kill(first)
        hub.may_end.set()
        with running_app("--model", REPO, **environment) as app:
            engines = httpx.get(f"{app.url}healthz", timeout=SECONDS).json()["engines"]
        assert engines.get(REPO), f"after the restart, the app runs {engines}"
    finally:
        hub.shutdown()
        hub.server_close()


def training(folder: Path, chance: random.Random) -> None:
    """Kill a training run after it has saved its state, and resume it."""
    (folder / "text.txt").write_text("the cat sat on the mat. a dog ran. " * 200, encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "gpt.training",
        "--characters",
        str(folder / "text.txt"),
        "--out",
        str(folder / "run"),
    ]
    command += TRAINING.split()
    run = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    began = time.monotonic()
    while not (folder / "run" / "last.pt").is_file():
        assert run.poll() is None, "the training ended before it saved anything"
        assert time.monotonic() < began + SECONDS, "the training saved nothing"
        time.sleep(0.005)
    time.sleep(chance.uniform(0, 0.3))
    kill(run)
    resumed = subprocess.run([*command, "--resume"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert resumed.returncode == 0, resumed.stderr[-300:]
    load_model(folder / "run" / "best", device="cpu")


def saving(folder: Path, chance: random.Random) -> None:
    """Kill a program that replaces a saved model, and check that a complete model loads."""
    bundled = load_model(BUNDLED, device="cpu")
    config = GPTConfig(vocab_size=bundled.tokenizer.n_vocab, block_size=64, n_layer=2, n_head=2, n_embd=64)
    for seed, name in enumerate(("one", "other")):
        save_model(folder / name, GPT(config, generator=torch.Generator().manual_seed(seed)), bundled.tokenizer)
    program = [sys.executable, "-c", SAVE, *(str(folder / name) for name in ("one", "other", "saved"))]
    writer = subprocess.Popen(program, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    writer.stdout.readline()
    while not (folder / "saved" / "model.safetensors").is_file():
        time.sleep(0.005)
    time.sleep(chance.uniform(0, 0.3))
    kill(writer)
    found = load_model(folder / "saved", device="cpu").model.state_dict()
    wanted = [load_model(folder / name, device="cpu").model.state_dict() for name in ("one", "other")]
    same = [all(torch.equal(found[name], other[name]) for name in found) for other in wanted]
    assert any(same), "the saved model is neither of the two"


def writing(folder: Path, chance: random.Random) -> None:
    """Kill the app while it generates a text, and restart it on the same port."""
    app = start_app(folder, "--no-mcp")
    with stream(app, 0, 200) as lines:
        assert next(lines) == "event: generating"
        kill(app.process)
    again = start_app(folder, "--no-mcp", port=httpx.URL(app.url).port)
    try:
        with stream(again, 0, 8) as lines:
            assert "event: complete" in lines, "no text after the restart"
    finally:
        again.process.terminate()
        again.process.wait()


def kill(process: subprocess.Popen[str] | subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGKILL)
    process.wait()
