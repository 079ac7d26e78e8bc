"""Vocabularies of other kinds, which the `tokenizers` library reads: WordPiece, WordLevel, Unigram, SentencePiece."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any
from unicodedata import normalize

import pytest
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import AutoTokenizer

from gpt.models.checkpoints.vocabularies import find_vocabulary
from gpt.tokenizer import TextDecoder, Vocabulary, plain_text, prompt_ids
from tests.gpt.models.tokenizer_families import corpus, texts

N_VOCAB = 4096
SENTENCE = "the cat sat on the hat, the hat on the mat."
CORPUS = (*corpus(), *[SENTENCE] * 20)
UNKNOWN, END = "[UNK]", "[SEP]"
BPE = trainers.BpeTrainer(vocab_size=900, limit_alphabet=400, special_tokens=[UNKNOWN, END], show_progress=False)
SUFFIX = trainers.BpeTrainer(vocab_size=900, special_tokens=[UNKNOWN], end_of_word_suffix="</w>", show_progress=False)
BYTES = trainers.BpeTrainer(vocab_size=600, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
UNIGRAM = trainers.UnigramTrainer(vocab_size=N_VOCAB, special_tokens=[UNKNOWN], unk_token=UNKNOWN, show_progress=False)
WORD_LEVEL = trainers.WordLevelTrainer(vocab_size=900, special_tokens=[UNKNOWN], show_progress=False)
WORD_PIECE = trainers.WordPieceTrainer(vocab_size=900, special_tokens=[UNKNOWN], show_progress=False)
# By kind: model, trainer, normalizer, pre-tokenizer, decoder.
KINDS: dict[str, tuple[Any, Any, Any, Any, Any]] = {
    "BPE of words": (models.BPE(unk_token=UNKNOWN), BPE, None, pre_tokenizers.Whitespace(), None),
    "BPE of whole texts": (models.BPE(unk_token=UNKNOWN), BPE, None, None, None),
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
    "Unigram without decoder": (models.Unigram(), UNIGRAM, None, pre_tokenizers.Metaspace(), None),
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


QUICK = ("Unigram", "WordPiece")


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=() if kind in QUICK else pytest.mark.thorough) for kind in KINDS]
)
def test_ids_are_the_librarys_and_a_stream_of_tokens_is_readable(tmp_path: Path, kind: str) -> None:
    model, trainer, normalizer, pre_tokenizer, decoder = KINDS[kind]
    theirs = Tokenizer(model)
    for part, value in {"normalizer": normalizer, "pre_tokenizer": pre_tokenizer, "decoder": decoder}.items():
        if value is not None:
            setattr(theirs, part, value)
    theirs.train_from_iterator(CORPUS, trainer)
    theirs.save(str(tmp_path / "tokenizer.json"))
    ours = find_vocabulary(tmp_path, N_VOCAB)
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


def test_a_vocab_txt_of_words_is_a_table(tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_text("the\ncat\n<unk>\n")
    assert find_vocabulary(tmp_path, 4).encode("the cat ran") == [0, 1, 2]


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
    sentencepiece = pytest.importorskip("sentencepiece", reason="sentencepiece is not installed")
    data = BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(CORPUS),
        model_writer=data,
        vocab_size=2600,
        hard_vocab_limit=False,
        minloglevel=2,
        **options,
    )
    (tmp_path / "tokenizer.model").write_bytes(data.getvalue())
    ours, theirs = find_vocabulary(tmp_path, N_VOCAB), sentencepiece.SentencePieceProcessor(model_proto=data.getvalue())
    for text in (*texts(300), SENTENCE, "the<sep>  cat "):
        clean = re.sub("\x00|</?s>|<0x41>", "", normalize("NFC", text))
        ids = ours.encode(clean)
        assert ids == theirs.encode(clean)
        if ours.unknown_id not in ids:
            assert streamed(ours, ids) == theirs.decode(ids)
    assert ours.decode(ours.encode_continuation(" cat")) == (" cat" if "add_dummy_prefix" in options else "cat")
    assert (ours.eot_id, ours.unknown_id) == (theirs.eos_id(), theirs.unk_id())
