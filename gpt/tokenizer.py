"""Conversion between text and token ids: the interface shared by all vocabularies, and byte-level BPE with tiktoken."""

from __future__ import annotations

import base64
import codecs
import gzip
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from datetime import date
from functools import cache, cached_property, partial
from operator import index
from pathlib import Path
from typing import Any

import regex
import tiktoken

from gpt.chat import ChatTemplate
from gpt.errors import GPTError, check_token_id, require

END_OF_TEXT = "<|endoftext|>"
GPT2_VOCABULARY = Path(__file__).parent / "assets" / "gpt2" / "vocab.tiktoken.gz"
# Splits a text into words; BPE merges bytes only within a word. From GPT-2's encoder.py, in tiktoken's syntax.
GPT2_PATTERN = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"""
SPACES = " \u00a0"  # text fields and phones write a no-break space for a space
ANSWER, MESSAGE = "#answer#", "#message#"  # placeholders, used to find a template's text around a message
# A Unicode noncharacter that no text contains. In a message, it follows each character of a control token's name.
MARK = "\ufdd0"
# Returns a UTF-8 decoder for a stream of bytes that returns each character as soon as it is complete.
incremental_decoder = partial(codecs.getincrementaldecoder("utf-8"), "replace")


class Vocabulary(ABC):
    """Base class for all tokenizers."""

    n_vocab: int  # number of token ids
    eot_id: int | None = None  # the end-of-text token
    eot_ids: frozenset[int] = frozenset()  # tokens that end generation
    special_ids: frozenset[int] = frozenset()  # control tokens, which `encode` never returns
    prefix_ids: tuple[int, ...] = ()  # control tokens that the model expects before every text, such as Gemma's <bos>
    unknown_id: int | None = None  # replaces characters or words missing from the vocabulary
    strips_space: bool = False  # whether encoding adds a space before a text and decoding removes it
    spaces_each_part: bool = False  # whether encoding also adds one after each control token
    chat: ChatTemplate | None = None

    @abstractmethod
    def encode(self, text: str) -> list[int]:
        """Return the token ids of a text, without `prefix_ids`."""

    def encode_continuation(self, text: str) -> list[int]:
        """Return the token ids of a text that follows another text. Unlike `encode`, never adds a space before it."""
        return self.encode(text)

    @cached_property
    def special_names(self) -> dict[str, int]:
        """Ids of the control tokens by name."""
        return {self.token_bytes(token_id).decode(): token_id for token_id in sorted(self.special_ids)}

    @cached_property
    def name_pattern(self) -> Any:
        """A regular expression that finds the names of control tokens in a text."""
        names = list(self.special_names)
        return regex.compile(rf"(\L<names>)(?!{MARK})", names=names) if names else regex.compile("((?!))")

    def split_names(self, text: str) -> list[str]:
        """Split a text at the names of control tokens, without spaces that these remove. Names have odd indices."""
        return self.name_pattern.split(text)

    def encode_special(self, text: str, *, is_start: bool = True) -> list[int]:
        """Like `encode`, but names of control tokens become these. Only a start can have a space added before it."""
        ids: list[int] = []
        for i, part in enumerate(self.split_names(text)):
            if i % 2:
                ids.append(self.special_names[part])
            elif part:
                begins = self.spaces_each_part if ids else is_start
                ids += self.encode(part) if begins else self.encode_continuation(part)
        return ids

    @property
    def is_chat(self) -> bool:
        """Whether the model was trained on conversations, whose form its chat template gives."""
        return self.chat is not None

    def encode_chat(self, messages: Sequence[Mapping[str, str]]) -> list[int]:
        """Return the token ids of a chat, up to the start of the assistant's reply.

        messages: Dictionaries {"role", "content"}. Names of control tokens in them are encoded as ordinary text.
        Raises ValueError if there is no template, or the template rejects the messages or fails.
        """
        return self.encode_special(self._render(messages))

    def chat_frame(self, *, first: bool = True) -> tuple[str, str]:
        """Return the text that the template puts before and after a user's message. Control tokens appear by name.

        first: Whether the message opens the chat. If not, the text starts with the end of the assistant's turn.
        Raises ValueError like `encode_chat`.
        """
        key = first, date.today()  # some templates include the date
        if key not in self._frames:
            start, end = self._around_message(first=first)
            ids = self.encode_special(start + MESSAGE + end, is_start=first)
            text = text_with_names(self, ids, strips_space=first and self.strips_space)
            before, found, after = text.partition(MESSAGE)
            self._frames[key] = (before, after) if found else (start, end)
        return self._frames[key]

    @cached_property
    def _frames(self) -> dict[tuple[bool, date], tuple[str, str]]:
        return {}

    def encode_message(self, text: str, *, first: bool = True) -> list[int]:
        """Return the token ids of a user's message, including its `chat_frame`."""
        start, end = self._around_message(first=first)
        return self.encode_special(start + self._marked(text) + end, is_start=first)

    def _around_message(self, *, first: bool) -> tuple[str, str]:
        """Return the text that the template writes before and after a message."""
        before = [] if first else [{"role": "user", "content": "a"}, {"role": "assistant", "content": ANSWER}]
        start, found, end = self._render([*before, {"role": "user", "content": MESSAGE}]).partition(MESSAGE)
        require(found and (first or ANSWER in start), "chat.template", reason="no content")
        return start.rpartition(ANSWER)[2], end

    def _render(self, messages: Sequence[Mapping[str, str]]) -> str:
        if self.chat is None:
            raise GPTError("chat.none")
        return self.chat.render([{k: self._marked(v) for k, v in message.items()} for message in messages])

    def _marked(self, text: str) -> str:
        """Mark the names of control tokens in a text, so that they are encoded as characters."""
        return self.name_pattern.sub(lambda name: "".join(letter + MARK for letter in name[0]), text.replace(MARK, ""))

    def decode(self, ids: list[int]) -> str:
        """Return the text of token ids. Control tokens appear by name; undecodable bytes become U+FFFD."""
        text = b"".join(map(self.token_bytes, ids)).decode("utf-8", "replace")
        return text.removeprefix(" ") if self.strips_space else text

    @abstractmethod
    def token_bytes(self, token_id: int) -> bytes:
        """Return the bytes of a token, which may be part of a character. Raises ValueError for an unknown id."""

    def ids_after(self, held: str) -> list[int]:
        """Return the tokens that begin with the white space that `hold_back` returned; [] if no word begins with it."""
        return self._ids_by_space["\t" if held == "\t" else " "] if held else []

    @cached_property
    def _ids_by_space(self) -> dict[str, list[int]]:
        words = {i: self.token_bytes(i) for i in range(self.n_vocab) if i not in self.special_ids}
        begin = {space: [i for i, data in words.items() if data.startswith(space.encode())] for space in (" ", "\t")}
        return {space: ids if any(words[i].strip() for i in ids) else [] for space, ids in begin.items()}


class PlainIds(Vocabulary):
    """Vocabulary for models without a tokenizer: text is a list of token ids separated by spaces, such as "15 3 8".

    problem: why the model's vocabulary cannot be read, if it has one.
    """

    def __init__(self, n_vocab: int, problem: GPTError | None = None) -> None:
        self.n_vocab, self.problem = n_vocab, problem

    def encode(self, text: str) -> list[int]:
        last = self.n_vocab - 1
        for word in text.split():
            if not (word.isascii() and word.isdigit() and len(word) < 20):
                require(self.problem is not None, "vocabulary.none", last=last, word=word[:20])
                raise GPTError("vocabulary.unread", reason=self.problem, last=last, word=word[:20])
            check_token_id(int(word), self.n_vocab)
        return [int(word) for word in text.split()]

    def token_bytes(self, token_id: int) -> bytes:
        check_token_id(token_id, self.n_vocab)
        return f" {token_id}".encode()


class Tokenizer(Vocabulary):
    """A byte-level BPE vocabulary. `<|endoftext|>` in a text is encoded as characters, never as the control token."""

    def __init__(self, encoding: tiktoken.Encoding) -> None:
        self.encoding = encoding
        self.n_vocab = encoding.n_vocab
        self.eot_id = encoding._special_tokens.get(END_OF_TEXT)
        self.eot_ids = frozenset() if self.eot_id is None else frozenset({self.eot_id})
        self.special_ids = frozenset(encoding._special_tokens.values())

    def encode(self, text: str) -> list[int]:
        """Return the token ids of a text; unpaired surrogates become U+FFFD."""
        return self.encoding.encode_ordinary(valid_text(text))

    def padded(self, n_vocab: int) -> Tokenizer:
        """Return this vocabulary with n_vocab tokens. Ids without a token become control tokens such as "<50300>"."""
        ranks, special = self.encoding._mergeable_ranks, self.special_names
        unused = set(range(n_vocab)) - set(ranks.values()) - set(special.values())
        return bpe_tokenizer(ranks, special | {f"<{i}>": i for i in sorted(unused)})

    def token_bytes(self, token_id: int) -> bytes:
        if not 0 <= token_id < self.n_vocab:  # without a call for every token
            check_token_id(token_id, self.n_vocab)
        return self.encoding.decode_single_token_bytes(token_id)


def valid_text(text: str) -> str:
    """Replace unpaired surrogates with U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


class TextDecoder:
    """Decoder for a stream of tokens that returns each character as soon as it is complete. Skips control tokens.

    strips_space: Whether to remove a leading space from the first token; defaults to the vocabulary's setting.
    """

    def __init__(self, tokenizer: Vocabulary, *, strips_space: bool | None = None) -> None:
        self._tokenizer, self._decoder = tokenizer, incremental_decoder()
        self._strips_space = tokenizer.strips_space if strips_space is None else strips_space

    def feed(self, token_id: int) -> str:
        """Return the characters completed by a token."""
        if token_id in self._tokenizer.special_ids:
            return ""
        data = self._tokenizer.token_bytes(token_id)
        if self._strips_space:
            data, self._strips_space = data.removeprefix(b" "), False
        return self._decoder.decode(data)

    def finish(self) -> str:
        """Return U+FFFD if the last character is incomplete, else an empty string."""
        return self._decoder.decode(b"", final=True)


def hold_back(tokenizer: Vocabulary, text: str) -> tuple[str, str]:
    """Split a typed text into the part to encode and the white space that the next token begins with (token healing).

    In most vocabularies, words begin with a space: " outside" is one token. After a lone space, a model would predict
    fragments of words. All spaces at the end count as one, unless they indent a line. A tab is held back only if the
    vocabulary has words that begin with a tab. The second part is "" if there is nothing to hold back.
    """
    rest = text.rstrip(SPACES)
    if rest == text or rest[-1:].isspace():  # a tab, or the last space before an indented word
        rest = text[:-1] if text[-1:] in ("\t", *SPACES) else text
    held = text[len(rest) :]
    return (rest, held) if tokenizer.ids_after(held) else (text, "")


def prompt_ids(tokenizer: Vocabulary, text: str, *, special: bool = False) -> list[int]:
    """Return `prefix_ids` followed by the token ids of a text, or [] for an empty text.

    special: whether names of control tokens in the text become control tokens, such as the prefix itself.
    """
    if not text:
        return []
    prefix, ids = tokenizer.prefix_ids, tokenizer.encode_special(text) if special else tokenizer.encode(text)
    return ids if special and tuple(ids[: len(prefix)]) == prefix else [*prefix, *ids]


def start_ids(tokenizer: Vocabulary) -> list[int]:
    """Return the ids that replace an empty prompt: `prefix_ids`, or the end-of-text token if there is no prefix."""
    if tokenizer.prefix_ids:
        return list(tokenizer.prefix_ids)
    return [] if tokenizer.eot_id is None else [tokenizer.eot_id]


def is_chat(tokenizer: Vocabulary, ids: Sequence[int]) -> bool:
    """Return whether a control token or, in Llama 2, the template's text before a message follows the `start_ids`."""
    start = start_ids(tokenizer)
    n_start = len(start) if list(ids[: len(start)]) == start else 0
    if not tokenizer.is_chat or len(ids) <= n_start or ids[n_start] in tokenizer.special_ids:
        return tokenizer.is_chat and len(ids) > n_start
    try:
        before = tokenizer.chat_frame()[0].rstrip()
    except ValueError:  # the template failed
        return False
    begins = text_with_names(tokenizer, ids[: len(before) + 1]).startswith(before)
    return begins and len(before) > len(text_with_names(tokenizer, ids[:n_start]))


def text_with_names(tokenizer: Vocabulary, ids: Sequence[int], *, strips_space: bool | None = None) -> str:
    """Decode token ids, showing control tokens by name. strips_space: see `TextDecoder`."""
    decoder = TextDecoder(tokenizer, strips_space=strips_space)
    special = tokenizer.special_ids
    return "".join(tokenizer.token_bytes(i).decode() if i in special else decoder.feed(i) for i in ids)


def plain_text(tokenizer: Vocabulary, ids: Sequence[int]) -> str:
    """Decode token ids, omitting control tokens."""
    return tokenizer.decode([token_id for token_id in ids if token_id not in tokenizer.special_ids])


def prompt_text(tokenizer: Vocabulary, ids: Sequence[int], held: str = "", *, follows: bool = False) -> str | None:
    """Return the text, at the start or after another one, that becomes these ids and the held white space, or None."""
    ids = list(ids)
    if not follows and ids == start_ids(tokenizer):
        return held
    try:
        text = b"".join(map(tokenizer.token_bytes, ids)).decode() if follows else plain_text(tokenizer, ids)
        again = tokenizer.encode_continuation(text) if follows else prompt_ids(tokenizer, text)
    except ValueError:  # the ids cannot be decoded, or the text cannot be encoded
        return None
    return text + held if again == ids and hold_back(tokenizer, text + held) == (text, held) else None


def as_token_ids(ids: Any) -> list[int]:
    """Convert a list, an array or a tensor of token ids to Python integers. Raises ValueError for anything else."""
    try:
        values = list(ids)
        if isinstance(ids, bytes | bytearray) or any(isinstance(token_id, bool) for token_id in values):
            raise TypeError
        return [index(token_id) for token_id in values]
    except TypeError:
        raise GPTError("prompt.type") from None


def load_vocabulary(path: Path | str) -> Tokenizer:
    """Read a vocabulary file in tiktoken's format: in each line, a token's bytes in base64 and its id.

    Decompresses files whose names end in .gz. The end-of-text token gets the next free id. Raises ValueError for any
    other file, or if a byte has no token.
    """
    path = Path(path)
    data = path.read_bytes()
    try:
        lines = [line.split() for line in (gzip.decompress(data) if path.suffix == ".gz" else data).splitlines()]
        ranks = {base64.b64decode(token, validate=True): int(rank) for token, rank in filter(None, lines)}
    except ValueError as error:
        raise GPTError("vocabulary.tiktoken", file=path.name, reason=error) from None
    is_complete = sorted(ranks.values()) == list(range(len(ranks)))
    require(is_complete, "vocabulary.tiktoken_ids", file=path.name, last=len(ranks) - 1)
    for byte in range(256):
        require(bytes([byte]) in ranks, "vocabulary.missing_byte", file=path.name, byte=byte)
    return bpe_tokenizer(ranks)


def bpe_tokenizer(ranks: dict[bytes, int], special: dict[str, int] | None = None) -> Tokenizer:
    """Return a tokenizer with GPT-2's pattern. special: Defaults to the end-of-text token with the next free id."""
    special = {END_OF_TEXT: len(ranks)} if special is None else special
    return Tokenizer(tiktoken.Encoding("bpe", pat_str=GPT2_PATTERN, mergeable_ranks=ranks, special_tokens=special))


def save_vocabulary(ranks: dict[bytes, int], path: Path | str) -> None:
    lines = [f"{base64.b64encode(token).decode()} {ranks[token]}\n" for token in sorted(ranks, key=ranks.__getitem__)]
    Path(path).write_text("".join(lines), encoding="ascii")


@cache
def gpt2_tokenizer() -> Tokenizer:
    """Return a tokenizer with the bundled GPT-2 vocabulary of 50,257 tokens. Every call returns the same object."""
    return load_vocabulary(GPT2_VOCABULARY)
