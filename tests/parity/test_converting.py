"""Checkpoints converted to our format and to Hugging Face's keep their logits and weights."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from transformers import GPT2LMHeadModel

from gpt.config import GPTConfig
from gpt.model import GPT
from gpt.models.checkpoints import convert, save_hugging_face, save_model
from gpt.models.checkpoints.layouts import HUGGING_FACE
from gpt.models.checkpoints.vocabularies import PlainIds
from gpt.models.sources import load_model
from tests.conftest import randomized
from tests.parity.named_models import QKVProjGPT
from tests.parity.reference_models import BookGPT, MinGPT, NanoGPT
from tests.parity.test_layouts import IDX, assert_same_logits, hugging_face, save_nano

THOROUGH = [pytest.param(kind, marks=pytest.mark.thorough) for kind in ("nano", "min", "qkv_proj", "hf")]


@pytest.mark.parametrize("to", ["ours", "hf"])
@pytest.mark.parametrize("kind", ["nano-without-bias", "book", *THOROUGH])
def test_converted_checkpoint_gives_the_logits_of_the_original(tmp_path: Path, kind: str, to: str) -> None:
    source = tmp_path / "in"
    source.mkdir()
    if kind.startswith("nano"):
        save_nano(randomized(NanoGPT(bias=kind == "nano")), source)
    elif kind == "hf":
        hugging_face(tie_word_embeddings=False, n_inner=20).save_pretrained(source)
    else:
        model = {"min": MinGPT, "book": BookGPT, "qkv_proj": QKVProjGPT}[kind]()
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


def test_hugging_face_folder_written_again_has_equal_weights(tmp_path: Path) -> None:
    hugging_face().save_pretrained(tmp_path / "in")
    convert(tmp_path / "in", tmp_path / "ours")
    convert(tmp_path / "ours", tmp_path / "back", to="hf")
    before = load_file(tmp_path / "in" / "model.safetensors")
    after = load_file(tmp_path / "back" / "model.safetensors")
    assert {name for name in before if "lm_head" not in name} == set(after)
    assert all(torch.equal(before[name], after[name]) for name in after)


def test_a_model_of_no_family_is_not_written_for_transformers(tmp_path: Path) -> None:
    config = GPTConfig(vocab_size=61, block_size=16, n_layer=1, n_head=3, n_embd=24, position="rotary", qk_norm="full")
    model = GPT(config)
    with pytest.raises(ValueError, match=r"no transformers model combines these options: .*position='rotary'"):
        save_hugging_face(model, tmp_path, PlainIds(61))
    save_model(tmp_path, model, PlainIds(61), dtype=torch.float32)
    assert_same_logits(tmp_path, model, "Glassbox GPT")


def test_convert_command_prints_the_layout_and_needs_n_head(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    torch.save(randomized(BookGPT()).state_dict(), tmp_path / "model.pth")
    command = ["checkpoints", "convert", str(tmp_path / "model.pth"), str(tmp_path / "out")]
    monkeypatch.setattr("sys.argv", command)
    with pytest.raises(SystemExit, match="give n_head"):
        runpy.run_module("gpt.models.checkpoints", run_name="__main__")
    monkeypatch.setattr("sys.argv", [*command, "--n-head", "3"])
    runpy.run_module("gpt.models.checkpoints", run_name="__main__")
    assert "GPTModel" in capsys.readouterr().out
    assert load_model(tmp_path / "out").layout == "Glassbox GPT"
    with pytest.raises(SystemExit, match="out already exists"):
        runpy.run_module("gpt.models.checkpoints", run_name="__main__")
