"""Vocabularies of the `tokenizers` library, with control tokens and a chat template."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import regex
import tokenizers

from gpt.checks import check_token_id, require
from gpt.errors import GPTError
from gpt.models.checkpoints.chat_template import TEMPLATE_KEY, ChatTemplate
from gpt.tokenizer import END_OF_TEXT, Vocabulary, no_chat_template, text_with_names

TOKENIZER_JSON, TOKENIZER_CONFIG = "tokenizer.json", "tokenizer_config.json"
GENERATION_CONFIG = "generation_config.json"
PLACES = ("#answer#", "#message#")  # placeholders for a reply and a message, used to find the text around them
# Unicode noncharacters around control token names in messages, to distinguish these from names in the template.
MARK, END_MARK = "\ufdd0", "\ufdd1"
WITHOUT_MARKS = str.maketrans("", "", MARK + END_MARK)
MAX_PREFIX_TOKENS, MAX_PROBES = 4, 1000
NEVER_CHOSEN = -1e9  # score of a token in Unigram
NO_SPACE = regex.compile(  # before punctuation, and in scripts without spaces
    r"[\p{Pc}\p{Pd}\p{Pe}\p{Pf}\p{Po}\p{Han}\p{Hiragana}\p{Katakana}\p{Bopomofo}\u3000-\u303f\uff00-\uffef]"
)
CONTROL_NAME = re.compile(r"<[^<>\s]+>|\[[^\[\]\s]+\]")
SPACE = "▁"  # U+2581, which SentencePiece uses for a space
DROPS_SPACES = {"BertPreTokenizer", "CharDelimiterSplit", "Whitespace", "WhitespaceSplit"}
SEQUENCES = ("normalizers", "pretokenizers", "decoders")  # keys that contain the parts of a "Sequence"
EDGES = r"\A +| +\z"  # spaces at both ends of a text
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
        self.n_vocab, self.settings, self._prefix = n_vocab, settings, checked.prefix
        self._tokenizer = tokenizer
        self._frames: dict[tuple[bool, date], tuple[tuple[str, str], tuple[str, str]]] = {}
        tokenizer.no_truncation()
        tokenizer.no_padding()
        ids = {role: i for role, name in settings.tokens.items() if (i := self._id_of(name)) is not None}
        named = [settings.tokens[role] for role in ids]
        tokenizer.add_special_tokens([tokenizers.AddedToken(name, special=True, normalized=False) for name in named])
        self._continuing = with_start_unchanged(tokenizer) if checked.changes_start else tokenizer
        self._encode_names_as_characters()
        self.strips_space = checked.strips
        added = {i: token for i, token in tokenizer.get_added_tokens_decoder().items() if i < n_vocab}
        self.bytes_of = bytes_table(tokenizer, added, checked, n_vocab)
        unused = {i for i, data in enumerate(self.bytes_of) if data is None}
        control = {i: token for i, token in added.items() if token.special or token.content in named}
        self.special_ids = frozenset(unused | control.keys())
        self.unknown_id = self._id_of(checked.unknown or "")
        beyond = {i for i in checked.ids.values() if i >= n_vocab}
        self._never = self.special_ids.union(beyond) - {self.unknown_id}
        self.prefix_ids, suffix_ids = self._find_prefix_and_suffix(checked.ids)
        self._control = {token.content: (i, token) for i, token in control.items()}
        names = list(self._control) or [MARK]  # an empty list would match everywhere
        self._names = regex.compile(r"\L<names>", names=names)
        self._pieces = regex.compile(rf"{MARK}\L<names>{END_MARK}|\L<names>", names=names)
        ends = [i for i in (ids.get("eos_token"), *settings.end_ids) if i is not None and i < n_vocab]
        ends = ends or [i for i in suffix_ids if i < n_vocab]
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

    @property
    def special_names(self) -> dict[str, int]:
        return {name: token_id for name, (token_id, _) in self._control.items()}

    def encode_special(self, text: str, *, is_start: bool = True) -> list[int]:
        return self._encode_rendered(valid_text(text).translate(WITHOUT_MARKS), is_start=is_start)

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
            require(found and (first or PLACES[0] in start), "chat.template", reason="no content")
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
        begins = self._prefix == "each" if after else is_start
        return (self.encode if begins else self.encode_continuation)(text.translate(WITHOUT_MARKS)) if text else []

    def write(self, folder: Path) -> None:
        self._tokenizer.save(str(folder / TOKENIZER_JSON), pretty=False)
        settings = {"tokenizer_class": "PreTrainedTokenizerFast", **self.settings.tokens}
        if self.settings.chat is not None:
            settings[TEMPLATE_KEY] = self.settings.chat.source
        write_json(folder / TOKENIZER_CONFIG, settings)
        write_json(folder / GENERATION_CONFIG, {"eos_token_id": sorted(self.eot_ids)})

    def _encode(self, tokenizer: tokenizers.Tokenizer, text: str) -> list[int]:
        ids = self._ids_of(tokenizer, valid_text(text))
        if ids is None:
            raise GPTError("vocabulary.unknown_part")
        if self._never.isdisjoint(ids):
            return ids
        return [each for token_id in ids for each in self._as_characters(tokenizer, token_id)]

    def _ids_of(self, tokenizer: tokenizers.Tokenizer, text: str, *, whole: bool = False) -> list[int] | None:
        """Return the ids of a text, or None if a part of it has no token. whole: with what tokenizer.json adds."""
        try:
            with library_errors(TOKENIZER_JSON):
                return tokenizer.encode(text, add_special_tokens=whole).ids
        except GPTError:
            return None

    def _as_characters(self, tokenizer: tokenizers.Tokenizer, token_id: int) -> list[int]:
        """Return a regular token unchanged, and a control token as the tokens for its characters."""
        if token_id not in self._never:
            return [token_id]
        name = tokenizer.id_to_token(token_id) or ""
        ids = [each for character in name for each in self._ids_of(self._continuing, character) or []]
        return [each for each in ids if each not in self._never]

    def _find_prefix_and_suffix(self, tokens: Iterable[str]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the ids that tokenizer.json puts before and after a text."""
        for probe in ("a", *islice(tokens, MAX_PROBES)):
            if text := self._ids_of(self._tokenizer, probe):
                whole = self._ids_of(self._tokenizer, probe, whole=True) or []
                n = next((i for i in range(len(whole)) if whole[i : i + len(text)] == text), -1)
                if not 0 <= n <= MAX_PREFIX_TOKENS or max(whole[:n], default=0) >= self.n_vocab:
                    raise GPTError("vocabulary.invalid", file=TOKENIZER_JSON, reason="post_processor")
                return tuple(whole[:n]), tuple(whole[n + len(text) :])
        return (), ()


def library_vocabulary(
    content: dict[str, Any],
    n_vocab: int,
    file: str,
    settings: TokenizerSettings | None = None,
    more: Iterable[Mapping[str, Any]] = (),
) -> HuggingFaceTokenizer:
    """Return the vocabulary that the contents of a tokenizer.json describe, for a model with n_vocab tokens.

    file: name of the file that they come from, for errors. more: additional tokens, like those in "added_tokens".
    Raises ValueError if the contents are damaged or do not fit the model.
    """
    with library_errors(file):
        checked = read_properties(content, n_vocab, file)
        tokenizer = load_library_tokenizer(content, checked.ids, more, n_vocab)
        return HuggingFaceTokenizer(tokenizer, checked, n_vocab, settings or TokenizerSettings())


def load_library_tokenizer(
    content: dict[str, Any], vocab: Mapping[str, int], more: Iterable[Mapping[str, Any]], n_vocab: int
) -> tokenizers.Tokenizer:
    """Load the contents of a tokenizer.json with additional tokens, omitting all ids of n_vocab or above.

    The library assigns the next free ids to added tokens that are missing from the vocabulary. If these are not the
    tokens' own ids, the tokens are inserted into the vocabulary.
    """
    tokens = {token["content"]: token for token in content.get("added_tokens") or []}
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    for token in more:
        token_id = vocab.get(token["content"], token.get("id"))
        if token_id is not None:
            tokens.setdefault(token["content"], flags | dict(token) | {"id": token_id})
    ids = {name: vocab.get(name, token.get("id")) for name, token in tokens.items()}
    kept = {name: tokens[name] for name, i in ids.items() if not (isinstance(i, int) and i >= n_vocab)}
    random = {"dropout": None} if "dropout" in content["model"] else {}
    content = {**content, "added_tokens": list(kept.values()), "model": content["model"] | random}
    tokenizer = tokenizers.Tokenizer.from_str(json.dumps(content))
    if any(tokenizer.token_to_id(name) != token["id"] for name, token in kept.items()):
        own, listed = {name: token["id"] for name, token in kept.items()}, content["model"]["vocab"]
        if isinstance(listed, list):  # in Unigram, the place in the list is the id
            names = {token_id: name for name, token_id in own.items()}
            after = range(len(listed), max(names) + 1)
            every = [*listed, *([names.get(i, f"{MARK}{i}"), NEVER_CHOSEN] for i in after)]
        content["model"] = {**content["model"], "vocab": every if isinstance(listed, list) else own | listed}
        tokenizer = tokenizers.Tokenizer.from_str(json.dumps(content))
    return tokenizer


def with_start_unchanged(tokenizer: tokenizers.Tokenizer) -> tokenizers.Tokenizer:
    """Return a copy of a tokenizer that adds and removes no space at the start of a text."""
    content = json.loads(tokenizer.to_str())
    return tokenizers.Tokenizer.from_str(
        json.dumps(content | {key: unchanged_start(content.get(key)) for key in ("normalizer", "pre_tokenizer")})
    )


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


def bytes_table(
    tokenizer: tokenizers.Tokenizer, added: Mapping[int, tokenizers.AddedToken], checked: TokenizerJson, n_vocab: int
) -> list[bytes | None]:
    """Return the bytes for each id, or None for ids without a token. Added tokens become the bytes of their text."""
    table: list[bytes | None] = [None] * n_vocab
    letters = byte_letters()
    for token, token_id in tokenizer.get_vocab().items():
        if token_id < n_vocab:
            as_text = token_id in added and (checked.byte_level or added[token_id].special)
            table[token_id] = token.encode() if as_text else token_bytes(token, letters, checked)
    return table


def token_bytes(token: str, letters: Mapping[str, int], checked: TokenizerJson) -> bytes:
    """Return the bytes of a token in tokenizer.json's notation."""
    if checked.byte_level:
        known = [letters.get(letter) for letter in token]
        return token.encode() if None in known else bytes(byte for byte in known if byte is not None)
    if byte := BYTE_TOKEN.fullmatch(token):
        return bytes([int(byte[1], 16)])
    for mark, text in checked.spaces:
        token = token.replace(mark, text)
    if checked.ends and token.endswith(checked.ends):
        token = token.removesuffix(checked.ends) + " "
    if checked.continues is not None:
        inside = checked.continues and token.startswith(checked.continues)
        token = token.removeprefix(checked.continues) if inside or NO_SPACE.match(token) else f" {token}"
    return token.encode()


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
        raise GPTError("vocabulary.invalid", file=file, reason=str(error).partition("\n")[0]) from None


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


def read_properties(content: dict[str, Any], n_vocab: int, file: str) -> TokenizerJson:
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
