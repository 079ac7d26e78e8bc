"""Vocabularies of the `tokenizers` library, with control tokens and a chat template."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import regex
import tokenizers
from tokenizers.models import WordLevel

from gpt.chat import ChatTemplate
from gpt.errors import GPTError, check_token_id, require
from gpt.models.checkpoints.untrusted import reading
from gpt.tokenizer import END_OF_TEXT, MARK, Vocabulary, valid_text

TOKENIZER_JSON, TOKENIZER_CONFIG = "tokenizer.json", "tokenizer_config.json"
GENERATION_CONFIG = "generation_config.json"
TEMPLATE_KEY = "chat_template"  # in tokenizer_config.json
NO_SPACE = regex.compile(  # before punctuation, and in scripts without spaces
    r" (?=[\p{Pc}\p{Pd}\p{Pe}\p{Pf}\p{Po}\p{Han}\p{Hiragana}\p{Katakana}\p{Bopomofo}\u3000-\u303f\uff00-\uffef])"
)
CONTROL_NAME = re.compile(r"<[^<>\s]+>|\[[^\[\]\s]+\]")
SPACE = "▁"  # U+2581, which SentencePiece uses for a space
SEQUENCES = ("normalizers", "pretokenizers", "decoders")  # keys that contain the parts of a "Sequence"
NO_PREFIX: dict[str, Any] = {"Metaspace": {"prepend_scheme": "never"}, "ByteLevel": {"add_prefix_space": False}}
EDGES = r"\A +| +\z"  # spaces at both ends of a text
BYTE_TOKEN = re.compile(r"<0x([0-9A-F]{2})>")


class HuggingFaceTokenizer(Vocabulary):
    """A vocabulary backed by the `tokenizers` library, for a model with n_vocab tokens.

    Encodes names of control tokens in a text as characters, never as control tokens. Omits characters that the
    vocabulary cannot represent, and added tokens with ids of n_vocab or above. Model ids without a token become control
    tokens such as "<50300>".

    content: The contents of a tokenizer.json. file: Name of the file that they come from, for errors.
    tokens: Names of control tokens by role, such as "bos_token". end_ids: Ids that end generation. chat: A template.
    more: Additional tokens, like those in "added_tokens". around: Control tokens before and after each text, or "".
    Raises almost anything if the contents are damaged; see `reading`.
    """

    def __init__(
        self,
        content: Mapping[str, Any],
        n_vocab: int,
        file: str,
        *,
        tokens: Mapping[str, str],
        end_ids: Sequence[int] = (),
        chat: str | None = None,
        more: Iterable[Mapping[str, Any]] = (),
        around: tuple[str, str] = ("", ""),
    ) -> None:
        self.n_vocab, self.tokens, self.chat = n_vocab, tokens, ChatTemplate(chat, tokens) if chat else None
        named = [{"content": name, "special": True} for name in tokens.values()]
        content = completed(content, n_vocab, file, [*more, *named], around)
        self._tokenizer = self._continuing = tokenizers.Tokenizer.from_str(json.dumps(content))
        parts = {key: content.get(key) for key in ("normalizer", "pre_tokenizer")}
        encoders = [*flat_parts(parts["normalizer"]), *flat_parts(parts["pre_tokenizer"])]
        places = {place_of_space(part) for part in encoders} - {""}
        self.spaces_each_part = "each" in places
        unchanged = {key: unchanged_start(part) for key, part in parts.items()}
        if unchanged != parts:
            self._continuing = tokenizers.Tokenizer.from_str(json.dumps(content | unchanged))
        # Set here, before other threads use the tokenizers, because the library refuses it while they do.
        self._tokenizer.encode_special_tokens = self._continuing.encode_special_tokens = True
        added, names = content["added_tokens"], set(tokens.values())
        self._control = {each["content"]: each for each in added if each["special"] or each["content"] in names}
        self.special_names = {name: token["id"] for name, token in self._control.items()}
        vocab = self._tokenizer.get_vocab()
        if any(part["type"] == "ByteLevel" for part in encoders):
            found, self.strips_space = bytes_of_letters(vocab, {each["id"] for each in added}), bool(places)
        else:
            control = set(self.special_names.values())
            found, self.strips_space = bytes_of_decoder(vocab, self._tokenizer.decoder, control)
        self.bytes_of = [found.get(i, b"<%d>" % i) for i in range(n_vocab)]
        self.special_ids = frozenset(set(range(n_vocab)) - found.keys()).union(self.special_names.values())
        model = content["model"]
        unknown = model.get("unk_id", vocab.get(model.get("unk_token")))  # the former in Unigram
        self.unknown_id = unknown if unknown in range(n_vocab) else None
        self._never = self.special_ids.union(i for i in found if i >= n_vocab) - {self.unknown_id}
        whole = self._tokenizer.post_process(tokenizers.Tokenizer(WordLevel({"a": 0}, "a")).encode("a"))
        at = whole.special_tokens_mask.index(0)
        self.prefix_ids = tuple(whole.ids[:at])
        require(max(self.prefix_ids, default=0) < n_vocab, "vocabulary.invalid", file=TOKENIZER_JSON, reason="prefix")
        stated = [self.special_names.get(tokens.get("eos_token", "")), *end_ids]
        ends = [i for i in stated if i in range(n_vocab)] or [i for i in whole.ids[at + 1 :] if i < n_vocab]
        self.eot_id = self.special_names.get(END_OF_TEXT, ends[0] if ends else None)
        self.eot_ids = frozenset(i for i in (self.eot_id, *ends) if i is not None)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._tokenizer.encode_special_tokens = self._continuing.encode_special_tokens = True  # which is not saved

    def encode(self, text: str) -> list[int]:
        return self._encode(self._tokenizer, text)

    def encode_continuation(self, text: str) -> list[int]:
        return self._encode(self._continuing, text)

    def _encode(self, tokenizer: tokenizers.Tokenizer, text: str) -> list[int]:
        found = []
        for token_id in ids_of(tokenizer, valid_text(text).replace(MARK, "")):
            if token_id in self._never:  # a control token, which its characters replace
                ids = [i for letter in tokenizer.id_to_token(token_id) or "" for i in ids_of(self._continuing, letter)]
                found += [i for i in ids if i not in self._never]
            else:
                found.append(token_id)
        return found

    def split_names(self, text: str) -> list[str]:
        parts = super().split_names(text)
        for i in range(1, len(parts), 2):
            token = self._control[parts[i]]
            if token["lstrip"]:
                parts[i - 1] = parts[i - 1].rstrip()
            if token["rstrip"]:
                parts[i + 1] = parts[i + 1].lstrip()
        return parts

    def token_bytes(self, token_id: int) -> bytes:
        check_token_id(token_id, self.n_vocab)
        return self.bytes_of[token_id]

    def write(self, folder: Path) -> None:
        self._tokenizer.save(str(folder / TOKENIZER_JSON), pretty=False)
        settings = {"tokenizer_class": "PreTrainedTokenizerFast", **self.tokens}
        if self.chat is not None:
            settings[TEMPLATE_KEY] = self.chat.source
        write_json(folder / TOKENIZER_CONFIG, settings)
        if self.eot_ids:
            write_json(folder / GENERATION_CONFIG, {"eos_token_id": sorted(self.eot_ids)})


def ids_of(tokenizer: tokenizers.Tokenizer, text: str) -> list[int]:
    """Return the ids of a text. Raises ValueError if a part of it has no token."""
    with reading(TOKENIZER_JSON, "vocabulary.unknown_part"):
        return tokenizer.encode(text, add_special_tokens=False).ids


def completed(
    content: Mapping[str, Any], n_vocab: int, file: str, more: Iterable[Mapping[str, Any]], around: tuple[str, str]
) -> dict[str, Any]:
    """Return the contents of a tokenizer.json with all added tokens, the usual decoder, and without random choices."""
    model, ids = dict(content["model"]), ids_of_tokens(content["model"], file)
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    added = {token["content"]: flags | token for token in content.get("added_tokens") or []}
    beyond = {token for token, token_id in ids.items() if token_id >= n_vocab} - added.keys()
    if beyond and not beyond <= set(control_names(content, file)):
        raise GPTError("vocabulary.size", n=max(ids.values()) + 1, n_vocab=n_vocab)
    for token in more:
        if token["content"] in ids or "id" in token:
            added.setdefault(token["content"], {**flags, **token})
    added = {name: token | {"id": ids.get(name, token.get("id"))} for name, token in added.items()}
    added = {name: token for name, token in added.items() if token["id"] < n_vocab}
    ids_added = {name: token["id"] for name, token in added.items()}
    model["vocab"] = with_ids(model["vocab"], ids_added)
    model |= {"dropout": None} if "dropout" in model else {}
    changed: dict[str, Any] = {"added_tokens": [*added.values()], "model": model, "truncation": None, "padding": None}
    changed["decoder"] = content.get("decoder") or usual_decoder(content, ids)
    if any(around):
        changed["post_processor"] = put_around_texts(ids | ids_added, *around)
    return {**content, **changed}


def put_around_texts(ids: Mapping[str, int], first: str, last: str) -> dict[str, Any]:
    """Return the post-processor that puts control tokens before and after each text, except for those without an id.

    The library's own class would read a name such as "$A" or "x:1" as a part of the text.
    """
    before, after = ([{"SpecialToken": {"id": name, "type_id": 0}}] if name in ids else [] for name in (first, last))
    single = [*before, {"Sequence": {"id": "A", "type_id": 0}}, *after]
    pair = [*single, {"Sequence": {"id": "B", "type_id": 1}}]
    known = {name: {"id": name, "ids": [ids[name]], "tokens": [name]} for name in (first, last) if name in ids}
    return {"type": "TemplateProcessing", "single": single, "pair": pair, "special_tokens": known}


def splitter(pattern: str, behavior: str = "Isolated") -> dict[str, Any]:
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": behavior, "invert": False}


def with_ids(vocab: Any, ids: Mapping[str, int]) -> Any:
    """Return a model's vocabulary with further tokens; the library gives those that it lacks the next free ids."""
    if isinstance(vocab, dict):
        return {**ids, **vocab}
    names, lowest = {token_id: name for name, token_id in ids.items()}, min(score for _, score in vocab)
    after = range(len(vocab), max(names, default=0) + 1)  # in Unigram, the place in the list is the id
    return [*vocab, *([names.get(i, f"{MARK}{i}"), lowest] for i in after)]


def unchanged_start(part: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return a part of a tokenizer.json so that it adds and removes no space, or None if it does nothing else."""
    if part is None or part["type"] in ("Prepend", "Strip") or part.get("pattern") == {"Regex": EDGES}:
        return None
    inner = {key: [kept for each in part[key] if (kept := unchanged_start(each))] for key in SEQUENCES if key in part}
    return part | inner | NO_PREFIX.get(part["type"], {})


def bytes_of_letters(vocab: Mapping[str, int], added: set[int]) -> dict[int, bytes]:
    """Return the bytes for each id of a byte-level vocabulary. Added tokens become the bytes of their text."""
    letters, found = byte_letters(), {}
    for token, i in vocab.items():
        is_text = i in added or not letters.keys() >= set(token)
        found[i] = token.encode() if is_text else bytes(letters[letter] for letter in token)
    return found


def bytes_of_decoder(vocab: Mapping[str, int], decoder: Any, control: set[int]) -> tuple[dict[int, bytes], bool]:
    """Return the bytes for each id within a text, and whether decoding removes a space at the start of a text.

    Tokens that the library joins by spaces begin with one, unless texts have none before them. Control tokens become
    the bytes of their names.
    """
    decode = " ".join if decoder is None else decoder.decode
    vocab = {token: i for token, i in vocab.items() if MARK not in token}
    joined = decode([MARK, MARK])[1:-1]
    texts = decode([MARK, *(each for token in vocab for each in (token, MARK))]).split(MARK)[1:-1]
    found = {}
    for (token, i), text in zip(vocab.items(), texts, strict=True):
        byte = BYTE_TOKEN.fullmatch(token)
        text = token if i in control else text.removesuffix(joined)
        text = text[1:] if joined and NO_SPACE.match(text) else text
        found[i] = bytes([int(byte[1], 16)]) if byte else text.encode()
    return found, joined != "" or decode([SPACE + MARK])[0] == MARK


def write_json(path: Path, content: object) -> None:
    path.write_text(json.dumps(content, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


def ids_of_tokens(model: Mapping[str, Any], file: str) -> dict[str, int]:
    """Return {token: id}. Raises ValueError unless each token has an id of its own."""
    vocab = model["vocab"]
    ids = {pair[0]: i for i, pair in enumerate(vocab)} if isinstance(vocab, list) else vocab
    require(ids and len(set(ids.values())) == len(vocab), "vocabulary.ids", file=file)
    return ids


def usual_decoder(content: Mapping[str, Any], tokens: Iterable[str]) -> Any:
    """Return the decoder for a file that states none, or None if spaces join the tokens."""
    model = content["model"]
    if marked := [part for part in flat_parts(content.get("pre_tokenizer")) if part["type"] == "Metaspace"]:
        return marked[0]
    if prefix := model.get("continuing_subword_prefix"):
        return {"type": "WordPiece", "prefix": prefix, "cleanup": True}
    if suffix := model.get("end_of_word_suffix"):
        return {"type": "BPEDecoder", "suffix": suffix}
    return {"type": "Fuse"} if any(" " in token for token in tokens) else None


def place_of_space(part: Mapping[str, Any]) -> str:
    """Return which parts of a text get a leading space from a component: "" for none, "first" or "each"."""
    if part["type"] == "Metaspace":
        scheme = part.get("prepend_scheme", "always" if part.get("add_prefix_space", True) else "never")
        return {"never": "", "first": "first"}.get(scheme, "each")
    is_on = part["type"] == "Prepend" or (part["type"] == "ByteLevel" and part.get("add_prefix_space", True))
    return "each" if is_on else ""


def flat_parts(part: Mapping[str, Any] | None) -> Iterator[Mapping[str, Any]]:
    """Yield the parts of a normalizer, pre-tokenizer or decoder in order."""
    inner = [each for key in SEQUENCES if part and key in part for each in part[key]]
    for each in inner:
        yield from flat_parts(each)
    if part is not None and not inner:
        yield part


def control_names(content: Mapping[str, Any], file: str) -> list[str]:
    """Return the tokens of a tokenizer.json, such as "<pad>", that are neither a byte nor the result of a merge."""
    model = content["model"]
    made = {"".join(pair).replace(" ", "") for pair in model.get("merges", [])}
    return [each for each in ids_of_tokens(model, file) if CONTROL_NAME.fullmatch(each) and each not in made]


def byte_letters() -> dict[str, int]:
    """Return {character: byte}. Printable Latin-1 characters map to their own byte, those from U+0100 to the others."""
    printable = [byte for byte in range(256) if chr(byte).isprintable() and chr(byte) != " "]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + i): byte for i, byte in enumerate(others)}
