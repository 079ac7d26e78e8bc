"""Byte-level BPE as two files, vocab.json and merges.txt.

The files do not specify how to split text into words before merging bytes, and each model family has its own rule.
`pair_as_tokenizer_json` adds this rule.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import tiktoken

from gpt.errors import GPTError
from gpt.models.checkpoints.untrusted import read_json, read_text
from gpt.tokenizer import GPT2_PATTERN, Tokenizer

VOCAB_JSON, MERGES_TXT, TOKENIZER_JSON = "vocab.json", "merges.txt", "tokenizer.json"
QWEN_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
NFC = {"type": "NFC"}
DIGITS = {"type": "Digits", "individual_digits": True}
QWEN_SPLIT = {"type": "Split", "pattern": {"Regex": QWEN_PATTERN}, "behavior": "Isolated", "invert": False}
GPT2_CLASS, NEOX_CLASS, QWEN_CLASS = "GPT2Tokenizer", "GPTNeoXTokenizer", "Qwen2Tokenizer"
# Normalizer and pre-tokenizers before ByteLevel, for each transformers class that reads the two files.
CLASSES: dict[str, tuple[dict[str, Any] | None, list[dict[str, Any]]]] = {
    GPT2_CLASS: (None, []),
    "CodeGenTokenizer": (None, []),
    NEOX_CLASS: (NFC, []),
    QWEN_CLASS: (NFC, [QWEN_SPLIT]),
}
ANY_CLASS = ("PreTrainedTokenizer", "TokenizersBackend")  # classes that do not identify a family
# Class for each model_type in config.json, used if tokenizer_config.json does not name a class.
MODEL_TYPES = {
    **dict.fromkeys(("gpt2", "gpt_neo", "gptj", "opt", "phi", "codegen", "gpt_bigcode", "starcoder2"), GPT2_CLASS),
    **dict.fromkeys(("gpt_neox", "olmo", "mpt"), NEOX_CLASS),
    **dict.fromkeys(("qwen2", "qwen2_moe", "qwen3", "qwen3_moe"), QWEN_CLASS),
}
MANY_MERGES = 5000  # if there are more merges than this but none with a digit, the family splits off digits
CONTROL_NAME = re.compile(r"<[^<>\s]+>|\[[^\[\]\s]+\]")


def byte_letters() -> dict[str, int]:
    """Return {character: byte}. Printable Latin-1 characters map to their own byte, those from U+0100 to the others."""
    printable = [byte for byte in range(256) if chr(byte).isprintable() and chr(byte) != " "]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + i): byte for i, byte in enumerate(others)}


def pair_as_tokenizer_json(folder: Path, settings: Mapping[str, Any], model_type: object) -> dict[str, Any]:
    """Convert vocab.json and merges.txt to the contents of a tokenizer.json.

    Args:
        settings: Contents of tokenizer_config.json; may be empty.
        model_type: The family according to config.json, or None.

    Raises:
        ValueError: If a file is damaged, or the family's rule for splitting text is unknown.
    """
    vocab, merges = read_json(folder / VOCAB_JSON, dict), read_merges(folder / MERGES_TXT)
    family = splitting_class(settings, model_type)
    return byte_level_json(vocab, merges, family=family, prefix_space=settings.get("add_prefix_space") is True)


def read_merges(path: Path) -> list[list[str]]:
    """Return the pairs in a merges.txt, one on each line."""
    lines = read_text(path).split("\n")
    return [line.rstrip("\r").split(" ") for line in lines if line.strip() and not line.startswith("#version")]


def byte_level_json(
    vocab: Mapping[str, int], merges: Sequence[Sequence[str]], *, family: str = GPT2_CLASS, prefix_space: bool = False
) -> dict[str, Any]:
    """Return the contents of a tokenizer.json. family: A key of CLASSES, which determines how text is split."""
    normalizer, splits = CLASSES[family]
    if not splits and len(merges) > MANY_MERGES and not any(re.search("[0-9]", "".join(pair)) for pair in merges):
        splits = [DIGITS]
    parts = {"add_prefix_space": prefix_space, "trim_offsets": True, "use_regex": QWEN_SPLIT not in splits}
    return {
        "version": "1.0",
        "added_tokens": [],
        "normalizer": normalizer,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [*splits, {"type": "ByteLevel", **parts}]},
        "post_processor": None,
        "decoder": {"type": "ByteLevel", **parts},
        "model": {"type": "BPE", "vocab": vocab, "merges": merges},
    }


def splitting_class(settings: Mapping[str, Any], model_type: object) -> str:
    """Return the key of CLASSES named in the settings. Defaults to the model family's class, then to GPT-2's."""
    named = str(settings.get("tokenizer_class") or "").removesuffix("Fast")
    if not named or named in ANY_CLASS:
        named = GPT2_CLASS if model_type is None else MODEL_TYPES.get(str(model_type), str(model_type))
    if named not in CLASSES:
        raise unknown_class(named, MERGES_TXT)
    return named


def unknown_class(name: str, file: str) -> GPTError:
    """Return the error for a class of transformers whose rule for splitting texts is unknown."""
    return GPTError("vocabulary.class", file=file, name=name[:40], needed=TOKENIZER_JSON)


def control_names(vocab: Mapping[str, int], merges: Sequence[object]) -> list[str]:
    """Return the tokens, such as "<pad>", that are neither a byte nor the result of a merge."""
    made = {"".join(map(str, pair)).replace(" ", "") for pair in merges if isinstance(pair, (list, str))}
    return [each for each in vocab if CONTROL_NAME.fullmatch(each) and each not in made]


def write_gpt2_files(tokenizer: Tokenizer, folder: Path) -> None:
    """Write vocab.json and merges.txt. Raises ValueError if a token is not a merge of two others."""
    ranks = tokenizer.encoding._mergeable_ranks
    ids, merges = letters_and_merges(ranks)
    ids |= special_tokens(tokenizer)
    text = json.dumps(dict(sorted(ids.items(), key=lambda item: item[1])), ensure_ascii=False)
    (folder / VOCAB_JSON).write_text(text + "\n", encoding="utf-8")
    lines = "".join(f"{a} {b}\n" for a, b in merges)
    (folder / MERGES_TXT).write_text("#version: 0.2\n" + lines, encoding="utf-8")


def letters_and_merges(ranks: Mapping[bytes, int]) -> tuple[dict[str, int], list[tuple[str, str]]]:
    """Convert {bytes: id} to {characters: id} and an ordered list of merges."""
    letter_of = {byte: letter for letter, byte in byte_letters().items()}
    letters = {token: "".join(letter_of[byte] for byte in token) for token in ranks}
    made = [(token, rank) for token, rank in sorted(ranks.items(), key=lambda item: item[1]) if len(token) > 1]
    merges = [last_merge(token, ranks, rank) for token, rank in made]
    return {letters[token]: i for token, i in ranks.items()}, [(letters[a], letters[b]) for a, b in merges]


def last_merge(token: bytes, ranks: Mapping[bytes, int], rank: int) -> tuple[bytes, bytes]:
    """Return the two tokens that merge into this one, found by encoding its bytes without that merge."""
    parts = [bytes([byte]) for byte in token]
    while len(parts) > 2:
        lowest, at = min((ranks.get(a + b, rank), i) for i, (a, b) in enumerate(pairwise(parts)))
        if lowest >= rank:
            raise GPTError("vocabulary.not_a_merge", token=rank)
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
    return parts[0], parts[1]


def special_tokens(tokenizer: Tokenizer) -> dict[str, int]:
    """Return {name: id} for the tokens that `encode` never produces."""
    return dict(tokenizer.encoding._special_tokens)


def bpe_tokenizer(ranks: dict[bytes, int], special: Mapping[str, int], n_vocab: int) -> Tokenizer:
    """Create a tokenizer with n_vocab tokens. Unused ids, such as embedding padding, get names such as "<50300>"."""
    unused = set(range(n_vocab)) - set(ranks.values()) - set(special.values())
    special = {**special, **{f"<{i}>": i for i in sorted(unused)}}
    return Tokenizer(tiktoken.Encoding("bpe", pat_str=GPT2_PATTERN, mergeable_ranks=ranks, special_tokens=special))
