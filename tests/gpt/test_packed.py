import copy
import pickle
import weakref

import pytest
import torch
from torch import nn

from gpt import GPT, GPTConfig, KVCache
from gpt.inference.packed import PackedEmbedding, PackedLinear, pack
from gpt.inference.processor import has_vnni
from gpt.inference.products import LARGE, LEAST, Blocks, activated, alike, least_of, pass_work, product
from gpt.inference.threads import SMALL, threads_for
from gpt.model import ACTIVATIONS, ForwardContext

SHAPES = [(1, 1), (7, 3), (64, 192), (192, 50)]  # (in, out)
needs_int8 = pytest.mark.skipif(
    not {"x86", "fbgemm"} & set(torch.backends.quantized.supported_engines), reason="this CPU has no int8 kernels"
)
PACKINGS = ["fp32", "bf16", pytest.param("int8", marks=needs_int8)]
STEP = {"fp32": 1e-7, "bf16": 2**-8, "int8": 1 / 127 if has_vnni() else 1 / 63}  # of the largest number


@pytest.fixture(params=SHAPES, ids=str)
def linear(request):
    torch.manual_seed(0)
    return nn.Linear(*request.param)


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("packing", PACKINGS)
@torch.inference_mode()
def test_a_packed_product_is_the_product_within_its_precision(linear, packing, bias):
    x = torch.randn(5, linear.in_features) * torch.logspace(-3, 3, 5)[:, None]  # rows of very different size
    b = linear.bias if bias else None
    exact = nn.functional.linear(x.double(), linear.weight.double(), None if b is None else b.double())
    y = product(linear.weight, b, packing)(x)
    bound = x.abs().double() @ linear.weight.abs().double().T + exact.abs()  # what rounding each factor can do
    assert y.dtype is torch.float32
    assert ((y - exact).abs() <= 3 * STEP[packing] * bound.amax(dim=1, keepdim=True) + 1e-6).all()


@torch.inference_mode()
def test_a_float32_product_is_that_of_linear_within_1e_5(linear):
    x = torch.randn(16, linear.in_features)
    assert (product(linear.weight, linear.bias, "fp32")(x) - linear(x)).abs().max() <= 1e-5


@pytest.mark.parametrize("packing", PACKINGS)
@torch.inference_mode()
def test_a_row_does_not_depend_on_the_rows_beside_it(linear, packing):
    packed = product(linear.weight, linear.bias, packing)
    x = torch.randn(9, linear.in_features) * torch.logspace(-2, 2, 9)[:, None]
    alone = torch.cat([packed(row[None]) for row in x])
    close = {"rtol": 1e-6, "atol": 1e-5} if packing == "bf16" else {"rtol": 0, "atol": 0}
    assert torch.allclose(packed(x), alone, **close)


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("shape", [(192, 576), (768, 192), (192, 4096), (384, 1536), (1536, 384), (3072, 768)], ids=str)
@torch.inference_mode()
def test_a_row_has_the_same_bits_alone_and_among_others_with_one_thread_and_with_two(shape, large, two_threads):
    torch.manual_seed(0)
    linear = nn.Linear(*shape)
    packed = product(linear.weight, linear.bias, "fp32", large)
    active = activated(packed, "gelu_tanh")
    x, to = torch.randn(100, shape[0]), torch.randn(100, shape[1])
    whole, added, activations = packed(x), packed.added(x, to), active(x)
    for work in (0, SMALL):
        with threads_for(work):
            for count in (1, 2, 4, 12, 20, 36, 52, 100):
                assert torch.equal(packed(x[:count]), whole[:count])
                assert torch.equal(packed.added(x[-count:], to[-count:]), added[-count:])
                assert torch.equal(active(x[:count]), activations[:count])


@torch.inference_mode()
def test_where_a_single_row_is_summed_otherwise_it_gets_company(monkeypatch):
    linear, x, to = nn.Linear(40, 24), torch.randn(5, 40), torch.randn(5, 24)
    monkeypatch.setattr("gpt.inference.products.least_of", lambda inputs, outputs: LEAST)
    packed, rows = product(linear.weight, linear.bias, "fp32", large=True), []
    monkeypatch.setattr(type(packed), "of", lambda self, x: rows.append(len(x)) or linear(x))
    assert packed.least == LEAST
    assert torch.allclose(packed(x[:1]), linear(x[:1]))
    assert torch.allclose(packed(x), linear(x))
    monkeypatch.setattr(type(packed), "of_added", lambda self, x, to: rows.append(len(x)) or to + linear(x))
    assert torch.allclose(packed.added(x[:1], to[:1]), to[:1] + linear(x[:1]))
    assert rows == [2, 5, 2]


@torch.inference_mode()
def test_where_rows_would_not_be_alike_small_weights_are_in_blocks(linear, monkeypatch):
    monkeypatch.setattr("gpt.inference.products.alike", lambda inputs, outputs: False)
    assert isinstance(product(linear.weight, linear.bias, "fp32"), Blocks)


def test_a_size_whose_rows_are_not_alike_is_noticed(monkeypatch):
    def mm(x, y):  # as kernels do that split a sum where there are few rows
        return torch.matmul(x, y) if len(x) > 8 else torch.matmul(x[:, ::2], y[::2]) + torch.matmul(x[:, 1::2], y[1::2])

    monkeypatch.setattr(torch.Tensor, "mm", mm)
    assert not alike.__wrapped__(192, 64)


def test_large_weights_are_read_by_all_processors_even_for_one_row():
    assert pass_work(LARGE, 1) >= SMALL > pass_work(LARGE - 1, 1)
    assert pass_work(1000, 70_000) == 70_000_000


@pytest.mark.parametrize("intel", [False, True])
def test_a_size_whose_single_row_is_summed_otherwise_is_noticed(monkeypatch, intel):
    monkeypatch.setattr("gpt.inference.products.is_intel", lambda: intel)
    assert least_of.__wrapped__(40, 3000) == (1 if intel else LEAST)  # so few are summed in one order
    exact = torch.ops.mkldnn._linear_pointwise

    def split(x, packed, *options):
        y = exact(x, packed, *options)
        return y if len(x) > 1 else y * (1 + 1e-6)

    monkeypatch.setattr("torch.ops.mkldnn._linear_pointwise", split)
    assert least_of.__wrapped__(40, 3000) == LEAST


@pytest.mark.parametrize("few", [2, 3, 12])
def test_a_size_whose_few_rows_are_summed_otherwise_is_noticed(monkeypatch, few):
    exact = torch.ops.mkldnn._linear_pointwise

    def split(x, packed, *options):
        y = exact(x, packed, *options)
        return y if len(x) > few else y * (1 + 1e-6)

    monkeypatch.setattr("torch.ops.mkldnn._linear_pointwise", split)
    assert few < least_of.__wrapped__(40, 3000) <= 16


@pytest.mark.parametrize("packing", PACKINGS)
@torch.inference_mode()
def test_a_row_of_zeros_gives_the_bias(linear, packing):
    x = torch.randn(3, linear.in_features)
    x[1] = 0
    y = product(linear.weight, linear.bias, packing)(x)
    assert torch.allclose(y[1], linear.bias, rtol=STEP[packing], atol=0)
    assert y.isfinite().all()


@pytest.mark.parametrize("activation", sorted(ACTIVATIONS))
@pytest.mark.parametrize("packing", PACKINGS)
@torch.inference_mode()
def test_what_comes_with_a_product_is_the_same_as_after_it(linear, packing, activation):
    x, to = torch.randn(3, linear.in_features), torch.randn(3, linear.out_features)
    packed = product(linear.weight, linear.bias, packing)
    y = packed(x)
    close = {"rtol": 3 * STEP[packing], "atol": 3 * STEP[packing]}
    assert torch.allclose(activated(packed, activation)(x).float(), ACTIVATIONS[activation].forward(y), **close)
    assert torch.allclose(packed.added(x, to), to + y, **close)
    assert packed.added(x, to).dtype is torch.float32


@pytest.mark.parametrize("packing", ["bf16", "int8"])
@torch.inference_mode()
def test_packed_rows_are_the_rows_of_the_embedding_within_the_precision(packing):
    embedding = nn.Embedding(30, 8)
    embedding.weight[3] = 0
    embedding.weight[4] *= 1000
    packed, ids = PackedEmbedding(embedding, packing), torch.tensor([[3, 4], [5, 29]])
    assert torch.equal(packed(ids), packed.weight[ids])
    assert packed(ids).dtype is torch.float32
    error = (packed.weight - embedding.weight).abs().amax(dim=1)
    assert (error <= STEP[packing] * embedding.weight.abs().amax(dim=1)).all()


@pytest.mark.parametrize("packing", PACKINGS)
def test_the_dense_weights_of_a_product_are_those_it_uses(linear, packing):
    packed = PackedLinear(linear, packing)
    step = {"fp32": 0.0, "bf16": 2**-8, "int8": 1 / 127}[packing]
    assert (packed.weight - linear.weight).abs().max() <= step * linear.weight.abs().max()
    one = torch.eye(linear.in_features)
    assert torch.allclose(packed(one) - linear.bias, packed.weight.T, atol=2 * step + 1e-6)


@pytest.mark.parametrize("packing", PACKINGS)
def test_the_rows_of_a_tied_head_are_what_its_product_uses(packing):
    torch.manual_seed(1)
    model = GPT(GPTConfig(vocab_size=5000, block_size=16, n_layer=1, n_head=2, n_embd=32)).eval()
    pack(model, packing)
    assert torch.equal(model.lm_head.weight, model.lm_head.product.dense())
    assert torch.equal(model.lm_head.weight, model.wte.weight)


@pytest.mark.parametrize("packing", PACKINGS)
def test_a_product_survives_being_pickled(linear, packing):
    packed = product(linear.weight, linear.bias, packing)
    twin = pickle.loads(pickle.dumps(packed))
    x = torch.randn(3, linear.in_features)
    assert torch.allclose(twin(x), packed(x), atol=1e-6)
    assert torch.allclose(twin.dense(), packed.dense(), rtol=1e-6, atol=0)


def test_a_tied_head_gives_the_rows_of_the_embedding_and_exactly_the_gradients_of_the_model():
    torch.manual_seed(1)
    model = GPT(GPTConfig(vocab_size=50, block_size=16, n_layer=2, n_head=2, n_embd=32)).eval()
    idx = torch.randint(50, (1, 9))
    packed = copy.deepcopy(model)
    pack(packed, "fp32")
    assert packed.lm_head.weight is packed.wte.weight
    assert {name: tuple(value.shape) for name, value in packed.state_dict().items()} == {
        name: tuple(value.shape) for name, value in model.state_dict().items()
    }
    gradients = []
    for one in (model, packed):
        with torch.no_grad():
            stream = one.wte(idx)
        stream.requires_grad_()
        x = stream
        for block in one.h:
            x = block(x, ForwardContext())
        one.lm_head(one.ln_f(x))[0, -1].max().backward()
        gradients.append(stream.grad)
    assert torch.allclose(*gradients, atol=1e-6)
    assert gradients[0].abs().max() > 1e-3


@pytest.mark.parametrize("packing", ["bf16", pytest.param("int8", marks=needs_int8)])
def test_a_packed_model_still_has_gradients_and_weights_to_look_at(packing):
    torch.manual_seed(1)
    model = GPT(GPTConfig(vocab_size=50, block_size=16, n_layer=2, n_head=2, n_embd=32)).eval()
    idx = torch.randint(50, (1, 9))
    with torch.no_grad():
        before = model(idx)
    pack(model, packing)
    with torch.no_grad():
        after = model(idx)
        cache = KVCache(model.config)
        steps = torch.cat([model(idx[:, t : t + 1], cache=cache) for t in range(9)], dim=1)
    assert (before - after).abs().max() < 0.02
    assert torch.allclose(steps, after, atol=1e-2 if packing == "bf16" else 1e-3)
    assert model.lm_head.weight.shape == model.wte.weight.shape == (50, 32)
    x = torch.randn(1, 9, 32, requires_grad=True)
    model.h[0].mlp.c_fc(x).sum().backward()
    assert torch.allclose(x.grad, model.h[0].mlp.c_fc.weight.sum(0).expand_as(x), atol=1e-5)


@pytest.mark.parametrize("packing", PACKINGS)
def test_a_matrix_is_freed_as_it_is_packed(packing, monkeypatch):
    model = GPT(GPTConfig(vocab_size=50, block_size=16, n_layer=3, n_head=2, n_embd=32, tie_weights=False)).eval()
    seen, left = [], []

    def watched(weight, *options):
        left.append(sum(each() is not None for each in seen))
        seen.append(weakref.ref(weight.untyped_storage()))
        return product(weight, *options)

    monkeypatch.setattr("gpt.inference.packed.product", watched)
    pack(model, packing)
    assert len(left) == 13
    assert max(left) <= 1  # the one before
