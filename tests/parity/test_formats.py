"""Checkpoints in formats of their own: each has the numbers of the program that wrote it."""

from __future__ import annotations

import json
import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest
import tiktoken
import torch
from tokenizers.implementations import ByteLevelBPETokenizer
from torch import Tensor
from torch.nn.functional import rms_norm, scaled_dot_product_attention
from torch.testing import assert_close
from transformers import GPT2Config, GPT2LMHeadModel

from gpt import load_model

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


def write_openai(folder: Path) -> dict[str, np.ndarray]:
    """Write a folder like OpenAI's, and return its weights. TensorFlow 2.21's Saver wrote the index for these names."""
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
    shutil.copy(Path(__file__).parent / "tensorflow" / "model.ckpt.index", folder)
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


@pytest.mark.parametrize("file", ["model.ckpt.index", "model.ckpt.data-00000-of-00001"])
def test_a_cut_tensorflow_checkpoint_is_refused(tmp_path: Path, file: str) -> None:
    write_openai(tmp_path)
    data = (tmp_path / file).read_bytes()
    for damaged in (data[:-9], data[: len(data) // 2], b""):
        (tmp_path / file).write_bytes(damaged)
        with pytest.raises(ValueError, match=r"model\.ckpt\.index is not a whole TensorFlow checkpoint"):
            load_model(tmp_path)
