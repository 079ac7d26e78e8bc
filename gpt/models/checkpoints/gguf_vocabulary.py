"""Read the vocabulary in the metadata of a GGUF file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from gpt.models.checkpoints.bpe_files import DIGITS, NFC, QWEN_PATTERN, QWEN_SPLIT, byte_level_json
from gpt.models.checkpoints.chat_template import ChatTemplate
from gpt.models.checkpoints.hugging_face_tokenizer import (
    HuggingFaceTokenizer,
    TokenizerSettings,
    load_library_tokenizer,
    put_around_texts,
)
from gpt.models.checkpoints.other_vocabularies import BYTE, CONTROL, UNKNOWN, UNUSED, USER_DEFINED, pieces_json
from gpt.models.checkpoints.tokenizer_json import check_tokenizer_json, lacks_parts, not_implemented

PLACE = "tokenizer.ggml"
BYTE_LEVEL, SENTENCE_PIECE = "gpt2", "llama"  # values of tokenizer.ggml.model
FILLER = re.compile(r"\[PAD\d+\]")  # the converter's name for ids without a token
LLAMA3_SPLIT = QWEN_SPLIT | {"pattern": {"Regex": QWEN_PATTERN.replace(r"|\p{N}|", r"|\p{N}{1,3}|")}}
# {tokenizer.ggml.pre: (normalizer, what splits a text into words before the bytes are merged; GPT-2's pattern is last)}
SPLITS: dict[str, tuple[Any, list[dict[str, Any]]]] = {
    **dict.fromkeys(("gpt-2", "phi-2", "mpt", "jais", "exaone4"), (None, [])),
    "olmo": (NFC, []),
    **dict.fromkeys(("starcoder", "refact", "command-r", "smollm", "codeshell", "minerva-7b"), (None, [DIGITS])),
    **dict.fromkeys(("qwen2", "deepseek-r1-qwen", "megrez"), (NFC, [QWEN_SPLIT])),
    "stablelm2": (None, [QWEN_SPLIT]),
    **dict.fromkeys(("llama-bpe", "llama3", "llama-v3", "falcon3", "dbrx", "smaug-bpe"), (None, [LLAMA3_SPLIT])),
}
STARTS_TEXTS = ("llama-bpe", "llama3", "llama-v3", "falcon3")  # begin texts with a control token, and keep whole words
# Pattern of models converted before the metadata named one.
OLD_FILES = {"qwen2": "qwen2", "qwen3": "qwen2", "gptneox": "olmo", "starcoder": "starcoder", "starcoder2": "starcoder"}
ROLES = {
    "bos_token": "bos",
    "eos_token": "eos",
    "unk_token": "unknown",
    "sep_token": "seperator",
    "pad_token": "padding",
}
ENDS = ("eos", "eot", "eom")
# Control tokens that end a reply, by name, because many files state only the end of a text.
END_NAMES = ("<|eot_id|>", "<|eom_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>", "<|endoftext|>", "<|end_of_text|>")


def gguf_tokenizer(metadata: Mapping[str, Any], n_vocab: int, file: str) -> HuggingFaceTokenizer | None:
    """Return the vocabulary for a model with n_vocab tokens, or None if the metadata contains none.

    Raises ValueError if it is damaged, or of a kind or with a pattern that is not implemented.
    """
    kind = metadata.get(f"{PLACE}.model")
    if kind in (None, "none", "no_vocab"):
        return None
    tokens = listed(metadata, "tokens", str, file)
    types = listed(metadata, "token_type", int, file, n=len(tokens)) if f"{PLACE}.token_type" in metadata else []
    types = types or [0] * len(tokens)
    starts = metadata.get(f"{PLACE}.add_bos_token")
    if kind == BYTE_LEVEL:
        pre = str(metadata.get(f"{PLACE}.pre", "default"))
        content = byte_level_content(metadata, tokens, pre, file)
        starts = pre in STARTS_TEXTS if starts is None else starts
    elif kind == SENTENCE_PIECE:
        content = sentence_piece_content(metadata, tokens, types, file)
        starts = starts is not False
    else:
        raise not_implemented(file, f"{PLACE}.model {kind}")
    checked = check_tokenizer_json(content, n_vocab, file)
    ids = {role: metadata.get(f"{PLACE}.{name}_token_id") for role, name in ROLES.items()}
    names = {role: tokens[i] for role, i in ids.items() if isinstance(i, int) and 0 <= i < len(tokens)}
    more = [
        {"id": i, "content": text, "special": of != USER_DEFINED}
        for i, (text, of) in enumerate(zip(tokens, types, strict=True))
        if text and of in (CONTROL, UNKNOWN, USER_DEFINED)
    ]
    more += [{"content": name, "special": True} for name in names.values()]
    last = names.get("eos_token") if metadata.get(f"{PLACE}.add_eos_token") is True else None
    put_around_texts(content, checked.ids, names.get("bos_token") if starts is True else None, last)
    tokenizer = load_library_tokenizer(content, checked.ids, more, n_vocab, file)
    stated = [metadata.get(f"{PLACE}.{name}_token_id") for name in ENDS]
    chat = metadata.get("tokenizer.chat_template")
    ends = [i for i in stated if isinstance(i, int) and 0 <= i < n_vocab]
    if isinstance(chat, str):
        ends += [checked.ids[name] for name in END_NAMES if name in checked.ids and types[checked.ids[name]] == CONTROL]
    template = ChatTemplate(chat, names) if isinstance(chat, str) and chat else None
    return HuggingFaceTokenizer(
        tokenizer, checked, n_vocab, TokenizerSettings(names, tuple(dict.fromkeys(ends)), template)
    )


def listed(metadata: Mapping[str, Any], name: str, kind: type, file: str, n: int | None = None) -> list[Any]:
    """Return a list of n values of one type. Raises ValueError if it is missing or different."""
    found = metadata.get(f"{PLACE}.{name}")
    if not isinstance(found, list) or any(type(each) is not kind for each in found) or n not in (None, len(found)):
        raise lacks_parts(file)
    return found


def byte_level_content(metadata: Mapping[str, Any], tokens: list[str], pre: str, file: str) -> dict[str, Any]:
    """Return the contents of a tokenizer.json for GPT-2's kind of BPE. pre: name of the pattern that splits texts."""
    merges = listed(metadata, "merges", str, file)
    if pre == "default":
        pre = OLD_FILES.get(str(metadata.get("general.architecture")), "gpt-2")
    if pre not in SPLITS:
        raise not_implemented(file, f"{PLACE}.pre {pre}")
    normalizer, splits = SPLITS[pre]
    content = byte_level_json({text: i for i, text in enumerate(tokens) if not FILLER.fullmatch(text)}, merges)
    by_bytes = {
        "type": "ByteLevel",
        "add_prefix_space": False,
        "trim_offsets": True,
        "use_regex": splits in ([], [DIGITS]),
    }
    content["normalizer"] = normalizer
    content["pre_tokenizer"]["pretokenizers"] = [*splits, by_bytes]
    content["model"]["ignore_merges"] = pre in STARTS_TEXTS
    return content


def sentence_piece_content(
    metadata: Mapping[str, Any], tokens: list[str], types: list[int], file: str
) -> dict[str, Any]:
    """Return the contents of a tokenizer.json for SentencePiece's kind of BPE. Whole words become added tokens."""
    scores = listed(metadata, "scores", float, file, n=len(tokens))
    kinds = [UNUSED if of == USER_DEFINED else of for of in types]
    return pieces_json(
        list(zip(tokens, scores, kinds, strict=True)),
        has_bytes=BYTE in types,
        has_prefix=metadata.get(f"{PLACE}.add_space_prefix") is not False,
        joins_spaces=metadata.get(f"{PLACE}.remove_extra_whitespaces") is True,
    )
