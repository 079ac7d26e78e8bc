"""Files that are broken or mean harm: a sentence, nothing run, nothing loaded."""

from __future__ import annotations

import json
import math
import os
import pickle
import random
import shutil
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from gpt.config import GPTConfig
from gpt.model import GPT
from gpt.models.checkpoints import checkpoint, open_checkpoint, save_hugging_face, save_model, writing
from gpt.models.checkpoints.layouts import expected_shapes
from gpt.models.checkpoints.vocabularies import Characters, read_nanogpt_meta
from gpt.models.registry import Registry
from gpt.models.sources import load_model
from gpt.tokenizer import Tokenizer

CONFIG = GPTConfig(vocab_size=261, block_size=8, n_layer=1, n_head=2, n_embd=8)


class Touch:
    """Unpickled by a careless reader, it makes a file."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
        return os.system, (f"touch {self.marker}",)


@pytest.fixture
def folder(tmp_path: Path, byte_tokenizer: Tokenizer) -> Path:
    """A small model in our own format."""
    save_model(tmp_path / "ours", GPT(CONFIG), byte_tokenizer)
    return tmp_path / "ours"


@pytest.fixture
def torch_file(tmp_path: Path) -> Path:
    """A small checkpoint as nanoGPT writes it."""
    state = {
        f"transformer.{name}": value for name, value in GPT(CONFIG).state_dict().items() if name != "lm_head.weight"
    }
    args = {"n_layer": 1, "n_head": 2, "n_embd": 8, "block_size": 8, "bias": True, "vocab_size": 261, "dropout": 0.0}
    torch.save({"model": state, "model_args": args}, tmp_path / "ckpt.pt")
    load_model(tmp_path / "ckpt.pt")
    return tmp_path / "ckpt.pt"


def test_checkpoint_that_would_run_a_program_is_refused_unrun(tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    torch.save({"wte.weight": torch.zeros(2, 2), "more": Touch(marker)}, tmp_path / "evil.pt")
    with pytest.raises(ValueError, match=r"would run code \((posix|nt)\.system\)"):
        load_model(tmp_path / "evil.pt")
    for protocol in (2, 4):
        (tmp_path / "meta.pkl").write_bytes(pickle.dumps({"itos": {0: Touch(marker)}}, protocol=protocol))
        with pytest.raises(ValueError, match=r"would run code \((posix|nt)\.system\)"):
            read_nanogpt_meta(tmp_path / "meta.pkl")
    assert not marker.exists()


def test_tuples_within_tuples_do_not_overflow_the_stack(tmp_path: Path) -> None:
    nested = b"\x80\x02})" + b"\x85" * 2_000_000 + b"K\x01s."  # a dict whose key is such a tuple, which is hashed
    (tmp_path / "meta.pkl").write_bytes(nested)
    with pytest.raises(ValueError, match=r"meta\.pkl has more than 0 tuples"):
        read_nanogpt_meta(tmp_path / "meta.pkl")
    with zipfile.ZipFile(tmp_path / "nested.pt", "w") as archive:
        archive.writestr("nested/data.pkl", nested)
    with pytest.raises(ValueError, match=r"nested\.pt has more than 20,000 tuples"):
        load_model(tmp_path / "nested.pt")


def test_tuples_that_repeat_each_other_take_no_time(tmp_path: Path) -> None:
    doubled = b"".join(b"q%ch%c\x86" % (i, i) for i in range(100))  # (t, t) of (t, t) ...: 2^100 hashes
    (tmp_path / "meta.pkl").write_bytes(b"\x80\x02})" + doubled + b"K\x01s.")
    with pytest.raises(ValueError, match=r"meta\.pkl has more than 0 tuples"):
        read_nanogpt_meta(tmp_path / "meta.pkl")


def test_whole_pickled_module_is_refused_by_the_name_of_its_class(tmp_path: Path) -> None:
    torch.save(torch.nn.Linear(2, 2), tmp_path / "module.pt")
    with pytest.raises(ValueError, match=r"torch\.nn\.modules\.linear\.Linear\).*save only model\.state_dict\(\)"):
        load_model(tmp_path / "module.pt")


def test_compiled_program_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "script.pt", "w") as archive:
        for name in ("data.pkl", "constants.pkl", "code/__torch__.py"):
            archive.writestr(f"script/{name}", b"\x80\x02}.")
    with pytest.raises(ValueError, match="another kind"):
        load_model(tmp_path / "script.pt")


def test_zip_bomb_is_refused(tmp_path: Path, torch_file: Path) -> None:
    with zipfile.ZipFile(torch_file) as old, zipfile.ZipFile(tmp_path / "bomb.pt", "w", zipfile.ZIP_DEFLATED) as new:
        for entry in old.infolist():
            new.writestr(entry.filename, old.read(entry))
        new.writestr("ckpt/data/99", bytes(50_000_000))
    assert (tmp_path / "bomb.pt").stat().st_size < 200_000
    with pytest.raises(ValueError, match="compressed"):
        load_model(tmp_path / "bomb.pt")


def test_zip_entries_that_overlap_to_seem_larger_are_refused(tmp_path: Path, torch_file: Path) -> None:
    data = bytearray(torch_file.read_bytes())
    at = data.rindex(b"PK\x01\x02")  # the last entry of the directory: say that it has two format_bytes
    data[at + 20 : at + 28] = struct.pack("<II", 2**31, 2**31)
    (tmp_path / "large.pt").write_bytes(data)
    with pytest.raises(ValueError, match=r"large\.pt is damaged"):
        load_model(tmp_path / "large.pt")
    data = bytearray(torch_file.read_bytes())
    data[data.rindex(b"PK\x01\x02") + 46] = 0xBB  # the first letter of its name, which is no letter then
    data[data.rindex(b"PK\x01\x02") + 9] |= 8  # names in UTF-8
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
    with pytest.raises(ValueError, match="damaged or cut short"):
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
def test_safetensors_header_that_lies_is_refused(tmp_path: Path, entry: dict[str, object]) -> None:
    header = json.dumps({"wte.weight": entry}).encode()
    (tmp_path / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + bytes(24))
    with pytest.raises(ValueError, match="damaged or cut short"):
        load_model(tmp_path)


@pytest.mark.parametrize("kind", ["safetensors", "torch"])
def test_file_cut_anywhere_is_refused(tmp_path: Path, folder: Path, torch_file: Path, kind: str) -> None:
    save_file({"wte.weight": torch.zeros(40, 8)}, tmp_path / "whole.safetensors")
    whole = (torch_file if kind == "torch" else tmp_path / "whole.safetensors").read_bytes()
    part = tmp_path / "part.bin"
    for length in {0, 1, 4, 8, 9, 30, *range(50, len(whole), len(whole) // 40), len(whole) - 1}:
        part.write_bytes(whole[:length])
        with pytest.raises(ValueError, match=r"part\.bin"):
            load_model(part)


def test_every_flipped_bit_of_our_format_is_noticed(tmp_path: Path, folder: Path) -> None:
    load_model(folder)
    for name in ("config.json", "vocab.tiktoken", "model.safetensors"):
        whole = (folder / name).read_bytes()
        step = max(1, len(whole) // 150)
        for at in range(0, len(whole), step):
            damaged = bytearray(whole)
            damaged[at] ^= 1 << at % 8
            same = name == "config.json" and same_json(bytes(damaged), whole)  # one white space for another
            (folder / name).write_bytes(damaged)
            if same:
                load_model(folder)
            else:
                with pytest.raises(ValueError, match=r"\w"):
                    load_model(folder)
        (folder / name).write_bytes(whole)
    load_model(folder)


def same_json(a: bytes, b: bytes) -> bool:
    try:
        return json.loads(a) == json.loads(b)
    except ValueError:
        return False


def test_flipped_bit_is_called_damage(folder: Path) -> None:
    data = bytearray((folder / "model.safetensors").read_bytes())
    data[-5] ^= 1
    (folder / "model.safetensors").write_bytes(data)
    with pytest.raises(ValueError, match="ours is damaged: its files do not match the checksum"):
        load_model(folder)


def test_damaged_torch_file_loads_or_is_refused_but_nothing_else(tmp_path: Path, torch_file: Path) -> None:
    whole = torch_file.read_bytes()
    dice = random.Random(0)
    refused = 0
    for _ in range(150):
        damaged = bytearray(whole)
        for _ in range(dice.choice((1, 1, 4, 40))):
            damaged[dice.randrange(len(whole))] = dice.randrange(256)
        (tmp_path / "damaged.pt").write_bytes(damaged)
        try:
            load_model(tmp_path / "damaged.pt")
        except ValueError:
            refused += 1
    assert refused > 50


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_weights_that_are_no_numbers_are_refused_by_name(
    tmp_path: Path, byte_tokenizer: Tokenizer, value: float, dtype: torch.dtype
) -> None:
    model = GPT(CONFIG)
    model.h[0].mlp.c_fc.weight.data[3, 2] = value
    save_model(tmp_path / "bad", model, byte_tokenizer, dtype=dtype)
    with pytest.raises(ValueError, match=r"h\.0\.mlp\.c_fc\.weight has weights that are NaN or infinite"):
        load_model(tmp_path / "bad")


def test_large_but_finite_weights_are_kept(tmp_path: Path, byte_tokenizer: Tokenizer) -> None:
    model = GPT(CONFIG)
    model.wte.weight.data.fill_(3e38)  # their sum is infinite
    save_model(tmp_path / "large", model, byte_tokenizer, dtype=torch.float32)
    assert open_checkpoint(tmp_path / "large").build().wte.weight[0, 0] == 3e38


def test_integers_are_not_taken_for_weights(tmp_path: Path, torch_file: Path) -> None:
    saved = torch.load(torch_file, weights_only=True)
    saved["model"]["transformer.ln_f.weight"] = torch.ones(8, dtype=torch.int32)
    torch.save(saved, torch_file)
    with pytest.raises(ValueError, match=r"not floating point: ln_f\.weight"):
        load_model(torch_file)


def test_model_larger_than_memory_is_refused_before_it_is_made(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = open_checkpoint(folder)
    monkeypatch.setattr(checkpoint, "free_memory", lambda: opened.n_bytes() - 1)
    monkeypatch.setattr(checkpoint, "meta_model", None)
    with pytest.raises(ValueError, match=r"needs .* MiB of memory, .* MiB are free"):
        opened.build()


def test_file_larger_than_any_memory_is_refused_by_its_size_and_takes_none(tmp_path: Path) -> None:
    header, at = {}, 0
    for name, shape in expected_shapes(GPTConfig(n_layer=96, n_head=96, n_embd=12288)).items():
        size = 4 * math.prod(shape)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    with (tmp_path / "model.safetensors").open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + at)  # a hole: it takes no room on the disk
    (tmp_path / "config.json").write_text(json.dumps({"tie_weights": True, "n_head": 96}))
    with pytest.raises(ValueError, match=r"needs 650\.\d\d GiB of memory"):
        load_model(tmp_path, device="cpu")


def test_torch_file_of_before_2020_is_said_to_be_one(tmp_path: Path) -> None:
    torch.save({"w": torch.zeros(2)}, tmp_path / "old.pt", _use_new_zipfile_serialization=False)
    with pytest.raises(ValueError, match="save it again with a newer torch"):
        load_model(tmp_path / "old.pt")


@pytest.mark.parametrize("kind", ["ours", "theirs"])
def test_configuration_that_says_anything_is_read_or_refused_with_a_sentence(
    tmp_path: Path, folder: Path, byte_tokenizer: Tokenizer, kind: str
) -> None:
    if kind == "theirs":
        save_hugging_face(folder, GPT(CONFIG), byte_tokenizer)
    config = json.loads((folder / "config.json").read_text())
    config.pop("sha256", None)
    refused = 0
    for name in config:
        for value in (None, -1, 2.5, 10**40, float("nan"), True, "", "x", [], [1], {}, {"a": 1}):
            (folder / "config.json").write_text(json.dumps({**config, name: value}))
            try:
                load_model(folder)
            except ValueError:
                refused += 1
    assert refused > 5 * len(config)


def test_weights_of_any_shape_are_refused_with_a_sentence(tmp_path: Path, folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps({"tie_weights": True, "n_head": 2}))
    for name in weights:
        for shape in ((), (0,), (0, 8), (8, 0), (3, 3, 3)):
            save_file({**weights, name: torch.zeros(shape)}, folder / "model.safetensors")
            with pytest.raises(ValueError, match=r"the weights do not fit|must be a whole number|own layout"):
                load_model(folder)


@pytest.mark.parametrize("text", ["", "{", "[1]", "[" * 100_000, "\xff\xfe"])
def test_broken_config_is_refused(folder: Path, text: str) -> None:
    (folder / "config.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(ValueError, match=r"config\.json is damaged"):
        load_model(folder)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x80\x04.",
        b"\x80\x04}r\xff\xff\xff\x7f.",
        b"\x80\x05\x96" + (2**40).to_bytes(8, "little"),
        pickle.dumps({"stoi": {}}),
        pickle.dumps({"itos": {1: "a"}}),
        pickle.dumps({"itos": {0: "ab"}}),
        pickle.dumps({"itos": {0: "a", 1: "a"}}),
        pickle.dumps([1, 2]),
    ],
)
def test_broken_nanogpt_vocabulary_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "meta.pkl").write_bytes(data)
    with pytest.raises(ValueError, match=r"meta\.pkl"):
        read_nanogpt_meta(tmp_path / "meta.pkl")


def test_vocabulary_of_another_model_is_refused(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    del config["sha256"]
    (folder / "config.json").write_text(json.dumps(config))
    lines = (folder / "vocab.tiktoken").read_text()
    (folder / "vocab.tiktoken").write_text(lines + "YWJj 260\n")
    with pytest.raises(ValueError, match="vocabulary has 262 tokens, but the model has 261"):
        load_model(folder)


def test_nothing_there_and_too_much_there_are_said(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no model, file or folder"):
        load_model(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="no weights here"):
        load_model(tmp_path)
    (tmp_path / "a.pt").touch()
    (tmp_path / "b.pt").touch()
    with pytest.raises(ValueError, match="2 files of weights here: name the one"):
        load_model(tmp_path)
    (tmp_path / "notes.txt").write_text("hello, this is text")
    with pytest.raises(ValueError, match=r"notes\.txt is neither"):
        load_model(tmp_path / "notes.txt")


def test_running_model_does_not_notice_what_happens_to_its_file(folder: Path, torch_file: Path) -> None:
    registry = Registry(memory=10**9, device=torch.device("cpu"))
    idx = torch.arange(8)[None]
    for path in (folder, torch_file):
        name = registry.add(path)
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
        assert torch.equal(loaded.model(idx), before)


def test_characters_outside_the_vocabulary_are_named() -> None:
    with pytest.raises(ValueError, match="does not know “é”: it was trained on 3 characters: ab␣"):
        Characters(["a", "b", " "]).encode("a bé")


def test_interrupted_save_leaves_the_old_model(
    folder: Path, byte_tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = load_model(folder).model.wte.weight

    def full_disk(*args: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(writing, "write_vocabulary", full_disk)
    with pytest.raises(OSError, match="no space"):
        save_model(folder, GPT(CONFIG), byte_tokenizer)
    assert torch.equal(load_model(folder).model.wte.weight, before)
    assert sorted(file.name for file in folder.iterdir()) == ["config.json", "model.safetensors", "vocab.tiktoken"]
    shutil.rmtree(folder)
