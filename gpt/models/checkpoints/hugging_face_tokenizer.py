"""Read Hugging Face vocabularies (tokenizer.json, or vocab.json and merges.txt) with the `tokenizers` library."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import regex
import tokenizers

from gpt.checks import check_token_id
from gpt.errors import GPTError
from gpt.models.checkpoints.bpe_files import (
    TOKENIZER_JSON,
    VOCAB_JSON,
    byte_letters,
    byte_level_json,
    control_names,
    letters_and_merges,
    pair_as_tokenizer_json,
)
from gpt.models.checkpoints.chat_template import (
    TEMPLATE_FILE,
    TEMPLATE_KEY,
    ChatTemplate,
    read_chat_template,
    template_failed,
)
from gpt.models.checkpoints.tokenizer_json import SPACE, TokenizerJson, check_tokenizer_json, lacks_parts
from gpt.models.checkpoints.untrusted import read_json
from gpt.tokenizer import END_OF_TEXT, Vocabulary, no_chat_template, text_with_names

TOKENIZER_CONFIG, GENERATION_CONFIG, CONFIG = "tokenizer_config.json", "generation_config.json", "config.json"
SPECIAL_TOKENS, ADDED_TOKENS = "special_tokens_map.json", "added_tokens.json"
SETTINGS_FILES = (TOKENIZER_CONFIG, GENERATION_CONFIG, SPECIAL_TOKENS, ADDED_TOKENS, TEMPLATE_FILE)
NAMED_TOKENS = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
OTHER_TOKENS = ("additional_special_tokens", "extra_special_tokens")
PLACES = ("#answer#", "#message#")  # placeholders for a reply and a message, used to find the text around them
# Unicode noncharacters around control token names in messages, to distinguish these from names in the template.
MARK, END_MARK = "\ufdd0", "\ufdd1"
WITHOUT_MARKS = str.maketrans("", "", MARK + END_MARK)
MAX_PREFIX_TOKENS = 4
BYTE_TOKEN = re.compile(r"<0x([0-9A-F]{2})>")


@dataclass(frozen=True)
class TokenizerSettings:
    """Settings from the files next to a vocabulary.

    As in transformers, "add_bos_token" is ignored if there is a tokenizer.json, because that file contains the prefix.

    Attributes:
        tokens: Names of control tokens by role, such as "bos_token".
        end_ids: Ids that end generation.
        chat: The chat template.
    """

    tokens: Mapping[str, str] = field(default_factory=dict)
    end_ids: tuple[int, ...] = ()
    chat: ChatTemplate | None = None


class HuggingFaceTokenizer(Vocabulary):
    """A vocabulary backed by the `tokenizers` library.

    Encodes names of control tokens in a text as characters, never as control tokens. Omits characters that the
    vocabulary cannot represent. Model ids without a token become control tokens such as "<50300>".

    Attributes:
        bytes_of: Bytes for each id; None for ids without a token.
    """

    def __init__(
        self, tokenizer: tokenizers.Tokenizer, checked: TokenizerJson, n_vocab: int, settings: TokenizerSettings
    ) -> None:
        self.n_vocab, self.settings, self.checked = n_vocab, settings, checked
        self._tokenizer = tokenizer
        self._frames: dict[tuple[bool, date], tuple[tuple[str, str], tuple[str, str]]] = {}
        tokenizer.no_truncation()
        tokenizer.no_padding()
        ids = {role: i for role, name in settings.tokens.items() if (i := self._id_of(name)) is not None}
        named = [settings.tokens[role] for role in ids]
        tokenizer.add_special_tokens([tokenizers.AddedToken(name, special=True, normalized=False) for name in named])
        self._continuing = without_prefix_space(tokenizer) if checked.prefix != "none" else tokenizer
        self._encode_names_as_characters()
        self.strips_space = checked.strips
        added = {i: token for i, token in tokenizer.get_added_tokens_decoder().items() if i < n_vocab}
        self.bytes_of = bytes_table(tokenizer, added, checked.byte_level, n_vocab)
        unused = {i for i, data in enumerate(self.bytes_of) if data is None}
        control = {i: token for i, token in added.items() if token.special or token.content in named}
        self.special_ids = frozenset(unused | control.keys())
        self._never = self.special_ids - {self._id_of(tokenizer.model.unk_token or "")}
        self.prefix_ids = self._find_prefix()
        self._control = {token.content: (i, token) for i, token in control.items()}
        names = list(self._control) or [MARK]  # an empty list would match everywhere
        self._names = regex.compile(r"\L<names>", names=names)
        self._pieces = regex.compile(rf"{MARK}\L<names>{END_MARK}|\L<names>", names=names)
        ends = [i for i in (ids.get("eos_token"), *settings.end_ids) if i is not None and i < n_vocab]
        self.eot_id = self._id_of(END_OF_TEXT)
        if self.eot_id not in self.special_ids:
            self.eot_id = ends[0] if ends else None
        self.eot_ids = frozenset(ends if self.eot_id is None else (self.eot_id, *ends))

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._encode_names_as_characters()  # the library does not save this setting

    def _encode_names_as_characters(self) -> None:
        self._tokenizer.encode_special_tokens = self._continuing.encode_special_tokens = True

    def _id_of(self, name: str) -> int | None:
        """Return the id of a token, or None if the model lacks it."""
        found = self._tokenizer.token_to_id(name)
        return found if found is not None and found < self.n_vocab else None

    def encode(self, text: str) -> list[int]:
        return self._encode(self._tokenizer, text)

    def encode_continuation(self, text: str) -> list[int]:
        return self._encode(self._continuing, text)

    def decode(self, ids: list[int]) -> str:
        for token_id in ids:
            check_token_id(token_id, self.n_vocab)
        text = self._tokenizer.decode(ids, skip_special_tokens=False)
        return text.removeprefix(" ") if self.checked.byte_level and self.strips_space else text

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
        return self._frame(first)[1]

    def encode_message(self, text: str, *, first: bool = True) -> list[int]:
        before, after = self._frame(first)[0]
        return self._encode_rendered(before + self._mark(valid_text(text)) + after, is_start=first)

    def _frame(self, first: bool) -> tuple[tuple[str, str], tuple[str, str]]:
        """Return the template's text around a message, both as rendered and as decoded from its tokens."""
        key = first, date.today()  # some templates include the date
        if key not in self._frames:
            before = [] if first else [{"role": "user", "content": "a"}, {"role": "assistant", "content": PLACES[0]}]
            text = self._render([*before, {"role": "user", "content": PLACES[1]}])
            start, found, end = text.partition(PLACES[1])
            if not found or not (first or PLACES[0] in start):
                raise template_failed("no content")
            start = start.rpartition(PLACES[0])[2]
            ids = self._encode_rendered(start + PLACES[1] + end, is_start=first)
            read = text_with_names(self, ids, strips_space=first and self.strips_space)
            shown_start, found, shown_end = read.partition(PLACES[1])
            self._frames[key] = (start, end), (shown_start, shown_end) if found else (start, end)
        return self._frames[key]

    def _render(self, messages: Sequence[Mapping[str, str]]) -> str:
        if self.settings.chat is None:
            raise no_chat_template()
        marked = [{key: self._mark(valid_text(value)) for key, value in message.items()} for message in messages]
        return self.settings.chat.render(marked)

    def _mark(self, text: str) -> str:
        """Surround the names of control tokens in a text with marks."""
        return self._names.sub(rf"{MARK}\g<0>{END_MARK}", text.translate(WITHOUT_MARKS))

    def _encode_rendered(self, text: str, *, is_start: bool = True) -> list[int]:
        """Encode a rendered chat. Unmarked names of control tokens become control tokens.

        is_start: Whether the text starts the chat. Only then can a space be added before it.
        """
        ids: list[int] = []
        plain, at, strips = "", 0, False
        for match in self._pieces.finditer(text):
            plain, at = plain + text[at : match.start()], match.end()
            if match.group().startswith(MARK):
                plain += match.group()
                continue
            token_id, token = self._control[match.group()]
            plain = plain.rstrip() if token.lstrip else plain
            ids += [*self._encode_part(plain.lstrip() if strips else plain, is_start=is_start, after=ids), token_id]
            plain, strips = "", token.rstrip
        plain += text[at:]
        return ids + self._encode_part(plain.lstrip() if strips else plain, is_start=is_start, after=ids)

    def _encode_part(self, text: str, *, is_start: bool, after: Sequence[int]) -> list[int]:
        """Encode the characters between two control tokens. after: ids so far, which end with a control token."""
        begins = self.checked.prefix == "each" if after else is_start
        return (self.encode if begins else self.encode_continuation)(text.translate(WITHOUT_MARKS)) if text else []

    def write(self, folder: Path) -> None:
        """Write tokenizer.json and its settings."""
        self._tokenizer.save(str(folder / TOKENIZER_JSON), pretty=False)
        settings = {"tokenizer_class": "PreTrainedTokenizerFast", **self.settings.tokens}
        if self.settings.chat is not None:
            settings[TEMPLATE_KEY] = self.settings.chat.source
        write_json(folder / TOKENIZER_CONFIG, settings)
        write_json(folder / GENERATION_CONFIG, {"eos_token_id": sorted(self.eot_ids)})

    def _encode(self, tokenizer: tokenizers.Tokenizer, text: str) -> list[int]:
        with library_errors(TOKENIZER_JSON):
            ids = tokenizer.encode(valid_text(text), add_special_tokens=False).ids
            if self._never.isdisjoint(ids):
                return ids
            return [each for token_id in ids for each in self._as_characters(tokenizer, token_id)]

    def _as_characters(self, tokenizer: tokenizers.Tokenizer, token_id: int) -> list[int]:
        """Return a regular token unchanged, and a control token as the tokens for its characters."""
        if token_id not in self._never:
            return [token_id]
        name = tokenizer.id_to_token(token_id) or ""
        ids = [each for character in name for each in self._continuing.encode(character, add_special_tokens=False).ids]
        return [each for each in ids if each not in self._never]

    def _find_prefix(self) -> tuple[int, ...]:
        """Return the ids that tokenizer.json prepends to a text."""
        with library_errors(TOKENIZER_JSON):
            text, all_ids = self._tokenizer.encode("a", add_special_tokens=False).ids, self._tokenizer.encode("a").ids
        before = [i for i in range(len(all_ids) + 1) if all_ids[i : i + len(text)] == text]
        prefix = all_ids[: before[0]] if before else []
        if len(prefix) > MAX_PREFIX_TOKENS or not all(token_id < self.n_vocab for token_id in prefix):
            raise lacks_parts(TOKENIZER_JSON)
        return tuple(prefix)


def read_hugging_face_tokenizer(folder: Path, n_vocab: int) -> HuggingFaceTokenizer:
    """Read tokenizer.json, or vocab.json and merges.txt, and the settings, for a model with n_vocab tokens.

    Omits added tokens beyond the model's vocabulary. Raises ValueError if a file is damaged, does not pass
    `check_tokenizer_json`, or does not fit the model.
    """
    settings, generation, model, names, added = (
        read_json(folder / name, dict) if (folder / name).is_file() else {}
        for name in (TOKENIZER_CONFIG, GENERATION_CONFIG, CONFIG, SPECIAL_TOKENS, ADDED_TOKENS)
    )
    family = model.get("model_type")
    if "added_tokens_decoder" not in settings:  # otherwise transformers ignores the older files
        settings |= names
    tokens = {role: name for role in NAMED_TOKENS if (name := token_name(settings.get(role)))}
    if is_single := (folder / TOKENIZER_JSON).is_file():
        content = read_json(folder / TOKENIZER_JSON, dict)
    else:
        content = pair_as_tokenizer_json(folder, settings, family)
        if family == "opt":
            tokens = {"bos_token": "</s>", "eos_token": "</s>", **tokens}
    checked = check_tokenizer_json(content, n_vocab, TOKENIZER_JSON if is_single else VOCAB_JSON)
    vocab, more = content["model"]["vocab"], added_beside(settings, added, tokens)
    if not is_single:
        more = [
            {"content": name, "special": True}
            for name in tokens.values() or control_names(vocab, content["model"]["merges"])
        ] + more
        if settings.get("add_bos_token", family == "opt") is True and tokens.get("bos_token") in vocab:
            put_before_texts(content, tokens["bos_token"])
    tokenizer = load_library_tokenizer(content, more, n_vocab, TOKENIZER_JSON if is_single else VOCAB_JSON)
    ends = generation.get("eos_token_id")
    ends = model.get("eos_token_id") if ends is None else ends
    end_ids = tuple(end for end in (ends if isinstance(ends, list) else [ends]) if type(end) is int and end >= 0)
    chat = read_chat_template(folder, settings, tokens)
    return HuggingFaceTokenizer(tokenizer, checked, n_vocab, TokenizerSettings(tokens, end_ids, chat))


def byte_level_tokenizer(ranks: Mapping[bytes, int], n_vocab: int, file: str) -> HuggingFaceTokenizer:
    """Create a tokenizer for a vocabulary in tiktoken's format that lacks some bytes, which tiktoken cannot handle."""
    content = byte_level_json(*letters_and_merges(ranks))
    checked = check_tokenizer_json(content, n_vocab, file)
    more = [{"id": len(ranks), "content": END_OF_TEXT, "special": True}]
    return HuggingFaceTokenizer(
        load_library_tokenizer(content, more, n_vocab, file), checked, n_vocab, TokenizerSettings()
    )


def added_beside(
    settings: Mapping[str, Any], added: Mapping[str, Any], tokens: Mapping[str, str]
) -> list[dict[str, Any]]:
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


def put_before_texts(content: dict[str, Any], name: str) -> None:
    """Change the contents of a tokenizer.json so that it prepends a control token to each text."""
    one, text = {"SpecialToken": {"id": name, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}
    ids = {name: {"id": name, "ids": [content["model"]["vocab"][name]], "tokens": [name]}}
    content["post_processor"] = {
        "type": "TemplateProcessing",
        "single": [one, text],
        "pair": [one, text, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": ids,
    }


def load_library_tokenizer(
    content: dict[str, Any], more: Iterable[Mapping[str, Any]], n_vocab: int, file: str
) -> tokenizers.Tokenizer:
    """Load the contents of a tokenizer.json with additional tokens, omitting all ids of n_vocab or above.

    The library assigns the next free ids to added tokens that are missing from the vocabulary. If these are not the
    tokens' own ids, the tokens are inserted into the vocabulary.
    """
    vocab = content["model"]["vocab"]
    tokens = {token["content"]: token for token in content.get("added_tokens") or []}
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    for token in more:
        token_id = vocab.get(token["content"], token.get("id"))
        if token_id is not None:
            tokens.setdefault(token["content"], flags | dict(token) | {"id": token_id})
    kept = {name: token for name, token in tokens.items() if not beyond(vocab.get(name, token.get("id")), n_vocab)}
    content = {**content, "added_tokens": list(kept.values())}
    with library_errors(file):
        tokenizer = tokenizers.Tokenizer.from_str(json.dumps(content))
        if any(tokenizer.token_to_id(name) != token["id"] for name, token in kept.items()):
            ids = {name: token["id"] for name, token in kept.items()}
            content["model"] = {**content["model"], "vocab": ids | vocab}
            tokenizer = tokenizers.Tokenizer.from_str(json.dumps(content))
        tokenizer.model.dropout = None
    return tokenizer


def beyond(token_id: object, n_vocab: int) -> bool:
    """Return whether an id lies beyond the model's vocabulary."""
    return isinstance(token_id, int) and token_id >= n_vocab


def token_name(value: object) -> str | None:
    """Return the name of a token from tokenizer_config.json, given as a string or {"content": string, ...}."""
    content = value.get("content") if isinstance(value, dict) else value
    return content if isinstance(content, str) and content else None


def without_prefix_space(tokenizer: tokenizers.Tokenizer) -> tokenizers.Tokenizer:
    """Return a copy of a tokenizer that adds no space before a text."""
    content = json.loads(tokenizer.to_str())
    waiting = [content.get("normalizer"), content.get("pre_tokenizer")]
    while waiting:
        part = waiting.pop() or {}
        if part.get("type") == "Metaspace":
            part["prepend_scheme"] = "never"
        if part.get("type") == "ByteLevel":
            part["add_prefix_space"] = False
        for key in ("normalizers", "pretokenizers"):
            part[key] = [each for each in part.get(key, []) if each["type"] != "Prepend"]
            waiting += part[key]
    if (content.get("normalizer") or {}).get("type") == "Prepend":
        content["normalizer"] = None
    return tokenizers.Tokenizer.from_str(json.dumps(content))


def bytes_table(
    tokenizer: tokenizers.Tokenizer, added: Mapping[int, tokenizers.AddedToken], byte_level: bool, n_vocab: int
) -> list[bytes | None]:
    """Return the bytes for each id, or None for ids without a token. Added tokens become the bytes of their text."""
    table: list[bytes | None] = [None] * n_vocab
    letters = byte_letters()
    for token, token_id in tokenizer.get_vocab().items():
        if token_id < n_vocab:
            as_text = token_id in added and (byte_level or added[token_id].special)
            table[token_id] = token.encode() if as_text else token_bytes(token, letters, byte_level=byte_level)
    return table


def token_bytes(token: str, letters: Mapping[str, int], *, byte_level: bool) -> bytes:
    """Return the bytes of a token in tokenizer.json's notation."""
    if byte_level:
        known = [letters.get(letter) for letter in token]
        return token.encode() if None in known else bytes(byte for byte in known if byte is not None)
    byte = BYTE_TOKEN.fullmatch(token)
    return bytes([int(byte[1], 16)]) if byte else token.replace(SPACE, " ").encode()


def valid_text(text: str) -> str:
    """Replace unpaired surrogates with U+FFFD."""
    return text.encode("utf-8", "replace_surrogate").decode()


def write_json(path: Path, content: Mapping[str, object]) -> None:
    """Write a JSON file."""
    path.write_text(json.dumps(content, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


@contextmanager
def library_errors(file: str) -> Iterator[None]:
    """Convert errors from the library, a Rust extension, to ValueErrors that name the file."""
    try:
        yield
    except GPTError:
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":  # raised by Rust
            raise
        raise GPTError(
            "vocabulary.invalid",
            "{file} is not a vocabulary: {reason}",
            file=file,
            reason=str(error).partition("\n")[0],
        ) from None
