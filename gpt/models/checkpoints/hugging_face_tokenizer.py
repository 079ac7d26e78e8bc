"""Vocabularies of the `tokenizers` library, with control tokens and a chat template."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Literal

import jinja2
import jinja2.ext
import jinja2.sandbox
import regex
import tokenizers
from tokenizers.models import WordLevel

from gpt.checks import check_token_id, require
from gpt.errors import GPTError
from gpt.models.checkpoints.untrusted import read_text
from gpt.tokenizer import END_OF_TEXT, Vocabulary, no_chat_template, text_with_names, valid_text

TOKENIZER_JSON, TOKENIZER_CONFIG = "tokenizer.json", "tokenizer_config.json"
GENERATION_CONFIG = "generation_config.json"
TEMPLATE_FILE, TEMPLATE_KEY = "chat_template.jinja", "chat_template"  # the latter in tokenizer_config.json
MAX_REASON_CHARS = 200
PLACES = ("#answer#", "#message#")  # placeholders for a reply and a message, used to find the text around them
# A Unicode noncharacter that no text contains. In a message, it follows each character of a control token's name.
MARK = "\ufdd0"
NO_SPACE = regex.compile(  # before punctuation, and in scripts without spaces
    r" (?=[\p{Pc}\p{Pd}\p{Pe}\p{Pf}\p{Po}\p{Han}\p{Hiragana}\p{Katakana}\p{Bopomofo}\u3000-\u303f\uff00-\uffef])"
)
CONTROL_NAME = re.compile(r"<[^<>\s]+>|\[[^\[\]\s]+\]")
SPACE = "▁"  # U+2581, which SentencePiece uses for a space
SEQUENCES = ("normalizers", "pretokenizers", "decoders")  # keys that contain the parts of a "Sequence"
EDGES = r"\A +| +\z"  # spaces at both ends of a text
BYTE_TOKEN = re.compile(r"<0x([0-9A-F]{2})>")


class Generation(jinja2.ext.Extension):
    """The {% generation %} block, which marks text written by the assistant. It renders its content."""

    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: jinja2.parser.Parser) -> Any:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class Refused(jinja2.TemplateError):
    """A template called raise_exception."""


def raise_exception(message: object) -> None:
    raise Refused(str(message))


def tojson(value: object, ensure_ascii: bool = False, **options: Any) -> str:
    """Convert a value to JSON without escaping HTML, unlike Jinja's own filter."""
    return json.dumps(value, ensure_ascii=ensure_ascii, **options)


@lru_cache(maxsize=16)
def compiled(source: str) -> jinja2.Template:
    """Return a template that runs in Jinja's sandbox, as in transformers (utils/chat_template_utils.py)."""
    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols]
    )
    environment.filters["tojson"] = tojson
    environment.globals["raise_exception"] = raise_exception
    environment.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
    return environment.from_string(source)


@dataclass(frozen=True)
class ChatTemplate:
    """A Jinja program that converts messages to the text format that a model was trained on."""

    source: str
    tokens: Mapping[str, str] = field(default_factory=dict)

    def render(self, messages: Sequence[Mapping[str, str]]) -> str:
        """Render messages up to the start of the assistant's reply.

        Raises ValueError if the template rejects the messages or fails.
        """
        given = {"messages": [dict(message) for message in messages], "tools": None, "documents": None}
        try:
            return compiled(self.source).render(**given, **self.tokens, add_generation_prompt=True)
        except Exception as error:  # a template can raise any exception
            reason = str(error).strip().partition("\n")[0][:MAX_REASON_CHARS]
            if isinstance(error, Refused):
                raise GPTError("chat.refused", reason=reason) from None
            raise GPTError("chat.template", reason=f"{type(error).__name__}: {reason}") from None


def read_chat_template(folder: Path, config: Mapping[str, Any], tokens: Mapping[str, str]) -> ChatTemplate | None:
    """Read the template from chat_template.jinja or else from `config`, the contents of tokenizer_config.json.

    If there are several templates, uses the one named "default". Returns None if there is no template.
    """
    found = read_text(folder / TEMPLATE_FILE) if (folder / TEMPLATE_FILE).is_file() else config.get(TEMPLATE_KEY)
    if isinstance(found, list):
        found = next((each["template"] for each in found if each.get("name") == "default"), None)
    return ChatTemplate(found, tokens) if isinstance(found, str) and found else None


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
    """

    def __init__(
        self, tokenizer: tokenizers.Tokenizer, content: Mapping[str, Any], n_vocab: int, settings: TokenizerSettings
    ) -> None:
        self.n_vocab, self.settings, self._tokenizer = n_vocab, settings, tokenizer
        self._frames: dict[tuple[bool, date], tuple[tuple[str, str], tuple[str, str]]] = {}
        tokenizer.no_truncation()
        tokenizer.no_padding()
        ids = {role: i for role, name in settings.tokens.items() if (i := self._id_of(name)) is not None}
        named = [settings.tokens[role] for role in ids]
        tokenizer.add_special_tokens([tokenizers.AddedToken(name, special=True, normalized=False) for name in named])
        encoders = [*flat_parts(content.get("normalizer")), *flat_parts(content.get("pre_tokenizer"))]
        places = {place_of_space(part) for part in encoders}
        self.spaces_each_part = "each" in places
        changes_start = places - {"none"} or any(map(removes_edges, encoders))
        self._continuing = tokenizer
        if changes_start:
            stored = json.loads(tokenizer.to_str())
            parts = {key: unchanged_start(stored.get(key)) for key in ("normalizer", "pre_tokenizer")}
            self._continuing = tokenizers.Tokenizer.from_str(json.dumps(stored | parts))
        self._encode_names_as_characters()
        added = {i: token for i, token in tokenizer.get_added_tokens_decoder().items() if i < n_vocab}
        control = {i: token for i, token in added.items() if token.special or token.content in named}
        self._control = {token.content: token for token in control.values()}
        self.special_names = {token.content: i for i, token in control.items()}
        if any(part["type"] == "ByteLevel" for part in encoders):
            found, self.strips_space = bytes_of_letters(tokenizer, added), bool(places - {"none"})
        else:
            found, self.strips_space = bytes_of_decoder(tokenizer, control)
        self.bytes_of = [found.get(i) for i in range(n_vocab)]
        unused = {i for i, data in enumerate(self.bytes_of) if data is None}
        self.special_ids = frozenset(unused | control.keys())
        model, place = content["model"], content["model"].get("unk_id")  # the place is Unigram's
        self.unknown_id = self._id_of(model["vocab"][place][0] if place is not None else model.get("unk_token") or "")
        beyond = {i for i in found if i >= n_vocab}
        self._never = self.special_ids.union(beyond) - {self.unknown_id}
        whole = tokenizer.post_process(tokenizers.Tokenizer(WordLevel({"a": 0}, "a")).encode("a"))
        at = whole.special_tokens_mask.index(0)
        self.prefix_ids = tuple(whole.ids[:at])
        require(max(self.prefix_ids, default=0) < n_vocab, "vocabulary.invalid", file=TOKENIZER_JSON, reason="prefix")
        stated = [ids.get("eos_token"), *settings.end_ids]
        ends = [i for i in stated if i is not None and i < n_vocab] or [i for i in whole.ids[at + 1 :] if i < n_vocab]
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
        found = self._tokenizer.token_to_id(name)
        return found if found is not None and found < self.n_vocab else None

    def encode(self, text: str) -> list[int]:
        return self._encode(self._tokenizer, text)

    def encode_continuation(self, text: str) -> list[int]:
        return self._encode(self._continuing, text)

    @cached_property
    def _name(self) -> Any:
        names = list(self.special_names)
        return regex.compile(rf"(\L<names>)(?!{MARK})" if names else "((?!))", names=names)

    def _encode_parts(self, parts: list[str], *, is_start: bool) -> list[int]:
        for i in range(1, len(parts), 2):
            token = self._control[parts[i]]
            if token.lstrip:
                parts[i - 1] = parts[i - 1].rstrip()
            if token.rstrip:
                parts[i + 1] = parts[i + 1].lstrip()
        return super()._encode_parts(parts, is_start=is_start)

    def token_bytes(self, token_id: int) -> bytes:
        check_token_id(token_id, self.n_vocab)
        data = self.bytes_of[token_id]
        return f"<{token_id}>".encode() if data is None else data

    @property
    def is_chat(self) -> bool:
        return self.settings.chat is not None

    def encode_chat(self, messages: Sequence[Mapping[str, str]]) -> list[int]:
        return self.encode_special(self._render(messages))

    def chat_frame(self, *, first: bool = True) -> tuple[str, str]:
        return self._frame(first)[1]

    def encode_message(self, text: str, *, first: bool = True) -> list[int]:
        before, after = self._frame(first)[0]
        return self.encode_special(before + self._marked(text) + after, is_start=first)

    def _frame(self, first: bool) -> tuple[tuple[str, str], tuple[str, str]]:
        """Return the template's text around a message, both as rendered and as decoded from its tokens."""
        key = first, date.today()  # some templates include the date
        if key not in self._frames:
            before = [] if first else [{"role": "user", "content": "a"}, {"role": "assistant", "content": PLACES[0]}]
            text = self._render([*before, {"role": "user", "content": PLACES[1]}])
            start, found, end = text.partition(PLACES[1])
            require(found and (first or PLACES[0] in start), "chat.template", reason="no content")
            start = start.rpartition(PLACES[0])[2]
            ids = self.encode_special(start + PLACES[1] + end, is_start=first)
            read = text_with_names(self, ids, strips_space=first and self.strips_space)
            shown_start, found, shown_end = read.partition(PLACES[1])
            self._frames[key] = (start, end), (shown_start, shown_end) if found else (start, end)
        return self._frames[key]

    def _render(self, messages: Sequence[Mapping[str, str]]) -> str:
        if self.settings.chat is None:
            raise no_chat_template()
        return self.settings.chat.render([{k: self._marked(v) for k, v in message.items()} for message in messages])

    def _marked(self, text: str) -> str:
        """Mark the names of control tokens in a text, so that they are encoded as characters."""
        return self._name.sub(lambda name: "".join(letter + MARK for letter in name[0]), text.replace(MARK, ""))

    def write(self, folder: Path) -> None:
        self._tokenizer.save(str(folder / TOKENIZER_JSON), pretty=False)
        settings = {"tokenizer_class": "PreTrainedTokenizerFast", **self.settings.tokens}
        if self.settings.chat is not None:
            settings[TEMPLATE_KEY] = self.settings.chat.source
        write_json(folder / TOKENIZER_CONFIG, settings)
        write_json(folder / GENERATION_CONFIG, {"eos_token_id": sorted(self.eot_ids)})

    def _encode(self, tokenizer: tokenizers.Tokenizer, text: str) -> list[int]:
        ids = ids_of(tokenizer, valid_text(text).replace(MARK, ""))
        if self._never.isdisjoint(ids):
            return ids
        return [each for token_id in ids for each in self._as_characters(tokenizer, token_id)]

    def _as_characters(self, tokenizer: tokenizers.Tokenizer, token_id: int) -> list[int]:
        """Return a regular token unchanged, and a control token as the tokens for its characters."""
        if token_id not in self._never:
            return [token_id]
        name = tokenizer.id_to_token(token_id) or ""
        ids = [each for character in name for each in ids_of(self._continuing, character)]
        return [each for each in ids if each not in self._never]


def ids_of(tokenizer: tokenizers.Tokenizer, text: str) -> list[int]:
    """Return the ids of a text. Raises ValueError if a part of it has no token."""
    try:
        with library_errors(TOKENIZER_JSON):
            return tokenizer.encode(text, add_special_tokens=False).ids
    except GPTError:
        raise GPTError("vocabulary.unknown_part") from None


def library_vocabulary(
    content: dict[str, Any],
    n_vocab: int,
    file: str,
    settings: TokenizerSettings | None = None,
    more: Iterable[Mapping[str, Any]] = (),
) -> HuggingFaceTokenizer:
    """Return the vocabulary that the contents of a tokenizer.json describe, for a model with n_vocab tokens.

    Omits added tokens with ids of n_vocab or above. Joins tokens as usual if the file does not state how.

    file: Name of the file that they come from, for errors. more: Additional tokens, like those in "added_tokens".
    Raises ValueError if the contents are damaged or do not fit the model.
    """
    with library_errors(file):
        model, ids = dict(content["model"]), ids_of_tokens(content["model"], file)
        flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
        tokens = {token["content"]: flags | token for token in content.get("added_tokens") or []}
        beyond = {token for token, token_id in ids.items() if token_id >= n_vocab} - tokens.keys()
        if beyond and not beyond <= set(control_names(ids, model.get("merges", []))):
            raise GPTError("vocabulary.size", n=max(ids.values()) + 1, n_vocab=n_vocab)
        for token in more:
            if token["content"] in ids or "id" in token:
                tokens.setdefault(token["content"], flags | dict(token))
        tokens = {name: token | {"id": ids.get(name, token.get("id"))} for name, token in tokens.items()}
        tokens = {name: token for name, token in tokens.items() if token["id"] < n_vocab}
        model["vocab"] = with_ids(model["vocab"], {name: token["id"] for name, token in tokens.items()})
        model |= {"dropout": None} if "dropout" in model else {}
        content = content | {"added_tokens": [*tokens.values()], "model": model}
        content["decoder"] = content.get("decoder") or usual_decoder(content, ids)
        tokenizer = tokenizers.Tokenizer.from_str(json.dumps(content))
        return HuggingFaceTokenizer(tokenizer, content, n_vocab, settings or TokenizerSettings())


def with_ids(vocab: Any, ids: Mapping[str, int]) -> Any:
    """Return a model's vocabulary with further tokens; the library gives those that it lacks the next free ids."""
    if isinstance(vocab, dict):
        return {**ids, **vocab}
    names, lowest = {token_id: name for name, token_id in ids.items()}, min(score for _, score in vocab)
    after = range(len(vocab), max(names, default=0) + 1)  # in Unigram, the place in the list is the id
    return [*vocab, *([names.get(i, f"{MARK}{i}"), lowest] for i in after)]


def unchanged_start(part: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return a part of a tokenizer.json so that it adds and removes no space, or None if it does nothing else."""
    if part is None or part["type"] == "Prepend" or removes_edges(part):
        return None
    never: dict[str, dict[str, Any]] = {
        "Metaspace": {"prepend_scheme": "never"},
        "ByteLevel": {"add_prefix_space": False},
    }
    inner = {key: [kept for each in part[key] if (kept := unchanged_start(each))] for key in SEQUENCES if key in part}
    return part | inner | never.get(part["type"], {})


def bytes_of_letters(tokenizer: tokenizers.Tokenizer, added: Mapping[int, tokenizers.AddedToken]) -> dict[int, bytes]:
    """Return the bytes for each id of a byte-level vocabulary. Added tokens become the bytes of their text."""
    letters, found = byte_letters(), {}
    for token, i in tokenizer.get_vocab().items():
        known = [] if i in added else [letters[letter] for letter in token if letter in letters]
        found[i] = bytes(known) if len(known) == len(token) else token.encode()
    return found


def bytes_of_decoder(
    tokenizer: tokenizers.Tokenizer, control: Mapping[int, tokenizers.AddedToken]
) -> tuple[dict[int, bytes], bool]:
    """Return the bytes for each id within a text, and whether decoding removes a space at the start of a text.

    Tokens that the library joins by spaces begin with one, unless texts have none before them. Control tokens become
    the bytes of their names.
    """

    def decode(tokens: Sequence[str]) -> str:
        return " ".join(tokens) if tokenizer.decoder is None else tokenizer.decoder.decode(tokens)

    vocab = {token: i for token, i in tokenizer.get_vocab().items() if MARK not in token}
    joined = decode([MARK, MARK])[1:-1]
    texts = decode([MARK, *(each for token in vocab for each in (token, MARK))]).split(MARK)[1:-1]
    found = {}
    for (token, i), text in zip(vocab.items(), texts, strict=True):
        byte = BYTE_TOKEN.fullmatch(token)
        text = token if i in control else text.removesuffix(joined)
        text = text[1:] if joined and NO_SPACE.match(text) else text
        found[i] = bytes([int(byte[1], 16)]) if byte else text.encode()
    return found, joined != "" or decode([SPACE + MARK])[0] == MARK


def write_json(path: Path, content: Mapping[str, object]) -> None:
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
        raise GPTError("vocabulary.invalid", file=file, reason=str(error).partition("\n")[0]) from None


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
