"""GGUF files give the logits of transformers' own classes with the dequantised weights."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import gguf
import numpy as np
import pytest
import torch
from torch.testing import assert_close

from gpt.model import GPT
from gpt.models.checkpoints.checkpoint import open_checkpoint
from gpt.models.checkpoints.writing import convert, save_gguf
from tests.gpt.family_configs import FAMILIES
from tests.parity.family_models import VOCAB_SIZE
from tests.parity.gguf_models import ALL, gguf_tensors, reference_model, round_matrices, write_gguf

IDX = torch.arange(40).view(2, 20) * 11 % VOCAB_SIZE


CASES = [pytest.param(*case, marks=() if case[0] in ("gpt2", "gemma3") else pytest.mark.thorough) for case in ALL]


@pytest.mark.parametrize(("architecture", "n"), CASES)
def test_every_architecture_gives_the_logits_of_transformers(tmp_path: Path, architecture: str, n: int) -> None:
    reference = reference_model(architecture, n)
    write_gguf(tmp_path / "model.gguf", reference, architecture)
    model = open_checkpoint(tmp_path).build()
    with torch.inference_mode():
        for idx in (IDX, IDX[:, :8]):
            assert_close(model(idx), reference(idx).logits, atol=1e-5, rtol=0)


BITS_16 = ("F16", "BF16")
BY_BLOCK = ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "TQ1_0", "MXFP4")
BY_TABLE = ("IQ2_XXS", "IQ3_S", "IQ4_NL", "IQ4_XS")
WIDE = {"hidden_size": 256, "intermediate_size": 256, "num_hidden_layers": 1}


@pytest.mark.parametrize(
    ("architecture", "kind"),
    [
        ("llama", "Q8_0"),
        ("qwen2", "Q4_K"),
        *(
            pytest.param(*case, marks=pytest.mark.thorough)
            for case in (
                *(("gpt2", "Q4_0"), ("gptneox", "Q5_1"), ("phi3", "Q8_0")),
                *(("qwen2", kind) for kind in BITS_16 + BY_BLOCK + BY_TABLE if kind != "Q4_K"),
            )
        ),
    ],
)
def test_quantised_weights_give_the_logits_of_the_dequantised_ones(
    tmp_path: Path, architecture: str, kind: str
) -> None:
    reference = reference_model(architecture, **WIDE)
    write_gguf(tmp_path / "model.gguf", reference, architecture, kind)
    round_matrices(reference, architecture, kind)
    checkpoint = open_checkpoint(tmp_path / "model.gguf")
    assert checkpoint.stored_as == kind
    with torch.inference_mode():
        expected = reference(IDX).logits
        assert_close(checkpoint.build()(IDX), expected, atol=1e-5 * float(expected.std()), rtol=0)


@pytest.mark.parametrize("kind", ["F16", "Q8_0"])
def test_the_package_reads_the_written_types(tmp_path: Path, kind: str) -> None:
    reference = reference_model("llama", **WIDE)
    reference.save_pretrained(tmp_path / "in")
    convert(tmp_path / "in", tmp_path / "out.gguf", to="gguf", kind=kind)
    expected, step = gguf_tensors(reference, "llama"), {"F16": 2**-11, "Q8_0": 1 / 250}[kind]
    for each in gguf.GGUFReader(tmp_path / "out.gguf").tensors:
        exact = expected[each.name]
        assert each.tensor_type.name == (kind if exact.ndim > 1 else "F32")
        found = gguf.quants.dequantize(each.data, each.tensor_type)
        assert np.allclose(found, exact, rtol=0, atol=step * np.abs(exact).max())


@pytest.mark.parametrize(("architecture", "n"), CASES)
def test_a_written_file_has_the_weights_that_llama_cpp_expects(tmp_path: Path, architecture: str, n: int) -> None:
    reference = reference_model(architecture, n)
    reference.save_pretrained(tmp_path / "in")
    if architecture == "phi3":  # llama.cpp ignores its window, and chooses factors by the context instead of the text
        with pytest.raises(ValueError, match=r"no architecture of llama\.cpp has all the options"):
            convert(tmp_path / "in", tmp_path / "out.gguf", to="gguf")
        return
    convert(tmp_path / "in", tmp_path / "out.gguf", to="gguf", kind="F32")
    reader = gguf.GGUFReader(tmp_path / "out.gguf")
    assert reader.fields["general.architecture"].contents() == architecture
    expected, found = gguf_tensors(reference, architecture), {each.name: each.data for each in reader.tensors}
    assert found.keys() == expected.keys()
    assert all(np.allclose(found[name], each, rtol=1e-6, atol=1e-7) for name, each in expected.items())
    with torch.inference_mode():
        assert_close(open_checkpoint(tmp_path / "out.gguf").build()(IDX), reference(IDX).logits, atol=1e-5, rtol=0)


def test_a_file_that_would_turn_the_windows_by_other_angles_is_not_written(tmp_path: Path) -> None:
    gemma = replace(FAMILIES["gemma3"], attn_scale=None)
    save_gguf(GPT(gemma), tmp_path / "model.gguf")
    for changed in (replace(gemma, window=gemma.block_size), replace(gemma, window_rotary_base=None)):
        with pytest.raises(ValueError, match=r"no architecture of llama\.cpp has all the options"):
            save_gguf(GPT(changed), tmp_path / "other.gguf")
