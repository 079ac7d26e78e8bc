"""Vocabularies stored with weights, in the forms in which they are found."""

from __future__ import annotations

import json
import pickle
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from tiktoken import Encoding
from tiktoken_ext.openai_public import r50k_pat_str
from tokenizers import Tokenizer as Library
from transformers import AutoTokenizer, GPT2Tokenizer

from gpt.config import GPTConfig
from gpt.model import GPT
from gpt.models.checkpoints.tokenizer_formats import write_gpt2_files
from gpt.models.checkpoints.vocabularies import (
    PlainIds,
    find_vocabulary,
    pad_vocabulary,
    token_table,
)
from gpt.models.checkpoints.writing import save_hugging_face, save_model
from gpt.models.sources import load_model
from gpt.tokenizer import Tokenizer, Vocabulary, save_vocabulary, start_ids
from tests.gpt.models.tiny import tiny
from tests.gpt.models.tokenizer_families import LLAMA3_PATTERN, byte_level, texts

TEXTS = ["Hello, I am", "the tree thought", "  two  spaces\n\n\ttab", "wörld 你好 🙂", "x" * 50, ""]


@pytest.mark.parametrize("words", [["a", 5], [["a"], "b"], [None, "b"], ["a", "a"], ["a", "bc"]])
def test_a_list_of_anything_but_different_characters_is_refused(tmp_path: Path, words: list[object]) -> None:
    (tmp_path / "characters.json").write_text(json.dumps(words))
    with pytest.raises(ValueError, match="must list each character or word exactly once"):
        find_vocabulary(tmp_path, 2)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x80\x04.",
        b"\x80\x04}r\xff\xff\xff\x7f.",
        b"\x80\x05\x96" + (2**40).to_bytes(8, "little"),
        pickle.dumps({"stoi": {}}),
        pickle.dumps({"itos": {1: "a"}}),
        pickle.dumps({"itos": {0: "a", 1: "a"}}),
        pickle.dumps([1, 2]),
    ],
)
def test_broken_nanogpt_vocabulary_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "meta.pkl").write_bytes(data)
    with pytest.raises(ValueError, match=r"meta\.pkl"):
        find_vocabulary(tmp_path, 8)


def test_the_letter_that_marks_a_space_in_byte_level_bpe_may_be_a_character(tmp_path: Path) -> None:
    (tmp_path / "vocab.json").write_text(json.dumps({"a": 0, "\u0120": 1}))
    assert find_vocabulary(tmp_path, 2).encode("\u0120a") == [1, 0]
    (tmp_path / "vocab.json").write_text(json.dumps({"a": 0, "\u0120a": 1}))
    with pytest.raises(ValueError, match=r"vocab\.json"):
        find_vocabulary(tmp_path, 2)


def test_plain_ids_are_read_and_written_as_numbers() -> None:
    vocabulary = PlainIds(100)
    assert vocabulary.encode(" 5 0\n99 ") == [5, 0, 99]
    assert vocabulary.encode(vocabulary.decode([5, 0, 99])) == [5, 0, 99]
    assert vocabulary.token_bytes(7) == b" 7"
    assert (vocabulary.n_vocab, vocabulary.eot_id) == (100, None)
    for text, said in (("hello", "not 'hello'"), ("100", "token id 100"), ("-1", "not '-1'"), ("1" * 30, "0 to 99")):
        with pytest.raises(ValueError, match=said):
            vocabulary.encode(text)


def test_a_checkpoint_of_gpt2s_size_without_a_vocabulary_reads_as_text(tmp_path: Path) -> None:
    n_vocab = 50304
    save_model(tmp_path, GPT(GPTConfig(n_vocab, 8, 1, 1, 2)), PlainIds(n_vocab))
    vocabulary = load_model(tmp_path).tokenizer
    assert vocabulary.encode("Hello, I am") == [15496, 11, 314, 716]
    assert (vocabulary.n_vocab, vocabulary.eot_id) == (n_vocab, 50256)
    assert vocabulary.token_bytes(n_vocab - 1) == b"<50303>"


@pytest.mark.thorough
def test_the_bundled_gpt2_vocabulary_is_the_released_one(tmp_path: Path, gpt2: Tokenizer) -> None:
    write_gpt2_files(gpt2, tmp_path)
    merges, vocab = ((tmp_path / name).read_bytes() for name in ("merges.txt", "vocab.json"))
    vocab = json.dumps(json.loads(vocab)).encode()  # the released file escapes non-ASCII letters
    # Published in tiktoken (tiktoken_ext/openai_public.py) for vocab.bpe and encoder.json.
    assert sha256(merges).hexdigest() == "1ce1664773c50f3e0cc8842619a93edc4624525b728b188a9e0be33b7726adc5"
    assert sha256(vocab).hexdigest() == "196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783"
    assert gpt2.encoding._pat_str == r50k_pat_str


def test_written_vocabulary_encodes_in_transformers_as_before(tmp_path: Path, byte_tokenizer: Tokenizer) -> None:
    save_hugging_face(tiny(), tmp_path, byte_tokenizer)
    theirs = GPT2Tokenizer.from_pretrained(tmp_path)
    assert [theirs(text)["input_ids"] for text in TEXTS] == [byte_tokenizer.encode(text) for text in TEXTS]
    assert theirs.eos_token_id == byte_tokenizer.eot_id


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        ([*"ab \n.é🙂", "<eos>"], "ab\n é..🙂"),
        (["<unk>", "a", "e", "\n"], "abe\u0301\r\n"),
        (
            ["<unk>", "<eos>", "the", "cat", ".", ",", "don't", "--", "o'clock."],
            "The cat, a\tdog--don't. (don't) o'clock.",
        ),
        (["The", "the", " ", "\n", "a.b", "a", "."], "The the\t \na.b a.a\u3000the"),
    ],
)
def test_a_padded_table_encodes_in_transformers_as_here(tmp_path: Path, tokens: list[str], text: str) -> None:
    save_hugging_face(tiny(vocab_size=64), tmp_path, pad_vocabulary(token_table(tokens), 64))
    ours, theirs = load_model(tmp_path, device="cpu").tokenizer, AutoTokenizer.from_pretrained(tmp_path)
    assert type(ours) is type(token_table(tokens))
    assert theirs(text)["input_ids"] == ours.encode(text)
    assert theirs.decode(ours.encode(text)) == ours.decode(ours.encode(text))
    assert (theirs.eos_token_id, ours.decode([63]), ours.special_ids >= {63}) == (ours.eot_id, "<63>", True)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("vocab.json", r"vocab\.json alone cannot be read: put the model's tokenizer\.json next to it"),
        ("tokenizer.model", r"tokenizer\.model is not a vocabulary: no protobuf message"),
        ("tokenizer.json", r"tokenizer\.json is not a vocabulary"),
    ],
)
def test_a_vocabulary_that_cannot_be_read_leaves_ids_and_not_gpt2s_tokens(tmp_path: Path, name: str, said: str) -> None:
    save_model(tmp_path, GPT(GPTConfig(50257, 8, 1, 1, 2)), PlainIds(50257))
    (tmp_path / name).write_text("{}")
    with pytest.warns(UserWarning, match=said):
        assert load_model(tmp_path).tokenizer.decode([5, 3]) == " 5 3"


N_VOCAB = 1024


def gpt2_like() -> Library:
    """Return a tokenizer.json of GPT-2's kind, with everything that tiktoken can read."""
    tokenizer = byte_level(None)
    tokenizer.add_special_tokens(["<|endoftext|>"])
    return tokenizer


def check_equal(ours: Vocabulary, theirs: Library) -> None:
    """Assert that ids and text of many strings are equal."""
    theirs.encode_special_tokens = True
    for text in texts():
        ids = theirs.encode(text, add_special_tokens=False).ids
        assert ours.encode(text) == ids
        assert ours.decode(ids) == theirs.decode(ids, skip_special_tokens=False)


# A space prepended by the pre-tokenizer
# vocab.json and merges.txt
def write_pair(folder: Path, tokenizer: Library, **settings: Any) -> Path:
    """Write the two files of a vocabulary, and tokenizer_config.json if settings are given."""
    content = json.loads(tokenizer.to_str())
    tokens = {token["content"]: token["id"] for token in content["added_tokens"]}
    (folder / "vocab.json").write_text(json.dumps(content["model"]["vocab"] | tokens))
    merges = [pair if isinstance(pair, str) else " ".join(pair) for pair in content["model"]["merges"]]
    (folder / "merges.txt").write_text("\n".join(["#version: 0.2", *merges, ""]), encoding="utf-8")
    if settings:
        (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return folder


@pytest.mark.thorough
@pytest.mark.parametrize("model_type", ["gpt2", "phi", "gptj", "gpt_neox", "olmo", "qwen2", "qwen3"])
def test_two_files_are_split_as_the_models_family_splits_texts(tmp_path: Path, model_type: str) -> None:
    write_pair(tmp_path, gpt2_like())
    (tmp_path / "config.json").write_text(json.dumps({"model_type": model_type, "vocab_size": N_VOCAB}))
    found = find_vocabulary(tmp_path, N_VOCAB)
    check_equal(found, AutoTokenizer.from_pretrained(tmp_path).backend_tokenizer)


@pytest.mark.thorough
def test_opt_begins_each_text_with_its_end_token(tmp_path: Path) -> None:
    tokenizer = byte_level(None)
    tokenizer.add_special_tokens(["<s>", "<pad>", "</s>"])
    end = tokenizer.token_to_id("</s>")
    write_pair(tmp_path, tokenizer)
    (tmp_path / "config.json").write_text('{"model_type": "opt"}')
    for settings in (None, {"tokenizer_class": "GPT2Tokenizer", "add_bos_token": True, "bos_token": "</s>"}):
        if settings:
            (tmp_path / "tokenizer_config.json").write_text(json.dumps({**settings, "eos_token": "</s>"}))
            assert AutoTokenizer.from_pretrained(tmp_path)("Hello")["input_ids"][0] == end
        found = find_vocabulary(tmp_path, N_VOCAB)
        assert (found.prefix_ids, found.eot_id, found.eot_ids) == ((end,), end, {end})
        assert start_ids(found) == [end]


def test_the_vocabulary_that_meta_published_with_llama_3_encodes_as_in_tiktoken(tmp_path: Path) -> None:
    letters = [*range(33, 256), *range(33)]  # it begins with "!"
    ranks = {bytes([byte]): i for i, byte in enumerate(letters)}
    ranks |= {piece: 256 + i for i, piece in enumerate((b"he", b" t", b" the", b"12", b"123", b"\xc3\xa9"))}
    save_vocabulary(ranks, tmp_path / "tokenizer.model")
    special = {"<|begin_of_text|>": 262, "<|end_of_text|>": 263, "<|eot_id|>": 271}
    theirs = Encoding("llama3", pat_str=LLAMA3_PATTERN, mergeable_ranks=ranks, special_tokens=special)
    ours = find_vocabulary(tmp_path, 518)
    for text in ("the  The then 123456 caf\u00e9\n\n\tend ", "<|eot_id|> 你好", "   x"):
        assert ours.encode(text) == theirs.encode_ordinary(text)
    assert (ours.prefix_ids, ours.eot_ids, ours.decode([271])) == ((262,), {263, 271}, "<|eot_id|>")


@pytest.mark.thorough
@pytest.mark.parametrize("modern", [True, False])
def test_added_tokens_beside_the_two_files_count(tmp_path: Path, modern: bool) -> None:
    tokenizer = byte_level(None)
    write_pair(tmp_path, tokenizer)
    ids = {"<|endoftext|>": 600, "<|im_end|>": 601, "word": 605, "[PAD]": 2000}
    special = {name: name != "word" for name in ids}
    settings: dict[str, Any] = {"tokenizer_class": "Qwen2Tokenizer"}
    names = {"eos_token": "<|im_end|>", "pad_token": {"content": "[PAD]"}}
    if modern:
        forms = {str(i): {"content": name, "special": special[name], "lstrip": False} for name, i in ids.items()}
        settings |= names | {"added_tokens_decoder": forms}
    else:
        (tmp_path / "added_tokens.json").write_text(json.dumps(ids))
        more = {"additional_special_tokens": ["<|endoftext|>"]}
        (tmp_path / "special_tokens_map.json").write_text(json.dumps(names | more))
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    found = find_vocabulary(tmp_path, N_VOCAB)
    assert found.encode("a word") == [*found.encode("a "), 605]
    assert {600, 601} <= found.special_ids
    assert 605 not in found.special_ids
    assert found.eot_ids == {600, 601}
    assert found.decode(found.encode("[PAD] <|im_end|>")) == "[PAD] <|im_end|>"


@pytest.mark.thorough
def test_two_files_of_an_unknown_class_are_refused(tmp_path: Path) -> None:
    write_pair(tmp_path, gpt2_like(), tokenizer_class="BlenderbotTokenizer")
    with pytest.raises(ValueError, match=r"merges\.txt does not specify how BlenderbotTokenizer splits"):
        find_vocabulary(tmp_path, N_VOCAB)
    (tmp_path / "tokenizer_config.json").unlink()
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    with pytest.raises(
        ValueError, match=r"does not specify how llama splits a text .* add the model's tokenizer\.json"
    ):
        find_vocabulary(tmp_path, N_VOCAB)


# Copies
