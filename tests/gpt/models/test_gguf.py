"""GGUF: vocabularies in the metadata, files that are split, and files that are damaged or not supported."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from unicodedata import normalize

import gguf
import numpy as np
import pytest
import torch
from tokenizers import Tokenizer

from gpt.errors import GPTError
from gpt.models.checkpoints.checkpoint import open_checkpoint
from gpt.models.checkpoints.gguf import read_config, read_gguf
from gpt.models.checkpoints.tokenizer_formats import gguf_tokenizer
from gpt.models.checkpoints.vocabularies import find_vocabulary
from gpt.models.checkpoints.writing import vocabulary_metadata
from gpt.tokenizer import PlainIds, gpt2_tokenizer
from tests.gpt.models.tokenizer_families import (
    CHATML,
    MODEL_VOCAB,
    corpus,
    sentencepiece_processor,
    texts,
    trained,
    write_family,
)
from tests.parity.gguf_models import reference_model, write_gguf

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, BYTE = 1, 2, 3, 4, 6


def as_keys(values: dict[str, Any]) -> dict[str, Any]:
    return {f"tokenizer.ggml.{name}": value for name, value in values.items()}


def byte_level(tokenizer: Tokenizer, pre: str, **more: Any) -> dict[str, Any]:
    """Return a byte-level vocabulary as llama.cpp's converter writes it."""
    added = tokenizer.get_added_tokens_decoder()
    names = {i: name for name, i in tokenizer.get_vocab().items()}
    tokens = [names.get(i, f"[PAD{i}]") for i in range(MODEL_VOCAB)]
    types = [(CONTROL if added[i].special else USER_DEFINED) if i in added else NORMAL for i in range(MODEL_VOCAB)]
    merges = [" ".join(pair) for pair in json.loads(tokenizer.to_str())["model"]["merges"]]
    return as_keys({"model": "gpt2", "pre": pre, "tokens": tokens, "token_type": types, "merges": merges, **more})


@pytest.mark.parametrize(
    ("family", "pre"), [("pythia", "olmo"), ("llama3", "llama-bpe"), ("smollm2", "smollm"), ("qwen", "qwen2")]
)
def test_a_byte_level_vocabulary_encodes_as_its_tokenizer_json(family: str, pre: str) -> None:
    theirs = trained(family)
    start = theirs.token_to_id("<|begin_of_text|>")
    metadata = byte_level(theirs, pre, **({} if start is None else {"bos_token_id": start}))
    ours = gguf_tokenizer(metadata, MODEL_VOCAB, "model.gguf")
    assert ours is not None
    assert ours.special_ids >= {i for i, token in theirs.get_added_tokens_decoder().items() if token.special}
    names = re.compile("|".join(map(re.escape, ours.special_names)))
    for text in texts(300):
        plain = names.sub("", text)
        assert [*ours.prefix_ids, *ours.encode(plain)] == theirs.encode(plain).ids


@pytest.mark.parametrize("options", [{}, {"add_dummy_prefix": False, "user_defined_symbols": ["<sep>", "at"]}])
def test_a_sentencepiece_vocabulary_encodes_as_its_library(options: dict[str, Any]) -> None:
    bpe = {"model_type": "bpe", "character_coverage": 0.98, "byte_fallback": True}
    plain = {"normalization_rule_name": "identity", "remove_extra_whitespaces": False}
    theirs, _ = sentencepiece_processor(corpus(), **bpe, **plain, **options)
    ids, whole = range(theirs.get_piece_size()), options.get("user_defined_symbols", [])

    def kind(i: int) -> int:
        if theirs.id_to_piece(i) in whole:
            return USER_DEFINED
        return (
            UNKNOWN if theirs.is_unknown(i) else CONTROL if theirs.is_control(i) else BYTE if theirs.is_byte(i) else 1
        )

    pieces = {"tokens": [theirs.id_to_piece(i) for i in ids], "scores": [theirs.get_score(i) for i in ids]}
    metadata = {"model": "llama", "token_type": [kind(i) for i in ids], "bos_token_id": 1, "eos_token_id": 2, **pieces}
    metadata["add_space_prefix"] = options.get("add_dummy_prefix", True)
    ours = gguf_tokenizer(as_keys(metadata), 3000, "model.gguf")
    assert ours is not None
    again = gguf_tokenizer(vocabulary_metadata(ours), 3000, "model.gguf")
    assert again is not None
    for each in (ours, again):
        assert (each.prefix_ids, each.eot_id, each.unknown_id) == ((1,), 2, 0)
    for text in (*texts(300), "the<sep>  cat "):
        clean = re.sub("\x00|</?s>|<0x41>", "", normalize("NFC", text))
        assert ours.encode(clean) == again.encode(clean) == theirs.encode(clean)


THOROUGH = [pytest.param(family, marks=pytest.mark.thorough) for family in ("gpt2", "llama3", "smollm2")]


@pytest.mark.parametrize("family", ["pythia", "qwen", *THOROUGH])
def test_a_written_vocabulary_encodes_as_before(tmp_path: Path, family: str) -> None:
    if family != "gpt2":
        write_family(tmp_path, family)
    before = gpt2_tokenizer() if family == "gpt2" else find_vocabulary(tmp_path, MODEL_VOCAB)
    after = gguf_tokenizer(vocabulary_metadata(before), before.n_vocab, "model.gguf")
    assert after is not None
    assert (after.prefix_ids, after.eot_id) == (before.prefix_ids, before.eot_id)
    for text in texts(300):
        assert after.encode(text) == before.encode(text)


def test_a_vocabulary_with_merges_of_its_own_is_not_written(tmp_path: Path) -> None:
    write_family(tmp_path, "llama2")
    with pytest.raises(ValueError, match="GGUF has no vocabulary of the kind BPE"):
        vocabulary_metadata(find_vocabulary(tmp_path, MODEL_VOCAB))


def test_the_chat_template_and_the_tokens_that_end_a_reply_come_from_the_metadata() -> None:
    theirs = trained("qwen")
    end = theirs.token_to_id("<|endoftext|>")
    metadata = {**byte_level(theirs, "qwen2", eos_token_id=end), "tokenizer.chat_template": CHATML}
    ours = gguf_tokenizer(metadata, MODEL_VOCAB, "model.gguf")
    assert ours is not None
    assert ours.eot_ids == {end, theirs.token_to_id("<|im_end|>")}
    assert ours.decode(ours.encode_chat([{"role": "user", "content": "hi"}])).count("<|im_start|>") == 2


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("gguf") / "model.gguf"
    write_gguf(path, reference_model("llama"), "llama")
    return path


def test_the_parts_of_a_split_file_are_read_together(tmp_path: Path, file: Path) -> None:
    reader = gguf.GGUFReader(file)
    first = gguf.GGUFWriter(tmp_path / "m-00001-of-00002.gguf", "llama")
    for key, field in reader.fields.items():
        if key.startswith("llama."):
            first.add_key_value(key, field.contents(), field.types[0])
    second = gguf.GGUFWriter(tmp_path / "m-00002-of-00002.gguf", "llama")
    for n, tensor in enumerate(reader.tensors):
        (first if n % 2 else second).add_tensor(tensor.name, np.array(tensor.data))
    for writer in (first, second):
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
    whole, parts = open_checkpoint(file).build(), open_checkpoint(tmp_path).build()
    assert all(torch.equal(each, parts.state_dict()[name]) for name, each in whole.state_dict().items())
    (tmp_path / "m-00002-of-00002.gguf").unlink()
    with pytest.raises(ValueError, match=r"m-00001-of-00002.gguf is one of 2 parts; m-00002-of-00002.gguf is missing"):
        open_checkpoint(tmp_path)


def replaced(old: bytes, new: bytes) -> Callable[[bytes], bytes]:
    return lambda data: data.replace(old, new, 1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data[:4] + struct.pack("<I", 1) + data[8:], "of version 1; versions 2 and 3"),
        (lambda data: data[:8] + struct.pack("<Q", 2**60) + data[16:], "damaged or cut short"),
        (lambda data: data[:16] + struct.pack("<Q", 2**60) + data[24:], "damaged or cut short"),
        (lambda data: data[:100], "damaged or cut short"),
        (lambda data: data[:-100], "damaged or cut short"),
        (
            replaced(b"llama\x14", b"mamba\x14"),
            "of the architecture mamba, which is not implemented: known are",
        ),
        (replaced(b"llama.context_length\x04", b"llama.context_length\x0c"), "damaged or cut short"),
        (replaced(b"llama.embedding_length", b"llama.embedding_lengtg"), "does not state hidden_size"),
        (replaced(b"llama.context_length", b"llama.residual_scale"), "residual_scale=48 in this GGUF file changes"),
        (replaced(b"blk.1.ffn_up", b"blk.1.ffn_uq"), "missing: blk.1.ffn_up.weight"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_in_a_sentence(
    tmp_path: Path, file: Path, change: Callable[[bytes], bytes], message: str
) -> None:
    changed = change(file.read_bytes())
    assert changed != file.read_bytes()
    (tmp_path / "model.gguf").write_bytes(changed)
    with pytest.raises(ValueError, match=message):
        open_checkpoint(tmp_path)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"general.architecture": ["llama"]}, "of the architecture"),
        ({"llama.attention.head_count": [4, 2]}, r"attention\.head_count=\[4, 2\]"),
        ({"llama.rope.scaling.type": "longrope"}, r"rope\.scaling\.type='longrope'"),
        ({"llama.rope.dimension_count": 2}, r"rope\.dimension_count=2"),
        ({"llama.attention.key_length": 2**40}, r"attention\.value_length=6"),
        ({"llama.expert_count": 8}, "expert_count=8"),
    ],
)
def test_an_option_that_is_not_implemented_is_named(file: Path, changed: dict[str, Any], message: str) -> None:
    metadata, _, _ = read_gguf([file])
    assert read_config(metadata, {})["num_attention_heads"] == 4
    metadata["llama.attention.head_count"] = [4, 4, 4]  # one for each layer
    assert read_config(metadata, {})["num_attention_heads"] == 4
    metadata.update({"llama.attention.value_length": 6, "llama.attention.key_length": 6} | changed)
    with pytest.raises(ValueError, match=message):
        read_config(metadata, {})


@pytest.mark.thorough
def test_changing_any_byte_of_the_header_gives_a_model_or_a_sentence(tmp_path: Path, file: Path) -> None:
    data = file.read_bytes()
    for at in range(0, 2500, 3):
        for value in (0, 255, data[at] ^ 1):
            (tmp_path / "model.gguf").write_bytes(data[:at] + bytes([value]) + data[at + 1 :])
            with suppress(GPTError):
                open_checkpoint(tmp_path / "model.gguf")


@pytest.mark.parametrize(
    "metadata",
    [
        {"pre": "unheard-of"},
        {"pre": ["gpt-2"]},
        {"tokens": ["a", 3]},
        {"token_type": [1]},
        {"merges": None},
        {"model": "rwkv"},
    ],
)
def test_a_vocabulary_that_cannot_be_read_is_refused(metadata: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"model\.gguf"):
        gguf_tokenizer({**byte_level(trained("qwen"), "qwen2"), **as_keys(metadata)}, MODEL_VOCAB, "model.gguf")


def test_a_file_without_a_vocabulary_shows_ids(file: Path) -> None:
    assert isinstance(open_checkpoint(file).tokenizer, PlainIds)
