"""Text to token ids and back: byte-level BPE, run by tiktoken."""

from __future__ import annotations

import base64
import codecs
from operator import index
from pathlib import Path

import tiktoken

from gpt.errors import GPTError

END_OF_TEXT = "<|endoftext|>"
# How GPT-2 cuts text into words before merging bytes (its released encoder.py, in tiktoken's spelling).
GPT2_PATTERN = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"""


class Tokenizer:
    """One vocabulary. Text is plain text: a typed "<|endoftext|>" is characters, never the control token.

    eot_id is the id of the end-of-text token, None if the vocabulary has none.
    """

    def __init__(self, encoding: tiktoken.Encoding) -> None:
        self.encoding = encoding
        self.n_vocab = encoding.n_vocab
        self.eot_id = encoding._special_tokens.get(END_OF_TEXT)

    def encode(self, text: str) -> list[int]:
        """Token ids of a text; half a surrogate pair, which is no character, becomes U+FFFD."""
        return self.encoding.encode_ordinary(text.encode("utf-8", "replace_surrogate").decode())

    def decode(self, ids: list[int]) -> str:
        """The text of some ids; bytes that form no character become U+FFFD."""
        return b"".join(map(self.token_bytes, ids)).decode("utf-8", "replace")

    def token_bytes(self, token_id: int) -> bytes:
        """The bytes that one token stands for, often not a whole character."""
        if not 0 <= token_id < self.n_vocab:
            raise GPTError("token.unknown", token=token_id, last=self.n_vocab - 1)
        return self.encoding.decode_single_token_bytes(token_id)


class IncrementalDecoder:
    """Bytes in, characters out as soon as they are whole: what streaming text needs."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, data: bytes, final: bool = False) -> str:
        """The characters completed by these bytes; `final` also gives up on an unfinished one (U+FFFD)."""
        return self._decoder.decode(data, final)


def _replace_surrogate(error: UnicodeError) -> tuple[bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "\ufffd".encode() * (error.end - error.start), error.end


codecs.register_error("replace_surrogate", _replace_surrogate)


def whole_ids(ids: object) -> list[int]:
    """Token ids as whole numbers of Python, from a list, an array or a tensor. Raises ValueError for anything else."""
    try:
        given = list(ids)
        if isinstance(ids, bytes | bytearray) or any(isinstance(token_id, bool) for token_id in given):
            raise TypeError
        return [index(token_id) for token_id in given]
    except TypeError:
        raise GPTError("prompt.type") from None


def load_vocabulary(path: Path | str) -> Tokenizer:
    """Read a vocabulary in tiktoken's format: a line per token, its bytes in base64 and its id.

    The end-of-text token gets the id after the last. Raises ValueError for a file that is not one.
    """
    path = Path(path)
    try:
        lines = [line.split() for line in path.read_bytes().splitlines() if line]
        ranks = {base64.b64decode(token, validate=True): int(rank) for token, rank in lines}
    except ValueError as error:
        raise GPTError("vocabulary.tiktoken", file=path.name, reason=error) from None
    if sorted(ranks.values()) != list(range(len(lines))):
        raise GPTError("vocabulary.tiktoken_ids", file=path.name, last=len(lines) - 1)
    if missing := [byte for byte in range(256) if bytes([byte]) not in ranks]:
        raise GPTError("vocabulary.missing_byte", file=path.name, byte=missing[0])
    return Tokenizer(
        tiktoken.Encoding(
            path.stem, pat_str=GPT2_PATTERN, mergeable_ranks=ranks, special_tokens={END_OF_TEXT: len(ranks)}
        )
    )


def save_vocabulary(ranks: dict[bytes, int], path: Path | str) -> None:
    """Write a vocabulary in tiktoken's format."""
    lines = (
        f"{base64.b64encode(token).decode()} {rank}\n" for token, rank in sorted(ranks.items(), key=lambda t: t[1])
    )
    Path(path).write_text("".join(lines), encoding="ascii")


def gpt2_tokenizer() -> Tokenizer:
    """GPT-2's own vocabulary of 50,257 tokens, from tiktoken's copy (TIKTOKEN_CACHE_DIR) or the network."""
    return Tokenizer(tiktoken.get_encoding("gpt2"))
