"""Open checkpoints that are damaged, contradictory or malicious."""

from __future__ import annotations

import json
import multiprocessing
import os
import pickle
import random
import resource
import struct
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from benchmarks.trials.app_process import Result
from gpt.config import GPTConfig
from gpt.model import GPT
from gpt.models.checkpoints.writing import save_model
from gpt.models.sources import BUNDLED, load_model

MAX_SECONDS, MAX_BYTES = 10.0, 2 * 10**9
SHAPE = GPTConfig(vocab_size=261, block_size=8, n_layer=1, n_head=2, n_embd=8)


class Touch:
    """An object that creates a file when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
        return os.system, (f"touch {self.marker}",)


def checkpoints(scale: float = 1.0) -> Result:
    """Open 40 broken checkpoints, and check that none loads, runs code, or takes more than 10 s or 2 GB."""
    failures, slowest, most = list[str](), 0.0, 0
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["benchmarks.trials.checkpoints"])
    with tempfile.TemporaryDirectory() as folder:
        marker = Path(folder) / "ran"
        names = list(bad_checkpoints(Path(folder), marker))[:: max(1, round(1 / scale))]
        for name in names:
            receive, send = context.Pipe(duplex=False)
            process = context.Process(target=open_checkpoint, args=(Path(folder) / name, send))
            process.start()
            send.close()
            try:
                sentence, seconds, n_bytes = receive.recv()
            except EOFError:
                process.join()
                failures.append(f"{name} ended the process with exit code {process.exitcode}")
                continue
            process.join()
            slowest, most = max(slowest, seconds), max(most, n_bytes)
            if sentence is None:
                failures.append(f"{name} was loaded")
            elif sentence.startswith("!") or seconds > MAX_SECONDS or n_bytes > MAX_BYTES:
                failures.append(f"{name}: {sentence}, {seconds:.1f} s, {n_bytes / 1e9:.1f} GB")
        if marker.exists():
            failures.append("code in a checkpoint was executed")
    said = f"{len(names) - len(failures)} refused with a message, within {slowest:.1f} s and {most / 1e9:.1f} GB"
    return Result("broken checkpoints", len(names), tuple(failures), said)


def open_checkpoint(path: Path, send: Any) -> None:
    """Load a checkpoint and send (error message or None, seconds, peak memory in bytes)."""
    began, sentence = time.monotonic(), None
    try:
        load_model(path, device="cpu")
    except ValueError as problem:
        sentence = str(problem)[:200]
    except BaseException as problem:
        sentence = f"!{problem!r}"[:200]
    send.send((sentence, time.monotonic() - began, 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss))


def bad_checkpoints(folder: Path, marker: Path) -> Iterator[str]:
    """Write the checkpoints into a folder and yield their names."""
    for write in (_pickles, _safetensors, _zips, _folders, _cut):
        for name, content in write(marker):
            target = folder / name
            if isinstance(content, bytes):
                target.write_bytes(content)
            else:
                target.mkdir()
                content(target)
            yield name


def _saved(value: object) -> bytes:
    with tempfile.NamedTemporaryFile() as file:
        torch.save(value, file.name)
        return Path(file.name).read_bytes()


def _state() -> dict[str, torch.Tensor]:
    model = GPT(SHAPE, generator=torch.Generator().manual_seed(0))
    return {f"transformer.{name}": value for name, value in model.state_dict().items()}


def _pickles(marker: Path) -> Iterator[tuple[str, bytes]]:
    yield "code.pt", _saved({"wte.weight": torch.zeros(2, 2), "more": Touch(marker)})
    yield "code_protocol_4.pt", pickle.dumps({"w": Touch(marker)}, protocol=4)
    yield "module.pt", _saved(torch.nn.Linear(2, 2))
    yield "bytearray.pt", _saved({"x": bytearray(9)})
    yield "expanded.pt", _saved({"wte.weight": torch.zeros(1).expand(10**6, 10**6)})
    yield "numbers.pt", _saved({"wte.weight": 3, "model": None})
    yield "nested_dicts.pt", _saved({"model": {"model": {"state_dict": {}}}})
    yield "infinite.pt", _saved({"model": _state() | {"transformer.wpe.weight": torch.full((8, 8), torch.inf)}})
    yield "integers.pt", _saved({"model": {name: value.to(torch.int64) for name, value in _state().items()}})
    yield "complex.pt", _saved({"model": {name: value.to(torch.complex64) for name, value in _state().items()}})
    yield "other_heads.pt", _saved({"model": _state(), "model_args": {"n_head": 3}})
    yield "no_layers.pt", _saved({"wte.weight": torch.zeros(261, 8)})


def _safetensors(marker: Path) -> Iterator[tuple[str, bytes]]:
    for length in (2**62, 10**9, 200):
        yield f"header_{length}.safetensors", length.to_bytes(8, "little") + b"{}" + b" " * 100
    entries: dict[str, Any] = {
        "beyond": {"dtype": "F32", "shape": [10**6, 10**6], "data_offsets": [0, 4 * 10**12]},
        "more_than_bytes": {"dtype": "F32", "shape": [10**6, 10**6], "data_offsets": [0, 16]},
        "gap": {"dtype": "F32", "shape": [2, 2], "data_offsets": [8, 24]},
        "unknown_type": {"dtype": "F99", "shape": [2, 2], "data_offsets": [0, 16]},
        "negative": {"dtype": "F32", "shape": [-2, -2], "data_offsets": [0, 16]},
        "text": "wte.weight",
    }
    for name, entry in entries.items():
        header = json.dumps({"wte.weight": entry}).encode()
        yield f"{name}.safetensors", len(header).to_bytes(8, "little") + header + bytes(24)
    many = json.dumps(
        {f"w{i}": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]} for i in range(400_000)}
    ).encode()
    yield "many.safetensors", len(many).to_bytes(8, "little") + many
    deep = b"[" * 1_000_000
    yield "deep.safetensors", len(deep).to_bytes(8, "little") + deep


def _zips(marker: Path) -> Iterator[tuple[str, bytes]]:
    def packed(compression: int, **files: bytes) -> bytes:
        with tempfile.NamedTemporaryFile() as file:
            with zipfile.ZipFile(file.name, "w", compression) as archive:
                for name, content in files.items():
                    archive.writestr(f"a/{name}", content)
            return Path(file.name).read_bytes()

    yield "bomb.pt", packed(zipfile.ZIP_DEFLATED, **{"data.pkl": b"\x80\x02}.", "data/0": bytes(200_000_000)})
    yield "script.pt", packed(zipfile.ZIP_STORED, **{"data.pkl": b"\x80\x02}.", "constants.pkl": b"\x80\x02}."})
    yield "tuples.pt", packed(zipfile.ZIP_STORED, **{"data.pkl": b"\x80\x02})" + b"\x85" * 2_000_000 + b"K\x01s."})
    doubled = b"".join(b"q%ch%c\x86" % (i, i) for i in range(100))  # 100 nested pairs (t, t) need 2^100 hashes
    yield "doubled.pt", packed(zipfile.ZIP_STORED, **{"data.pkl": b"\x80\x02})" + doubled + b"K\x01s."})
    whole = bytearray(_saved({"model": _state()}))
    at = whole.rindex(b"PK\x01\x02")
    whole[at + 20 : at + 28] = struct.pack("<II", 2**31, 2**31)
    yield "wrong_sizes.pt", bytes(whole)


def _folders(marker: Path) -> Iterator[tuple[str, Callable[[Path], object]]]:
    def saved(change: Callable[[Path], object]) -> Callable[[Path], object]:
        def write(folder: Path) -> None:
            save_model(folder, GPT(SHAPE, generator=torch.Generator().manual_seed(0)), None)
            change(folder)

        return write

    def with_config(**values: object) -> Callable[[Path], object]:
        def change(folder: Path) -> None:
            config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
            (folder / "config.json").write_text(json.dumps(config | values), encoding="utf-8")

        return saved(change)

    yield "empty", lambda folder: None
    yield "two_weights", lambda folder: [(folder / name).write_bytes(_saved({})) for name in ("a.pt", "b.pt")]
    yield "huge_config", with_config(n_layer=10**9, n_embd=10**9)
    yield "text_config", saved(lambda folder: (folder / "config.json").write_text("{", encoding="utf-8"))
    yield "deep_config", saved(lambda folder: (folder / "config.json").write_text("[" * 10**6, encoding="utf-8"))
    yield "device", lambda folder: (folder / "model.safetensors").symlink_to("/dev/zero")
    yield "missing_shard", lambda folder: save_file({"w": torch.zeros(2)}, folder / "model-00001-of-00002.safetensors")


def _cut(marker: Path) -> Iterator[tuple[str, bytes]]:
    whole, chance = Path(BUNDLED, "model.safetensors").read_bytes(), random.Random(0)
    yield "half.safetensors", whole[: len(whole) // 2]
    yield "noise.safetensors", chance.randbytes(100_000)
    yield "noise.pt", b"PK\x03\x04" + chance.randbytes(100_000)
    yield "nothing.bin", b""
