"""Models of other families on the hub: which files are downloaded, and what is rejected before any weights are."""

from __future__ import annotations

import io
import json
import socket
from pathlib import Path

import pytest
import torch
from safetensors.torch import save
from transformers import GPT2Tokenizer, LlamaConfig, LlamaForCausalLM

from gpt.models import hub
from gpt.models.checkpoints.tokenizer_formats import write_gpt2_files
from gpt.models.sources import load_model
from gpt.tokenizer import Tokenizer
from tests.conftest import randomized
from tests.gpt.models.hub_server import REPO, Hub

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
    assert sorted(name for name, _ in served.gets) == sorted(served.files.keys() - OTHER_FILES)
    assert (seen[0], seen[-1]) == ((0, total), (total, total))
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    idx = torch.arange(12)[None]
    torch.testing.assert_close(loaded.model(idx), llama(idx).logits, atol=1e-5, rtol=0)
    served.down = True
    assert load_model(REPO, device="cpu").layout == loaded.layout == "Llama"


def test_a_model_in_the_cache_without_one_of_its_files_is_not_used(served: Hub, llama: LlamaForCausalLM) -> None:
    folder = hub.download(REPO)
    sorted(folder.glob("*.safetensors"))[1].unlink()
    served.down = True
    with pytest.raises(ValueError, match="could not be downloaded"):
        load_model(REPO)


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("model_type", "mamba", "a mamba model"),
        ("model_type", "mixtral", "a mixture of experts"),
        ("quantization_config", {"quant_method": "awq"}, "quantised"),
        ("rope_scaling", {"type": "yarn", "factor": 2.0}, "'yarn'"),
    ],
)
def test_what_cannot_be_opened_is_refused_before_its_weights_are_fetched(
    served: Hub, llama: LlamaForCausalLM, option: str, value: object, said: str
) -> None:
    config = json.loads(served.files["config.json"])
    served.files["config.json"] = json.dumps({**config, option: value}).encode()
    with pytest.raises(ValueError, match=said):
        load_model(REPO)
    assert not [name for name, _ in served.gets if name.endswith((".safetensors", ".py"))]


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


def test_an_address_that_cannot_be_found_is_no_network(served: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "weight_names", lambda name: socket.getaddrinfo("nowhere.invalid", 443))
    with pytest.raises(ValueError, match=r"could not be downloaded from the Hugging Face hub \(no network\)"):
        load_model(REPO)


def test_a_gated_model_says_what_to_do(served: Hub) -> None:
    served.gated = True
    with pytest.raises(
        ValueError, match=r"requires you to accept its licence: do so on huggingface.co/someone/tiny, log in"
    ):
        load_model(REPO)


@pytest.mark.parametrize(("files", "text"), [({}, "1 2"), ({"vocab.txt": "[UNK]\n你\n好".encode()}, "你好")])
def test_the_vocabulary_may_be_in_another_file_or_missing(
    served: Hub, llama: LlamaForCausalLM, files: dict[str, bytes], text: str
) -> None:
    del served.files["tokenizer.json"], served.files["tokenizer.model"]
    served.files |= {"tokenizer_config.json": b"{}", **files}
    assert load_model(REPO).tokenizer.encode(text) == [1, 2]


@pytest.mark.parametrize("name", ["../../outside.safetensors", "weights.bin"])
def test_an_index_with_other_files_is_refused(served: Hub, llama: LlamaForCausalLM, name: str) -> None:
    served.files["model.safetensors.index.json"] = json.dumps({"weight_map": {"lm_head.weight": name}}).encode()
    with pytest.raises(ValueError, match="is damaged"):
        load_model(REPO)
    assert not [file for file, _ in served.gets if file.endswith(".safetensors")]


def test_an_adapter_is_fetched_and_merged_into_the_model_that_it_names(served: Hub) -> None:
    base = load_model("stories", device="cpu", trainable=True).model
    A, B = torch.randn(2, base.config.n_embd), torch.randn(3 * base.config.n_embd, 2)
    name = "base_model.model.transformer.h.0.attn.c_attn"
    weights = save({f"{name}.lora_A.weight": A, f"{name}.lora_B.weight": B})
    config = {"peft_type": "LORA", "lora_alpha": 4, "fan_in_fan_out": True, "base_model_name_or_path": "stories"}
    served.files = {"adapter_config.json": json.dumps(config).encode(), "adapter_model.safetensors": weights}
    merged = load_model(REPO, device="cpu").model
    assert sorted(name for name, _ in served.gets) == sorted(served.files)
    expected = base.h[0].attn.c_attn.weight + 2 * B @ A
    torch.testing.assert_close(merged.h[0].attn.c_attn.weight, expected, atol=1e-5, rtol=1e-5)
