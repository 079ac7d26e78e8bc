import pytest
import torch

from gpt import add_model, get_model, load_model
from gpt.inference.packed_weights import half_dtype
from gpt.models.precision_error import compare, precision_error
from gpt.models.registry import configure
from tests.conftest import randomized
from tests.parity.reference_models import NanoGPT


def test_the_same_model_has_no_error_and_one_of_16_bits_a_small_one():
    exact = load_model("stories", device="cpu")
    none = compare(exact, exact)
    assert (none.kl, none.logit, none.top_1) == (0, 0, 1)
    small = precision_error(load_model("stories", device="cpu", precision="bf16"))
    assert small.kl < 0.01
    assert small.logit < 1
    assert (small.kl > 1e-6) == (half_dtype() is torch.bfloat16)  # its file holds float16
    assert small.top_1 > 0.9


@pytest.fixture
def reduced():
    """Load the shared models in bfloat16."""
    configure(precision="bf16")
    yield
    configure()


def test_precision_error_of_a_model_without_text_vocabulary_and_stated_heads(tmp_path, reduced):
    torch.save(randomized(NanoGPT()).state_dict(), tmp_path / "weights.pt")
    loaded = get_model(add_model(tmp_path / "weights.pt", n_head=3))
    assert 0 < precision_error(loaded).logit < 1
    assert precision_error(loaded) is precision_error(loaded)


def test_the_divergence_is_that_of_two_known_distributions():
    exact = load_model("untrained", device="cpu", trainable=True)
    with torch.no_grad():
        exact.model.ln_f.weight.zero_()  # makes every token equally likely
    other = load_model("untrained", device="cpu")
    ids = torch.tensor([exact.tokenizer.encode("the dog")])
    with torch.no_grad():
        q = other.model(ids)[0].softmax(-1)
    n = q.shape[-1]
    expected = (torch.log2(torch.tensor(1 / n)) - q.log2()).mean().item()
    assert compare(other, exact, "the dog").kl == pytest.approx(expected, rel=1e-3)
