"""Check a tokenizer.json before the `tokenizers` library reads it.

The library executes regular expressions and replacements from the file, so only parts with a bounded running time are
accepted.
"""

from __future__ import annotations

import base64
import binascii
import re
import string
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import regex

from gpt.checks import is_integer, require
from gpt.errors import GPTError

CONTROL_NAME = re.compile(r"<[^<>\s]+>|\[[^\[\]\s]+\]")
SPACE = "▁"  # U+2581, which SentencePiece uses for a space
MODELS = ("BPE", "Unigram", "WordLevel", "WordPiece")
NORMALIZERS = {
    *("BertNormalizer", "ByteLevel", "Lowercase", "NFC", "NFD", "NFKC", "NFKD", "Nmt", "Precompiled", "Prepend"),
    *("Replace", "Strip", "StripAccents"),
}
DROPS_SPACES = {"BertPreTokenizer", "CharDelimiterSplit", "Whitespace", "WhitespaceSplit"}
PRE_TOKENIZERS = {"ByteLevel", "Digits", "Metaspace", "Punctuation", "Split", "UnicodeScripts", *DROPS_SPACES}
DECODERS = {"BPEDecoder", "ByteLevel", "ByteFallback", "Fuse", "Metaspace", "Replace", "Strip", "WordPiece"}
SEQUENCES = ("normalizers", "pretokenizers", "decoders")  # keys that contain the parts of a "Sequence"
MAX_PARTS = 32  # maximum number of normalizers, pre-tokenizers or decoders
MAX_PATTERN_CHARS = 1000
MAX_TEXT_CHARS = 8  # maximum length of a text that a part adds or looks for
MAX_WORD_CHARS = 200  # WordPiece takes time proportional to the square of a word's length
MAX_MAPPED_BYTES = 64  # what a character becomes in a Precompiled normalizer; the longest in NFKC has 33 bytes
EDGES = r"\A +| +\z"  # spaces at both ends of a text
MAX_GROUPS, MAX_REPETITIONS = 8, 5  # groups per pattern; repetitions per alternative
REPEATED_GROUP = re.compile(r"\)[*+{]")
UNBOUNDED = re.compile(r"\\[1-9gk]|\(\?(?!i?:|[=!>]|<[=!])")  # backreference, recursion, condition, free spacing
# One character or class, perhaps repeated, such as " {2,}"; it never matches an empty text.
ONE_ATOM = re.compile(r"(\\[dnrstwDSW]|[ \w]|\[[^\[\]\\&]+\])([+]|\{[1-9],\})?")
REPETITION = re.compile(r"[*+]|(?<!\()\?|\{[\d,]+\}")
# Probes repeat each of these, then add printable ASCII.
PROBES = (" ", "\n", " \n", "a", "A", "aA", "1", "a1", ".", " .", "'", "é", "中", "a ")
PROBE_CHARS = 8000
PROBE_SECONDS = 2.0


@dataclass(frozen=True)
class TokenizerJson:
    """Properties of a tokenizer.json that code outside the library needs.

    Attributes:
        ids: The model's vocabulary.
        unknown: Token for what the vocabulary lacks, or None.
        byte_level: Whether tokens use GPT-2's byte-to-Unicode mapping.
        prefix: Where encoding adds a space: nowhere, before the text, or also before each part after a control token.
        changes_start: Whether encoding adds or removes a space at the start of a text.
        strips: Whether decoding removes the space at the start of a text.
        spaces: Texts that stand for a space or for something else in a token, and what they stand for.
        continues: If texts lose their spaces, the start of a token that continues a word, or "" if none is marked;
            else None.
        ends: The end of a token that ends a word, or "" if none is marked.
    """

    ids: Mapping[str, int]
    unknown: str | None
    byte_level: bool
    prefix: Literal["none", "first", "each"]
    changes_start: bool
    strips: bool
    spaces: tuple[tuple[str, str], ...]
    continues: str | None
    ends: str


def check_tokenizer_json(content: dict[str, Any], n_vocab: int, file: str) -> TokenizerJson:
    """Check a file for a model with n_vocab tokens and return its properties. Adds a decoder if the file has none."""
    model, added = content.get("model"), content.get("added_tokens") or []
    if not isinstance(model, dict) or not isinstance(added, list):
        raise GPTError("vocabulary.parts", file=file)
    kind, merges = kind_of(model), model.get("merges", [])
    require(kind in MODELS, "vocabulary.option", file=file, name=str(kind))
    if not isinstance(merges, list) or not all(
        isinstance(token, dict) and isinstance(token.get("content"), str) and token["content"] for token in added
    ):
        raise GPTError("vocabulary.parts", file=file)
    ids = ids_of_tokens(model, file)
    beyond = {token for token, token_id in ids.items() if token_id >= n_vocab} - {each["content"] for each in added}
    if beyond and not beyond <= set(control_names(ids, merges)):
        raise GPTError("vocabulary.size", n=max(ids.values()) + 1, n_vocab=n_vocab)
    longest = model.get("max_input_chars_per_word", 100)
    if not is_integer(longest) or longest > MAX_WORD_CHARS:
        raise GPTError("vocabulary.option", file=file, name=f"max_input_chars_per_word {longest}")
    encoders = [
        *checked_parts(content.get("normalizer"), NORMALIZERS, file),
        *checked_parts(content.get("pre_tokenizer"), PRE_TOKENIZERS, file),
    ]
    n_byte_level = sum(part["type"] == "ByteLevel" for part in encoders)
    if n_byte_level > 1:  # each makes texts longer
        raise GPTError("vocabulary.option", file=file, name="ByteLevel, ByteLevel")
    places = {place_of_space(part) for part in encoders}
    prefix: Literal["none", "first", "each"] = "each" if "each" in places else "first" if "first" in places else "none"
    if content.get("decoder") is None:
        content["decoder"] = usual_decoder(model, encoders, has_prefix=prefix != "none")
    decoders = checked_parts(content["decoder"], DECODERS, file)
    by_kind = {part["type"]: part for part in decoders}
    joined = by_kind.get("WordPiece", {"prefix": ""} if not decoders else None)
    strips = joined is not None or any(
        part["type"] == "Strip" or (part["type"] == "Metaspace" and place_of_space(part) != "none") for part in decoders
    )
    return TokenizerJson(
        ids,
        unknown_token(model, ids),
        n_byte_level > 0,
        prefix,
        prefix != "none" or any(removes_edges(part) for part in encoders),
        strips or (n_byte_level > 0 and prefix != "none"),
        tuple(replaced(part) for part in decoders if part["type"] in ("Replace", "Metaspace")),
        None if joined is None else joined.get("prefix", "##"),
        by_kind["BPEDecoder"].get("suffix", "</w>") if "BPEDecoder" in by_kind else "",
    )


def kind_of(model: Mapping[str, Any]) -> object:
    """Return the type of a model, which old files leave out."""
    if isinstance(model.get("vocab"), list):
        return model.get("type", "Unigram")
    guessed = "WordPiece" if "max_input_chars_per_word" in model else "BPE" if "merges" in model else "WordLevel"
    return model.get("type", guessed)


def ids_of_tokens(model: Mapping[str, Any], file: str) -> dict[str, int]:
    """Return {token: id}. Raises ValueError unless each token has an id of its own."""
    vocab = model.get("vocab")
    if kind_of(model) == "Unigram" and isinstance(vocab, list):
        vocab = {pair[0]: i for i, pair in enumerate(vocab) if isinstance(pair, list) and isinstance(pair[0], str)}
        n = len(model["vocab"])
    elif isinstance(vocab, dict) and kind_of(model) != "Unigram":
        n = len(vocab)
    else:
        raise GPTError("vocabulary.parts", file=file)
    valid = n and all(type(token_id) is int and token_id >= 0 for token_id in vocab.values())
    require(valid and len(set(vocab.values())) == n, "vocabulary.ids", file=file)
    return vocab


def unknown_token(model: Mapping[str, Any], ids: Mapping[str, int]) -> str | None:
    """Return the token for what the vocabulary lacks, or None."""
    if kind_of(model) == "Unigram":
        return next((token for token, token_id in ids.items() if token_id == model.get("unk_id")), None)
    name = model.get("unk_token")
    return name if isinstance(name, str) and name in ids else None


def usual_decoder(model: Mapping[str, Any], encoders: Sequence[Mapping[str, Any]], *, has_prefix: bool) -> Any:
    """Return the decoder that undoes what these parts do with spaces, or None if it joins tokens with spaces."""
    if any(part["type"] == "ByteLevel" for part in encoders):
        return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    if prefix := model.get("continuing_subword_prefix"):
        return {"type": "WordPiece", "prefix": prefix, "cleanup": True}
    if suffix := model.get("end_of_word_suffix"):
        return {"type": "BPEDecoder", "suffix": suffix}
    marks = [part.get("replacement", SPACE) for part in encoders if part["type"] == "Metaspace"]
    marks += [part["content"] for part in encoders if part["type"] == "Replace" and part["pattern"] == {"String": " "}]
    if not marks and any(
        part["type"] in DROPS_SPACES or part.get("behavior") == "Removed" or part.get("invert") for part in encoders
    ):
        return None
    parts: list[dict[str, Any]] = [
        {"type": "Replace", "pattern": {"String": mark}, "content": " "} for mark in dict.fromkeys(marks)
    ]
    parts += [{"type": "ByteFallback"}, {"type": "Fuse"}]
    parts += [{"type": "Strip", "content": " ", "start": 1, "stop": 0}] if has_prefix else []
    return {"type": "Sequence", "decoders": parts}


def replaced(part: Mapping[str, Any]) -> tuple[str, str]:
    """Return what a decoder replaces, and by what."""
    if part["type"] == "Metaspace":
        return part.get("replacement", SPACE), " "
    return part["pattern"]["String"], part["content"]


def place_of_space(part: Mapping[str, Any]) -> Literal["none", "first", "each"]:
    """Return which parts of a text get a leading space from a component: "none", "first" or "each"."""
    if part["type"] == "Prepend":
        return "each"
    if part["type"] == "ByteLevel":
        return "each" if part.get("add_prefix_space", True) else "none"
    if part["type"] != "Metaspace":
        return "none"
    scheme = part.get("prepend_scheme", "always" if part.get("add_prefix_space", True) else "never")
    return {"never": "none", "first": "first"}.get(scheme, "each")  # type: ignore[return-value]


def removes_edges(part: Mapping[str, Any]) -> bool:
    """Return whether a normalizer removes spaces at the start of a text."""
    return part["type"] == "Strip" or part.get("pattern") == {"Regex": EDGES}


def checked_parts(part: object, known: set[str], file: str) -> list[dict[str, Any]]:
    """Return the parts of a normalizer, pre-tokenizer or decoder in order. Raises ValueError for unsupported parts."""
    parts = list(flat_parts(part, file))
    for each in parts:
        if each["type"] not in known:
            raise GPTError("vocabulary.option", file=file, name=each["type"])
        check_part(each, is_decoder=known is DECODERS, file=file)
    return parts


def flat_parts(part: object, file: str) -> Iterator[dict[str, Any]]:
    """Flatten nested sequences and yield their parts in order."""
    waiting, n = [part], 0
    while waiting:
        part, n = waiting.pop(), n + 1
        if part is None:
            continue
        if not isinstance(part, dict) or not isinstance(part.get("type"), str) or n > MAX_PARTS:
            raise GPTError("vocabulary.parts", file=file)
        if part["type"] != "Sequence":
            yield part
            continue
        inner = [part[key] for key in SEQUENCES if key in part]
        require(len(inner) == 1 and isinstance(inner[0], list), "vocabulary.parts", file=file)
        waiting += reversed(inner[0])


def check_part(part: Mapping[str, Any], *, is_decoder: bool, file: str) -> None:
    """Raise ValueError for a part that could run for a long time or make the text much longer."""
    kind, pattern = part["type"], part.get("pattern")
    names = ("prepend", "content", "replacement", "delimiter", "prefix", "suffix")
    texts = [part[name] for name in names if part.get(name) is not None]
    if not all(isinstance(text, str) and len(text) <= MAX_TEXT_CHARS for text in texts):
        raise GPTError("vocabulary.option", file=file, name=f"{kind} {str(texts)[:40]}")
    if kind == "Precompiled" and not maps_briefly(part.get("precompiled_charsmap")):
        raise GPTError("vocabulary.option", file=file, name=kind)
    if kind not in ("Split", "Replace"):
        return
    syntax, value = next(iter(pattern.items())) if isinstance(pattern, Mapping) and len(pattern) == 1 else ("", None)
    if not isinstance(value, str) or not value or syntax not in (("String",) if is_decoder else ("String", "Regex")):
        raise GPTError("vocabulary.option", file=file, name=f"{kind} {str(pattern)[:40]}")
    if kind == "Replace" and not replaces_briefly(value, part.get("content"), is_regex=syntax == "Regex"):
        raise GPTError("vocabulary.option", file=file, name=f"{kind} {str(pattern)[:40]}")
    if kind == "Split" and syntax == "Regex":
        check_pattern(value, file)


def replaces_briefly(pattern: str, content: object, *, is_regex: bool) -> bool:
    """Return whether a replacement takes linear time and makes no text longer."""
    if not isinstance(content, str) or (is_regex and pattern != EDGES and not ONE_ATOM.fullmatch(pattern)):
        return False
    return len(content) <= (pattern != EDGES if is_regex else len(pattern))


def maps_briefly(table: object) -> bool:
    """Return whether a Precompiled normalizer makes no character longer than MAX_MAPPED_BYTES.

    Its table contains the size of a trie, the trie, and the texts that characters become, which end with a zero byte.
    """
    try:
        data = base64.b64decode(table, validate=True) if isinstance(table, str) else b""
    except binascii.Error:
        return False
    texts = data[4 + int.from_bytes(data[:4], "little") :]
    return len(data) > 4 and max(map(len, texts.split(b"\0"))) <= MAX_MAPPED_BYTES


def check_pattern(pattern: str, file: str) -> None:
    """Raise ValueError for a regular expression that could take exponential time, or too long on repetitive texts."""
    bare = re.sub(r"\[(?:[^\[\]]|\[:\w+:\])*\]", "c", re.sub(r"\\.", "c", pattern))  # without escapes and classes
    repetitions = max(len(REPETITION.findall(part)) for part in bare.split("|"))
    too_much = len(pattern) > MAX_PATTERN_CHARS or bare.count("(") > MAX_GROUPS or repetitions > MAX_REPETITIONS
    if too_much or UNBOUNDED.search(pattern) or REPEATED_GROUP.search(bare) or takes_long(pattern):
        raise GPTError("vocabulary.pattern", file=file, pattern=pattern[:40])


def takes_long(pattern: str) -> bool:
    """Return whether splitting a repetitive text fails or exceeds PROBE_SECONDS."""
    try:
        compiled = regex.compile(pattern)
        for unit in PROBES:
            compiled.findall(unit * (PROBE_CHARS // len(unit)) + string.printable, timeout=PROBE_SECONDS)
    except (regex.error, TimeoutError):
        return True
    return False


def control_names(vocab: Mapping[str, int], merges: Sequence[object]) -> list[str]:
    """Return the tokens, such as "<pad>", that are neither a byte nor the result of a merge."""
    made = {"".join(map(str, pair)).replace(" ", "") for pair in merges if isinstance(pair, (list, str))}
    return [each for each in vocab if CONTROL_NAME.fullmatch(each) and each not in made]


def byte_letters() -> dict[str, int]:
    """Return {character: byte}. Printable Latin-1 characters map to their own byte, those from U+0100 to the others."""
    printable = [byte for byte in range(256) if chr(byte).isprintable() and chr(byte) != " "]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + i): byte for i, byte in enumerate(others)}
