"""Models of every family saved for transformers compute the same logits there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch.testing import assert_close
from transformers import AutoModelForCausalLM, AutoTokenizer

from gpt import GPT, GPTConfig, SamplingParams, generate, get_model, load_model, save_hugging_face
from gpt.models.checkpoints.families import FAMILIES
from tests.parity.family_models import CASES, VOCAB_SIZE, family_twins

pytestmark = pytest.mark.thorough

OTHER_DROPOUTS = {"classifier_dropout", "summary_first_dropout", "layerdrop"}  # of classifiers, and of whole layers
IDX = torch.randint(VOCAB_SIZE, (2, 20), generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(("family", "name"), CASES)
def test_a_model_is_written_in_its_family_with_equal_logits(family: str, name: str, tmp_path: Path) -> None:
    twins = family_twins(family, name)
    loaded = load_model(twins.folder, device="cpu", trainable=True)
    save_hugging_face(loaded, tmp_path / "out")
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path / "out", attn_implementation="eager").eval()
    assert type(theirs).__name__ == type(twins.reference).__name__ == FAMILIES[family].model_class
    with torch.inference_mode():
        assert_close(theirs(IDX).logits, twins.reference(IDX).logits, atol=1e-5, rtol=1e-5)
        assert_close(load_model(tmp_path / "out", device="cpu").model(IDX), loaded.model(IDX), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("family", FAMILIES)
def test_transformers_trains_with_the_models_dropout_and_computes_in_float32(family: str, tmp_path: Path) -> None:
    twins = family_twins(*next(case for case in CASES if case[0] == family))
    loaded = load_model(twins.folder, device="cpu", trainable=True)
    for dropout in (0.0, 0.25):
        loaded.model.config = replace(loaded.model.config, dropout=dropout)
        save_hugging_face(loaded, tmp_path, dtype=torch.float16, overwrite=True)
        theirs = AutoModelForCausalLM.from_pretrained(tmp_path)
        assert type(theirs) is type(twins.reference)
        names = {name for name in theirs.config.to_dict() if "drop" in name} - OTHER_DROPOUTS
        assert {name: getattr(theirs.config, name) for name in names} == dict.fromkeys(names, dropout)
        assert {weight.dtype for weight in theirs.parameters()} == {torch.float32}
        with torch.inference_mode():
            assert_close(theirs.eval()(IDX).logits, load_model(tmp_path, device="cpu").model(IDX), atol=1e-4, rtol=1e-4)
            assert torch.equal(theirs.train()(IDX).logits, theirs.eval()(IDX).logits) == (dropout == 0.0)


@pytest.mark.parametrize("name", ["stories", "stories-llama"])
def test_the_bundled_models_write_the_same_text_in_transformers(name: str, tmp_path: Path) -> None:
    save_hugging_face(name, tmp_path / "out")
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path / "out").eval()
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "out")
    prompt = tokenizer("Once upon a time", return_tensors="pt").input_ids
    assert prompt[0].tolist() == get_model(name).tokenizer.encode("Once upon a time")
    written = theirs.generate(prompt, max_new_tokens=8, do_sample=False)[0, prompt.shape[1] :]
    steps = generate(name, "Once upon a time", SamplingParams(temperature=0), 8)
    assert written.tolist() == [step.token_id for step in steps]


def test_a_gpt_of_ones_own_is_opened_by_transformers_with_zeros_for_the_biases_it_lacks(tmp_path: Path) -> None:
    model = GPT(GPTConfig(vocab_size=VOCAB_SIZE, block_size=32, n_layer=2, n_head=2, n_embd=16, bias=False)).eval()
    save_hugging_face(model, tmp_path / "out")
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path / "out").eval()
    with torch.inference_mode():
        assert_close(theirs(IDX).logits, model(IDX), atol=1e-5, rtol=1e-5)


def test_transformer_lens_opens_what_is_written(tmp_path: Path) -> None:
    lens = pytest.importorskip("transformer_lens.model_bridge", reason="transformer_lens is not installed")
    save_hugging_face("stories", tmp_path / "out")
    bridge = lens.TransformerBridge.boot_transformers(str(tmp_path / "out"))
    idx = torch.tensor([get_model("stories").tokenizer.encode("Lily had a cat. She")])
    with torch.inference_mode():
        logits, cache = bridge.run_with_cache(idx)
        trace = get_model("stories").trace(idx[0])
    assert_close(logits, trace.logits, atol=1e-4, rtol=1e-4)
    assert_close(cache["blocks.3.hook_resid_post"], trace["layers.3.resid_post"], atol=1e-4, rtol=1e-4)
