"""Byte-level BPE as Hugging Face stores it (vocab.json and merges.txt, or tokenizer.json), read for tiktoken.

Other files are read by `gpt.models.checkpoints.hugging_face_tokenizer`. tiktoken's data_gym_to_mergeable_bpe_ranks
supports neither special tokens nor tokenizer.json, and caches files by path even if they change.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import tiktoken

from gpt.errors import GPTError
from gpt.models.checkpoints.untrusted import read_json, read_text
from gpt.tokenizer import GPT2_PATTERN, Tokenizer

VOCAB_JSON, MERGES_TXT, TOKENIZER_JSON = "vocab.json", "merges.txt", "tokenizer.json"


def byte_letters() -> dict[str, int]:
    """{letter: byte} of these files: printable Latin-1 bytes have their own letter, the others one from U+0100 on."""
    printable = [byte for byte in range(256) if chr(byte).isprintable() and chr(byte) != " "]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + i): byte for i, byte in enumerate(others)}


def read_gpt2_files(vocab: Path, merges: Path) -> Tokenizer:
    """Read vocab.json and merges.txt. Raises ValueError as `from_merges`."""
    ids = read_json(vocab, dict)
    lines = read_text(merges).splitlines()
    if lines and lines[0].startswith("#version"):
        del lines[0]
    return from_merges(ids, [line.split(" ") for line in lines if line], vocab.name, merges.name)


def read_tokenizer_file(path: Path) -> Tokenizer | None:
    """Read a tokenizer.json of GPT-2's kind; None for another. Raises ValueError as `from_merges`."""
    content = read_json(path, dict)
    if not is_gpt2_bpe(content):
        return None
    model, added = content["model"], content.get("added_tokens") or []
    ids, merges = model.get("vocab"), model.get("merges")
    if not isinstance(ids, dict) or not isinstance(merges, list) or not isinstance(added, list):
        raise GPTError("vocabulary.parts", file=path.name)
    try:
        pairs = [pair.split(" ") if isinstance(pair, str) else [str(part) for part in pair] for pair in merges]
        ids = ids | {str(token["content"]): token["id"] for token in added}
    except (TypeError, KeyError) as error:
        raise GPTError("vocabulary.invalid", file=path.name, reason=error) from None
    return from_merges(ids, pairs, path.name, path.name)


def is_gpt2_bpe(content: Mapping[str, Any]) -> bool:
    """Whether tiktoken encodes as a tokenizer.json says: GPT-2's pattern, no other parts, all added tokens special."""
    parts = ("model", "pre_tokenizer", "post_processor")
    model, splitter, after = (content[key] if isinstance(content.get(key), dict) else {} for key in parts)
    kind = (model.get("type", "BPE"), splitter.get("type"), splitter.get("use_regex", True))
    added = content.get("added_tokens")
    return (
        kind == ("BPE", "ByteLevel", True)
        and splitter.get("add_prefix_space") is False
        and not content.get("normalizer")
        and after.get("type", "ByteLevel") == "ByteLevel"
        and not (isinstance(added, list) and any(isinstance(t, dict) and t.get("special") is False for t in added))
    )


def from_merges(ids: Mapping[str, int], pairs: Sequence[Sequence[str]], vocab: str, merges: str) -> Tokenizer:
    """A tokenizer from the id of each token and the pairs to merge, in order; tokens without a merge are special.

    tiktoken merges in the order of the ids. Raises ValueError, naming the files, if the pairs have another order,
    if ids and pairs do not match, or if a byte has no token.
    """
    if not ids or not all(type(i) is int and 0 <= i < 2 * len(ids) for i in ids.values()):
        raise GPTError("vocabulary.ids", file=vocab)
    letters = byte_letters()
    if missing := [byte for letter, byte in letters.items() if letter not in ids]:
        raise GPTError("vocabulary.missing_byte_ids", file=vocab, byte=missing[0])
    try:
        merged = [a + b for a, b in pairs]
        merged_ids = [ids[token] for token in merged]
        to_latin1 = str.maketrans(letters)
        ranks = {token.translate(to_latin1).encode("latin-1"): ids[token] for token in [*letters, *merged]}
    except (KeyError, ValueError) as error:
        raise GPTError("vocabulary.merges", words=vocab, merges=merges, reason=error) from None
    ordinary = set(ranks.values())
    if any(a >= b for a, b in pairwise(merged_ids)) or len(ordinary) != len(ranks):
        raise GPTError("vocabulary.order", merges=merges, words=vocab)
    special_tokens = {token: i for token, i in ids.items() if i not in ordinary}
    return bpe_tokenizer(ranks, special_tokens, max(ids.values()) + 1)


def write_gpt2_files(tokenizer: Tokenizer, folder: Path) -> None:
    """Write vocab.json and merges.txt. Raises ValueError if a token is not a merge of two others."""
    ranks = tokenizer.encoding._mergeable_ranks
    letter_of = {byte: letter for letter, byte in byte_letters().items()}
    letters_of = {token: "".join(letter_of[byte] for byte in token) for token in ranks}
    merges = []
    for token, rank in sorted(ranks.items(), key=lambda item: item[1]):
        if len(token) > 1:
            a, b = last_merge(token, ranks, rank)
            merges.append(f"{letters_of[a]} {letters_of[b]}\n")
    ids = {letters_of[token]: i for token, i in ranks.items()} | special_tokens(tokenizer)
    text = json.dumps(dict(sorted(ids.items(), key=lambda item: item[1])), ensure_ascii=False)
    (folder / VOCAB_JSON).write_text(text + "\n", encoding="utf-8")
    (folder / MERGES_TXT).write_text("#version: 0.2\n" + "".join(merges), encoding="utf-8")


def last_merge(token: bytes, ranks: Mapping[bytes, int], rank: int) -> tuple[bytes, bytes]:
    """The two tokens that the merge of this rank joins: the encoding of its bytes without that merge."""
    parts = [bytes([byte]) for byte in token]
    while len(parts) > 2:
        lowest, at = min((ranks.get(a + b, rank), i) for i, (a, b) in enumerate(pairwise(parts)))
        if lowest >= rank:
            raise GPTError("vocabulary.not_a_merge", token=rank)
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
    return parts[0], parts[1]


def special_tokens(tokenizer: Tokenizer) -> dict[str, int]:
    """The tokens that no text is encoded to, with their ids."""
    return dict(tokenizer.encoding._special_tokens)


def bpe_tokenizer(ranks: dict[bytes, int], special: Mapping[str, int], n_vocab: int) -> Tokenizer:
    """A tokenizer of n_vocab tokens. Unused ids, such as those of a padded embedding, are special tokens "<50300>"."""
    unused = set(range(n_vocab)) - set(ranks.values()) - set(special.values())
    special = {**special, **{f"<{i}>": i for i in sorted(unused)}}
    return Tokenizer(tiktoken.Encoding("bpe", pat_str=GPT2_PATTERN, mergeable_ranks=ranks, special_tokens=special))
