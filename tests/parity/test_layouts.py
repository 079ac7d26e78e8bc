"""Checkpoints of other projects are detected, match the original code, and can be converted."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from dataclasses import make_dataclass
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from transformers import GPT2Config, GPT2LMHeadModel

from gpt.config import GPTConfig
from gpt.model import GPT
from gpt.models.checkpoints.checkpoint import open_checkpoint
from gpt.models.checkpoints.layouts import HUGGING_FACE, HeadsUnknown
from gpt.models.checkpoints.writing import convert, save_hugging_face, save_model
from gpt.models.sources import load_model
from gpt.tokenizer import PlainIds
from tests.gpt.family_configs import randomized
from tests.parity.named_models import BookGPT, MinGPT, NanoGPT, QKVProjGPT

IDX = torch.arange(32).view(2, 16) * 7 % 61


def save_nano(model: NanoGPT, folder: Path, prefix: str = "") -> Path:
    """Save a checkpoint in the format of nanoGPT's train.py."""
    optimizer = torch.optim.AdamW(model.parameters())
    model(IDX).sum().backward()
    optimizer.step()
    model.eval()
    state = {prefix + name: value for name, value in model.state_dict().items()}
    options = ("n_layer", "n_head", "n_embd", "block_size", "bias", "vocab_size", "dropout")
    stated = {name: getattr(model.gpt.config, name) for name in options}
    checkpoint = {"model": state, "optimizer": optimizer.state_dict(), "model_args": stated}
    checkpoint |= {"iter_num": 200, "best_val_loss": torch.tensor(1.5), "config": {"dataset": "letters"}}
    torch.save(checkpoint, folder / "ckpt.pt")
    return folder / "ckpt.pt"


def assert_same_logits(path: Path, reference: Callable[[Tensor], Tensor], layout: str, **options: object) -> None:
    loaded = load_model(path, device="cpu", **options)
    assert loaded.layout == layout
    with torch.no_grad():
        torch.testing.assert_close(loaded.model(IDX), reference(IDX), atol=1e-5, rtol=0)


@pytest.mark.parametrize(("prefix", "bias"), [("", True), ("module._orig_mod.", False)])
def test_nanogpt_checkpoint_gives_its_logits(tmp_path: Path, bias: bool, prefix: str) -> None:
    model = randomized(NanoGPT(bias=bias))
    path = save_nano(model, tmp_path, prefix)
    assert_same_logits(path, model, "nanoGPT")
    config = open_checkpoint(path).config
    assert (config.bias, config.activation, config.tie_weights) == (bias, "gelu", True)


def test_the_course_that_reproduces_gpt2_has_tanh_gelu_and_a_configuration_of_its_own_class(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = {"block_size": 16, "vocab_size": 61, "n_layer": 2, "n_head": 3, "n_embd": 24}
    kind = make_dataclass("GPTConfig", sizes)
    kind.__module__ = "__main__"
    monkeypatch.setattr(sys.modules["__main__"], "GPTConfig", kind, raising=False)
    model = randomized(NanoGPT(activation="gelu_tanh"), std=0.5)
    checkpoint = {"model": model.state_dict(), "config": kind(**sizes), "step": 19072, "val_loss": 3.29}
    torch.save(checkpoint, tmp_path / "model_19072.pt")
    assert_same_logits(tmp_path, model, "build-nanogpt")
    torch.save({**checkpoint, "config": {**sizes, "bias": True}}, tmp_path / "model_19072.pt")
    assert open_checkpoint(tmp_path).config.activation == "gelu"  # nanoGPT's configuration has a bias


def test_nanogpt_state_dict_without_args_needs_n_head(tmp_path: Path) -> None:
    model = randomized(NanoGPT())
    torch.save(model.state_dict(), tmp_path / "weights.pt")
    with pytest.raises(HeadsUnknown, match="n_head") as error:
        load_model(tmp_path)
    assert error.value.choices == [1, 2, 3, 4, 6, 8, 12, 24]
    assert_same_logits(tmp_path, model, "nanoGPT", n_head=3)


@pytest.mark.parametrize(
    ("kind", "layout", "activation"), [(MinGPT, "minGPT", "gelu_tanh"), (QKVProjGPT, "GPT with qkv_proj", "gelu")]
)
def test_untied_state_dict_gives_its_logits(
    tmp_path: Path, kind: type[nn.Module], layout: str, activation: str
) -> None:
    model = randomized(kind())
    torch.save(model.state_dict(), tmp_path / "model.pt")
    assert_same_logits(tmp_path / "model.pt", model, layout, n_head=3)
    config = open_checkpoint(tmp_path, n_head=3).config
    biases = config.bias, config.has_bias("qkv")
    assert (*biases, config.activation, config.tie_weights) == (True, True, activation, False)


@pytest.mark.parametrize(("qkv_bias", "wrapped"), [(True, False), (False, True)])
def test_book_state_dict_gives_its_logits(tmp_path: Path, qkv_bias: bool, wrapped: bool) -> None:
    model = randomized(BookGPT(qkv_bias=qkv_bias))
    state = model.state_dict()
    assert any(name.endswith("att.mask") for name in state)
    torch.save({"model_state_dict": state, "optimizer_state_dict": {}} if wrapped else state, tmp_path / "model.pth")
    assert_same_logits(tmp_path / "model.pth", model, "GPTModel", n_head=3)
    assert open_checkpoint(tmp_path, n_head=3).config.has_bias("qkv") == qkv_bias


def hugging_face(**options: object) -> nn.Module:
    shape = {"vocab_size": 61, "n_positions": 16, "n_embd": 24, "n_layer": 2, "n_head": 3, **options}
    return randomized(GPT2LMHeadModel(GPT2Config(bos_token_id=0, eos_token_id=0, **shape)))


def test_hugging_face_folder_in_several_files_is_read_completely(tmp_path: Path) -> None:
    model = hugging_face()
    model.save_pretrained(tmp_path, max_shard_size="20KB")
    shards = sorted(tmp_path.glob("model-*.safetensors"))
    assert len(shards) > 2
    assert_same_logits(tmp_path, lambda idx: model(idx).logits, HUGGING_FACE)
    model.transformer.save_pretrained(tmp_path / "headless")
    assert_same_logits(tmp_path / "headless", lambda idx: model(idx).logits, HUGGING_FACE)
    shards[1].unlink()
    with pytest.raises(ValueError, match=r"lists model-00002-of-\d+\.safetensors, which is missing"):
        load_model(tmp_path)


def test_pytorch_model_bin_is_read_with_its_mask_buffers(tmp_path: Path) -> None:
    model = hugging_face()
    state = model.state_dict()
    state["transformer.h.0.attn.bias"] = torch.ones(1, 1, 16, 16, dtype=torch.bool).tril()
    state["transformer.h.0.attn.masked_bias"] = torch.tensor(-1e4)
    torch.save(state, tmp_path / "pytorch_model.bin")
    model.config.save_pretrained(tmp_path)
    assert_same_logits(tmp_path, lambda idx: model(idx).logits, HUGGING_FACE)


def test_mismatched_weights_are_listed_by_the_names_of_their_layout(tmp_path: Path) -> None:
    state = randomized(BookGPT()).state_dict()
    del state["trf_blocks.1.norm1.scale"]
    state["trf_blocks.0.extra.weight"] = torch.zeros(2)
    state["trf_blocks.0.ff.layers.2.bias"] = torch.zeros(5)
    torch.save(state, tmp_path / "model.pth")
    with pytest.raises(ValueError, match="do not fit") as error:
        load_model(tmp_path, n_head=3)
    said = str(error.value)
    assert "missing: trf_blocks.1.norm1.scale" in said
    assert "unexpected: trf_blocks.0.extra.weight" in said
    assert "wrong shape: trf_blocks.0.ff.layers.2.bias (5,) instead of (24,)" in said


def test_nanogpt_characters_are_found_beside_and_in_its_data_folder(tmp_path: Path) -> None:
    letters = [chr(33 + i) for i in range(61)]
    meta = {"vocab_size": 61, "itos": dict(enumerate(letters)), "stoi": {c: i for i, c in enumerate(letters)}}
    data, out = tmp_path / "data" / "letters", tmp_path / "out"
    data.mkdir(parents=True)
    out.mkdir()
    path = save_nano(randomized(NanoGPT()), out)
    assert isinstance(load_model(path).tokenizer, PlainIds)
    (data / "meta.pkl").write_bytes(pickle.dumps(meta))
    assert load_model(path).tokenizer.encode("%!A") == [4, 0, 32]
    for protocol in (2, 3, 4, 5):
        (out / "meta.pkl").write_bytes(pickle.dumps(meta, protocol=protocol))
        assert load_model(path).tokenizer.tokens == letters


@pytest.mark.parametrize("to", ["ours", "hf"])
@pytest.mark.parametrize("model", [NanoGPT(bias=False), BookGPT()], ids=["nanoGPT without bias", "GPTModel"])
def test_converted_checkpoint_gives_the_logits_of_the_original(tmp_path: Path, model: nn.Module, to: str) -> None:
    source = tmp_path / "in"
    source.mkdir()
    torch.save(randomized(model).state_dict(), source / "model.pt")
    original = load_model(source, n_head=3).model
    convert(source, tmp_path / "out", n_head=3, to=to)
    back = load_model(tmp_path / "out")
    assert back.layout == ("Glassbox GPT" if to == "ours" else HUGGING_FACE)
    with torch.no_grad():
        expected = original(IDX)
        torch.testing.assert_close(back.model(IDX), expected, atol=1e-6, rtol=0)
        if to == "ours":
            assert back.model.config == original.config
        else:
            theirs = GPT2LMHeadModel.from_pretrained(tmp_path / "out").eval()
            torch.testing.assert_close(theirs(IDX).logits, expected, atol=1e-5, rtol=0)


def test_a_model_of_no_family_is_not_written_for_transformers(tmp_path: Path) -> None:
    config = GPTConfig(vocab_size=61, block_size=16, n_layer=1, n_head=3, n_embd=24, position="rotary", qk_norm="full")
    model = GPT(config)
    with pytest.raises(ValueError, match=r"no transformers model combines these options: .*position='rotary'"):
        save_hugging_face(model, tmp_path, PlainIds(61))
    save_model(tmp_path, model, PlainIds(61), dtype=torch.float32)
    assert_same_logits(tmp_path, model, "Glassbox GPT")
