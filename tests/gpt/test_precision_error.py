import pytest
import torch

from gpt import load_model
from gpt.precision_error import measured, precision_error
from tests.parity.lookalikes import NanoGPT, randomized


def test_the_same_model_has_no_error_and_bf16_a_small_one():
    exact = load_model("stories", device="cpu")
    none = precision_error(exact, exact)
    assert (none.kl, none.logit, none.top_1) == (0, 0, 1)
    small = measured(load_model("stories", device="cpu", precision="bf16"))
    assert 0 < small.kl < 0.01
    assert 0 < small.logit < 1
    assert small.top_1 > 0.9
    assert "against fp32" in str(small)


def test_a_model_that_cannot_spell_the_text_and_does_not_say_its_heads_is_measured_too(tmp_path):
    torch.save(randomized(NanoGPT()).state_dict(), tmp_path / "weights.pt")
    error = measured(load_model(tmp_path / "weights.pt", device="cpu", precision="bf16", n_head=3))
    assert 0 < error.logit < 1


def test_the_divergence_is_that_of_two_known_distributions():
    exact = load_model("untrained", device="cpu")
    with torch.no_grad():
        exact.model.ln_f.weight.zero_()  # every token equally likely
    other = load_model("untrained", device="cpu")
    ids = torch.tensor([exact.tokenizer.encode("the dog")])
    with torch.no_grad():
        q = other.model(ids)[0].softmax(-1)
    n = q.shape[-1]
    expected = (torch.log2(torch.tensor(1 / n)) - q.log2()).mean().item()
    assert precision_error(other, exact, "the dog").kl == pytest.approx(expected, rel=1e-3)
