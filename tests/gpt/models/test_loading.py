"""Models in memory: precision, packing, memory limits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor, nn

from gpt import GPT, GPTConfig, add_model, get_model
from gpt.inference.cluster import DeployedModel
from gpt.inference.packed_weights import half_dtype
from gpt.models.checkpoints import checkpoint
from gpt.models.checkpoints.checkpoint import open_checkpoint
from gpt.models.checkpoints.writing import save_model
from gpt.models.loading import Precision, build, memory_of, peak_bytes
from gpt.models.memory import free_memory
from gpt.models.registry import Registry, compare, configure, precision_error
from gpt.models.sources import load_model
from gpt.read_only import ReadOnlyTensor
from gpt.tokenizer import PlainIds
from tests.gpt.fake_models import tiny_tokenizer
from tests.gpt.family_configs import randomized
from tests.gpt.models.tiny import N_VOCAB, tiny
from tests.parity.named_models import NanoGPT


def test_half_precision_files_load_in_float32_and_in_16_bits(tmp_path: Path) -> None:
    model, idx = tiny(), torch.arange(16)[None]
    save_model(tmp_path, model, PlainIds(N_VOCAB))
    full, half = load_model(tmp_path, device="cpu"), load_model(tmp_path, device="cpu", precision="half")
    assert {p.dtype for p in full.model.parameters()} == {torch.float32}
    assert torch.equal(half.model.wte.weight, full.model.wte.weight.to(half_dtype()).float())
    torch.testing.assert_close(full.model(idx), model(idx), atol=0.02, rtol=0)
    torch.testing.assert_close(half.model(idx).float(), model(idx), atol=0.2, rtol=0)


@pytest.mark.parametrize("precision", ["fp32", "half"])
def test_a_packed_model_needs_its_memory_and_that_of_a_part(
    tmp_path: Path, precision: Precision, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tiny(n_layer=4)
    save_model(tmp_path, model, PlainIds(N_VOCAB))
    needed = peak_bytes(open_checkpoint(tmp_path), model, precision)
    monkeypatch.setattr(checkpoint, "free_memory", lambda: needed - 1)
    with pytest.raises(ValueError, match=r"needs .* of memory, .* are free"):
        load_model(tmp_path, device="cpu", precision=precision)
    monkeypatch.setattr(checkpoint, "free_memory", lambda: needed)
    load_model(tmp_path, device="cpu", precision=precision)


def test_weights_whose_logits_overflow_are_refused_by_name(tmp_path: Path) -> None:
    model = tiny()
    for parameter in model.parameters():
        parameter.data.mul_(1e15)
    save_model(tmp_path / "burst", model, PlainIds(N_VOCAB), dtype=torch.float32)
    with pytest.raises(ValueError, match="burst gives NaN or infinite logits"):
        load_model(tmp_path / "burst")


@pytest.mark.parametrize("device", ["bogus", "cuda:99", "meta?", "meta", 3.5])
def test_a_device_that_is_not_there_is_refused(device: object) -> None:
    with pytest.raises(ValueError, match="torch cannot use the device"):
        load_model("stories", device=device)


def test_free_memory_stays_within_the_containers_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpt.models.memory.MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr("gpt.models.memory.CGROUP", tmp_path)
    (tmp_path / "meminfo").write_text("MemTotal:  64000000 kB\nMemAvailable:  1000000 kB\n")
    assert free_memory() == 1_024_000_000
    (tmp_path / "memory.max").write_text("800000000\n")
    (tmp_path / "memory.current").write_text("500000000\n")
    (tmp_path / "memory.stat").write_text("anon 300000000\nfile 200000000\n")
    assert free_memory() == 500_000_000
    (tmp_path / "memory.max").write_text("max\n")
    assert free_memory() == 1_024_000_000
    (tmp_path / "meminfo").unlink()
    assert free_memory() > 0


CHANGES: dict[str, Callable[[Tensor], object]] = {
    "zero_": Tensor.zero_,
    "data": lambda w: w.data.zero_(),
    "set data": lambda w: setattr(w, "data", torch.zeros(w.shape)),
    "init": nn.init.zeros_,
    "part": lambda w: w[: len(w) // 2].zero_(),
    "view": lambda w: w.detach().view(-1).mul_(0),
    "out": lambda w: torch.mul(w, 0, out=w),
    "foreach": lambda w: torch._foreach_zero_([w]),
    "memory": lambda w: w.detach().numpy().fill(0),
}


@pytest.mark.parametrize("packing", ["fp32 on AMD", "int8"])
def test_a_change_of_a_weight_takes_effect_in_prompts_and_steps_or_is_refused(
    tmp_path: Path, packing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpt.inference.packed_weights.SMALL_WEIGHT", 300)  # some weights stay ordinary
    monkeypatch.setattr("gpt.inference.packed_weights.is_amd", lambda: packing.endswith("AMD"))
    original, idx = tiny(tie_weights=False, n_layer=1), torch.arange(16)[None]
    with torch.no_grad():
        for weight in original.parameters():
            weight.normal_(std=0.3)
    save_model(tmp_path, original, PlainIds(N_VOCAB), dtype=torch.float32)
    precision: Precision = "int8" if packing == "int8" else "fp32"

    @torch.no_grad()
    def logits(model: GPT) -> Tensor:
        cache, prompt = model.new_cache(), model(idx)
        model(idx[:, :-1], cache=cache)
        step = model(idx[:, -1:], cache=cache)
        torch.testing.assert_close(step, prompt[:, -1:], atol=0.1 if packing == "int8" else 1e-2, rtol=0)
        return torch.cat((prompt, step), dim=1)

    refused = set()
    model = load_model(tmp_path, device="cpu", precision=precision).model
    before = logits(model)
    for change in CHANGES.values():
        for name, weight in model.named_parameters():
            if name.endswith("bias") and "c_fc" not in name:
                continue
            kept = (weight + 0).clone()
            with torch.no_grad():
                if isinstance(weight, ReadOnlyTensor):
                    refused.add(name)
                    with pytest.raises(ValueError, match=r"cannot be changed: load it with load_model\(|is read-only"):
                        change(weight)
                else:
                    change(weight)
                    assert not torch.equal(logits(model), before)
                    weight.copy_(kept)
        torch.testing.assert_close(logits(model), before, atol=1e-5, rtol=0)
    assert len(refused) == {"fp32 on AMD": 4, "int8": 7}[packing], refused
    assert not any(name.endswith("bias") or ".ln" in name for name in refused)


@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_packed_parameters_have_their_true_number_and_values_and_cannot_be_trained(
    tmp_path: Path, precision: Precision, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpt.inference.packed_weights.SMALL_WEIGHT", 300)
    monkeypatch.setattr("gpt.inference.packed_weights.is_amd", lambda: True)
    original = tiny(tie_weights=False)
    save_model(tmp_path, original, PlainIds(N_VOCAB), dtype=torch.float32)
    model, idx = load_model(tmp_path, device="cpu", precision=precision).model, torch.arange(16)[None]
    before = model(idx)
    named = dict(model.named_parameters())
    assert {name: p.shape for name, p in named.items()} == {name: p.shape for name, p in original.named_parameters()}
    for name, value in original.state_dict().items():
        torch.testing.assert_close(named[name] + 0, value, atol=0.02, rtol=0)
        torch.testing.assert_close(model.state_dict()[name] + 0, named[name] + 0)
    assert not any(p.requires_grad for p in named.values())
    with pytest.raises(RuntimeError, match="cannot be changed"):
        model.load_state_dict(original.state_dict())
    with pytest.raises(ValueError, match=r"load it with load_model\("):
        model.train()
    assert not model.training
    assert not model.drop.training
    assert torch.equal(model.eval().float()(idx), before)
    for change in (model.requires_grad_, model.bfloat16):
        with pytest.raises(ValueError, match=r"load it with load_model\("):
            change()


def test_a_trainable_model_learns_in_every_weight_and_takes_changes(tmp_path: Path) -> None:
    save_model(tmp_path, tiny(), PlainIds(N_VOCAB))
    model, idx = load_model(tmp_path, device="cpu", trainable=True).model, torch.arange(16)[None]
    assert not model.training
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    optimizer = torch.optim.SGD(model.train().parameters(), lr=0.1)
    model.loss(idx[:, :-1], idx[:, 1:]).backward()
    optimizer.step()
    assert [name for name, parameter in model.named_parameters() if torch.equal(parameter, before[name])] == []
    logits = model(idx)
    with torch.no_grad():
        model.h[0].attn.c_proj.weight.zero_()
    assert not torch.equal(model(idx), logits)
    with pytest.raises(ValueError, match="int8 weights cannot be trained"):
        load_model(tmp_path, device="cpu", trainable=True, precision="int8")


@pytest.mark.thorough
def test_the_same_model_has_no_error_and_one_of_16_bits_a_small_one():
    exact = load_model("stories", device="cpu")
    none = compare(exact, exact)
    assert (none.kl, none.logit, none.top_1) == (0, 0, 1)
    small = precision_error(load_model("stories", device="cpu", precision="half"))
    assert small.kl < 0.01
    assert small.logit < 1
    assert (small.kl > 1e-6) == (half_dtype() is torch.bfloat16)  # its file holds float16
    assert small.top_1 > 0.9


@pytest.fixture
def reduced():
    """Load the shared models in bfloat16."""
    configure(precision="half")
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


CPU = torch.device("cpu")

IDS = torch.tensor([[5, 3, 9]])

CLUSTER = SimpleNamespace(max_replicas=3)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    model = GPT(GPTConfig(vocab_size=260, block_size=16, n_layer=2, n_head=2, n_embd=16))
    save_model(tmp_path / "tiny", model, tiny_tokenizer(), dtype=torch.float32)
    return tmp_path / "tiny"


def test_float32_weights_stay_in_their_file_and_refuse_changes_that_would_not_reach_the_replicas(folder: Path) -> None:
    checkpoint = open_checkpoint(folder)
    mapped = build("tiny", checkpoint, CPU, "fp32", deployed=DeployedModel(CLUSTER, {}))
    for name, parameter in mapped.model.named_parameters():
        assert parameter.stored.tensor.data_ptr() == checkpoint.weights[name][0].data_ptr(), name
        with pytest.raises(ValueError, match="cannot be changed"):
            parameter.data.zero_()
    assert memory_of(checkpoint, "fp32", CPU, deployed=True) == 0
    usual = build("tiny", checkpoint, CPU, "fp32")
    torch.testing.assert_close(mapped.model(IDS), usual.model(IDS))


def test_listed_models_are_deployed_and_uploads_are_not(folder: Path) -> None:
    registry = Registry(cluster=CLUSTER, context=9)
    registry.add(folder, name="tiny")
    deployed = [registry.get(name).deployed for name in ("tiny", "untrained")]
    assert [each.spec["name_or_path"] for each in deployed] == [str(folder.resolve()), "untrained"]
    assert [each.spec["context"] for each in deployed] == [9] * 2
    upload = registry.get(registry.add_upload(sorted(folder.iterdir())))
    assert upload.deployed is None
    assert registry.get("tiny").engine.admission.limit == 3 * upload.engine.admission.limit
    registry.remove(upload.name)
