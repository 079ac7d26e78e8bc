import pytest
import torch

from gpt import GPT, GPTConfig, KVCache
from gpt.cache import rows_of
from gpt.inference.decode import Decoder
from gpt.inference.packed import pack
from gpt.inference.step import Block, Seated, Seen, bags, keys_first, products, scripted
from gpt.model import rotary_angles

POSITIONS = {"learned": None, "rotary": torch.tensor([5, 2, 9])}


@pytest.fixture(params=["rows", "fp32", "bf16", "int8"])
def packing(request):
    return request.param


@pytest.fixture(params=POSITIONS)
def position(request):
    return request.param


@pytest.fixture(params=["gelu_tanh", "relu"])
def blocks(request, packing, position):
    """The second block of a model as Python runs it, and as TorchScript does."""
    torch.manual_seed(1)
    shape = {"vocab_size": 30, "block_size": 20, "n_layer": 2, "n_head": 2, "n_embd": 32}
    model = GPT(GPTConfig(**shape, position=position, activation=request.param)).eval()
    if packing == "rows":
        model = model.double()
    else:
        pack(model, packing)
    plain = [Block(block, model.config) for block in model.h]
    return plain[1], scripted(plain)[1]


def stream(packing, rows):
    torch.manual_seed(rows)
    return torch.randn(rows, 32, dtype=torch.double if packing == "rows" else torch.float32)


def turned(position, rows):
    if position == "learned":
        return None
    return tuple(angles[:, None, None] for angles in rotary_angles(POSITIONS[position][:rows], 16))


@pytest.mark.parametrize("first", [True, False])
@torch.inference_mode()
def test_torchscript_gives_what_python_gives_to_the_bit_for_one_text(blocks, packing, position, first):
    given = []
    for block in blocks:
        x = stream(packing, 1)
        kept = torch.randn(3, 2, 16, 16, dtype=x.dtype, generator=torch.Generator().manual_seed(0))
        hidden = torch.zeros(1, 16, dtype=x.dtype)
        hidden[:, 6:] = -torch.inf
        views, seen = (kept, kept[1], kept[2].reshape(-1, 16)), Seen(*rows_of(2, 16, 16), hidden, first)
        given.append((block.alone(x, turned(position, 1), views, seen, 5), kept))
    assert all(map(torch.equal, *given))


@pytest.mark.parametrize("first", [True, False])
@torch.inference_mode()
@pytest.mark.parametrize("places", [[0, 1, 2], [2, 0, 1], [3, 0, 1]])
def test_torchscript_gives_what_python_gives_to_the_bit_for_several(blocks, packing, position, places, first):
    given = []
    for block in blocks:
        x = stream(packing, 3)
        kept = torch.randn(2, 4, 2, 16, 16, dtype=x.dtype, generator=torch.Generator().manual_seed(0))
        hidden = torch.zeros(2 * (max(places) + 1), 1, 16, dtype=x.dtype)
        seen = Seen(*rows_of(len(hidden), 16, 16), hidden, first)
        seated = Seated(torch.tensor(places), torch.tensor([5, 2, 9]), seen, places == [0, 1, 2])
        given.append((*block.together(x, turned(position, 3), kept, seated), kept))
    assert all(map(torch.equal, *given))


@torch.inference_mode()
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_bags_and_products_give_the_same_sums(dtype):
    torch.manual_seed(0)
    values, weights = torch.randn(3 * 40, 8).to(dtype), torch.randn(3, 16).softmax(-1).to(dtype)
    seen = Seen(*rows_of(3, 16, 40), weights, True)
    expected = (weights.double()[:, None] @ values.view(3, 40, 8)[:, :16].double())[:, 0]
    for sums in (bags, products):
        given = sums(values, seen, weights)
        assert given.dtype is dtype
        assert torch.allclose(given.double(), expected, atol=1e-12 if dtype is torch.float64 else 1e-2)


@pytest.mark.parametrize(
    ("intel", "device", "first"), [(True, "cpu", False), (False, "cpu", True), (True, "cuda", True)]
)
def test_which_comes_first_is_a_matter_of_the_processor(monkeypatch, intel, device, first):
    monkeypatch.setattr("gpt.inference.step.is_intel", lambda: intel)
    assert keys_first(torch.device(device)) is first


def test_on_a_cpu_every_block_is_run_by_torchscript():
    model = GPT(GPTConfig(vocab_size=30, block_size=20, n_layer=2, n_head=2, n_embd=32)).eval()
    decoder = Decoder(model)
    assert [type(block) for block in decoder.blocks] == [torch.jit.RecursiveScriptModule] * 2


def refuse(block):
    raise RuntimeError("no TorchScript here")


@pytest.mark.parametrize("script", [refuse, lambda block: block])
def test_without_torchscript_python_runs_the_blocks(monkeypatch, script):
    model = GPT(GPTConfig(vocab_size=30, block_size=20, n_layer=2, n_head=2, n_embd=32)).eval()
    expected = Decoder(model)
    monkeypatch.setattr(torch.jit, "script", script)
    decoder = Decoder(model)
    assert [type(block) for block in decoder.blocks] == [Block] * 2
    read = [one.read([[1, 2, 3]], [KVCache(model.config)])[0] for one in (decoder, expected)]
    assert torch.equal(*read)
