"""Downloads from a small server with the part of the hub's API that its client needs."""

from __future__ import annotations

import io
import json
import threading
from pathlib import Path

import pytest
import torch
from huggingface_hub import constants
from safetensors.torch import save
from transformers import GPT2Tokenizer, LlamaConfig, LlamaForCausalLM

from gpt.models import sources as hub
from gpt.models.checkpoints.tokenizer_formats import write_gpt2_files
from gpt.models.registry import Registry
from gpt.models.sources import find_source, load_model
from gpt.tokenizer import Tokenizer
from tests.gpt.family_configs import randomized
from tests.gpt.models.hub_server import REPO, Hub
from tests.parity.gguf_models import reference_model, write_gguf


def test_only_the_four_files_are_fetched_and_only_once(served: Hub) -> None:
    folder = hub.download(REPO)
    wanted = ["config.json", "vocab.json", "merges.txt", hub.WEIGHTS]
    assert sorted(served.gets) == sorted(wanted)
    assert {file.name for file in folder.iterdir()} == set(wanted)
    assert all((folder / name).read_bytes() == served.files[name] for name in wanted)
    served.gets.clear()
    assert hub.download(REPO) == folder
    assert served.gets == []


def test_vocabulary_in_one_file_is_fetched_only_where_there_is_no_pair(served: Hub, tmp_path: Path) -> None:
    (tmp_path / "pair").mkdir()
    for name in ("vocab.json", "merges.txt"):
        (tmp_path / "pair" / name).write_bytes(served.files.pop(name))
    GPT2Tokenizer.from_pretrained(tmp_path / "pair").save_pretrained(tmp_path / "one")
    served.files["tokenizer.json"] = (tmp_path / "one" / "tokenizer.json").read_bytes()
    loaded = load_model(REPO)
    assert sorted(served.gets) == ["config.json", hub.WEIGHTS, "tokenizer.json"]
    assert loaded.tokenizer.encode("the 你") == GPT2Tokenizer.from_pretrained(tmp_path / "one").encode("the 你")
    served.down = True
    assert load_model(REPO).tokenizer.n_vocab == loaded.tokenizer.n_vocab


def test_a_gguf_file_is_fetched_by_its_name(served: Hub, tmp_path: Path) -> None:
    write_gguf(tmp_path / "small.gguf", reference_model("llama"), "llama")
    served.files["small.gguf"] = (tmp_path / "small.gguf").read_bytes()
    name = f"{REPO}:small.gguf"
    assert not find_source(name).is_here
    assert load_model(name).layout == "GGUF (Llama)"
    assert set(served.gets) == {"small.gguf"}
    assert find_source(name).is_here
    served.down = True
    assert load_model(name).layout == "GGUF (Llama)"
    served.down = False
    with pytest.raises(ValueError, match=r"someone/tiny has no other\.gguf on the hub"):
        load_model(f"{REPO}:other.gguf")


def test_interrupted_download_is_not_used(served: Hub, tmp_path: Path) -> None:
    served.cut = 50_000
    with pytest.raises(ValueError, match=r"could not be downloaded.*choose the model again"):
        load_model(REPO)
    assert not list((tmp_path / "cache").rglob(hub.WEIGHTS))
    served.cut, served.down = None, False
    assert (hub.download(REPO) / hub.WEIGHTS).read_bytes() == served.files[hub.WEIGHTS]


def test_offline_raises_an_error_that_says_what_to_do(served: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    for constant, value in (("ENDPOINT", "http://127.0.0.1:1"), ("HF_HUB_OFFLINE", True)):  # nothing answers there
        monkeypatch.setattr(constants, constant, value)
        for name in (REPO, "gpt2"):
            with pytest.raises(ValueError, match=f"{name} could not be downloaded.*connect to the internet"):
                load_model(name)
    assert served.gets == []


def test_unknown_repository_and_missing_weights_are_refused(served: Hub) -> None:
    with pytest.raises(ValueError, match="no public model 'nobody/nothing'"):
        load_model("nobody/nothing")
    for name in (hub.WEIGHTS, "pytorch_model.bin"):
        del served.files[name]
    with pytest.raises(ValueError, match=r"someone/tiny has no model\.safetensors"):
        load_model(REPO)


def test_concurrent_callers_share_one_download_and_each_gets_its_progress(served: Hub) -> None:
    registry = Registry(memory=10**9, device=torch.device("cpu"))
    name = registry.add(REPO)
    start, results, reports = threading.Barrier(4), [], [[] for _ in range(4)]

    def visit(number: int) -> None:
        start.wait()
        results.append(registry.get(name, lambda *bytes_: reports[number].append(bytes_)))

    threads = [threading.Thread(target=visit, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(loaded) for loaded in results}) == 1
    assert served.gets.count(hub.WEIGHTS) == 1
    size = len(served.files[hub.WEIGHTS])
    assert [seen[-1] for seen in reports] == [(size, size)] * 4


OTHER_FILES = {"README.md", "pytorch_model.bin", "tokenizer.model", "modeling_llama.py"}


@pytest.fixture
def llama(served: Hub, tmp_path: Path, byte_tokenizer: Tokenizer) -> LlamaForCausalLM:
    """A small random Llama in three files on the hub, with its tokenizer."""
    folder = tmp_path / "llama"
    sizes = {"vocab_size": byte_tokenizer.n_vocab, "hidden_size": 32, "intermediate_size": 48}
    config = LlamaConfig(**sizes, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2)
    model = randomized(LlamaForCausalLM(config), std=0.1)
    model.save_pretrained(folder, max_shard_size="60KB")
    (tmp_path / "pair").mkdir()
    write_gpt2_files(byte_tokenizer, tmp_path / "pair")
    GPT2Tokenizer.from_pretrained(tmp_path / "pair").save_pretrained(folder)
    served.files = {file.name: file.read_bytes() for file in folder.iterdir()} | dict.fromkeys(OTHER_FILES, b"other")
    return model


def test_a_model_in_several_files_is_fetched_with_its_tokenizer_and_nothing_else(
    served: Hub, llama: LlamaForCausalLM
) -> None:
    seen: list[tuple[int, int]] = []
    loaded = load_model(REPO, device="cpu", progress=lambda done, total: seen.append((done, total)))
    shards = [name for name in served.files if name.endswith(".safetensors")]
    total = sum(len(served.files[name]) for name in shards)
    assert len(shards) == 3
    assert sorted(served.gets) == sorted(served.files.keys() - OTHER_FILES)
    assert (seen[0], seen[-1]) == ((0, total), (total, total))
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    idx = torch.arange(12)[None]
    torch.testing.assert_close(loaded.model(idx), llama(idx).logits, atol=1e-5, rtol=0)
    served.down = True
    assert load_model(REPO, device="cpu").layout == loaded.layout == "Llama"


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("model_type", "mamba", "a mamba model"),
        ("quantization_config", {"quant_method": "hqq"}, "quantised"),
    ],
)
def test_what_cannot_be_opened_is_refused_before_its_weights_are_fetched(
    served: Hub, llama: LlamaForCausalLM, option: str, value: object, said: str
) -> None:
    config = json.loads(served.files["config.json"])
    served.files["config.json"] = json.dumps({**config, option: value}).encode()
    with pytest.raises(ValueError, match=said):
        load_model(REPO)
    assert not [name for name in served.gets if name.endswith((".safetensors", ".py"))]


@pytest.mark.parametrize("n_files", [1, 2])
def test_torch_files_are_fetched_where_there_are_no_safetensors(
    served: Hub, llama: LlamaForCausalLM, n_files: int
) -> None:
    state = llama.state_dict()
    for name in [name for name in served.files if "safetensors" in name or name == "pytorch_model.bin"]:
        del served.files[name]
    names = [f"pytorch_model-0000{n + 1}-of-00002.bin" for n in range(2)] if n_files == 2 else ["pytorch_model.bin"]
    listed = {key: names[at % n_files] for at, key in enumerate(state)}
    for name in names:
        buffer = io.BytesIO()
        torch.save({key: value for key, value in state.items() if listed[key] == name}, buffer)
        served.files[name] = buffer.getvalue()
    if n_files == 2:
        served.files["pytorch_model.bin.index.json"] = json.dumps({"weight_map": listed}).encode()
    idx = torch.arange(12)[None]
    for served.down in (False, True):
        torch.testing.assert_close(load_model(REPO, device="cpu").model(idx), llama(idx).logits, atol=1e-5, rtol=0)


def test_a_gated_model_says_what_to_do(served: Hub) -> None:
    served.gated = True
    with pytest.raises(
        ValueError, match=r"requires you to accept its licence: do so on huggingface.co/someone/tiny, log in"
    ):
        load_model(REPO)


@pytest.mark.parametrize("name", ["../../outside.safetensors", "weights.bin"])
def test_an_index_with_other_files_is_refused(served: Hub, llama: LlamaForCausalLM, name: str) -> None:
    served.files["model.safetensors.index.json"] = json.dumps({"weight_map": {"lm_head.weight": name}}).encode()
    with pytest.raises(ValueError, match="is damaged"):
        load_model(REPO)
    assert not [file for file in served.gets if file.endswith(".safetensors")]


def test_an_adapter_is_fetched_and_merged_into_the_model_that_it_names(served: Hub) -> None:
    base = load_model("stories", device="cpu", trainable=True).model
    A, B = torch.randn(2, base.config.n_embd), torch.randn(3 * base.config.n_embd, 2)
    name = "base_model.model.transformer.h.0.attn.c_attn"
    weights = save({f"{name}.lora_A.weight": A, f"{name}.lora_B.weight": B})
    config = {"peft_type": "LORA", "lora_alpha": 4, "fan_in_fan_out": True, "base_model_name_or_path": "stories"}
    served.files = {"adapter_config.json": json.dumps(config).encode(), "adapter_model.safetensors": weights}
    merged = load_model(REPO, device="cpu").model
    assert sorted(served.gets) == sorted(served.files)
    expected = base.h[0].attn.c_attn.weight + 2 * B @ A
    torch.testing.assert_close(merged.h[0].attn.c_attn.weight, expected, atol=1e-5, rtol=1e-5)
