"""Damaged or contradictory checkpoints are rejected with a ValueError."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from gpt.config import GPTConfig
from gpt.model import GPT
from gpt.models.checkpoints import open_checkpoint, save_hugging_face, save_model, untrusted
from gpt.models.checkpoints.untrusted import MAX_HEADER_BYTES
from gpt.models.checkpoints.vocabularies import FILES, PlainIds, find_vocabulary
from gpt.models.registry import Registry
from gpt.models.sources import load_model
from gpt.tokenizer import Tokenizer
from tests.parity.family_models import family_twins

pytestmark = pytest.mark.thorough

CONFIG = GPTConfig(vocab_size=261, block_size=8, n_layer=1, n_head=2, n_embd=8)


@pytest.fixture
def folder(tmp_path: Path, byte_tokenizer: Tokenizer) -> Path:
    """A small model in our own format."""
    save_model(tmp_path / "ours", GPT(CONFIG), byte_tokenizer)
    return tmp_path / "ours"


def test_a_header_of_too_many_tensors_is_not_parsed(tmp_path: Path) -> None:
    header = b"{" + b" " * MAX_HEADER_BYTES + b"}"
    (tmp_path / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header)
    with pytest.raises(ValueError, match="has a header of 2,000,002 bytes, more than the limit of 2,000,000"):
        open_checkpoint(tmp_path)


@pytest.mark.parametrize("name", FILES)
def test_a_link_to_a_device_is_no_vocabulary(tmp_path: Path, name: str) -> None:
    (tmp_path / name).symlink_to("/dev/zero")
    assert isinstance(find_vocabulary(tmp_path, 7), PlainIds)


def test_a_link_to_a_device_holds_no_weights(tmp_path: Path) -> None:
    (tmp_path / "a.pt").symlink_to("/dev/zero")
    with pytest.raises(ValueError, match="no weight file"):
        open_checkpoint(tmp_path)


def test_a_vocabulary_of_which_there_is_no_end_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(untrusted, "MAX_TEXT_BYTES", 1000)
    with pytest.raises(ValueError, match=r"vocab\.tiktoken"):
        find_vocabulary(folder, CONFIG.vocab_size)


def test_every_flipped_bit_of_our_format_is_detected(tmp_path: Path, folder: Path) -> None:
    for name in ("config.json", "vocab.tiktoken", "model.safetensors"):
        whole = (folder / name).read_bytes()
        step = max(1, len(whole) // 150)
        for at in range(0, len(whole), step):
            damaged = bytearray(whole)
            damaged[at] ^= 1 << at % 8
            same = name == "config.json" and same_json(bytes(damaged), whole)  # white space
            (folder / name).write_bytes(damaged)
            if same:
                load_model(folder)
            else:
                with pytest.raises(
                    ValueError, match=r"\w" if name == "config.json" else "ours is damaged: .* checksum"
                ):
                    load_model(folder)
        (folder / name).write_bytes(whole)
    load_model(folder)


def same_json(a: bytes, b: bytes) -> bool:
    try:
        return json.loads(a) == json.loads(b)
    except ValueError:
        return False


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


def test_large_but_finite_weights_are_kept(tmp_path: Path, byte_tokenizer: Tokenizer) -> None:
    model = GPT(CONFIG)
    model.wte.weight.data.fill_(3e38)  # their sum is infinite
    save_model(tmp_path / "large", model, byte_tokenizer, dtype=torch.float32)
    assert open_checkpoint(tmp_path / "large").build().wte.weight[0, 0] == 3e38


def test_integer_weights_are_refused(tmp_path: Path) -> None:
    state = {f"transformer.{name}": value for name, value in GPT(CONFIG).state_dict().items()}
    torch.save(state | {"transformer.ln_f.weight": torch.ones(8, dtype=torch.int32)}, tmp_path / "weights.pt")
    with pytest.raises(ValueError, match=r"not floating point: ln_f\.weight"):
        load_model(tmp_path, n_head=2)


@pytest.mark.parametrize("kind", ["ours", "theirs", "family"])
def test_configuration_of_any_values_is_read_or_refused_with_a_value_error(
    tmp_path: Path, folder: Path, byte_tokenizer: Tokenizer, kind: str
) -> None:
    if kind == "theirs":
        save_hugging_face(GPT(CONFIG), folder, byte_tokenizer, overwrite=True)
    if kind == "family":
        folder = family_twins("gemma3_text", "windows by layer, untied").folder
    config = json.loads((folder / "config.json").read_text())
    config.pop("sha256", None)
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


def test_weights_of_wrong_shapes_are_refused(tmp_path: Path, folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps({"tie_weights": True, "n_head": 2}))
    for name in weights:
        for shape in ((), (0,), (0, 8), (8, 0), (3, 3, 3)):
            save_file({**weights, name: torch.zeros(shape)}, folder / "model.safetensors")
            with pytest.raises(ValueError, match=r"do not fit|must be a whole number|own layout|but 3 in the weights"):
                load_model(folder)


@pytest.mark.parametrize("text", ["", "{", "[1]", "[" * 100_000, "\xff\xfe"])
def test_broken_config_is_refused(folder: Path, text: str) -> None:
    (folder / "config.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(ValueError, match=r"config\.json is damaged"):
        load_model(folder)


def test_vocabulary_of_another_model_is_not_used(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    del config["sha256"]
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
