"""GPT-2's vocabulary as Hugging Face keeps it, vocab.json and merges.txt or tokenizer.json, for tiktoken and back."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import tiktoken

from gpt.errors import GPTError
from gpt.models.checkpoints.untrusted import read_json, read_text
from gpt.tokenizer import GPT2_PATTERN, Tokenizer

WORDS, MERGES = "vocab.json", "merges.txt"
TOGETHER = "tokenizer.json"


def byte_letters() -> dict[str, int]:
    """GPT-2's spelling of bytes as visible letters: printable Latin-1 as it is, the rest from U+0100 on."""
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    rest = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + i): byte for i, byte in enumerate(rest)}


def read_gpt2_files(words: Path, merges: Path) -> Tokenizer:
    """The vocabulary of a Hugging Face GPT-2 snapshot, vocab.json and merges.txt, for tiktoken: as `from_merges`."""
    ids = read_json(words, dict)
    lines = read_text(merges).splitlines()
    if lines and lines[0].startswith("#version"):
        del lines[0]
    return from_merges(ids, [line.split(" ") for line in lines if line], words.name, merges.name)


def read_tokenizer_file(path: Path) -> Tokenizer:
    """The same from the one file tokenizer.json, which is all that transformers writes since its version 5.

    Raises ValueError for a vocabulary of another kind than GPT-2's.
    """
    said = read_json(path, dict)
    model, before = ({} if not isinstance(said.get(key), dict) else said[key] for key in ("model", "pre_tokenizer"))
    kind = (model.get("type", "BPE"), before.get("type"), before.get("use_regex", True), before.get("add_prefix_space"))
    if kind != ("BPE", "ByteLevel", True, False) or said.get("normalizer") is not None:
        raise GPTError("vocabulary.not_gpt2", file=path.name)
    ids, merges, added = model.get("vocab"), model.get("merges"), said.get("added_tokens") or []
    if not isinstance(ids, dict) or not isinstance(merges, list) or not isinstance(added, list):
        raise GPTError("vocabulary.parts", file=path.name)
    if joined := [word.get("content") for word in added if isinstance(word, dict) and word.get("special") is False]:
        raise GPTError("vocabulary.added_tokens", file=path.name, token=joined[0])
    try:
        pairs = [pair.split(" ") if isinstance(pair, str) else [str(part) for part in pair] for pair in merges]
        ids = ids | {str(token["content"]): token["id"] for token in added}
    except (TypeError, KeyError) as error:
        raise GPTError("vocabulary.invalid", file=path.name, reason=error) from None
    return from_merges(ids, pairs, path.name, path.name)


def from_merges(ids: Mapping[str, int], pairs: Sequence[Sequence[str]], words: str, merges: str) -> Tokenizer:
    """A vocabulary from the id of each token and the pairs that are merged, in order; read from files of these names.

    tiktoken encodes alike if ids rise in the order of the merges, as in every vocabulary trained this way; others
    are refused. Words that the merges do not make are special tokens.
    """
    if not ids or not all(type(i) is int and 0 <= i < 2 * len(ids) for i in ids.values()):
        raise GPTError("vocabulary.ids", file=words)
    letters = byte_letters()
    if missing := [byte for letter, byte in letters.items() if letter not in ids]:
        raise GPTError("vocabulary.missing_byte_ids", file=words, byte=missing[0])
    try:
        made = [ids[a + b] for a, b in pairs]
        spelled = [*letters, *(a + b for a, b in pairs)]
        to_latin1 = str.maketrans(letters)
        ranks = {word.translate(to_latin1).encode("latin-1"): ids[word] for word in spelled}
    except (KeyError, ValueError) as error:
        raise GPTError("vocabulary.merges", words=words, merges=merges, reason=error) from None
    if any(a >= b for a, b in pairwise(made)) or len(set(ranks.values())) != len(ranks):
        raise GPTError("vocabulary.order", merges=merges, words=words)
    ordinary = set(ranks.values())
    special_tokens = {word: i for word, i in ids.items() if i not in ordinary}
    return encoding(ranks, special_tokens, max(ids.values()) + 1)


def write_gpt2_files(tokenizer: Tokenizer, folder: Path) -> None:
    """Write vocab.json and merges.txt, which transformers reads."""
    ranks = tokenizer.encoding._mergeable_ranks
    letter_of = {byte: letter for letter, byte in byte_letters().items()}
    spelled = {token: "".join(letter_of[byte] for byte in token) for token in ranks}
    merges = []
    for token, rank in sorted(ranks.items(), key=lambda item: item[1]):
        if len(token) > 1:
            a, b = last_merge(token, ranks, rank)
            merges.append(f"{spelled[a]} {spelled[b]}\n")
    words = {spelled[token]: i for token, i in ranks.items()} | specials(tokenizer)
    text = json.dumps(dict(sorted(words.items(), key=lambda item: item[1])), ensure_ascii=False)
    (folder / WORDS).write_text(text + "\n", encoding="utf-8")
    (folder / MERGES).write_text("#version: 0.2\n" + "".join(merges), encoding="utf-8")


def last_merge(token: bytes, ranks: dict[bytes, int], rank: int) -> tuple[bytes, bytes]:
    """The two tokens that the merge of this rank joined: what BPE without it leaves of its bytes."""
    parts = [bytes([byte]) for byte in token]
    while len(parts) > 2:
        lowest, at = min((ranks.get(a + b, rank), i) for i, (a, b) in enumerate(pairwise(parts)))
        if lowest >= rank:
            raise GPTError("vocabulary.not_a_merge", token=rank)
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
    return parts[0], parts[1]


def specials(tokenizer: Tokenizer) -> dict[str, int]:
    """The tokens that no text is encoded to."""
    return dict(tokenizer.encoding._special_tokens)


def encoding(ranks: dict[bytes, int], special_tokens: dict[str, int], n_vocab: int) -> Tokenizer:
    """A byte-level BPE in which every id below n_vocab stands for something."""
    unused = set(range(n_vocab)) - set(ranks.values()) - set(special_tokens.values())
    special_tokens = special_tokens | {f"<{i}>": i for i in sorted(unused)}
    return Tokenizer(
        tiktoken.Encoding("bpe", pat_str=GPT2_PATTERN, mergeable_ranks=ranks, special_tokens=special_tokens)
    )
