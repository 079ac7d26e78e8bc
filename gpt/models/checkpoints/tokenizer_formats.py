"""Read vocabularies in the formats of transformers, BERT, SentencePiece and llama.cpp with the `tokenizers` library.

Each becomes the contents of a tokenizer.json. Byte-level BPE in two files, vocab.json and merges.txt, does not specify
how to split text into words before merging bytes: each model family has its own rule, which is added here.
"""

from __future__ import annotations

import base64
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import Any

from tokenizers.models import BPE

from gpt.errors import GPTError, require
from gpt.models.checkpoints import hugging_face_tokenizer as library
from gpt.models.checkpoints.hugging_face_tokenizer import GENERATION_CONFIG, SPACE, TOKENIZER_CONFIG, TOKENIZER_JSON
from gpt.models.checkpoints.untrusted import read_json, read_text, reading
from gpt.sampling import SamplingParams
from gpt.tokenizer import Tokenizer, load_vocabulary

VOCAB_JSON, MERGES_TXT, CONFIG = "vocab.json", "merges.txt", "config.json"
VOCAB_TXT, SENTENCE_PIECE = "vocab.txt", ("tokenizer.model", "spiece.model", "sentencepiece.bpe.model")
TEMPLATE_FILE = "chat_template.jinja"
SPECIAL_TOKENS, ADDED_TOKENS = "special_tokens_map.json", "added_tokens.json"
PAIRS = {VOCAB_JSON: MERGES_TXT, "encoder.json": "vocab.bpe"}  # the latter in OpenAI's folders
LIBRARY_FILES = (TOKENIZER_JSON, *PAIRS, VOCAB_TXT, *SENTENCE_PIECE)  # in order of preference
SETTINGS_FILES = (TOKENIZER_CONFIG, GENERATION_CONFIG, SPECIAL_TOKENS, ADDED_TOKENS, TEMPLATE_FILE)
NAMED_TOKENS = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
OTHER_TOKENS = ("additional_special_tokens", "extra_special_tokens")
QWEN_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
NFC, DIGITS = {"type": "NFC"}, {"type": "Digits", "individual_digits": True}
QWEN_SPLIT = library.splitter(QWEN_PATTERN)
LLAMA3_SPLIT = library.splitter(QWEN_PATTERN.replace(r"|\p{N}|", r"|\p{N}{1,3}|"))
# {llama.cpp's name for a way to split texts into words: (normalizer, what splits them; GPT-2's pattern is last)}
SPLITS: dict[str, tuple[Any, list[dict[str, Any]]]] = {
    **dict.fromkeys(("gpt-2", "phi-2", "mpt", "jais", "exaone4"), (None, [])),
    "olmo": (NFC, []),
    **dict.fromkeys(("starcoder", "refact", "command-r", "smollm", "codeshell", "minerva-7b"), (None, [DIGITS])),
    **dict.fromkeys(("qwen2", "deepseek-r1-qwen", "megrez"), (NFC, [QWEN_SPLIT])),
    "stablelm2": (None, [QWEN_SPLIT]),
    **dict.fromkeys(("llama-bpe", "llama3", "llama-v3", "falcon3", "dbrx", "smaug-bpe"), (None, [LLAMA3_SPLIT])),
}
STARTS_WITH_BOS = ("llama-bpe", "llama3", "llama-v3", "falcon3")  # these also keep whole words
# The same for transformers' classes, or for a model_type if tokenizer_config.json names no class.
CLASSES = {
    **dict.fromkeys(("GPT2Tokenizer", "CodeGenTokenizer"), "gpt-2"),
    **dict.fromkeys(("gpt2", "gpt_neo", "gptj", "opt", "phi", "codegen", "gpt_bigcode", "starcoder2"), "gpt-2"),
    **dict.fromkeys(("GPTNeoXTokenizer", "gpt_neox", "olmo", "mpt"), "olmo"),
    **dict.fromkeys(("Qwen2Tokenizer", "qwen2", "qwen2_moe", "qwen3", "qwen3_moe"), "qwen2"),
}
ANY_CLASS = ("", "PreTrainedTokenizer", "TokenizersBackend")  # classes that do not identify a family
BERT_CLASSES = ("BertTokenizer", "DistilBertTokenizer", "ElectraTokenizer")
# Control tokens that follow the others in Llama 3's tokenizer.model, which lists none.
LLAMA3_MORE = {0: "begin_of_text", 1: "end_of_text", 6: "start_header_id", 7: "end_header_id", 8: "eom_id", 9: "eot_id"}
# Classes and families that begin each text with a control token unless the settings say otherwise.
STARTS_TEXTS = ("codellama", "gemma", "llama", "mistral")
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)  # types of pieces
UNIGRAM, WORD = 1, 3  # types of models
PREFIX, JOIN, ESCAPE = 3, 4, 5  # switches: texts begin with a space, spaces become one, pieces write them as SPACE
FIXED_SIZES = {1: 8, 5: 4}  # bytes of values by protobuf's types


def read_hugging_face_tokenizer(folder: Path, file: str, n_vocab: int) -> library.HuggingFaceTokenizer:
    """Read a vocabulary in one of LIBRARY_FILES and the settings next to it, for a model with n_vocab tokens."""
    settings, generation, model, older, added = (
        read_json(folder / name, dict) if (folder / name).is_file() else {}
        for name in (TOKENIZER_CONFIG, GENERATION_CONFIG, CONFIG, SPECIAL_TOKENS, ADDED_TOKENS)
    )
    family, ends = model.get("model_type"), generation.get("eos_token_id")
    if "added_tokens_decoder" not in settings:  # otherwise transformers ignores the older files
        settings |= older
    tokens = {role: name for role in NAMED_TOKENS if (name := token_name(settings.get(role)))}
    usual: dict[str, str] = {}
    names: list[str] = []
    starts = family == "opt"
    if file == TOKENIZER_JSON:
        content = read_json(folder / file, dict)
    elif file in PAIRS:
        content = pair_as_tokenizer_json(folder, file, settings, family)
        usual = {"bos_token": "</s>", "eos_token": "</s>"} if family == "opt" else {}
        names = [] if tokens or usual else library.control_names(content, file)
    elif file == VOCAB_TXT:
        content = bert_json(lines_of(folder / file), settings)
        usual = {f"{name}_token": f"[{name.upper()}]" for name in ("unk", "sep", "pad", "cls", "mask")}
    elif (folder / file).read_bytes().startswith(b"IQ== 0\n"):  # "!", the first token of Llama 3's ranks, in base64
        ids, merges = letters_and_merges(load_vocabulary(folder / file).encoding._mergeable_ranks)
        control = {f"<|{name}|>": len(ids) + i for i, name in LLAMA3_MORE.items()}
        content = byte_level_json(ids | control, merges, *SPLITS["llama3"])
        starts, names = True, [*control]
        content["model"]["ignore_merges"] = True
        usual = {"bos_token": "<|begin_of_text|>", "eos_token": "<|end_of_text|>"}
        ends = [control[name] for name in ("<|end_of_text|>", "<|eot_id|>")] if ends is None else ends
    else:
        content, usual = sentence_piece_json(folder / file), {"bos_token": "<s>", "eos_token": "</s>"}
        starts = str(settings.get("tokenizer_class") or family).lower().startswith(STARTS_TEXTS)
    tokens = usual | tokens
    first, last = ("cls_token", "sep_token") if file == VOCAB_TXT else ("", "")
    if file != TOKENIZER_JSON and settings.get("add_bos_token", starts) is True:
        first = "bos_token"
    ends = model.get("eos_token_id") if ends is None else ends
    file_of_chat = folder / TEMPLATE_FILE
    chat = read_text(file_of_chat) if file_of_chat.is_file() else settings.get(library.TEMPLATE_KEY)
    if isinstance(chat, list):
        chat = next((each["template"] for each in chat if each.get("name") == "default"), None)
    return library.HuggingFaceTokenizer(
        content,
        n_vocab,
        file,
        tokens=tokens,
        end_ids=[end for end in (ends if isinstance(ends, list) else [ends]) if type(end) is int and end >= 0],
        chat=chat if isinstance(chat, str) else None,
        more=[{"content": name, "special": True} for name in names] + added_beside(settings, added, tokens),
        around=(tokens.get(first, ""), tokens.get(last, "")),
    )


def suggested_sampling(folder: Path) -> SamplingParams | None:
    """Return the sampling settings that generation_config.json names, or None if it names none or invalid ones."""
    path = folder / GENERATION_CONFIG
    given = read_json(path, dict) if path.is_file() else {}
    names = ("temperature", "top_k", "top_p", "min_p", "repetition_penalty")
    values = {name: given[name] for name in names if given.get(name) is not None}
    try:
        return SamplingParams(**values) if values else None
    except GPTError:
        return None


def added_beside(settings: dict[str, Any], added: dict[str, Any], tokens: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return added tokens from tokenizer_config.json or else added_tokens.json, in tokenizer.json's format."""
    listed = settings.get("added_tokens_decoder")
    if isinstance(listed, dict):
        flags = ("single_word", "lstrip", "rstrip", "normalized", "special")
        return [
            {"id": int(key), "content": value["content"], **{flag: value.get(flag) is True for flag in flags}}
            for key, value in listed.items()
            if key.isascii() and key.isdigit() and len(key) < 10 and isinstance(value, dict) and token_name(value)
        ]
    others = [name for key in OTHER_TOKENS if isinstance(each := settings.get(key), list) for name in each]
    special = {*tokens.values(), *map(token_name, others)}
    return [
        {"id": token_id, "content": name, "special": name in special, "normalized": name not in special}
        for name, token_id in added.items()
        if name and type(token_id) is int
    ]


def token_name(value: object) -> str | None:
    """Return the name of a token from tokenizer_config.json, given as a string or {"content": string, ...}."""
    content = value.get("content") if isinstance(value, dict) else value
    return content if isinstance(content, str) and content else None


def pair_as_tokenizer_json(folder: Path, file: str, settings: Mapping[str, Any], model_type: object) -> dict[str, Any]:
    """Return what transformers makes of one of PAIRS. settings: contents of tokenizer_config.json."""
    vocab, lines = read_json(folder / file, dict), lines_of(folder / PAIRS[file])
    merges = [line.split(" ") for line in lines if line.strip() and not line.startswith("#version")]
    named = str(settings.get("tokenizer_class") or "").removesuffix("Fast")
    named = str(model_type or "gpt2") if named in ANY_CLASS else named
    require(named in CLASSES, "vocabulary.class", file=PAIRS[file], name=named[:40], needed=TOKENIZER_JSON)
    split = SPLITS[CLASSES[named]]
    return byte_level_json(vocab, merges, *split, prefix_space=settings.get("add_prefix_space") is True)


def byte_level_json(
    vocab: Mapping[str, int],
    merges: Sequence[Sequence[str]],
    normalizer: Any = None,
    splits: Sequence[dict[str, Any]] = (),
    *,
    prefix_space: bool = False,
) -> dict[str, Any]:
    """Return the contents of a tokenizer.json for byte-level BPE. normalizer, splits: See SPLITS."""
    by_pattern = any(each["type"] == "Split" for each in splits)
    parts = {"add_prefix_space": prefix_space, "trim_offsets": True, "use_regex": not by_pattern}
    return {
        "normalizer": normalizer,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [*splits, {"type": "ByteLevel", **parts}]},
        "decoder": {"type": "ByteLevel", **parts},
        "model": {"type": "BPE", "vocab": vocab, "merges": merges},
    }


def lines_of(path: Path) -> list[str]:
    return [line.removesuffix("\r") for line in read_text(path).removesuffix("\n").split("\n")]


def bert_json(tokens: list[str], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return what transformers makes of BERT's vocab.txt. settings: contents of tokenizer_config.json."""
    named = str(settings.get("tokenizer_class") or BERT_CLASSES[0]).removesuffix("Fast")
    is_known = named in (*BERT_CLASSES, *ANY_CLASS)
    require(is_known, "vocabulary.class", file=VOCAB_TXT, name=named[:40], needed=TOKENIZER_JSON)
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
    """Return the contents of a tokenizer.json that encodes like a SentencePiece model."""
    message = list(fields(path.read_bytes()))
    trainer, normalizer = (dict(fields(b"".join(v for n, v in message if n == number))) for number in (2, 3))
    parts = [dict(fields(value)) for number, value in message if number == 1]
    pieces = [(part[1].decode(), struct.unpack("<f", part.get(2, bytes(4)))[0], part.get(3, NORMAL)) for part in parts]
    kind = trainer.get(3, UNIGRAM)
    require(pieces and kind != WORD and not trainer.get(24), "vocabulary.sentence_piece", file=path.name)
    return pieces_json(pieces, normalizer, is_unigram=kind == UNIGRAM)


def pieces_json(
    pieces: list[tuple[str, float, int]], normalizer: Mapping[int, Any], *, is_unigram: bool = False
) -> dict[str, Any]:
    """Return the contents of a tokenizer.json for SentencePiece's pieces: their texts, scores and types.

    normalizer: Fields of SentencePiece's NormalizerSpec, by number. A missing switch is on.
    """
    has_prefix, joins_spaces, escapes = (bool(normalizer.get(switch, True)) for switch in (PREFIX, JOIN, ESCAPE))
    whole = [piece for piece, _, of in pieces if of == USER_DEFINED]
    unknown = [i for i, (_, _, of) in enumerate(pieces) if of == UNKNOWN]
    model: dict[str, Any] = {"byte_fallback": any(of == BYTE for _, _, of in pieces)}
    if is_unigram:
        model |= {"type": "Unigram", "vocab": [[piece, score] for piece, score, _ in pieces]}
        model["unk_id"] = unknown[0] if unknown else None
    else:
        model |= {"type": "BPE", "vocab": {piece: i for i, (piece, _, _) in enumerate(pieces)}, "fuse_unk": True}
        model |= {"merges": merges_of(pieces), "ignore_merges": bool(whole)}
        model["unk_token"] = pieces[unknown[0]][0] if unknown else None
    steps: list[dict[str, Any]] = []  # in SentencePiece's order
    if b"nfkc" in normalizer.get(1, b""):
        steps.append({"type": "NFC"})  # the next step does not compose all characters
    if normalizer.get(2):
        steps.append({"type": "Precompiled", "precompiled_charsmap": base64.b64encode(normalizer[2]).decode()})
    if joins_spaces:
        steps += [{"type": "Replace", "pattern": {"Regex": library.EDGES}, "content": ""}]
        steps += [{"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}]
    steps += [{"type": "Prepend", "prepend": SPACE if escapes else " "}] if has_prefix else []
    steps += [{"type": "Replace", "pattern": {"String": " "}, "content": SPACE}] if escapes else []
    decoders: list[dict[str, Any]] = [{"type": "Replace", "pattern": {"String": SPACE}, "content": " "}] * escapes
    decoders += [{"type": "ByteFallback"}, {"type": "Fuse"}]
    decoders += [{"type": "Strip", "content": " ", "start": 1, "stop": 0}] if has_prefix else []
    pattern = "|".join(re.escape(piece) for piece in sorted(whole, key=len, reverse=True))
    return {
        "added_tokens": [
            {"id": i, "content": piece, "special": True}
            for i, (piece, _, of) in enumerate(pieces)
            if of in (UNKNOWN, CONTROL)
        ],
        "normalizer": {"type": "Sequence", "normalizers": steps},
        "pre_tokenizer": library.splitter(pattern) if whole else None,
        "decoder": {"type": "Sequence", "decoders": decoders},
        "model": model,
    }


def merges_of(pieces: list[tuple[str, float, int]]) -> list[tuple[str, str]]:
    """Return all pairs of pieces that make another, beginning with the best result."""
    normal = {piece: (-score, i) for i, (piece, score, of) in enumerate(pieces) if of == NORMAL}
    return [
        (piece[:cut], piece[cut:])
        for piece in sorted(normal, key=normal.__getitem__)
        for cut in range(1, len(piece))
        if piece[:cut] in normal and piece[cut:] in normal
    ]


def fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """Yield the number and the value of each field of a protobuf message. Raises IndexError if it is damaged."""
    stream = BytesIO(data)
    while stream.tell() < len(data):
        number, kind = divmod(read_varint(stream), 8)
        size = FIXED_SIZES.get(kind) or read_varint(stream)
        if kind == 0:
            yield number, size
        elif kind in (2, *FIXED_SIZES) and size <= len(data) - stream.tell():
            yield number, stream.read(size)
        else:
            raise IndexError("no protobuf message")


def read_varint(stream: BytesIO) -> int:
    value = 0
    for shift in range(0, 70, 7):
        byte = stream.read(1)[0]
        value |= (byte & 127) << shift
        if byte < 128:
            return value
    raise IndexError("no protobuf message")


def write_gpt2_files(tokenizer: Tokenizer, folder: Path) -> None:
    """Write vocab.json and merges.txt. Raises ValueError if a token is not a merge of two others."""
    ids, merges = letters_and_merges(tokenizer.encoding._mergeable_ranks)
    BPE(ids | tokenizer.special_names, merges).save(str(folder))


def letters_and_merges(ranks: Mapping[bytes, int]) -> tuple[dict[str, int], list[tuple[str, str]]]:
    """Convert {bytes: id} to {characters: id} and an ordered list of merges."""
    letter_of = {byte: letter for letter, byte in library.byte_letters().items()}
    letters = {token: "".join(letter_of[byte] for byte in token) for token in ranks}
    made = [(token, rank) for token, rank in sorted(ranks.items(), key=lambda item: item[1]) if len(token) > 1]
    merges = [last_merge(token, ranks, rank) for token, rank in made]
    return {letters[token]: i for token, i in ranks.items()}, [(letters[a], letters[b]) for a, b in merges]


def last_merge(token: bytes, ranks: Mapping[bytes, int], rank: int) -> tuple[bytes, bytes]:
    """Return the two tokens that merge into this one, found by encoding its bytes without that merge."""
    parts = [bytes([byte]) for byte in token]
    while len(parts) > 2:
        lowest, at = min((ranks.get(a + b, rank), i) for i, (a, b) in enumerate(pairwise(parts)))
        require(lowest < rank, "vocabulary.not_a_merge", token=rank)
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
    return parts[0], parts[1]


PLACE = "tokenizer.ggml"
FILLER = re.compile(r"\[PAD\d+\]")  # the converter's name for ids without a token
# Pattern of models converted before the metadata named one.
OLD_FILES = {"qwen2": "qwen2", "qwen3": "qwen2", "gptneox": "olmo", "starcoder": "starcoder", "starcoder2": "starcoder"}
ROLES = {"bos_token": "bos", "eos_token": "eos", "unk_token": "unknown"}
ROLES |= {"sep_token": "seperator", "pad_token": "padding"}
ENDS = ("eos", "eot", "eom")
# Control tokens that end a reply, by name, because many files state only the end of a text.
END_NAMES = ("<|eot_id|>", "<|eom_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>", "<|endoftext|>", "<|end_of_text|>")


def gguf_tokenizer(metadata: Mapping[str, Any], n_vocab: int, file: str) -> library.HuggingFaceTokenizer | None:
    """Return the vocabulary for a model with n_vocab tokens, or None if the metadata contains none."""
    values = {key.removeprefix(f"{PLACE}."): value for key, value in metadata.items()}
    kind = values.get("model", "none")
    if kind in ("none", "no_vocab"):
        return None
    with reading(file, "vocabulary.invalid"):
        tokens = values["tokens"]
        types = values.get("token_type") or [NORMAL] * len(tokens)
        pieces = list(enumerate(zip(tokens, types, strict=True)))
        if kind == "gpt2":  # byte-level BPE
            pre = str(values.get("pre", "default"))
            pre = OLD_FILES.get(str(values.get("general.architecture")), "gpt-2") if pre == "default" else pre
            require(pre in SPLITS, "vocabulary.option", file=file, name=f"{PLACE}.pre {pre}")
            known = {text: i for i, text in enumerate(tokens) if not FILLER.fullmatch(text)}
            content = byte_level_json(known, values["merges"], *SPLITS[pre])
            content["model"]["ignore_merges"] = starts = pre in STARTS_WITH_BOS
        else:
            require(kind == "llama", "vocabulary.option", file=file, name=f"{PLACE}.model {kind}")
            kinds = [UNUSED if of == USER_DEFINED else of for of in types]  # whole words become added tokens
            switches = {PREFIX: "add_space_prefix", JOIN: "remove_extra_whitespaces"}
            normalizer = {switch: values.get(name, switch == PREFIX) for switch, name in switches.items()}
            content = pieces_json(list(zip(tokens, values["scores"], kinds, strict=True)), normalizer)
            starts = True
        ids = {role: values.get(f"{name}_token_id", -1) for role, name in ROLES.items()}
        names = {role: tokens[i] for role, i in ids.items() if 0 <= i < len(tokens)}
        chat, ends = values.get("tokenizer.chat_template"), [values.get(f"{name}_token_id", -1) for name in ENDS]
        ends += [i for i, (text, of) in pieces if chat and of == CONTROL and text in END_NAMES]
        first = names.get("bos_token", "") if values.get("add_bos_token", starts) else ""
        last = names.get("eos_token", "") if values.get("add_eos_token") else ""
        return library.HuggingFaceTokenizer(
            content,
            n_vocab,
            file,
            tokens=names,
            end_ids=ends,
            chat=chat,
            more=[
                {"id": i, "content": text, "special": of != USER_DEFINED}
                for i, (text, of) in pieces
                if text and of in (CONTROL, UNKNOWN, USER_DEFINED)
            ],
            around=(first, last),
        )
