"""Untrusted, damaged or contradictory files run no code and are rejected; the memory and time they take are limited."""

from __future__ import annotations

import json
import math
import os
import pickle
import random
import shutil
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from gpt.config import GPTConfig
from gpt.model import GPT
from gpt.models.checkpoints.checkpoint import open_checkpoint
from gpt.models.checkpoints.translate import expected_shapes
from gpt.models.checkpoints.vocabularies import find_vocabulary
from gpt.models.checkpoints.writing import save_hugging_face, save_model
from gpt.models.registry import Registry
from gpt.models.sources import load_model
from gpt.tokenizer import Tokenizer
from tests.parity.family_models import family_twins

pytestmark = pytest.mark.thorough
CONFIG = GPTConfig(vocab_size=261, block_size=8, n_layer=1, n_head=2, n_embd=8)


class Touch:
    """Creates a file when unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
        return os.system, (f"touch {self.marker}",)


def test_a_pickled_model_is_told_from_a_file_of_an_old_torch(tmp_path: Path) -> None:
    model, path = GPT(CONFIG), tmp_path / "model.pt"
    path.write_bytes(pickle.dumps(model))
    with pytest.raises(ValueError, match="is a pickled Python object"):
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
            find_vocabulary(tmp_path, 8)
    assert not marker.exists()


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
    whole, name = (torch_file.read_bytes(), "damaged.pt") if kind == "torch" else (meta, kind)
    dice, refused = random.Random(0), 0
    for _ in range(150):
        damaged = bytearray(whole)
        for _ in range(dice.choice((1, 1, 4, 40))):
            damaged[dice.randrange(len(whole))] = dice.randrange(256)
        (tmp_path / name).write_bytes(damaged)
        try:
            load_model(tmp_path / name) if kind == "torch" else find_vocabulary(tmp_path, 8)
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


def test_a_small_file_that_states_many_layers_is_refused_before_they_are_listed(tmp_path: Path) -> None:
    (tmp_path / "model.bin").write_bytes(struct.pack("<7i", 8, 8, 2**20, 1, 1, 10, 10) + bytes(100))
    options = {"n_vocab": 10, "n_ctx": 8, "n_embd": 8, "n_head": 1, "n_layer": 2**20}
    (tmp_path / "hparams.json").write_text(json.dumps(options))
    (tmp_path / "model.ckpt.data-00000-of-00001").write_bytes(bytes(100))
    (tmp_path / "model.ckpt.index").touch()
    for name, size in (("model.bin", 128), ("model.ckpt.index", 100)):
        with pytest.raises(ValueError, match=f"{size} < 268,435,456"):
            open_checkpoint(tmp_path / name)


@pytest.fixture
def folder(tmp_path: Path, byte_tokenizer: Tokenizer) -> Path:
    """A small model in our own format."""
    save_model(tmp_path / "ours", GPT(CONFIG), byte_tokenizer)
    return tmp_path / "ours"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_weights_that_are_not_finite_are_refused_by_name(
    tmp_path: Path, byte_tokenizer: Tokenizer, value: float, dtype: torch.dtype
) -> None:
    model = GPT(CONFIG)
    model.h[0].mlp.c_fc.weight.data[3, 2] = value
    save_model(tmp_path / "bad", model, byte_tokenizer, dtype=dtype)
    with pytest.raises(ValueError, match=r"h\.0\.mlp\.c_fc\.weight has weights that are NaN or infinite"):
        load_model(tmp_path / "bad")


@pytest.mark.parametrize("kind", ["ours", "theirs", "family"])
def test_configuration_of_any_values_is_read_or_refused_with_a_value_error(
    tmp_path: Path, folder: Path, byte_tokenizer: Tokenizer, kind: str
) -> None:
    if kind == "theirs":
        save_hugging_face(GPT(CONFIG), folder, byte_tokenizer, overwrite=True)
    if kind == "family":
        folder = family_twins("gemma3_text", "windows by layer, untied").folder
    config = json.loads((folder / "config.json").read_text())
    changed, refused = tmp_path / "changed", 0
    shutil.copytree(folder, changed)
    for name in config:
        for value in (None, -1, 2.5, 10**40, float("nan"), True, "", "x", [], [1], {}, {"a": 1}):
            (changed / "config.json").write_text(json.dumps({**config, name: value}))
            try:
                load_model(changed)
            except ValueError:
                refused += 1
    assert refused > 5 * len(config)


@pytest.mark.parametrize(("option", "value"), [("n_ff", None), ("tie_weights", True)])
def test_a_configuration_of_our_own_that_contradicts_its_weights_is_refused(
    folder: Path, byte_tokenizer: Tokenizer, option: str, value: object
) -> None:
    save_model(folder, GPT(replace(CONFIG, n_ff=12, tie_weights=False)), byte_tokenizer, overwrite=True)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, option: value}))
    with pytest.raises(ValueError, match=f"{option} is .* in the configuration, but .* in the weights"):
        load_model(folder)


@pytest.mark.parametrize("text", ["", "{", "[1]", "[" * 100_000, "\xff\xfe"])
def test_broken_config_is_refused(folder: Path, text: str) -> None:
    (folder / "config.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(ValueError, match=r"config\.json is damaged"):
        load_model(folder)


def test_vocabulary_of_another_model_is_not_used(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config))
    lines = (folder / "vocab.tiktoken").read_text()
    (folder / "vocab.tiktoken").write_text(lines + "YWJj 260\n")
    with pytest.warns(UserWarning, match="vocabulary has 262 tokens, but the model has 261"):
        assert load_model(folder).tokenizer.decode([3]) == " 3"


def test_missing_and_ambiguous_weights_are_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no model, file or folder"):
        load_model(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="no weight file here"):
        load_model(tmp_path)
    (tmp_path / "a.pt").touch()
    (tmp_path / "b.pt").touch()
    with pytest.raises(ValueError, match=r"2 weight files here \(a.pt, b.pt\): name the one"):
        load_model(tmp_path)
    (tmp_path / "notes.txt").write_text("hello, this is text")
    with pytest.raises(ValueError, match=r"notes\.txt is neither"):
        load_model(tmp_path / "notes.txt")


def test_loaded_model_does_not_depend_on_its_file(tmp_path: Path, folder: Path) -> None:
    registry = Registry(memory=10**9, device=torch.device("cpu"))
    torch.save({f"transformer.{name}": value for name, value in GPT(CONFIG).state_dict().items()}, tmp_path / "nano.pt")
    idx = torch.arange(8)[None]
    for path in (folder, tmp_path / "nano.pt"):
        name = registry.add(path, n_head=2)
        loaded = registry.get(name)
        before = loaded.model(idx)
        file = path / "model.safetensors" if path.is_dir() else path
        size = file.stat().st_size
        with file.open("r+b") as opened:
            opened.write(b"\xff" * size)
        assert torch.equal(loaded.model(idx), before)
        with pytest.raises(ValueError, match=r"damaged|neither"):
            load_model(path)
        assert registry.get(name) is loaded
