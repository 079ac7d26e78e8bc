"""Vocabularies stored with weights: byte-level BPE in Hugging Face's files, characters, plain ids."""

from __future__ import annotations

import json
import pickle
from hashlib import sha256
from pathlib import Path

import pytest
from tiktoken_ext.openai_public import r50k_pat_str
from tokenizers import ByteLevelBPETokenizer
from transformers import AutoTokenizer, GPT2Tokenizer

from gpt.config import GPTConfig
from gpt.model import GPT
from gpt.models.checkpoints import save_hugging_face, save_model
from gpt.models.checkpoints.tokenizer_formats import write_gpt2_files
from gpt.models.checkpoints.vocabularies import (
    Characters,
    PlainIds,
    find_vocabulary,
    pad_vocabulary,
    read_nanogpt_meta,
    token_table,
)
from gpt.models.sources import load_model
from gpt.tokenizer import Tokenizer
from tests.gpt.models.tiny import tiny

TEXTS = ["Hello, I am", "the tree thought", "  two  spaces\n\n\ttab", "wörld 你好 🙂", "x" * 50, ""]


def trained(vocab_size: int = 300, special_tokens: tuple[str, ...] = ()) -> ByteLevelBPETokenizer:
    """Train a vocabulary with the library that writes tokenizer.json."""
    theirs = ByteLevelBPETokenizer()
    theirs.train_from_iterator(["the tree thought of the three"] * 3, vocab_size, special_tokens=list(special_tokens))
    return theirs


def test_each_character_is_a_token() -> None:
    vocabulary = Characters(["a", "é", "你", "\n"])
    assert vocabulary.encode("你a\né") == [2, 0, 3, 1]
    assert vocabulary.decode([2, 0, 3, 1]) == "你a\né"
    assert vocabulary.token_bytes(1) == "é".encode()
    assert (vocabulary.n_vocab, vocabulary.eot_id) == (4, None)
    with pytest.raises(ValueError, match="token id 4 does not exist"):
        vocabulary.token_bytes(4)
    with pytest.raises(ValueError, match="does not know “␣”: it was trained on 4 characters: aé你⏎"):
        vocabulary.encode("a b")
    with pytest.raises(ValueError, match=r"does not know “\[U\+FE0F\]”: it was trained on 2 characters: a\[U\+200B\]"):
        Characters(["a", "\u200b"]).encode("\ufe0f")


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
        read_nanogpt_meta(tmp_path / "meta.pkl")


def test_plain_ids_are_read_and_written_as_numbers() -> None:
    vocabulary = PlainIds(100)
    assert vocabulary.encode(" 5 0\n99 ") == [5, 0, 99]
    assert vocabulary.encode(vocabulary.decode([5, 0, 99])) == [5, 0, 99]
    assert vocabulary.token_bytes(7) == b" 7"
    assert (vocabulary.n_vocab, vocabulary.eot_id) == (100, None)
    for text, said in (("hello", "not 'hello'"), ("100", "token id 100"), ("-1", "not '-1'"), ("1" * 30, "0 to 99")):
        with pytest.raises(ValueError, match=said):
            vocabulary.encode(text)


@pytest.mark.parametrize("n_vocab", [50257, 50304])
def test_a_checkpoint_of_gpt2s_size_without_a_vocabulary_reads_as_text(tmp_path: Path, n_vocab: int) -> None:
    save_model(tmp_path, GPT(GPTConfig(n_vocab, 8, 1, 1, 2)), PlainIds(n_vocab))
    vocabulary = load_model(tmp_path).tokenizer
    assert vocabulary.encode("Hello, I am") == [15496, 11, 314, 716]
    assert (vocabulary.n_vocab, vocabulary.eot_id) == (n_vocab, 50256)
    assert vocabulary.token_bytes(n_vocab - 1) == (b"<|endoftext|>" if n_vocab == 50257 else b"<50303>")


@pytest.mark.thorough
def test_the_bundled_gpt2_vocabulary_is_the_released_one(tmp_path: Path, gpt2: Tokenizer) -> None:
    write_gpt2_files(gpt2, tmp_path)
    merges, vocab = ((tmp_path / name).read_bytes() for name in ("merges.txt", "vocab.json"))
    vocab = json.dumps(json.loads(vocab)).encode()  # the released file escapes non-ASCII letters
    # Published in tiktoken (tiktoken_ext/openai_public.py) for vocab.bpe and encoder.json.
    assert sha256(merges).hexdigest() == "1ce1664773c50f3e0cc8842619a93edc4624525b728b188a9e0be33b7726adc5"
    assert sha256(vocab).hexdigest() == "196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783"
    assert gpt2.encoding._pat_str == r50k_pat_str


@pytest.mark.thorough
def test_gpt2s_pair_of_files_encodes_like_the_bundled_one(tmp_path: Path, gpt2: Tokenizer) -> None:
    write_gpt2_files(gpt2, tmp_path)
    found = find_vocabulary(tmp_path, 50257)
    assert [found.encode(text) for text in TEXTS] == [gpt2.encode(text) for text in TEXTS]
    assert found.encode("Every effort moves you") == [6109, 3626, 6100, 345]
    assert all(found.token_bytes(i) == gpt2.token_bytes(i) for i in range(50257))
    assert found.eot_id == gpt2.eot_id


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


@pytest.mark.parametrize("more", [[], ["<pad>", "<|end|>"]], ids=["own", "with-added-tokens"])
def test_tokenizer_json_encodes_like_its_library(tmp_path: Path, more: list[str]) -> None:
    theirs = trained(special_tokens=("<|endoftext|>",))
    theirs.add_special_tokens(more)
    theirs.save(str(tmp_path / "tokenizer.json"))
    found = find_vocabulary(tmp_path, 310)
    assert [found.encode(text) for text in TEXTS] == [theirs.encode(text).ids for text in TEXTS]
    assert found.eot_id == theirs.token_to_id("<|endoftext|>")
    assert [found.token_bytes(theirs.token_to_id(word)) for word in more] == [word.encode() for word in more]


def test_special_tokens_before_the_bytes_keep_their_ids(tmp_path: Path, byte_tokenizer: Tokenizer) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir()
    write_gpt2_files(byte_tokenizer, folder)
    ids = json.loads((folder / "vocab.json").read_text())
    moved = {"<s>": 0, "<pad>": 1} | {token: i + 2 for token, i in ids.items()}
    (folder / "vocab.json").write_text(json.dumps(moved))
    found = find_vocabulary(folder, 270)
    assert found.encode("the") == [i + 2 for i in byte_tokenizer.encode("the")]
    assert found.token_bytes(0) == b"<s>"
    assert found.eot_id == byte_tokenizer.eot_id + 2
    assert found.token_bytes(269) == b"<269>"
    save_model(tmp_path / "ours", tiny(vocab_size=270), found)
    again = load_model(tmp_path / "ours").tokenizer
    assert all(again.token_bytes(i) == found.token_bytes(i) for i in range(270))
    assert again.encode("the 你") == found.encode("the 你")


@pytest.mark.parametrize(
    ("vocab", "merges"),
    [('{"a": -1}', ""), ("{}", ""), ('{"a": "b"}', ""), ('{"a": 300}', ""), (None, "Ġ t x\n"), (None, "Ġ 你\n")],
)
def test_pair_of_files_that_is_not_a_vocabulary_is_refused(
    tmp_path: Path, byte_tokenizer: Tokenizer, vocab: str | None, merges: str
) -> None:
    folder = tmp_path / "pair"
    folder.mkdir()
    write_gpt2_files(byte_tokenizer, folder)
    if vocab is not None:
        (folder / "vocab.json").write_text(vocab)
    (folder / "merges.txt").write_text(merges, encoding="utf-8")
    with pytest.raises(ValueError, match=r"vocab\.json is not a vocabulary|vocabulary has 301 tokens"):
        find_vocabulary(folder, 300)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("vocab.json", r"vocab\.json alone cannot be read: put the model's tokenizer\.json next to it"),
        ("merges.txt", r"merges\.txt alone cannot be read"),
        ("tokenizer.model", r"tokenizer\.model is not a SentencePiece model"),
        ("tokenizer.json", r"must contain tokens and merges"),
        ("meta.pkl", r"meta\.pkl"),
    ],
)
def test_a_vocabulary_that_cannot_be_read_leaves_ids_and_not_gpt2s_tokens(tmp_path: Path, name: str, said: str) -> None:
    save_model(tmp_path, GPT(GPTConfig(50257, 8, 1, 1, 2)), PlainIds(50257))
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({key: config[key] for key in config if key != "sha256"}))
    (tmp_path / name).write_text("{}")
    with pytest.warns(UserWarning, match=said):
        assert load_model(tmp_path).tokenizer.decode([5, 3]) == " 5 3"
