"""What code outside the `tokenizers` library needs to know about a tokenizer.json."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from gpt.checks import require
from gpt.errors import GPTError

CONTROL_NAME = re.compile(r"<[^<>\s]+>|\[[^\[\]\s]+\]")
SPACE = "▁"  # U+2581, which SentencePiece uses for a space
DROPS_SPACES = {"BertPreTokenizer", "CharDelimiterSplit", "Whitespace", "WhitespaceSplit"}
SEQUENCES = ("normalizers", "pretokenizers", "decoders")  # keys that contain the parts of a "Sequence"
EDGES = r"\A +| +\z"  # spaces at both ends of a text


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
    """Return the properties of a file for a model with n_vocab tokens. Adds a decoder if the file has none."""
    model, added = content["model"], content.get("added_tokens") or []
    ids = ids_of_tokens(model, file)
    beyond = {token for token, token_id in ids.items() if token_id >= n_vocab} - {each["content"] for each in added}
    if beyond and not beyond <= set(control_names(ids, model.get("merges", []))):
        raise GPTError("vocabulary.size", n=max(ids.values()) + 1, n_vocab=n_vocab)
    encoders = [*flat_parts(content.get("normalizer")), *flat_parts(content.get("pre_tokenizer"))]
    byte_level = any(part["type"] == "ByteLevel" for part in encoders)
    places = {place_of_space(part) for part in encoders}
    prefix: Literal["none", "first", "each"] = "each" if "each" in places else "first" if "first" in places else "none"
    if content.get("decoder") is None:
        content["decoder"] = usual_decoder(model, encoders, has_prefix=prefix != "none")
    decoders = list(flat_parts(content["decoder"]))
    by_kind = {part["type"]: part for part in decoders}
    joined = by_kind.get("WordPiece", {"prefix": ""} if not decoders else None)
    strips = joined is not None or any(
        part["type"] == "Strip" or (part["type"] == "Metaspace" and place_of_space(part) != "none") for part in decoders
    )
    return TokenizerJson(
        ids,
        unknown_token(model, ids),
        byte_level,
        prefix,
        prefix != "none" or any(removes_edges(part) for part in encoders),
        strips or (byte_level and prefix != "none"),
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
        raise GPTError("vocabulary.ids", file=file)
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


def flat_parts(part: Mapping[str, Any] | None) -> Iterator[Mapping[str, Any]]:
    """Yield the parts of a normalizer, pre-tokenizer or decoder in order."""
    inner = [each for key in SEQUENCES if part and key in part for each in part[key]]
    for each in inner:
        yield from flat_parts(each)
    if part is not None and not inner:
        yield part


def control_names(vocab: Mapping[str, int], merges: Sequence[object]) -> list[str]:
    """Return the tokens, such as "<pad>", that are neither a byte nor the result of a merge."""
    made = {"".join(map(str, pair)).replace(" ", "") for pair in merges if isinstance(pair, (list, str))}
    return [each for each in vocab if CONTROL_NAME.fullmatch(each) and each not in made]


def byte_letters() -> dict[str, int]:
    """Return {character: byte}. Printable Latin-1 characters map to their own byte, those from U+0100 to the others."""
    printable = [byte for byte in range(256) if chr(byte).isprintable() and chr(byte) != " "]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + i): byte for i, byte in enumerate(others)}
