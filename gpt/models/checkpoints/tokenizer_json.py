"""Check a tokenizer.json before the `tokenizers` library reads it.

Only byte-level BPE and BPE with byte fallback are supported. The library executes regular expressions and replacements
from the file, so only parts with a bounded running time are accepted.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import regex

from gpt.errors import GPTError
from gpt.models.checkpoints.bpe_files import control_names

SPACE = "▁"  # U+2581, which SentencePiece uses for a space
NORMALIZERS = {"NFC", "NFD", "NFKC", "NFKD", "Prepend", "Replace"}
PRE_TOKENIZERS = {"ByteLevel", "Digits", "Metaspace", "Punctuation", "Split"}
DECODERS = {"ByteLevel", "ByteFallback", "Fuse", "Metaspace", "Replace", "Strip"}
SEQUENCES = ("normalizers", "pretokenizers", "decoders")  # keys that contain the parts of a "Sequence"
MAX_PARTS = 32  # maximum number of normalizers, pre-tokenizers or decoders
MAX_PATTERN_CHARS = 1000
MAX_GROUPS, MAX_REPETITIONS = 8, 5  # groups per pattern; repetitions per alternative
REPEATED_GROUP = re.compile(r"\)[*+{]")
UNBOUNDED = re.compile(r"\\[1-9gk]|\(\?(?!i?:|[=!>]|<[=!])")  # backreference, recursion, condition, free spacing
REPETITION = re.compile(r"[*+]|(?<!\()\?|\{[\d,]+\}")
PROBES = (
    " ",
    "\n",
    " \n",
    "a",
    "A",
    "aA",
    "1",
    "a1",
    ".",
    " .",
    "'",
    "é",
    "中",
    "a ",
)  # probes repeat each one, then add printable ASCII
PROBE_CHARS = 8000
PROBE_SECONDS = 2.0


@dataclass(frozen=True)
class TokenizerJson:
    """Properties of a tokenizer.json that code outside the library needs.

    Attributes:
        byte_level: Whether tokens use GPT-2's byte-to-Unicode mapping.
        prefix: Where encoding adds a space: nowhere, before the text, or also before each part after a control token.
        strips: Whether decoding removes that space.
    """

    byte_level: bool
    prefix: Literal["none", "first", "each"]
    strips: bool


def check_tokenizer_json(content: dict[str, Any], n_vocab: int, file: str) -> TokenizerJson:
    """Check a file for a model with n_vocab tokens and return its properties.

    Raises ValueError if the file is unsupported or does not fit the model.
    """
    model = content.get("model")
    if not isinstance(model, dict) or model.get("type", "BPE") != "BPE":
        raise not_of_bytes(file)
    vocab, merges, added = model.get("vocab"), model.get("merges"), content.get("added_tokens") or []
    if not isinstance(vocab, dict) or not isinstance(merges, list) or not isinstance(added, list):
        raise lacks_parts(file)
    if not all(
        isinstance(token, dict) and isinstance(token.get("content"), str) and token["content"] for token in added
    ):
        raise lacks_parts(file)
    valid = bool(vocab) and all(type(token_id) is int and token_id >= 0 for token_id in vocab.values())
    if not valid or len(set(vocab.values())) != len(vocab):
        raise GPTError("vocabulary.ids", "{file} is not a vocabulary: it must give each token an id", file=file)
    beyond = {token for token, token_id in vocab.items() if token_id >= n_vocab} - {each["content"] for each in added}
    if beyond and not beyond <= set(control_names(vocab, merges)):
        raise wrong_size(max(vocab.values()) + 1, n_vocab)
    normalizers = checked_parts(content.get("normalizer"), NORMALIZERS, file)
    splitters = checked_parts(content.get("pre_tokenizer"), PRE_TOKENIZERS, file)
    decoders = checked_parts(content.get("decoder"), DECODERS, file)
    kinds = {part["type"] for part in decoders}
    byte_level = "ByteLevel" in kinds and any(part["type"] == "ByteLevel" for part in splitters)
    by_fallback = model.get("byte_fallback") is True and "ByteFallback" in kinds
    if not (byte_level or by_fallback) or model.get("continuing_subword_prefix") or model.get("end_of_word_suffix"):
        raise not_of_bytes(file)
    places = {place_of_space(part) for part in (*normalizers, *splitters)}
    prefix: Literal["none", "first", "each"] = "each" if "each" in places else "first" if "first" in places else "none"
    strips = any(
        part["type"] == "Strip" or (part["type"] == "Metaspace" and place_of_space(part) != "none") for part in decoders
    )
    return TokenizerJson(byte_level, prefix, strips or (byte_level and prefix != "none"))


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


def checked_parts(part: object, known: set[str], file: str) -> list[dict[str, Any]]:
    """Return the parts of a normalizer, pre-tokenizer or decoder in order. Raises ValueError for unsupported parts."""
    parts = list(flat_parts(part, file))
    for each in parts:
        if each["type"] not in known:
            raise not_implemented(file, each["type"])
        for value in (each.get("pattern"), each.get("prepend"), each.get("content"), each.get("replacement")):
            check_text(each["type"], value, file)
    return parts


def flat_parts(part: object, file: str) -> Iterator[dict[str, Any]]:
    """Flatten nested sequences and yield their parts in order."""
    waiting, n = [part], 0
    while waiting:
        part, n = waiting.pop(), n + 1
        if part is None:
            continue
        if not isinstance(part, dict) or not isinstance(part.get("type"), str) or n > MAX_PARTS:
            raise lacks_parts(file)
        if part["type"] != "Sequence":
            yield part
            continue
        inner = [part[key] for key in SEQUENCES if key in part]
        if len(inner) != 1 or not isinstance(inner[0], list):
            raise lacks_parts(file)
        waiting += reversed(inner[0])


def check_text(kind: str, value: object, file: str) -> None:
    """Raise ValueError for a pattern or replacement that could run for a long time or make the text longer."""
    if value is None or value in (" ", SPACE):
        return
    if kind == "Split" and isinstance(value, Mapping) and set(value) <= {"Regex", "String"}:
        if isinstance(pattern := value.get("Regex"), str):
            check_pattern(pattern, file)
        return
    if kind == "Replace" and value in ({"String": " "}, {"String": SPACE}):
        return
    raise not_implemented(file, f"{kind} {str(value)[:40]}")


def check_pattern(pattern: str, file: str) -> None:
    """Raise ValueError for a regular expression that could take exponential time, or too long on repetitive texts."""
    bare = re.sub(r"\[(?:[^\[\]]|\[:\w+:\])*\]", "c", re.sub(r"\\.", "c", pattern))  # without escapes and classes
    repetitions = max(len(REPETITION.findall(part)) for part in bare.split("|"))
    too_much = len(pattern) > MAX_PATTERN_CHARS or bare.count("(") > MAX_GROUPS or repetitions > MAX_REPETITIONS
    if too_much or UNBOUNDED.search(pattern) or REPEATED_GROUP.search(bare) or takes_long(pattern):
        raise GPTError(
            "vocabulary.pattern",
            "{file} splits texts by a pattern that could take minutes: {pattern}",
            file=file,
            pattern=pattern[:40],
        )


def takes_long(pattern: str) -> bool:
    """Return whether splitting texts of one or two repeated characters fails or exceeds PROBE_SECONDS."""
    try:
        compiled = regex.compile(pattern)
        for unit in PROBES:
            compiled.findall(unit * (PROBE_CHARS // len(unit)) + string.printable, timeout=PROBE_SECONDS)
    except (regex.error, TimeoutError):
        return True
    return False


def lacks_parts(file: str) -> GPTError:
    """Return the error for a file without tokens and merges."""
    return GPTError("vocabulary.parts", "{file} is not a vocabulary: it must contain tokens and merges", file=file)


def not_of_bytes(file: str) -> GPTError:
    """Return the error for an unsupported kind of vocabulary."""
    return GPTError(
        "vocabulary.kind",
        "{file} is neither byte-level BPE nor BPE with byte fallback, the only kinds supported: leave it out to write "
        "token ids instead of text",
        file=file,
    )


def not_implemented(file: str, name: str) -> GPTError:
    """Return the error for an unsupported part."""
    return GPTError("vocabulary.option", "{file} has a part that is not implemented: {name}", file=file, name=name)


def wrong_size(n: int, n_vocab: int) -> GPTError:
    """Return the error for a vocabulary whose size n does not match the model's n_vocab."""
    return GPTError(
        "vocabulary.size",
        "the vocabulary has {n:,} tokens, but the model has {n_vocab:,}: they do not belong together",
        n=n,
        n_vocab=n_vocab,
    )
