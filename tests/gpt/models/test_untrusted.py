"""Untrusted files run no code, and the memory and time they take are limited."""

from __future__ import annotations

import json
import math
import os
import pickle
import random
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from gpt.config import GPTConfig
from gpt.model import GPT
from gpt.models.checkpoints import open_checkpoint
from gpt.models.checkpoints.translate import expected_shapes
from gpt.models.checkpoints.untrusted import read_json
from gpt.models.checkpoints.vocabularies import read_nanogpt_meta
from gpt.models.sources import load_model

pytestmark = pytest.mark.thorough

CONFIG = GPTConfig(vocab_size=261, block_size=8, n_layer=1, n_head=2, n_embd=8)


class Touch:
    """Creates a file when unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
        return os.system, (f"touch {self.marker}",)


def test_a_file_saved_by_an_editor_on_windows_is_read(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"n_layer": 1}\n', encoding="utf-8-sig")
    assert read_json(tmp_path / "config.json", dict) == {"n_layer": 1}


def test_a_pickled_model_is_told_from_a_file_of_an_old_torch(tmp_path: Path) -> None:
    model, path = GPT(CONFIG), tmp_path / "model.pt"
    path.write_bytes(pickle.dumps(model))
    with pytest.raises(ValueError, match="is a pickled Python object, which would run code"):
        load_model(path)
    for saved in (model.state_dict(), model):  # with a whole module, that format also stores the names of its classes
        torch.save(saved, path, _use_new_zipfile_serialization=False)
        opened = open_checkpoint(path, n_head=2).build().state_dict()
        assert all(torch.equal(opened[name], value) for name, value in model.state_dict().items())
        whole = path.read_bytes()
        for length in range(10, len(whole) - 100, len(whole) // 20):
            path.write_bytes(whole[:length])
            with pytest.raises(ValueError, match=r"model\.pt"):
                load_model(path, n_head=2)


@pytest.fixture
def torch_file(tmp_path: Path) -> Path:
    """Save a small checkpoint in nanoGPT's format."""
    state = {f"transformer.{name}": value for name, value in GPT(CONFIG).state_dict().items()}
    torch.save({"model": state, "model_args": {"n_head": 2}}, tmp_path / "ckpt.pt")
    load_model(tmp_path / "ckpt.pt")
    return tmp_path / "ckpt.pt"


def test_file_that_would_run_code_is_refused_and_runs_none(tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    torch.save({"wte.weight": torch.zeros(2, 2), "more": Touch(marker)}, tmp_path / "evil.pt")
    with pytest.raises(ValueError, match=r"would run code \((posix|nt)\.system\)"):
        load_model(tmp_path / "evil.pt")
    for protocol in (2, 4):
        (tmp_path / "meta.pkl").write_bytes(pickle.dumps({"itos": {0: Touch(marker)}}, protocol=protocol))
        with pytest.raises(ValueError, match=r"would run code \((posix|nt)\.system\)"):
            read_nanogpt_meta(tmp_path / "meta.pkl")
    assert not marker.exists()


@pytest.mark.parametrize(
    "tuples",
    [b"\x85" * 2_000_000, b"".join(b"q%ch%c\x86" % (i, i) for i in range(100))],  # the pairs would need 2^100 hashes
    ids=["nested-deeply", "nested-pairs"],
)
def test_nested_tuples_are_not_hashed(tmp_path: Path, tuples: bytes) -> None:
    as_key, as_member = b"\x80\x02})" + tuples + b"K\x01s.", b"\x80\x04\x8f()" + tuples + b"\x90."
    for pickled in (as_key, as_member):
        (tmp_path / "meta.pkl").write_bytes(pickled)
        with pytest.raises(ValueError, match=r"meta\.pkl is (damaged or cut short: a tuple|not a nanoGPT vocabulary)"):
            read_nanogpt_meta(tmp_path / "meta.pkl")
        with zipfile.ZipFile(tmp_path / "nested.pt", "w") as archive:
            archive.writestr("nested/data.pkl", pickled)
        with pytest.raises(ValueError, match=r"nested\.pt (is damaged or cut short: a tuple|contains no state dict)"):
            load_model(tmp_path / "nested.pt")


def test_torchscript_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "script.pt", "w") as archive:
        for name in ("data.pkl", "constants.pkl", "code/__torch__.py"):
            archive.writestr(f"script/{name}", b"\x80\x02}.")
    with pytest.raises(ValueError, match="a zip file but not a checkpoint"):
        load_model(tmp_path / "script.pt")


def test_zip_bomb_is_refused(tmp_path: Path, torch_file: Path) -> None:
    with zipfile.ZipFile(torch_file) as old, zipfile.ZipFile(tmp_path / "bomb.pt", "w", zipfile.ZIP_DEFLATED) as new:
        for entry in old.infolist():
            new.writestr(entry.filename, old.read(entry))
        new.writestr("ckpt/data/99", bytes(50_000_000))
    assert (tmp_path / "bomb.pt").stat().st_size < 200_000
    with pytest.raises(ValueError, match="compressed"):
        load_model(tmp_path / "bomb.pt")


def test_zip_directory_with_wrong_entries_is_refused(tmp_path: Path, torch_file: Path) -> None:
    data = bytearray(torch_file.read_bytes())
    at = data.rindex(b"PK\x01\x02")  # the last entry of the directory now claims 2 GiB
    data[at + 20 : at + 28] = struct.pack("<II", 2**31, 2**31)
    (tmp_path / "large.pt").write_bytes(data)
    load_model(tmp_path / "large.pt")  # nothing reads that entry
    data[at - 100 : at] = bytes(100)
    (tmp_path / "large.pt").write_bytes(data)
    with pytest.raises(ValueError, match=r"large\.pt is damaged"):
        load_model(tmp_path / "large.pt")
    data = bytearray(torch_file.read_bytes())
    data[data.rindex(b"PK\x01\x02") + 46] = 0xBB  # the first byte of its name is no longer UTF-8
    data[data.rindex(b"PK\x01\x02") + 9] |= 8  # the flag that declares names to be UTF-8
    (tmp_path / "large.pt").write_bytes(data)
    with pytest.raises(ValueError, match=r"large\.pt is damaged"):
        load_model(tmp_path / "large.pt")


def test_tensor_that_claims_more_than_the_file_holds_is_refused(tmp_path: Path) -> None:
    torch.save({"wte.weight": torch.zeros(1).expand(10**6, 10**6)}, tmp_path / "wide.pt")
    assert (tmp_path / "wide.pt").stat().st_size < 10_000
    with pytest.raises(ValueError, match=r"claims 1,000,000,000,000 numbers"):
        load_model(tmp_path / "wide.pt")


@pytest.mark.parametrize("length", [2**62, 10**9, 200])
def test_safetensors_header_longer_than_the_file_is_refused(tmp_path: Path, length: int) -> None:
    (tmp_path / "model.safetensors").write_bytes(length.to_bytes(8, "little") + b"{}" + b" " * 100)
    with pytest.raises(ValueError, match="damaged or cut short" if length == 200 else f"a header of {length:,} bytes"):
        load_model(tmp_path)


@pytest.mark.parametrize(
    "entry",
    [
        {"dtype": "F32", "shape": [10**6, 10**6], "data_offsets": [0, 4 * 10**12]},
        {"dtype": "F32", "shape": [10**6, 10**6], "data_offsets": [0, 16]},
        {"dtype": "F32", "shape": [2, 2], "data_offsets": [8, 24]},
        {"dtype": "F99", "shape": [2, 2], "data_offsets": [0, 16]},
    ],
    ids=["beyond-the-end", "more-than-its-bytes", "gap", "unknown-type"],
)
def test_safetensors_header_with_wrong_entries_is_refused(tmp_path: Path, entry: dict[str, object]) -> None:
    header = json.dumps({"wte.weight": entry}).encode()
    (tmp_path / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + bytes(24))
    with pytest.raises(ValueError, match="damaged or cut short"):
        load_model(tmp_path)


@pytest.mark.parametrize("kind", ["safetensors", "torch"])
def test_file_cut_anywhere_is_refused(tmp_path: Path, torch_file: Path, kind: str) -> None:
    save_file({"wte.weight": torch.zeros(40, 8)}, tmp_path / "whole.safetensors")
    whole = (torch_file if kind == "torch" else tmp_path / "whole.safetensors").read_bytes()
    part = tmp_path / "part.bin"
    for length in {0, 1, 4, 8, 9, 30, *range(50, len(whole), len(whole) // 40), len(whole) - 1}:
        part.write_bytes(whole[:length])
        with pytest.raises(ValueError, match=r"part\.bin"):
            load_model(part)


@pytest.mark.parametrize("kind", ["torch", "meta.pkl"])
def test_damaged_pickle_is_read_or_refused_but_nothing_else(tmp_path: Path, torch_file: Path, kind: str) -> None:
    meta = pickle.dumps({"itos": dict(enumerate("abcdefgh")), "stoi": {c: i for i, c in enumerate("abcdefgh")}})
    whole, read = (torch_file.read_bytes(), load_model) if kind == "torch" else (meta, read_nanogpt_meta)
    dice, refused = random.Random(0), 0
    for _ in range(150):
        damaged = bytearray(whole)
        for _ in range(dice.choice((1, 1, 4, 40))):
            damaged[dice.randrange(len(whole))] = dice.randrange(256)
        (tmp_path / "damaged.pt").write_bytes(damaged)
        try:
            read(tmp_path / "damaged.pt")
        except ValueError:
            refused += 1
    assert refused > 50


def test_file_larger_than_memory_is_refused_by_its_size_and_not_read(tmp_path: Path) -> None:
    header, at = {}, 0
    for name, shape in expected_shapes(GPTConfig(n_layer=96, n_head=96, n_embd=12288)).items():
        size = 4 * math.prod(shape)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    with (tmp_path / "model.safetensors").open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + at)  # sparse, so that it takes no disk space
    (tmp_path / "config.json").write_text(json.dumps({"tie_weights": True, "n_head": 96}))
    with pytest.raises(ValueError, match=r"needs 650\.\d\d GiB of memory"):
        load_model(tmp_path, device="cpu")
