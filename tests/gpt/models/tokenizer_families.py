"""Small vocabularies like those of published families, trained by the `tokenizers` library, and texts for them."""

from __future__ import annotations

import json
import random
import unicodedata
from collections.abc import Callable, Iterable
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from gpt.config import GPTConfig
from gpt.model import GPT
from gpt.models.checkpoints.vocabularies import find_vocabulary
from gpt.models.checkpoints.writing import save_model

LLAMA3_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN_PATTERN = LLAMA3_PATTERN.replace("{1,3}", "")
SPACE = "▁"

# First and last letter of twenty scripts.
SCRIPTS = {
    "Latin": "az", "Latin Extended": "àž", "Greek": "αω", "Cyrillic": "ая", "Armenian": "աֆ", "Hebrew": "את",
    "Arabic": "ءي", "Devanagari": "अह", "Bengali": "অহ", "Tamil": "அஹ", "Telugu": "అహ", "Thai": "กฮ", "Lao": "ກຮ",
    "Georgian": "აჰ", "Hangul": "가힣", "Hiragana": "ぁん", "Katakana": "ァン", "Han": "一龥", "Ethiopic": "ሀፐ",
    "Khmer": "កអ",
}  # fmt: skip
OTHERS = [
    "👋🏽", "👨‍👩‍👧", "🇨🇭", "🙂", "e\u0301", "o\u0308\u0323", "\u1100\u1161", "\u0958", "\u00c5", "\u212b", "ﬁ",
    "\u200f", "\u202e", "\u200b", "\u00a0", "\u3000", "\x00", "\x1b[0m", "\x7f", "\ufeff", "\r\n", "\t", "  ", "\n\n",
    "123456", "١٢٣", "don't", "I'LL", "<|endoftext|>", "<s>", "</s>", "<bos>", "<|im_start|>", "<think>", "<0x41>",
    "<unused7>", "𝔊", "\U0010fffd", "½", "…", "--", "...", "'", "_",
]  # fmt: skip


@cache
def texts(n: int = 1000) -> tuple[str, ...]:
    """Return strings with words of all scripts, emoji, combining marks, both directions, controls and token names."""
    rng = random.Random(0)
    scripts = [(ord(first), ord(last)) for first, last in SCRIPTS.values()]

    def word() -> str:
        first, last = rng.choice(scripts)
        return "".join(chr(rng.randint(first, last)) for _ in range(rng.randint(1, 8)))

    def text() -> str:
        parts = [rng.choice(OTHERS) if rng.random() < 0.3 else word() for _ in range(rng.randint(0, 12))]
        return "".join(part + rng.choice(["", " ", " ", " ", "  ", "\n", "، ", "。", ", "]) for part in parts)

    made = [text() for _ in range(n)]
    return tuple(made[: n // 2] + [unicodedata.normalize("NFD", each) for each in made[n // 2 :]])


@cache
def corpus() -> tuple[str, ...]:
    """Return training texts in which no merge can form a token's name."""
    return tuple(each.replace("<", "") for each in texts(300))


def byte_level(pattern: str | None, *, nfc: bool = False, digits: bool = False) -> Tokenizer:
    """Train byte-level BPE. `pattern` splits texts and defaults to GPT-2's."""
    tokenizer = Tokenizer(models.BPE())
    if nfc:
        tokenizer.normalizer = normalizers.NFC()
    split: list[Any] = [pre_tokenizers.Digits(individual_digits=True)] if digits else []
    split += [pre_tokenizers.Split(Regex(pattern), "isolated")] if pattern else []
    last = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=pattern is None)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*split, last]) if split else last
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=600, show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    tokenizer.train_from_iterator(corpus(), trainer)
    return tokenizer


def sentence_piece(special: list[str], *, prepend: str) -> Tokenizer:
    """Train BPE of characters with bytes as fallback. `prepend` is "normalizer", "metaspace" or ""."""
    tokenizer = Tokenizer(models.BPE(byte_fallback=True, fuse_unk=True, unk_token="<unk>"))
    byte_tokens = [f"<0x{byte:02X}>" for byte in range(256)]
    replace = normalizers.Replace(" ", SPACE)
    tokenizer.normalizer = replace
    trainer = trainers.BpeTrainer(
        vocab_size=900, show_progress=False, special_tokens=[*special, *byte_tokens], limit_alphabet=300
    )
    tokenizer.train_from_iterator(corpus(), trainer)
    content = json.loads(tokenizer.to_str())
    content["added_tokens"] = content["added_tokens"][: len(special)]
    tokenizer = Tokenizer.from_str(json.dumps(content))
    steps: list[Any] = [decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse()]
    if prepend == "normalizer":
        tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend(SPACE), replace])
    elif prepend == "metaspace":
        tokenizer.normalizer = None
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(SPACE, prepend_scheme="first", split=False)
    else:
        tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    tokenizer.decoder = decoders.Sequence([*steps, decoders.Strip(" ", 1, 0)] if prepend else steps)
    return tokenizer


def sentencepiece_processor(texts: Iterable[str], **options: Any) -> tuple[Any, bytes]:
    """Train a vocabulary with SentencePiece's own library; return its processor and its file."""
    sentencepiece = pytest.importorskip("sentencepiece", reason="sentencepiece is not installed")
    data, usual = BytesIO(), {"vocab_size": 2600, "hard_vocab_limit": False, "minloglevel": 2}
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(texts), model_writer=data, **usual, **options)
    return sentencepiece.SentencePieceProcessor(model_proto=data.getvalue()), data.getvalue()


def put_first(tokenizer: Tokenizer, name: str) -> None:
    """Make the library prepend a token to each text."""
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{name} $A", pair=f"{name} $A {name} $B", special_tokens=[(name, tokenizer.token_to_id(name))]
    )


def pythia() -> Tokenizer:
    tokenizer = byte_level(None, nfc=True)
    tokenizer.add_special_tokens(["<|endoftext|>", "<|padding|>"])
    tokenizer.add_tokens([" " * n for n in range(24, 1, -1)])
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=True)
    return tokenizer


def llama3() -> Tokenizer:
    tokenizer = byte_level(LLAMA3_PATTERN)
    tokenizer.add_special_tokens(
        ["<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"]
    )
    put_first(tokenizer, "<|begin_of_text|>")
    content = json.loads(tokenizer.to_str())
    content["model"]["ignore_merges"] = True
    return Tokenizer.from_str(json.dumps(content))


def smollm2() -> Tokenizer:
    tokenizer = byte_level(None, digits=True)
    tokenizer.add_special_tokens(["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    return tokenizer


def qwen() -> Tokenizer:
    tokenizer = byte_level(QWEN_PATTERN, nfc=True)
    tokenizer.add_special_tokens(["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    tokenizer.add_tokens([AddedToken("<think>", normalized=False), AddedToken("</think>", normalized=False)])
    return tokenizer


def llama2() -> Tokenizer:
    tokenizer = sentence_piece(["<unk>", "<s>", "</s>"], prepend="normalizer")
    put_first(tokenizer, "<s>")
    return tokenizer


def mistral() -> Tokenizer:
    tokenizer = sentence_piece(["<unk>", "<s>", "</s>"], prepend="metaspace")
    put_first(tokenizer, "<s>")
    return tokenizer


def gemma() -> Tokenizer:
    tokenizer = sentence_piece(["<pad>", "<eos>", "<bos>", "<unk>", "<start_of_turn>", "<end_of_turn>"], prepend="")
    tokenizer.add_tokens([AddedToken(SPACE * 2, normalized=False), AddedToken("\n\n", normalized=False)])
    put_first(tokenizer, "<bos>")
    return tokenizer


# By family: the vocabulary and its tokenizer_config.json.
FAMILIES: dict[str, tuple[Callable[[], Tokenizer], dict[str, Any]]] = {
    "pythia": (pythia, {"bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>", "unk_token": "<|endoftext|>"}),
    "llama3": (llama3, {"bos_token": "<|begin_of_text|>", "eos_token": "<|eot_id|>"}),
    "smollm2": (smollm2, {"bos_token": "<|im_start|>", "eos_token": "<|im_end|>", "unk_token": "<|endoftext|>"}),
    "qwen": (qwen, {"add_bos_token": False, "bos_token": None, "eos_token": "<|im_end|>"}),
    "llama2": (llama2, {"add_bos_token": True, "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}),
    "mistral": (mistral, {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}),
    "gemma": (gemma, {"add_bos_token": True, "bos_token": "<bos>", "eos_token": "<eos>", "unk_token": "<unk>"}),
}
NORMALISE = ("pythia", "qwen")
MODEL_VOCAB = 960  # vocabulary size of a model, larger than any of these vocabularies


@cache
def trained(family: str) -> Tokenizer:
    """Return the library's tokenizer of a family, which must not be modified."""
    return FAMILIES[family][0]()


def write_family(folder: Path, family: str, **settings: Any) -> Tokenizer:
    """Write the files of a family's vocabulary, and return the library's tokenizer."""
    trained(family).save(str(folder / "tokenizer.json"))
    config = {"tokenizer_class": "PreTrainedTokenizerFast"} | FAMILIES[family][1] | settings
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return Tokenizer.from_file(str(folder / "tokenizer.json"))


CHATML = """\
{%- for message in messages %}
    {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""


def save_chat_model(folder: Path, *, block_size: int = 256) -> None:
    """Save a small random model with a vocabulary and a chat template like SmolLM2's."""
    save_family_model(folder, "smollm2", block_size=block_size, chat_template=CHATML)


def save_family_model(folder: Path, family: str, *, block_size: int = 256, **settings: Any) -> None:
    """Save a small random model with a family's vocabulary."""
    write_family(folder, family, **settings)
    config = GPTConfig(MODEL_VOCAB, block_size, n_layer=2, n_head=2, n_embd=32)
    vocabulary = find_vocabulary(folder, MODEL_VOCAB)
    save_model(folder, GPT(config, generator=torch.Generator().manual_seed(0)), vocabulary)
