"""Our own checkpoint format."""

from __future__ import annotations

import base64
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor
from transformers import AutoConfig, AutoModelForCausalLM

from gpt.model import GPT
from gpt.models.checkpoints import writing
from gpt.models.checkpoints.checkpoint import Checkpoint, open_checkpoint
from gpt.models.checkpoints.files import Deferred, read_weights, weight_files
from gpt.models.checkpoints.layouts import NO_HINTS
from gpt.models.checkpoints.translate import detect_layout
from gpt.models.checkpoints.vocabularies import Characters
from gpt.models.checkpoints.writing import convert, save_model
from gpt.models.sources import load_model
from gpt.tokenizer import PlainIds, Tokenizer
from tests.gpt.models.tiny import N_VOCAB, tiny

TINY_SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
TINY_SIZES |= {"n_embd": 16, "n_layer": 2, "n_head": 2, "rotary_dim": 4, "num_key_value_heads": 2}
FILES = ["config.json", "model.safetensors", "vocab.tiktoken"]


def test_loaded_model_equals_the_saved_one(tmp_path: Path, model: GPT) -> None:
    save_model(tmp_path, model, PlainIds(61), dtype=torch.float32)
    loaded = load_model(tmp_path, device="cpu")
    assert loaded.model.config == model.config
    assert not loaded.model.training
    assert (loaded.model.lm_head.weight is loaded.model.wte.weight) == model.config.tie_weights
    state = loaded.model.state_dict()
    assert all(torch.equal(state[name], value) for name, value in model.state_dict().items())


@pytest.mark.parametrize("family", ["gpt2", "phi3"])
def test_tensors_that_are_read_only_when_needed_give_the_same_model(tmp_path: Path, family: str) -> None:
    config = AutoConfig.for_model(family, vocab_size=50, pad_token_id=0, **TINY_SIZES)
    AutoModelForCausalLM.from_config(config).save_pretrained(tmp_path)
    contents, read = read_weights(weight_files(tmp_path), NO_HINTS), []

    def deferred(name: str, tensor: Tensor) -> Tensor:
        return Deferred(lambda _, rows: (read.append(name), tensor[rows.start : rows.stop])[1], tensor.to("meta"))

    later = replace(contents, tensors={name: deferred(name, tensor) for name, tensor in contents.tensors.items()})
    layout, found, weights = detect_layout(later)
    assert read == []
    model = Checkpoint(layout.title, found, weights, PlainIds(50), layout.norm_offset).build()
    expected = open_checkpoint(tmp_path).build().state_dict()
    assert all(torch.equal(expected[name], value) for name, value in model.state_dict().items())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_converting_keeps_the_stored_data_type_bit_for_bit(
    tmp_path: Path, byte_tokenizer: Tokenizer, dtype: torch.dtype
) -> None:
    save_model(tmp_path / "a", tiny(), byte_tokenizer, dtype=dtype)
    assert open_checkpoint(tmp_path / "a").dtype == dtype
    assert convert(tmp_path / "a", tmp_path / "b") == "Glassbox GPT"
    assert all((tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes() for name in FILES)


def test_files_of_a_saved_model_are_readable_by_all_and_include_the_vocabulary(
    tmp_path: Path, byte_tokenizer: Tokenizer
) -> None:
    save_model(tmp_path, tiny(), byte_tokenizer)
    assert sorted(file.name for file in tmp_path.iterdir()) == FILES
    assert len({file.stat().st_mode for file in tmp_path.iterdir()}) == 1
    lines = (tmp_path / "vocab.tiktoken").read_text().splitlines()
    assert len(lines) == N_VOCAB - 1
    assert base64.b64decode(lines[258].split()[0]) == b" the"


def test_model_saved_over_another_replaces_its_vocabulary(tmp_path: Path, byte_tokenizer: Tokenizer) -> None:
    save_model(tmp_path, tiny(), byte_tokenizer)
    (tmp_path / "README.md").write_text("a card")
    with pytest.raises(ValueError, match="already exists: choose another folder, or pass overwrite=True"):
        save_model(tmp_path, tiny(vocab_size=3))
    save_model(tmp_path, tiny(vocab_size=3), Characters(["a", "b", "\n"]), overwrite=True)
    assert load_model(tmp_path).tokenizer.encode("b\na") == [1, 2, 0]
    assert {file.name for file in tmp_path.iterdir()} == {"README.md", "characters.json", *FILES[:2]}
    save_model(tmp_path, tiny(), PlainIds(N_VOCAB), overwrite=True)
    assert isinstance(load_model(tmp_path).tokenizer, PlainIds)


def test_interrupted_save_leaves_the_old_model(
    tmp_path: Path, byte_tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_model(tmp_path, tiny(), byte_tokenizer)
    before = load_model(tmp_path).model.wte.weight

    def full_disk(*args: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(writing, "write_vocabulary", full_disk)
    with pytest.raises(OSError, match="no space"):
        save_model(tmp_path, tiny(), byte_tokenizer, overwrite=True)
    assert torch.equal(load_model(tmp_path).model.wte.weight, before)
    assert sorted(file.name for file in tmp_path.iterdir()) == FILES
