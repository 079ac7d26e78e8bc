import copy

import pytest
import torch
from torch import nn

from gpt import GPT, GPTConfig, KVCache, load_model
from gpt.inference import packed_weights
from gpt.inference.packed_weights import pack, pack_matrix
from gpt.read_only import ReadOnlyTensor

SHAPES = [(1, 1), (7, 3), (1024, 520)]  # (in, out)
needs_int8 = pytest.mark.skipif(
    not {"x86", "fbgemm"} & set(torch.backends.quantized.supported_engines), reason="this CPU has no int8 kernels"
)
HALF = ["half", pytest.param("half by fbgemm", marks=needs_int8), "half by rows"]
PACKINGS = ["fp32", *HALF, pytest.param("int8", marks=needs_int8)]
INT8_STEP = 1 / 127 if torch.cpu._is_vnni_supported() else 1 / 63
STEP = {"fp32": 1e-7, "half": 2**-8, "int8": INT8_STEP}  # relative rounding error


@pytest.fixture
def packing(request, monkeypatch):
    """A packing; for 16 bits, with each of the products that a CPU may offer."""
    name, _, kernel = request.param.partition(" by ")
    if kernel:
        monkeypatch.setattr(packed_weights, "has_bfloat16", lambda: False)
        monkeypatch.setattr(
            packed_weights, "half_dtype", lambda: torch.float16 if kernel == "fbgemm" else torch.bfloat16
        )
    return name


@pytest.fixture(params=SHAPES, ids=str)
def linear(request):
    torch.manual_seed(0)
    return nn.Linear(*request.param)


def tiny(**options) -> GPT:
    torch.manual_seed(1)
    config = {"vocab_size": 50, "block_size": 16, "n_layer": 2, "n_head": 2, "n_embd": 32}
    return GPT(GPTConfig(**(config | options))).eval()


def packed_layer(linear: nn.Linear, packing: packed_weights.Packing) -> nn.Linear:
    """Return a copy of the layer with a packed weight, whatever its size."""
    layer = copy.copy(linear)
    layer._parameters = dict(linear._parameters)
    layer.weight = ReadOnlyTensor(pack_matrix(linear.weight, packing))
    return layer


@pytest.mark.parametrize(("rows", "bias"), [(1, False), (5, True)])
@pytest.mark.parametrize("packing", PACKINGS, indirect=True)
@torch.inference_mode()
def test_a_packed_product_is_the_product_within_its_precision(linear, packing, bias, rows):
    x = torch.randn(rows, linear.in_features) * torch.logspace(-3, 3, rows)[:, None]  # rows of very different magnitude
    if not bias:
        linear.bias = None
    b = None if linear.bias is None else linear.bias.double()
    exact = nn.functional.linear(x.double(), linear.weight.double(), b)
    y = packed_layer(linear, packing)(x)
    bound = x.abs().double() @ linear.weight.abs().double().T + exact.abs()  # bounds the rounding of each factor
    assert y.dtype is torch.float32
    assert ((y - exact).abs() <= 3 * STEP[packing] * bound.amax(dim=1, keepdim=True) + 1e-6).all()


@pytest.mark.parametrize("packing", PACKINGS, indirect=True)
@torch.inference_mode()
def test_a_row_of_zeros_gives_the_bias(linear, packing):
    x = torch.randn(3, linear.in_features)
    x[1] = 0
    y = packed_layer(linear, packing)(x)
    assert torch.allclose(y[1], linear.bias, rtol=STEP[packing], atol=0)
    assert y.isfinite().all()
    assert torch.allclose(packed_layer(linear, packing)(x[1:2])[0], linear.bias, rtol=STEP[packing], atol=0)


@pytest.mark.parametrize("packing", ["half", pytest.param("int8", marks=needs_int8)], indirect=True)
def test_the_rows_of_a_tied_head_are_the_weight_of_its_product(packing):
    model = tiny(vocab_size=50_000)
    pack(model, packing)
    assert model.lm_head.weight is model.wte.weight
    assert torch.equal(model.wte.weight, model.wte.weight.stored.matrix.unpack())


@pytest.mark.parametrize("packing", [*HALF, pytest.param("int8", marks=needs_int8)], indirect=True)
def test_a_packed_model_still_has_gradients_and_weights(packing):
    model = tiny()
    idx = torch.randint(50, (1, 9))
    with torch.no_grad():
        before = model(idx)
    pack(model, packing)
    with torch.no_grad():
        after = model(idx)
        cache = KVCache(model.config)
        steps = torch.cat([model(idx[:, t : t + 1], cache=cache) for t in range(9)], dim=1)
    assert (before - after).abs().max() < 0.02
    assert torch.allclose(steps, after, atol=1e-2 if packing == "half" else 1e-3)
    assert model.lm_head.weight.shape == model.wte.weight.shape == (50, 32)
    x = torch.randn(1, 9, 32, requires_grad=True)
    model.h[0].mlp.c_fc(x).sum().backward()
    assert torch.allclose(x.grad, model.h[0].mlp.c_fc.weight.sum(0).expand_as(x), atol=1e-5)


@pytest.fixture
def without_operators(monkeypatch):
    """Simulate a torch version whose private operators have other names or arguments."""

    def changed(*arguments: object) -> None:
        raise TypeError("unexpected argument")

    packed_weights.works.cache_clear()
    monkeypatch.delattr(torch.ops.mkldnn, "_reorder_linear_weight", raising=False)
    monkeypatch.setattr(packed_weights.OneDNNMatrix, "product", changed)
    for name in ("linear_prepack_fp16", "linear_prepack"):
        monkeypatch.setattr(torch.ops.quantized, name, changed)
    yield
    packed_weights.works.cache_clear()


def test_without_torchs_private_operators_weights_stay_ordinary_and_say_so(without_operators, monkeypatch):
    monkeypatch.setattr(packed_weights, "is_amd", lambda: True)
    with pytest.warns(UserWarning, match="OneDNNMatrix does not work with torch"):
        loaded = load_model("stories", device="cpu")
    assert type(loaded.model.lm_head.weight) is nn.Parameter
    ordinary = load_model("stories", device="cpu", trainable=True)
    ids = loaded.tokenizer.encode("Once upon a time")
    assert torch.allclose(loaded.trace(ids).logits, ordinary.trace(ids).logits, atol=1e-4)
