"""tokenizer.json of every kind matches the library; damaged, hostile or unsuitable ones are rejected."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unicodedata import normalize

import pytest
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import AutoTokenizer

from gpt.models.checkpoints.hugging_face_tokenizer import HuggingFaceTokenizer
from gpt.models.checkpoints.vocabularies import find_vocabulary
from gpt.tokenizer import TextDecoder, Vocabulary, plain_text, prompt_ids, prompt_text, start_ids
from tests.gpt.models.tokenizer_families import (
    FAMILIES,
    NORMALISE,
    corpus,
    sentencepiece_processor,
    texts,
    trained,
    write_family,
)

N_VOCAB = 1024  # vocabulary size of the model, larger than any vocabulary here

QUICK = ("qwen", "mistral")


@pytest.fixture(params=[pytest.param(each, marks=() if each in QUICK else pytest.mark.thorough) for each in FAMILIES])
def family(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def ours(tmp_path: Path, family: str) -> HuggingFaceTokenizer:
    write_family(tmp_path, family)
    found = find_vocabulary(tmp_path, N_VOCAB)
    assert isinstance(found, HuggingFaceTokenizer)
    return found


@pytest.mark.thorough
def test_ids_and_text_of_1000_strings_are_the_librarys(tmp_path: Path, family: str, ours: HuggingFaceTokenizer) -> None:
    theirs = write_family(tmp_path, family)
    theirs.encode_special_tokens = True
    for text in texts():
        ids = theirs.encode(text, add_special_tokens=False).ids
        assert ours.encode(text) == ids
        assert ours.decode(ids) == theirs.decode(ids, skip_special_tokens=False)


def test_bytes_of_the_tokens_are_those_of_the_text(family: str, ours: HuggingFaceTokenizer) -> None:
    """Mistral adds no second space to a text that begins with one."""
    for text in texts():
        seen = normalize("NFC", text) if family in NORMALISE else text
        data = b"".join(map(ours.token_bytes, ours.encode(text)))
        first = " " if ours.strips_space and text and not (family == "mistral" and text.startswith(" ")) else ""
        assert data == (first + seen).encode()
        assert b"".join(map(ours.token_bytes, ours.encode_continuation(text))) == seen.encode()


def test_streamed_text_is_the_text(ours: HuggingFaceTokenizer) -> None:
    for text in texts()[:200]:
        ids, decoder = prompt_ids(ours, text), TextDecoder(ours)
        assert "".join(map(decoder.feed, ids)) + decoder.finish() == plain_text(ours, ids)


def test_names_of_control_tokens_in_a_text_are_characters(ours: HuggingFaceTokenizer) -> None:
    for name in {ours.token_bytes(token_id).decode() for token_id in ours.special_ids}:
        ids = ours.encode(f"a{name} {name}")
        assert ours.special_ids.isdisjoint(ids)
        assert ours.decode(ids) == f"a{name} {name}"


def test_names_of_control_tokens_are_read_as_transformers_reads_them_if_asked_to(
    tmp_path: Path, ours: HuggingFaceTokenizer
) -> None:
    theirs = AutoTokenizer.from_pretrained(tmp_path)
    for name in theirs.all_special_tokens:
        for text in (f"a{name} b", f"a {name}{name}b "):
            assert prompt_ids(ours, text, special=True) == theirs(text)["input_ids"]
            assert theirs.convert_tokens_to_ids(name) not in prompt_ids(ours, text)[len(ours.prefix_ids) :]
    start, n = ours.decode(list(ours.prefix_ids)), len(ours.prefix_ids)  # transformers adds the prefix a second time
    assert prompt_ids(ours, f"{start}a", special=True) == theirs(f"{start}a")["input_ids"][n:]


def test_a_text_begins_as_transformers_begins_it(tmp_path: Path, ours: HuggingFaceTokenizer) -> None:
    theirs = AutoTokenizer.from_pretrained(tmp_path)
    for text in ("Hello, world", " two", "你好 naïve"):
        assert prompt_ids(ours, text) == theirs(text)["input_ids"]


def test_a_prompt_is_found_again_from_its_ids(ours: HuggingFaceTokenizer, family: str) -> None:
    for text in ("Hello", " two  spaces", "a\nb"):
        ids = prompt_ids(ours, text)
        found = prompt_text(ours, ids)
        assert found is not None
        assert prompt_ids(ours, found) == ids
        assert found == (text if family != "mistral" else text.removeprefix(" "))
    assert prompt_text(ours, start_ids(ours)) == ""
    assert prompt_text(ours, [*prompt_ids(ours, "a"), min(ours.eot_ids)]) is None


def test_an_empty_prompt_begins_with_the_token_of_a_new_text(ours: HuggingFaceTokenizer, family: str) -> None:
    first = {"llama3": "<|begin_of_text|>", "llama2": "<s>", "mistral": "<s>", "gemma": "<bos>"}
    assert ours.decode(start_ids(ours)) == first.get(family, "<|endoftext|>")


def test_ids_that_the_file_lacks_are_control_tokens_with_a_name(ours: HuggingFaceTokenizer) -> None:
    assert ours.n_vocab == N_VOCAB
    assert ours.token_bytes(N_VOCAB - 1) == b"<1023>"
    assert N_VOCAB - 1 in ours.special_ids
    assert ours.decode([N_VOCAB - 1]) == "<1023>"
    for token_id in (N_VOCAB, -1):
        with pytest.raises(ValueError, match="does not exist"):
            ours.token_bytes(token_id)


def test_what_ends_a_text_is_named_by_the_settings_and_by_the_generation_config(tmp_path: Path) -> None:
    theirs = write_family(tmp_path, "qwen")
    (tmp_path / "generation_config.json").write_text('{"eos_token_id": [3, 5, 1000000, "x"]}')
    ours = find_vocabulary(tmp_path, N_VOCAB)
    assert ours.eot_id == theirs.token_to_id("<|endoftext|>")
    assert ours.eot_ids == {3, 5, ours.eot_id, theirs.token_to_id("<|im_end|>")}


def test_written_and_read_again_it_is_the_same(tmp_path: Path, ours: HuggingFaceTokenizer) -> None:
    (tmp_path / "again").mkdir()
    ours.write(tmp_path / "again")
    again = find_vocabulary(tmp_path / "again", N_VOCAB)
    assert isinstance(again, HuggingFaceTokenizer)
    assert again.bytes_of == ours.bytes_of
    assert (again.prefix_ids, again.eot_id, again.eot_ids) == (ours.prefix_ids, ours.eot_id, ours.eot_ids)
    assert [again.encode(text) for text in texts()[:100]] == [ours.encode(text) for text in texts()[:100]]


def changed(family: str, place: tuple[str, ...], value: object) -> dict[str, Any]:
    """Return a family's tokenizer.json with one value changed."""
    whole = part = json.loads(trained(family).to_str())
    for key in place[:-1]:
        part = part[key]
    part[place[-1]] = value
    return whole


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        (("model", "type"), "Morfessor", "is not a vocabulary"),
        (("model", "vocab"), {}, "give each token an id"),
        (("model", "vocab"), {"a": 0, "b": 0}, "give each token an id"),
        (("model", "vocab"), {"a": 1024}, "1,025 tokens, but the model has 1,024"),
        (("model", "merges"), [["no", "such"]], "is not a vocabulary"),
        (("added_tokens",), [{"special": False, "content": "hello"}], "is not a vocabulary"),
        (("normalizer",), {"type": "Uppercase"}, "is not a vocabulary"),
        (("normalizer",), [1], "is not a vocabulary"),
        (("post_processor",), {"type": "TemplateProcessing", "single": "x"}, "is not a vocabulary"),
    ],
)
def test_a_file_of_another_kind_or_a_damaged_one_is_refused(
    tmp_path: Path, place: tuple[str, ...], value: object, said: str
) -> None:
    (tmp_path / "tokenizer.json").write_text(json.dumps(changed("gemma", place, value)))
    with pytest.raises(ValueError, match=said):
        find_vocabulary(tmp_path, N_VOCAB)


def test_added_tokens_beyond_the_models_are_left_out(tmp_path: Path) -> None:
    """Gemma 3's tokenizer.json has one more than the text model, and many fine-tunes have an unused [PAD]."""
    theirs = write_family(tmp_path, "gemma")
    theirs.add_special_tokens(["<image_soft_token>"])
    theirs.save(str(tmp_path / "tokenizer.json"))
    n_vocab = theirs.token_to_id("<image_soft_token>")
    found = find_vocabulary(tmp_path, n_vocab)
    assert found.n_vocab == n_vocab
    assert found.decode(found.encode("<image_soft_token>")) == "<image_soft_token>"
    theirs.add_tokens(["ordinary"])
    theirs.save(str(tmp_path / "tokenizer.json"))
    found = find_vocabulary(tmp_path, n_vocab)
    assert found.decode(found.encode("ordinary")) == "ordinary"
    assert find_vocabulary(tmp_path, n_vocab + 2).encode("ordinary") == [n_vocab + 1]


LARGE_VOCAB = 4096

SENTENCE = "the cat sat on the hat, the hat on the mat."

CORPUS = (*corpus(), *[SENTENCE] * 20)

UNKNOWN, END = "[UNK]", "[SEP]"

BPE = trainers.BpeTrainer(vocab_size=900, limit_alphabet=400, special_tokens=[UNKNOWN, END], show_progress=False)

SUFFIX = trainers.BpeTrainer(vocab_size=900, special_tokens=[UNKNOWN], end_of_word_suffix="</w>", show_progress=False)

BYTES = trainers.BpeTrainer(vocab_size=600, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)

UNIGRAM = trainers.UnigramTrainer(
    vocab_size=LARGE_VOCAB, special_tokens=[UNKNOWN], unk_token=UNKNOWN, show_progress=False
)

WORD_LEVEL = trainers.WordLevelTrainer(vocab_size=900, special_tokens=[UNKNOWN], show_progress=False)

WORD_PIECE = trainers.WordPieceTrainer(vocab_size=900, special_tokens=[UNKNOWN], show_progress=False)

# By kind: model, trainer, normalizer, pre-tokenizer, decoder.
KINDS: dict[str, tuple[Any, Any, Any, Any, Any]] = {
    "BPE of words": (models.BPE(unk_token=UNKNOWN), BPE, None, pre_tokenizers.Whitespace(), None),
    "BPE with ends of words": (
        models.BPE(unk_token=UNKNOWN, end_of_word_suffix="</w>"),
        SUFFIX,
        normalizers.StripAccents(),
        pre_tokenizers.WhitespaceSplit(),
        decoders.BPEDecoder(),
    ),
    "byte-level without decoder": (
        models.BPE(),
        BYTES,
        normalizers.Sequence([normalizers.Strip(), normalizers.Lowercase()]),
        pre_tokenizers.ByteLevel(add_prefix_space=False),
        None,
    ),
    "Unigram": (
        models.Unigram(),
        UNIGRAM,
        normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")]),
        pre_tokenizers.Metaspace(),
        decoders.Metaspace(),
    ),
    "WordLevel": (models.WordLevel(unk_token=UNKNOWN), WORD_LEVEL, None, pre_tokenizers.Whitespace(), None),
    "WordPiece": (
        models.WordPiece(unk_token=UNKNOWN),
        WORD_PIECE,
        normalizers.BertNormalizer(),
        pre_tokenizers.BertPreTokenizer(),
        decoders.WordPiece(),
    ),
}


def streamed(vocabulary: Vocabulary, ids: Sequence[int]) -> str:
    """Return what a page shows of a text that is written token by token."""
    decoder = TextDecoder(vocabulary)
    return "".join(map(decoder.feed, ids)) + decoder.finish()


QUICK_KINDS = ("Unigram", "WordPiece")


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=() if kind in QUICK_KINDS else pytest.mark.thorough) for kind in KINDS]
)
def test_ids_are_the_librarys_and_a_stream_of_tokens_is_readable(tmp_path: Path, kind: str) -> None:
    model, trainer, normalizer, pre_tokenizer, decoder = KINDS[kind]
    theirs = Tokenizer(model)
    for part, value in {"normalizer": normalizer, "pre_tokenizer": pre_tokenizer, "decoder": decoder}.items():
        if value is not None:
            setattr(theirs, part, value)
    theirs.train_from_iterator(CORPUS, trainer)
    theirs.save(str(tmp_path / "tokenizer.json"))
    ours = find_vocabulary(tmp_path, LARGE_VOCAB)
    theirs.encode_special_tokens = True
    for text in texts():
        ids = ours.encode(text)
        assert ids == theirs.encode(text, add_special_tokens=False).ids
        assert streamed(ours, ids) == plain_text(ours, ids)
    assert streamed(ours, ours.encode(SENTENCE)).rstrip() == SENTENCE
    assert ours.unknown_id == theirs.token_to_id(UNKNOWN)


BERT = ["[PAD]", UNKNOWN, "[CLS]", END, *"你好世界，。", "gp", "##t", "##2", "hello", "Hello", "cafe", "(", "42"]


@pytest.mark.parametrize(
    "settings", [{}, {"do_lower_case": False}, {"strip_accents": False, "tokenize_chinese_chars": False}]
)
def test_berts_vocabulary_reads_chinese_as_in_transformers(tmp_path: Path, settings: dict[str, Any]) -> None:
    (tmp_path / "vocab.txt").write_text("\n".join(BERT) + "\n", encoding="utf-8")
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "gpt2"}))
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "BertTokenizer", **settings}))
    ours, theirs = find_vocabulary(tmp_path, 32), AutoTokenizer.from_pretrained(tmp_path)
    for text in ("你好，世界。", "Hello GPT2 café(42)好", "你 好\n hello"):
        assert [*prompt_ids(ours, text), ours.eot_id] == theirs(text)["input_ids"]
    if not settings:
        assert streamed(ours, ours.encode("你好，Hello gpt2。世界")) == "你好， hello gpt2。世界"


def test_control_tokens_around_a_text_may_have_any_names() -> None:
    model = {"type": "WordLevel", "vocab": {"$A": 0, "x:1": 1, "a": 2}, "unk_token": "a"}
    names = ("$A", "x:1")
    ours = HuggingFaceTokenizer({"model": model}, 3, "vocab.txt", tokens={"bos_token": names[0]}, around=names)
    assert (ours.prefix_ids, ours.eot_id) == ((0,), 1)


PLAIN = {"normalization_rule_name": "identity", "remove_extra_whitespaces": False}


@pytest.mark.parametrize(
    "options",
    [
        {"model_type": "unigram"},
        *(
            pytest.param(options, marks=pytest.mark.thorough)
            for options in (
                {"model_type": "bpe", "add_dummy_prefix": False, "user_defined_symbols": ["<sep>", "at"]},
                {"model_type": "bpe", "byte_fallback": True, "character_coverage": 0.98, "split_digits": True, **PLAIN},
                {"model_type": "char", "normalization_rule_name": "nmt_nfkc_cf"},
            )
        ),
    ],
    ids=lambda options: options["model_type"],
)
def test_a_sentencepiece_model_encodes_as_its_library(tmp_path: Path, options: dict[str, Any]) -> None:
    theirs, data = sentencepiece_processor(CORPUS, **options)
    (tmp_path / "tokenizer.model").write_bytes(data)
    ours = find_vocabulary(tmp_path, LARGE_VOCAB)
    for text in (*texts(300), SENTENCE, "the<sep>  cat "):
        clean = re.sub("\x00|</?s>|<0x41>", "", normalize("NFC", text))
        ids = ours.encode(clean)
        assert ids == theirs.encode(clean)
        if ours.unknown_id not in ids:
            assert streamed(ours, ids) == theirs.decode(ids)
    assert ours.decode(ours.encode_continuation(" cat")) == (" cat" if "add_dummy_prefix" in options else "cat")
    assert (ours.eot_id, ours.unknown_id) == (theirs.eos_id(), theirs.unk_id())
