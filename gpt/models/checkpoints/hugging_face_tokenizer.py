"""The vocabularies of Hugging Face's models by the `tokenizers` library: tokenizer.json and the files beside it."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import regex
import tokenizers

from gpt.checks import check_token_id
from gpt.errors import GPTError
from gpt.models.checkpoints.bpe_files import TOKENIZER_JSON, byte_letters
from gpt.models.checkpoints.chat_template import TEMPLATE_FILE, TEMPLATE_KEY, ChatTemplate, read_chat_template, short
from gpt.models.checkpoints.tokenizer_json import SPACE, TokenizerJson, check_tokenizer_json
from gpt.models.checkpoints.untrusted import read_bytes, read_json
from gpt.tokenizer import END_OF_TEXT, Vocabulary

TOKENIZER_CONFIG, GENERATION_CONFIG, CONFIG = "tokenizer_config.json", "generation_config.json", "config.json"
SETTINGS_FILES = (TOKENIZER_CONFIG, GENERATION_CONFIG, TEMPLATE_FILE)
NAMED_TOKENS = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
PLACES = ("#answer#", "#message#")  # in place of an answer and a message, to see what a template writes around them
# Noncharacters of Unicode around the name of a control token in a message, so that it is not taken for the template's.
MARK, END_MARK = "\ufdd0", "\ufdd1"
MAX_PREFIX_TOKENS = 4
BYTE_TOKEN = re.compile(r"<0x([0-9A-F]{2})>")


@dataclass(frozen=True)
class TokenizerSettings:
    """What the files beside tokenizer.json say. tokens: names of control tokens by their role, "bos_token" and others.

    end_ids: ids that end a generation. As in transformers, "add_bos_token" is ignored: tokenizer.json says what is put
    before a text. chat: the chat template.
    """

    tokens: Mapping[str, str] = field(default_factory=dict)
    end_ids: tuple[int, ...] = ()
    chat: ChatTemplate | None = None


class HuggingFaceTokenizer(Vocabulary):
    """A tokenizer.json. Names of control tokens in a text are encoded as characters, never as control tokens.

    Ids of the model that the file lacks are control tokens such as "<50300>". bytes_of: bytes of each id.
    """

    def __init__(
        self, tokenizer: tokenizers.Tokenizer, checked: TokenizerJson, n_vocab: int, settings: TokenizerSettings
    ) -> None:
        self.n_vocab, self.settings = n_vocab, settings
        self._tokenizer, self._lock = tokenizer, threading.Lock()
        self._frames: dict[tuple[bool, date], tuple[str, str]] = {}
        tokenizer.no_truncation()
        tokenizer.no_padding()
        tokenizer.encode_special_tokens = True
        named = [name for name in settings.tokens.values() if tokenizer.token_to_id(name) is not None]
        tokenizer.add_special_tokens([tokenizers.AddedToken(name, special=True, normalized=False) for name in named])
        self._continuing = without_prefix_space(tokenizer) if checked.prepends else tokenizer
        self.strips_space = checked.strips
        added = {i: token for i, token in tokenizer.get_added_tokens_decoder().items() if i < n_vocab}
        self.bytes_of = token_table(tokenizer, added, checked.byte_level, n_vocab)
        unused = {i for i, data in enumerate(self.bytes_of) if data is None}
        self.special_ids = frozenset(unused | {i for i, token in added.items() if token.special})
        self._never = self.special_ids - {tokenizer.token_to_id(settings.tokens.get("unk_token", ""))}
        ids = {role: tokenizer.token_to_id(name) for role, name in settings.tokens.items()}
        self.prefix_ids = self._find_prefix()
        names = [token.content for token in added.values() if token.special]
        self._names = regex.compile(r"\L<names>", names=names)
        pieces = rf"{MARK}\L<names>{END_MARK}|\L<names>|."
        self._pieces = regex.compile(pieces, regex.DOTALL, names=names)
        self.eot_id = tokenizer.token_to_id(END_OF_TEXT)
        if self.eot_id not in self.special_ids:
            self.eot_id = next((i for i in (ids.get("eos_token"), *settings.end_ids) if i is not None), None)
        ends = {self.eot_id, ids.get("eos_token"), *settings.end_ids}
        self.eot_ids = frozenset(i for i in ends if i is not None and i < n_vocab)

    def encode(self, text: str) -> list[int]:
        return self._encode(self._tokenizer, text)

    def encode_continuation(self, text: str) -> list[int]:
        return self._encode(self._continuing, text)

    def decode(self, ids: list[int]) -> str:
        for token_id in ids:
            check_token_id(token_id, self.n_vocab)
        return self._tokenizer.decode(ids, skip_special_tokens=False)

    def token_bytes(self, token_id: int) -> bytes:
        check_token_id(token_id, self.n_vocab)
        data = self.bytes_of[token_id]
        return f"<{token_id}>".encode() if data is None else data

    @property
    def is_chat(self) -> bool:
        return self.settings.chat is not None

    def encode_chat(self, messages: Sequence[Mapping[str, str]]) -> list[int]:
        return self._encode_rendered(self._render(messages))

    def chat_frame(self, *, first: bool = True) -> tuple[str, str]:
        key = first, date.today()  # which some templates write
        if key not in self._frames:
            before = [] if first else [{"role": "user", "content": "a"}, {"role": "assistant", "content": PLACES[0]}]
            text = self._render([*before, {"role": "user", "content": PLACES[1]}])
            start, found, end = text.partition(PLACES[1])
            if not found or not (first or PLACES[0] in start):
                raise GPTError("chat.template", reason=short("no content"))
            self._frames[key] = start.rpartition(PLACES[0])[2], end
        return self._frames[key]

    def encode_message(self, text: str, *, first: bool = True) -> list[int]:
        before, after = self.chat_frame(first=first)
        return self._encode_rendered(before + self._mark(valid_text(text)) + after)

    def _render(self, messages: Sequence[Mapping[str, str]]) -> str:
        if self.settings.chat is None:
            raise GPTError("chat.none")
        marked = [{key: self._mark(valid_text(value)) for key, value in message.items()} for message in messages]
        return self.settings.chat.render(marked)

    def _mark(self, text: str) -> str:
        """The text with marks around names of control tokens."""
        return self._names.sub(rf"{MARK}\g<0>{END_MARK}", text.replace(MARK, "").replace(END_MARK, ""))

    def _encode_rendered(self, text: str) -> list[int]:
        """Token ids of a rendered chat: names of control tokens stand for these, but for those that are marked."""
        if MARK not in text and END_MARK not in text:
            return self._encode_with_control_tokens(text)
        ids: list[int] = []
        characters = ""
        for match in self._pieces.finditer(text):
            piece = match.group()
            if self._names.fullmatch(piece):
                ids += self._encode_part(characters, not ids) + self._encode_with_control_tokens(piece)
                characters = ""
            else:
                characters += piece.strip(MARK + END_MARK)
        return [*ids, *self._encode_part(characters, not ids)]

    def _encode_part(self, text: str, is_first: bool) -> list[int]:
        return (self.encode(text) if is_first else self.encode_continuation(text)) if text else []

    def _encode_with_control_tokens(self, text: str) -> list[int]:
        with self._lock, library_errors(TOKENIZER_JSON):
            self._tokenizer.encode_special_tokens = False
            try:
                ids = self._tokenizer.encode(text, add_special_tokens=False).ids
            finally:
                self._tokenizer.encode_special_tokens = True
        for token_id in ids:
            check_token_id(token_id, self.n_vocab)
        return ids

    def write(self, folder: Path) -> None:
        """Write tokenizer.json and the settings beside it."""
        self._tokenizer.save(str(folder / TOKENIZER_JSON), pretty=False)
        settings = {"tokenizer_class": "PreTrainedTokenizerFast", **self.settings.tokens}
        if self.settings.chat is not None:
            settings[TEMPLATE_KEY] = self.settings.chat.source
        write_json(folder / TOKENIZER_CONFIG, settings)
        write_json(folder / GENERATION_CONFIG, {"eos_token_id": sorted(self.eot_ids)})

    def _encode(self, tokenizer: tokenizers.Tokenizer, text: str) -> list[int]:
        with self._lock, library_errors(TOKENIZER_JSON):
            ids = tokenizer.encode(valid_text(text), add_special_tokens=False).ids
            if self._never.isdisjoint(ids):
                return ids
            return [each for token_id in ids for each in self._as_characters(tokenizer, token_id)]

    def _as_characters(self, tokenizer: tokenizers.Tokenizer, token_id: int) -> list[int]:
        """A token that merges have made; a control token as the tokens of its characters."""
        if token_id not in self._never:
            return [token_id]
        name = tokenizer.id_to_token(token_id) or ""
        ids = [each for character in name for each in self._continuing.encode(character, add_special_tokens=False).ids]
        return [each for each in ids if each not in self._never]

    def _find_prefix(self) -> tuple[int, ...]:
        """What tokenizer.json puts before a text."""
        with library_errors(TOKENIZER_JSON):
            text, all_ids = self._tokenizer.encode("a", add_special_tokens=False).ids, self._tokenizer.encode("a").ids
        before = [i for i in range(len(all_ids) + 1) if all_ids[i : i + len(text)] == text]
        prefix = all_ids[: before[0]] if before else []
        if len(prefix) > MAX_PREFIX_TOKENS or not all(token_id < self.n_vocab for token_id in prefix):
            raise GPTError("vocabulary.parts", file=TOKENIZER_JSON)
        return tuple(prefix)


def read_hugging_face_tokenizer(folder: Path, n_vocab: int) -> HuggingFaceTokenizer:
    """Read tokenizer.json, tokenizer_config.json and generation_config.json for a model of n_vocab tokens.

    Raises ValueError if a file is damaged, of another kind than `check_tokenizer_json` accepts, or does not fit the
    model. Control tokens beyond the model's are left out.
    """
    path = folder / TOKENIZER_JSON
    checked = check_tokenizer_json(read_json(path, dict), n_vocab, path.name)
    with library_errors(path.name):
        tokenizer = tokenizers.Tokenizer.from_buffer(read_bytes(path))
        tokenizer.model.dropout = None
    beyond = [token for i, token in tokenizer.get_added_tokens_decoder().items() if i >= n_vocab and not token.special]
    if beyond:
        raise GPTError("vocabulary.size", n=tokenizer.get_vocab_size(), n_vocab=n_vocab)
    names = byte_letters() if checked.byte_level else {f"<0x{byte:02X}>": byte for byte in range(256)}
    if missing := [byte for name, byte in names.items() if name not in checked.vocab]:
        raise GPTError("vocabulary.missing_byte_ids", file=path.name, byte=missing[0])
    return HuggingFaceTokenizer(tokenizer, checked, n_vocab, read_settings(folder))


def read_settings(folder: Path) -> TokenizerSettings:
    """The settings in the files beside tokenizer.json, all of which may be missing."""
    config, generation, model = (
        read_json(folder / name, dict) if (folder / name).is_file() else {}
        for name in (TOKENIZER_CONFIG, GENERATION_CONFIG, CONFIG)
    )
    tokens = {role: name for role in NAMED_TOKENS if (name := token_name(config.get(role)))}
    ends = generation.get("eos_token_id", model.get("eos_token_id"))
    ends = ends if isinstance(ends, list) else [ends]
    end_ids = tuple(end for end in ends if type(end) is int and end >= 0)
    return TokenizerSettings(tokens, end_ids, read_chat_template(folder, config, tokens))


def token_name(value: object) -> str | None:
    """The name of a token in tokenizer_config.json: a string, or {"content": string, ...}."""
    content = value.get("content") if isinstance(value, dict) else value
    return content if isinstance(content, str) and content else None


def without_prefix_space(tokenizer: tokenizers.Tokenizer) -> tokenizers.Tokenizer:
    """A copy that puts no space before a text."""
    content = json.loads(tokenizer.to_str())
    waiting = [content.get("normalizer"), content.get("pre_tokenizer")]
    while waiting:
        part = waiting.pop() or {}
        if part.get("type") == "Metaspace":
            part["prepend_scheme"] = "never"
        for key in ("normalizers", "pretokenizers"):
            part[key] = [each for each in part.get(key, []) if each["type"] != "Prepend"]
            waiting += part[key]
    if (content.get("normalizer") or {}).get("type") == "Prepend":
        content["normalizer"] = None
    copy = tokenizers.Tokenizer.from_str(json.dumps(content))
    copy.encode_special_tokens = True
    return copy


def token_table(
    tokenizer: tokenizers.Tokenizer, added: Mapping[int, tokenizers.AddedToken], byte_level: bool, n_vocab: int
) -> list[bytes | None]:
    """Bytes of each id; None for an id without a token. Added tokens are stored as their text."""
    table: list[bytes | None] = [None] * n_vocab
    letters = byte_letters()
    for token, token_id in tokenizer.get_vocab().items():
        if token_id < n_vocab:
            as_text = token_id in added and (byte_level or added[token_id].special)
            table[token_id] = token.encode() if as_text else token_bytes(token, letters, byte_level=byte_level)
    return table


def token_bytes(token: str, letters: Mapping[str, int], *, byte_level: bool) -> bytes:
    """Bytes of a token as tokenizer.json writes it."""
    if byte_level:
        known = [letters.get(letter) for letter in token]
        return token.encode() if None in known else bytes(byte for byte in known if byte is not None)
    byte = BYTE_TOKEN.fullmatch(token)
    return bytes([int(byte[1], 16)]) if byte else token.replace(SPACE, " ").encode()


def valid_text(text: str) -> str:
    """The text with U+FFFD for unpaired surrogates."""
    return text.encode("utf-8", "replace_surrogate").decode()


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write a JSON file."""
    path.write_text(json.dumps(content, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


@contextmanager
def library_errors(file: str) -> Iterator[None]:
    """Turn errors of the library, a Rust extension, into ValueErrors that name the file."""
    try:
        yield
    except GPTError:
        raise
    except Exception as error:
        raise GPTError("vocabulary.invalid", file=file, reason=str(error).partition("\n")[0]) from None
    except BaseException as error:  # a Rust panic is no Exception
        if type(error).__name__ != "PanicException":
            raise
        raise GPTError("vocabulary.invalid", file=file, reason=str(error).partition("\n")[0]) from None
