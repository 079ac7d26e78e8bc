"""Checkpoints in formats of their own: each has the numbers of the program that wrote it."""

from __future__ import annotations

import json
import pickle
import re
import runpy
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
import tiktoken
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from tokenizers.implementations import ByteLevelBPETokenizer
from torch import Tensor
from torch.nn.functional import rms_norm, scaled_dot_product_attention
from torch.testing import assert_close
from transformers import AutoConfig, AutoModelForCausalLM, GPT2Config, GPT2LMHeadModel

from gpt import LoadedModel, add_model, get_model, load_model
from gpt.models.checkpoints.checkpoint import open_checkpoint
from gpt.models.checkpoints.files import NAMES, NUMPY, STARTS, Contents
from gpt.models.checkpoints.layouts import LLAMA_32_HEADS
from gpt.models.checkpoints.quantized import dequantized
from gpt.models.checkpoints.writing import convert
from gpt.models.registry import add_upload, remove_model
from gpt.models.sources import BUNDLED
from gpt.tokenizer import PlainIds
from tests.gpt.family_configs import randomized

IDX = torch.arange(20).view(2, 10) * 7 % 300
NANOCHAT = {"sequence_len": 32, "vocab_size": 301, "n_layer": 2, "n_head": 4, "n_kv_head": 2, "n_embd": 32}
PATTERN = (
    r"""'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,2}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"""
)
SPECIAL = ("bos", "user_start", "user_end", "assistant_start", "assistant_end")


def nanochat_logits(weights: dict[str, Tensor], idx: Tensor) -> Tensor:
    """Compute nanochat's formulas of October 2025, but with angles in float32 instead of bfloat16."""
    norm = lambda x: rms_norm(x, x.shape[-1:])  # noqa: E731
    size = NANOCHAT["n_embd"] // NANOCHAT["n_head"]
    angles = torch.arange(idx.shape[1])[:, None] / 10000 ** (torch.arange(0, size, 2) / size)
    cos, sin = angles.cos(), angles.sin()

    def heads(x: Tensor, name: str, *, turn: bool = True) -> Tensor:
        x = (x @ weights[f"{name}.weight"].t()).unflatten(-1, (-1, size)).transpose(1, 2)
        first, second = x.chunk(2, dim=-1)
        return norm(torch.cat([first * cos + second * sin, second * cos - first * sin], dim=-1)) if turn else x

    x = norm(weights["transformer.wte.weight"][idx])
    for layer in range(NANOCHAT["n_layer"]):
        block = f"transformer.h.{layer}"
        q, k, v = (heads(norm(x), f"{block}.attn.c_{each}", turn=each != "v") for each in "qkv")
        y = scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True).transpose(1, 2).flatten(2)
        x = x + y @ weights[f"{block}.attn.c_proj.weight"].t()
        hidden = (norm(x) @ weights[f"{block}.mlp.c_fc.weight"].t()).relu().square()
        x = x + hidden @ weights[f"{block}.mlp.c_proj.weight"].t()
    logits = norm(x) @ weights["lm_head.weight"].t()
    return (15 * torch.tanh(logits / 15))[..., : NANOCHAT["vocab_size"]]


def write_nanochat(base: Path, extra: dict[str, Tensor] | None = None) -> dict[str, Tensor]:
    """Write a model as nanochat does after chat training, and return its weights."""
    torch.manual_seed(0)
    C, padded = NANOCHAT["n_embd"], 320
    shapes = {"transformer.wte": (padded, C), "lm_head": (padded, C)}
    for layer in range(NANOCHAT["n_layer"]):
        block = f"transformer.h.{layer}."
        shapes |= {f"{block}attn.c_q": (C, C), f"{block}attn.c_k": (C // 2, C), f"{block}attn.c_v": (C // 2, C)}
        shapes |= {f"{block}attn.c_proj": (C, C), f"{block}mlp.c_fc": (4 * C, C), f"{block}mlp.c_proj": (C, 4 * C)}
    weights = {f"{name}.weight": torch.randn(shape) * 0.2 for name, shape in shapes.items()}
    model, vocabulary = base / "chatsft_checkpoints" / "d2", base / "tokenizer"
    for folder in (model, vocabulary):
        folder.mkdir(parents=True)
    for step in (1, 20):
        state = {f"_orig_mod.{name}": tensor * step / 20 for name, tensor in weights.items()}
        torch.save(state | (extra or {}), model / f"model_{step:06}.pt")
        (model / f"meta_{step:06}.json").write_text(json.dumps({"step": step, "model_config": NANOCHAT}))
        torch.save({"state": {}}, model / f"optim_{step:06}_rank0.pt")
    pieces = [*(bytes([byte]) for byte in range(256)), b" t", b"he", b"st", b"or", b" the", b"ory"]
    ranks = {piece: rank for rank, piece in enumerate(pieces)}
    special = {f"<|{name}|>": 296 + number for number, name in enumerate(SPECIAL)}
    encoding = tiktoken.Encoding("rustbpe", pat_str=PATTERN, mergeable_ranks=ranks, special_tokens=special)
    (vocabulary / "tokenizer.pkl").write_bytes(pickle.dumps(encoding))
    return weights


def test_nanochat_reads_as_its_own_code_computes_and_chats(tmp_path: Path) -> None:
    weights = write_nanochat(tmp_path)
    loaded = load_model(tmp_path / "chatsft_checkpoints" / "d2", device="cpu")
    assert_close(loaded.model(IDX), nanochat_logits(weights, IDX), atol=1e-5, rtol=0)
    encoding = pickle.loads((tmp_path / "tokenizer" / "tokenizer.pkl").read_bytes())
    for text in ("the  story's 1234 the\n\n\tend ", "ÄÖ 你好 <|bos|>", "   x"):
        assert loaded.tokenizer.encode(text) == encoding.encode_ordinary(text)
    chat = [{"role": "system", "content": "be"}, {"role": "user", "content": "the?"}]
    chat += [{"role": "assistant", "content": "a<|bos|>"}, {"role": "user", "content": "story"}]
    bos, user, end_user, start, end = range(296, 301)
    parts = [encoding.encode_ordinary(text) for text in ("be\n\nthe?", "a<|bos|>", "story")]
    expected = [bos, user, *parts[0], end_user, start, *parts[1], end, user, *parts[2], end_user, start]
    assert loaded.tokenizer.encode_chat(chat) == expected
    assert loaded.tokenizer.prefix_ids == (bos,)
    assert loaded.tokenizer.eot_ids == {bos, end}


def test_nanochat_of_2026_is_refused_by_name(tmp_path: Path) -> None:
    write_nanochat(tmp_path, {"_orig_mod.resid_lambdas": torch.ones(2)})
    with pytest.raises(ValueError, match=r"a nanochat model of 2026, which is not implemented \(resid_lambdas\)"):
        load_model(tmp_path / "chatsft_checkpoints" / "d2" / "model_000020.pt")


def test_nanochat_with_damaged_options_is_refused(tmp_path: Path) -> None:
    write_nanochat(tmp_path)
    meta = tmp_path / "chatsft_checkpoints" / "d2" / "meta_000020.json"
    for damaged in (None, {}, {**NANOCHAT, "n_embd": None}, {**NANOCHAT, "vocab_size": "300"}):
        meta.write_text(json.dumps({"model_config": damaged}))
        with pytest.raises(ValueError, match=r"meta_000020\.json is damaged"):
            load_model(meta.parent)


def write_openai(folder: Path) -> dict[str, np.ndarray]:
    """Write a folder like OpenAI's, and return its weights. TensorFlow 2.21's Saver wrote these names in this order."""
    V, T, C = 37, 12, 8
    shapes: dict[str, tuple[int, ...]] = {"wte": (V, C), "wpe": (T, C)}
    for block in ("h0", "h1"):
        for name, n_in, n_out in (("attn/c_attn", C, 3 * C), ("attn/c_proj", C, C)):
            shapes |= {f"{block}/{name}/w": (1, n_in, n_out), f"{block}/{name}/b": (n_out,)}
        for name, n_in, n_out in (("mlp/c_fc", C, 4 * C), ("mlp/c_proj", 4 * C, C)):
            shapes |= {f"{block}/{name}/w": (1, n_in, n_out), f"{block}/{name}/b": (n_out,)}
        shapes |= {f"{block}/{norm}/{leaf}": (C,) for norm in ("ln_1", "ln_2") for leaf in "gb"}
    shapes |= {"ln_f/g": (C,), "ln_f/b": (C,)}
    random = np.random.default_rng(0)
    weights = {name: random.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    data = b"".join(weights[name].tobytes() for name in sorted(weights))
    (folder / "model.ckpt.data-00000-of-00001").write_bytes(data)
    (folder / "model.ckpt.index").touch()
    (folder / "hparams.json").write_text('{"n_vocab": 37, "n_ctx": 12, "n_embd": 8, "n_head": 2, "n_layer": 2}')
    letters = [*"abcdefghijklmnopqrstuvwxyzĠ.,!?'", "Ġa", "at", "Ġat", "th", "<|endoftext|>"]
    (folder / "encoder.json").write_text(json.dumps({letter: i for i, letter in enumerate(letters)}))
    (folder / "vocab.bpe").write_text("#version: 0.2\nĠ a\na t\nĠa t\nt h\n", encoding="utf-8")
    return weights


def test_openai_folder_reads_as_transformers_computes_it(tmp_path: Path) -> None:
    weights = write_openai(tmp_path)
    theirs = GPT2LMHeadModel(GPT2Config(vocab_size=37, n_positions=12, n_embd=8, n_layer=2, n_head=2)).eval()
    for name, value in weights.items():
        module, _, leaf = name.replace("h0", "h.0").replace("h1", "h.1").replace("/", ".").rpartition(".")
        path = f"{name}.weight" if not module else f"{module}.{'bias' if leaf == 'b' else 'weight'}"
        theirs.transformer.get_parameter(path).data[:] = torch.tensor(value).squeeze(0)
    loaded = load_model(tmp_path, device="cpu")
    idx = IDX % 37
    with torch.inference_mode():
        assert_close(loaded.model(idx), theirs(idx).logits, atol=1e-5, rtol=0)
    library = ByteLevelBPETokenizer(str(tmp_path / "encoder.json"), str(tmp_path / "vocab.bpe"))
    for text in ("that is a cat, the at", " a  a"):
        assert loaded.tokenizer.encode(text) == library.encode(text).ids
    assert loaded.tokenizer.eot_id == 36


def test_a_tensorflow_checkpoint_with_other_weights_is_refused(tmp_path: Path) -> None:
    write_openai(tmp_path)
    file = tmp_path / "model.ckpt.data-00000-of-00001"
    data = file.read_bytes()
    for damaged in (data[:-9], data + bytes(4)):
        file.write_bytes(damaged)
        with pytest.raises(ValueError, match=rf"{file.name} is damaged or cut short"):
            load_model(tmp_path)


ADAPTERS: dict[str, tuple[str, dict[str, Any], dict[str, bool]]] = {
    "gpt2": (
        "gpt2",
        {"fan_in_fan_out": True},
        {"transformer.h.0.attn.c_attn": True, "transformer.h.1.mlp.c_proj": True},
    ),
    "rank-stabilised": ("llama", {"use_rslora": True}, {"model.layers.0.self_attn.q_proj": False}),
    "tied head": ("llama", {}, {"model.layers.1.mlp.down_proj": False, "lm_head": False}),
    "tied embedding": ("llama", {"alpha_pattern": {"embed.tokens": 3}}, {"model.embed_tokens": True}),
    "MLX": (
        "llama",
        {"peft_type": None, "fine_tune_type": "lora", "lora_parameters": {"rank": 4, "scale": 2.0}},
        {"model.layers.1.self_attn.v_proj": False},
    ),
}


def weights_of(*models: LoadedModel) -> list[list[Tensor]]:
    return [list(each.model.parameters()) for each in models]


@pytest.mark.parametrize("name", ADAPTERS)
def test_adapter_changes_its_base_model_as_in_peft(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """The files are those of PEFT 0.21.2 and MLX-LM 0.32.2; PEFT's own logits differ from these by less than 1e-6."""
    family, options, modules = ADAPTERS[name]
    torch.manual_seed(0)
    sizes = {"num_hidden_layers": 2, "hidden_size": 24, "num_attention_heads": 4, "intermediate_size": 37}
    sizes |= {"n_layer": 2, "n_embd": 24, "n_head": 4, "vocab_size": 300}
    config = AutoConfig.for_model(family, pad_token_id=None, tie_word_embeddings=True, **sizes)
    theirs = randomized(AutoModelForCausalLM.from_config(config))
    theirs.save_pretrained(tmp_path / "base")
    theirs.lm_head.weight = torch.nn.Parameter(theirs.lm_head.weight.detach().clone())
    saved: dict[str, Tensor] = {}
    changes: dict[str, Tensor] = {}
    for module, turned in modules.items():
        weight = theirs.get_parameter(f"{module}.weight")
        n_out, n_in = reversed(weight.shape) if turned else weight.shape
        A, B = torch.randn(4, n_in) / 10, torch.randn(n_out, 4)
        scale = 3 / 4 if "alpha_pattern" in options else 8 / 2 if "use_rslora" in options else 8 / 4
        changes[module] = scale * (B @ A).t() if turned else scale * B @ A
        weight.data += changes[module]
        kind = "lora_embedding_{}" if "embed" in module else "lora_{}.weight"
        saved |= {f"base_model.model.{module}.{kind.format(part)}": value for part, value in (("A", A), ("B", B))}
    adapter = tmp_path / "adapter"
    adapter.mkdir()
    file, base = "adapter_model.safetensors", "base_model_name_or_path"
    if name == "MLX":
        file, base = "adapters.safetensors", "model"
        ends = {each.removeprefix("base_model.model.").removesuffix(".weight"): each for each in saved}
        saved = {each.lower(): saved[stored].t().contiguous() for each, stored in ends.items()}
    save_file(saved, adapter / file)
    stated = {"peft_type": "LORA", "r": 4, "lora_alpha": 8, base: "../base", **options}
    (adapter / "adapter_config.json").write_text(json.dumps(stated))
    with torch.inference_mode():
        expected = theirs(IDX).logits
        for loaded in (load_model(adapter, device="cpu"), load_model(tmp_path / "base", adapter=adapter, device="cpu")):
            assert_close(loaded.model(IDX), expected, atol=1e-5, rtol=1e-5)
        (adapter / "adapter_config.json").write_text(json.dumps(stated | {base: "someone/base"}))
        command = ["checkpoints", "convert", str(adapter), str(tmp_path / "merged")]  # someone's base is next to it
        monkeypatch.setattr(sys, "argv", command)
        runpy.run_module("gpt.models.checkpoints", run_name="__main__")
        assert_close(load_model(tmp_path / "merged", device="cpu").model(IDX), expected, atol=1e-5, rtol=1e-5)
        for module, change in changes.items():
            theirs.get_parameter(f"{module}.weight").data -= change / 2
        expected, shared = theirs(IDX).logits, get_model(add_model(adapter))
        for loaded in (load_model(adapter, device="cpu", strength=0.5), get_model(shared.name, strength=0.5)):
            assert_close(loaded.model(IDX), expected, atol=1e-5, rtol=1e-5)
        others = sum(weight is other for weight, other in zip(*weights_of(shared, loaded), strict=True))
        assert others == len(weights_of(shared)[0]) - len(changes)  # all other weights are shared
        remove_model(shared.name)
    for other, said in (
        ({"use_dora": True}, "is of the kind LORA, use_dora"),
        ({"alora_invocation_tokens": [7]}, "is of the kind LORA, alora_invocation_tokens"),
        ({"init_lora_weights": "pissa_niter_4"}, "is of the kind LORA, pissa_niter_4"),
        ({"peft_type": "IA3"}, "is of the kind IA3"),
        ({"layer_replication": [[0, 1], [0, 1]]}, "does not fit the base model: layer_replication"),
    ):
        (adapter / "adapter_config.json").write_text(json.dumps(stated | other))
        with pytest.raises(ValueError, match=said):
            load_model(adapter)


def test_an_adapter_without_its_base_model_or_for_another_is_refused(tmp_path: Path) -> None:
    weights = {f"base_model.model.h.0.attn.c_attn.lora_{part}.weight": torch.ones(2, 2) for part in "AB"}
    save_file(weights, tmp_path / "adapter_model.safetensors")
    with pytest.raises(ValueError, match=r"belongs to an adapter .*: put its adapter_config\.json next to it"):
        load_model(tmp_path / "adapter_model.safetensors")
    (tmp_path / "adapter_config.json").write_text('{"peft_type": "LORA", "base_model_name_or_path": "/no/model"}')
    with pytest.raises(ValueError, match=r"changes the model /no/model, which is not here: give its folder"):
        load_model(tmp_path)
    with pytest.raises(ValueError, match=r"changes the model nowhere, which is not here"):
        load_model(tmp_path, base="nowhere")
    (tmp_path / "adapter_config.json").write_text('{"peft_type": "LORA", "base_model_name_or_path": null}')
    with pytest.raises(ValueError, match=r"adapter_config\.json does not state which model .*--base"):
        load_model(tmp_path)
    with pytest.raises(ValueError, match=r"but stories is not an adapter: it has no adapter_config\.json"):
        load_model("stories", base="gpt2")
    (tmp_path / "adapter_config.json").write_text(f'{{"peft_type": "LORA", "base_model_name_or_path": "{BUNDLED}"}}')
    with pytest.raises(ValueError, match=r"changes the model .*, which is not here"):  # a visitor's files name a folder
        add_upload(list(tmp_path.iterdir()))
    with pytest.raises(ValueError, match=r"adapter_model\.safetensors does not fit the base model"):
        load_model(tmp_path, base="stories")


REFUSED = [
    ("flax_model.msgpack", b"\x86", "Flax.* from_flax=True"),
    ("model.weights.h5", b"\x89HDF\r\n", "Keras.*export_to_transformers"),
    ("model.bin", b"\x89HDF\r\n", "HDF5"),
    ("gpt2_124M.bin", (20240326).to_bytes(4, "little") + bytes(99), r"llm\.c.*: convert it with python dev/eval"),
    ("__0_0.distcp", b"PK", "torch.distributed.checkpoint.* dcp_to_torch"),
    ("zero_pp_rank_0_mp_rank_00_optim_states.pt", b"PK", r"DeepSpeed.* zero_to_fp32\.py"),
    ("lit_model.pth", b"PK", "LitGPT.* convert_from_litgpt"),
    ("lit_model.pth.lora", b"PK", "LoRA adapter of LitGPT.* merge_lora"),
    ("weights.npz", b"PK", "NumPy.*save_file"),
    ("model.safetensors", b"version https://git-lfs.github.com/spec/v1", "Git LFS.* git lfs pull"),
    ("model.pt", b"\x1f\x8b\x08", "gzip.* gunzip"),
    ("model.zip", b"PK", "zip.* tar -xf"),
    ("tf_model.h5", b"\x89HDF\r\n", "TensorFlow, as saved by transformers.* from_tf=True"),
]


def test_each_format_that_is_not_read_is_tried_below() -> None:
    told = {name for name, _ in {**NAMES, **STARTS}.values()}
    tried = [said.split(".*")[0] for *_, said in REFUSED]
    assert [name for name in told if not any(re.match(each, name) for each in tried)] == []


@pytest.mark.parametrize(("name", "data", "said"), REFUSED)
def test_a_file_that_is_not_read_is_called_what_it_is(tmp_path: Path, name: str, data: bytes, said: str) -> None:
    (tmp_path / name).write_bytes(data)
    for path in (tmp_path, tmp_path / name):
        with pytest.raises(ValueError, match=f"{re.escape(name)} has the format {said}"):
            load_model(path)


def test_the_advice_for_numpy_files_keeps_transposed_matrices(tmp_path: Path) -> None:
    matrix = np.arange(6.0).reshape(2, 3).T
    np.savez(tmp_path / "old.npz", weight=matrix)
    paths = {"file": tmp_path / "old.npz", "new": tmp_path / "new.safetensors"}
    eval(NUMPY[1], {"safetensors": safetensors, "numpy": np} | paths)
    assert safetensors.numpy.load_file(paths["new"])["weight"].tolist() == matrix.tolist()


BOOK = {"embed_tokens": "tok_emb", "layers.": "trf_blocks.", "self_attn": "att", "mlp.": "ff.", "lm_head": "out_head"}
BOOK |= {"q_proj": "W_query", "k_proj": "W_key", "v_proj": "W_value", "o_proj": "out_proj", "model.norm": "final_norm"}
BOOK |= {"gate_proj": "fc1", "up_proj": "fc2", "down_proj": "fc3", "input_layernorm": "norm1"}
BOOK |= {"post_attention_layernorm": "norm2"}
LLAMA_32 = {"rope_type": "llama3", "rope_theta": 5e5, "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}


@pytest.mark.parametrize(
    ("family", "options"),
    [
        ("llama", {"rope_parameters": {**LLAMA_32, "original_max_position_embeddings": 8192}, "rms_norm_eps": 1e-5}),
        ("qwen3", {"rope_parameters": {"rope_type": "default", "rope_theta": 1e6}, "head_dim": 12}),
    ],
)
def test_the_books_later_models_read_as_in_transformers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, family: str, options: dict[str, Any]
) -> None:
    """Models of the package llms-from-scratch 1.0.19 have these names; ours differ from them by 2e-6."""
    sizes = {"num_hidden_layers": 2, "hidden_size": 32, "num_attention_heads": 4, "intermediate_size": 48}
    config = AutoConfig.for_model(family, vocab_size=300, num_key_value_heads=2, pad_token_id=None, **sizes, **options)
    theirs = randomized(AutoModelForCausalLM.from_config(config))
    state = {}
    for name, tensor in theirs.state_dict().items():
        for before, after in BOOK.items():
            name = name.replace(before, after)
        name = name.removeprefix("model.")
        state[re.sub(r"(norm\d?)\.weight", r"\1.scale", name) if family == "qwen3" else name] = tensor
    torch.save(state, tmp_path / "model.pth")
    if family == "llama":
        with pytest.raises(ValueError, match=r"the names of the book's Llama, but not the width of .* \(32\)"):
            load_model(tmp_path)
        monkeypatch.setitem(LLAMA_32_HEADS, 32, 4)
    with torch.inference_mode():
        assert_close(load_model(tmp_path, device="cpu").model(IDX), theirs(IDX).logits, atol=1e-4, rtol=1e-4)


# A matrix (32, 64) as several programs store it, and as they dequantise it. The metadata names their versions.
with safe_open(Path(__file__).parent / "quantized.safetensors", "pt") as file:
    QUANTIZED = {name: json.loads(stated) for name, stated in file.metadata().items()}
    MATRICES = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118


def quantized(scheme: str) -> dict[str, Tensor]:
    """Return the tensors that store the matrix, by the ends of their names."""
    start = f"{scheme}/"
    return {name.removeprefix(start): tensor for name, tensor in MATRICES.items() if name.startswith(start)}


@pytest.mark.parametrize("scheme", sorted(QUANTIZED))
def test_a_quantised_matrix_has_the_numbers_of_the_program_that_quantised_it(scheme: str) -> None:
    stored = {f"layer.{name}": tensor for name, tensor in quantized(scheme).items()}
    found = dequantized(Contents(stored, PlainIds, QUANTIZED[scheme]), "model.safetensors")
    assert [*found.tensors] == ["layer.weight"]
    assert found.stored_as == QUANTIZED[scheme]["stored_as"]
    assert_close(found.tensors["layer.weight"] + 0, MATRICES[scheme], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("scales", ["weight.absmax", "weight.nested_absmax"])
def test_more_scales_than_blocks_are_refused(scales: str) -> None:
    parts = quantized("bitsandbytes nf4")
    parts[scales] = torch.cat([parts[scales], parts[scales]])
    stored = {f"layer.{name}": tensor for name, tensor in parts.items()}
    with pytest.raises(ValueError, match="layer is damaged"):
        dequantized(Contents(stored, PlainIds), "model.safetensors")


def test_a_quantised_folder_gives_the_logits_of_the_dequantised_weights(tmp_path: Path) -> None:
    sizes = {"vocab_size": 300, "hidden_size": 64, "intermediate_size": 32, "num_hidden_layers": 1}
    config = AutoConfig.for_model("llama", **sizes, num_attention_heads=2, bos_token_id=None, eos_token_id=None)
    model, name = AutoModelForCausalLM.from_config(config).eval(), "model.layers.0.mlp.gate_proj"
    model.save_pretrained(tmp_path)
    model.get_submodule(name).weight.data = MATRICES["gptq"]
    tensors = {key: value for key, value in model.state_dict().items() if key != f"{name}.weight"}
    save_file(
        tensors | {f"{name}.{end}": each for end, each in quantized("gptq").items()}, tmp_path / "model.safetensors"
    )
    stated = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(stated | QUANTIZED["gptq"]))
    loaded = load_model(tmp_path, device="cpu", precision="fp32")
    assert loaded.stored_as == "GPTQ 4-bit"
    assert_close(loaded.model(IDX), model(IDX).logits, rtol=0, atol=1e-5)
    for names, said in (({f"{name}.qweight": torch.zeros(3, 5, dtype=torch.int32)}, "gate_proj is damaged"),):
        save_file(
            tensors | {f"{name}.{end}": each for end, each in quantized("gptq").items()} | names,
            tmp_path / "model.safetensors",
        )
        with pytest.raises(ValueError, match=said):
            open_checkpoint(tmp_path)


def test_a_gpt2_of_bitsandbytes_is_called_one_and_keeps_its_sampling_settings_when_converted(tmp_path: Path) -> None:
    """bitsandbytes stores matrices as (out, in), unlike transformers."""
    config = GPT2Config(vocab_size=300, n_positions=16, n_embd=24, n_layer=1, n_head=3, bos_token_id=0, eos_token_id=0)
    model = randomized(GPT2LMHeadModel(config))
    model.save_pretrained(tmp_path / "gpt2")
    state = {name: tensor.clone() for name, tensor in model.state_dict().items() if name != "lm_head.weight"}
    name = "transformer.h.0.attn.c_attn"
    for each in [name for name, tensor in state.items() if ".h." in name and tensor.dim() == 2]:
        state[each] = state[each].t().contiguous()
    state[f"{name}.weight"] = torch.ones(72, 24, dtype=torch.int8)
    state[f"{name}.SCB"] = torch.full((72,), 12.7)
    save_file(state, tmp_path / "gpt2" / "model.safetensors")
    options = {**json.loads((tmp_path / "gpt2" / "config.json").read_text())}
    options["quantization_config"] = {"quant_method": "bitsandbytes", "load_in_8bit": True}
    (tmp_path / "gpt2" / "config.json").write_text(json.dumps(options))
    (tmp_path / "gpt2" / "generation_config.json").write_text('{"temperature": 0.6}')
    with torch.inference_mode():
        model.transformer.h[0].attn.c_attn.weight.fill_(0.1)
        assert_close(load_model(tmp_path / "gpt2", device="cpu").model(IDX), model(IDX).logits, atol=1e-5, rtol=0)
    assert convert(tmp_path / "gpt2", tmp_path / "new", to="hf") == "Hugging Face GPT-2"
    suggested = load_model(tmp_path / "new", device="cpu").suggested
    assert suggested is not None
    assert suggested.temperature == 0.6
