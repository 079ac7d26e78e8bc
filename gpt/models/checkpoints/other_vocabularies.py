"""Convert BERT's vocab.txt and SentencePiece's models to the contents of a tokenizer.json."""

from __future__ import annotations

import base64
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from gpt.errors import GPTError
from gpt.models.checkpoints.bpe_files import ANY_CLASS, unknown_class
from gpt.models.checkpoints.tokenizer_json import EDGES, SPACE, usual_decoder
from gpt.models.checkpoints.untrusted import read_bytes, read_text

VOCAB_TXT, SENTENCE_PIECE = "vocab.txt", ("tokenizer.model", "spiece.model", "sentencepiece.bpe.model")
BERT_TOKENS = {f"{name}_token": f"[{name.upper()}]" for name in ("unk", "sep", "pad", "cls", "mask")}
BERT_CLASSES = ("BertTokenizer", "DistilBertTokenizer", "ElectraTokenizer")
SENTENCE_PIECE_TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}
# Classes and families that begin each text with a control token unless the settings say otherwise.
STARTS_TEXTS = ("codellama", "gemma", "llama", "mistral")
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)  # types of pieces
UNIGRAM, WORD = 1, 3  # types of models
MAX_PIECE_CHARS = 256


def lines_of(path: Path) -> list[str]:
    """Return the tokens in a vocab.txt, one for each line."""
    return [line.removesuffix("\r") for line in read_text(path).removesuffix("\n").split("\n")]


def is_bert(tokens: list[str]) -> bool:
    """Return whether these are WordPiece's tokens rather than a list of characters or words."""
    return "[UNK]" in tokens or any(token.startswith("##") for token in tokens)


def bert_json(tokens: list[str], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return what transformers makes of BERT's vocab.txt. settings: contents of tokenizer_config.json.

    Raises ValueError for a class that splits texts in its own way.
    """
    named = str(settings.get("tokenizer_class") or BERT_CLASSES[0]).removesuffix("Fast")
    if named not in (*BERT_CLASSES, *ANY_CLASS):
        raise unknown_class(named, VOCAB_TXT)
    ids = {token: token_id for token_id, token in enumerate(tokens)}
    model = {"type": "WordPiece", "vocab": ids, "unk_token": "[UNK]", "continuing_subword_prefix": "##"}
    return {
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": settings.get("tokenize_chinese_chars") is not False,
            "strip_accents": accents if isinstance(accents := settings.get("strip_accents"), bool) else None,
            "lowercase": settings.get("do_lower_case") is not False,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "model": {**model, "max_input_chars_per_word": 100},
    }


def sentence_piece_json(path: Path) -> dict[str, Any]:
    """Return the contents of a tokenizer.json that encodes like a SentencePiece model.

    Raises ValueError if the file is damaged or of a kind that the `tokenizers` library cannot express.
    """
    try:
        return converted(read_bytes(path))
    except (AttributeError, IndexError, KeyError, TypeError, UnicodeDecodeError, struct.error):
        raise GPTError("vocabulary.sentence_piece", file=path.name) from None


def converted(data: bytes) -> dict[str, Any]:
    """Return the contents of a tokenizer.json for a SentencePiece model. Raises KeyError for a kind without one."""
    message = list(fields(data))
    trainer, normalizer = (dict(fields(b"".join(v for n, v in message if n == number))) for number in (2, 3))
    parts = [dict(fields(value)) for number, value in message if number == 1]
    pieces = [(part[1].decode(), struct.unpack("<f", part.get(2, bytes(4)))[0], part.get(3, NORMAL)) for part in parts]
    kind = trainer.get(3, UNIGRAM)
    if not pieces or kind == WORD or trainer.get(24) or any(len(piece) > MAX_PIECE_CHARS for piece, _, _ in pieces):
        raise KeyError(kind)
    # A missing field has the default value 1.
    steps: list[dict[str, Any]] = []
    if b"nfkc" in normalizer.get(1, b""):
        steps.append({"type": "NFC"})  # the next step does not compose all characters
    if normalizer.get(2):
        steps.append({"type": "Precompiled", "precompiled_charsmap": base64.b64encode(normalizer[2]).decode()})
    return pieces_json(
        pieces,
        steps,
        is_unigram=kind == UNIGRAM,
        has_bytes=bool(trainer.get(35)),
        has_prefix=bool(normalizer.get(3, 1)),
        joins_spaces=bool(normalizer.get(4, 1)),
        escapes=bool(normalizer.get(5, 1)),
    )


def pieces_json(
    pieces: list[tuple[str, float, int]],
    steps: Sequence[dict[str, Any]] = (),
    *,
    is_unigram: bool = False,
    has_bytes: bool,
    has_prefix: bool,
    joins_spaces: bool,
    escapes: bool = True,
) -> dict[str, Any]:
    """Return the contents of a tokenizer.json for SentencePiece's pieces: their texts, scores and types.

    steps: what changes characters first. has_bytes: whether unknown characters become bytes. has_prefix: whether texts
    begin with a space. joins_spaces: whether several spaces become one. escapes: whether pieces write spaces as SPACE.
    """
    whole = [piece for piece, _, of in pieces if of == USER_DEFINED]
    unknown = [i for i, (_, _, of) in enumerate(pieces) if of == UNKNOWN]
    model: dict[str, Any] = {"byte_fallback": has_bytes}
    if is_unigram:
        model |= {"type": "Unigram", "vocab": [[piece, score] for piece, score, _ in pieces]}
        model["unk_id"] = unknown[0] if unknown else None
    else:
        model |= {"type": "BPE", "vocab": {piece: i for i, (piece, _, _) in enumerate(pieces)}, "fuse_unk": True}
        model |= {"merges": merges_of(pieces), "ignore_merges": bool(whole)}
        model["unk_token"] = pieces[unknown[0]][0] if unknown else None
    steps = list(steps)  # in SentencePiece's order
    if joins_spaces:
        steps += [replacement({"Regex": EDGES}, ""), replacement({"Regex": " {2,}"}, " ")]
    steps += [{"type": "Prepend", "prepend": SPACE if escapes else " "}] if has_prefix else []
    steps += [replacement({"String": " "}, SPACE)] if escapes else []
    pattern = "|".join(re.escape(piece) for piece in sorted(whole, key=len, reverse=True))
    split = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
    return {
        "added_tokens": [
            {"id": i, "content": piece, "special": True, "normalized": False}
            | dict.fromkeys(("single_word", "lstrip", "rstrip"), False)
            for i, (piece, _, of) in enumerate(pieces)
            if of in (UNKNOWN, CONTROL)
        ],
        "normalizer": {"type": "Sequence", "normalizers": steps},
        "pre_tokenizer": split if whole else None,
        "decoder": usual_decoder({}, steps, has_prefix=has_prefix),
        "model": model,
    }


def merges_of(pieces: list[tuple[str, float, int]]) -> list[tuple[str, str]]:
    """Return all pairs of pieces that make another, beginning with the best result."""
    normal = {piece: (-score, i) for i, (piece, score, of) in enumerate(pieces) if of == NORMAL}
    found = [
        (rank, piece[:cut], piece[cut:])
        for piece, rank in normal.items()
        for cut in range(1, len(piece))
        if piece[:cut] in normal and piece[cut:] in normal
    ]
    return [(left, right) for _, left, right in sorted(found)]


def replacement(pattern: dict[str, str], content: str) -> dict[str, Any]:
    """Return a normalizer that replaces a pattern."""
    return {"type": "Replace", "pattern": pattern, "content": content}


def fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """Yield the number and the value of each field of a protobuf message. Raises IndexError if it is damaged."""
    at = 0
    while at < len(data):
        key, at = read_varint(data, at)
        size = {1: 8, 5: 4}.get(key & 7, 0)
        if key & 7 == 0:
            value, at = read_varint(data, at)
            yield key >> 3, value
            continue
        if key & 7 == 2:
            size, at = read_varint(data, at)
        if (not size and key & 7 != 2) or at + size > len(data):
            raise IndexError(key)
        yield key >> 3, data[at : at + size]
        at += size


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """Return the variable-length integer at a place, and the place after it."""
    value = 0
    for shift in range(0, 70, 7):
        value |= (data[at] & 127) << shift
        at += 1
        if data[at - 1] < 128:
            return value, at
    raise IndexError(at)
