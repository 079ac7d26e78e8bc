"""Read OpenAI's GPT-2 folders: TensorFlow checkpoints, without TensorFlow.

The index file is a LevelDB table whose values are protobuf messages; the data file contains the numbers.
"""

from __future__ import annotations

import re
import struct
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gpt.errors import GPTError
from gpt.models.checkpoints.bpe_files import byte_level_json, read_merges
from gpt.models.checkpoints.contents import Contents, Reader
from gpt.models.checkpoints.hugging_face_tokenizer import TokenizerSettings, library_vocabulary
from gpt.models.checkpoints.other_vocabularies import fields, read_varint
from gpt.models.checkpoints.stated import Hints
from gpt.models.checkpoints.torch_file import map_file
from gpt.models.checkpoints.untrusted import Damaged, read_bytes, read_json
from gpt.models.checkpoints.vocabularies import gpt2_or_ids
from gpt.tokenizer import END_OF_TEXT, Vocabulary

OPTIONS, VOCAB, MERGES = "hparams.json", "encoder.json", "vocab.bpe"
MAGIC, FOOTER_BYTES, BLOCK_TRAILER_BYTES = 0xDB4775248B80FB57, 48, 5
TYPES = {1: torch.float32, 2: torch.float64, 3: torch.int32, 9: torch.int64, 14: torch.bfloat16, 19: torch.float16}
NAME = re.compile(r"model/(?:h(\d+)/)?([\w/]+?)(?:/(w|b|g))?")
LEAVES = {"w": "weight", "g": "weight", "b": "bias", None: "weight"}


def find_index(path: Path) -> list[Path]:
    """Return the index file in a folder, or the path if it is one. Returns no file without an hparams.json."""
    found = sorted(path.glob("*.index")) if path.is_dir() else [path] if path.suffix == ".index" else []
    return found[-1:] if found and (found[-1].parent / OPTIONS).is_file() else []


def read_openai(files: list[Path], hints: Hints) -> Contents:
    """Read hparams.json, model.ckpt.index and model.ckpt.data-00000-of-00001."""
    index, folder = files[0], files[0].parent
    options = read_json(folder / OPTIONS, dict)
    options = {{"n_vocab": "vocab_size", "n_ctx": "n_positions"}.get(name, name): n for name, n in options.items()}
    tensors = {}
    for name, tensor in read_tensors(index).items():
        if match := NAME.fullmatch(name):
            block = "" if match[1] is None else f"h.{match[1]}."
            tensor = tensor[0] if tensor.dim() == 3 else tensor  # (1, C, 3C), a convolution of width 1
            tensors[f"{block}{match[2].replace('/', '.')}.{LEAVES[match[3]]}"] = tensor
    return Contents(tensors, partial(read_vocabulary, folder), {"model_type": "gpt2", **options}, folder=folder)


def read_vocabulary(folder: Path, n_vocab: int) -> Vocabulary:
    """Return the vocabulary in encoder.json and vocab.bpe, or GPT-2's if there is none."""
    if not ((folder / VOCAB).is_file() and (folder / MERGES).is_file()):
        return gpt2_or_ids(n_vocab)
    content = byte_level_json(read_json(folder / VOCAB, dict), read_merges(folder / MERGES))
    settings = TokenizerSettings({"eos_token": END_OF_TEXT})
    return library_vocabulary(content, n_vocab, VOCAB, settings, [{"content": END_OF_TEXT, "special": True}])


def read_tensors(index: Path) -> dict[str, Tensor]:
    """Return the tensors of a TensorFlow checkpoint, memory-mapped. Raises ValueError if it is damaged."""
    data = index.with_suffix(".data-00000-of-00001")
    try:
        table = read_table(read_bytes(index))
        shards = dict(fields(table.pop(b""))).get(1, 1)
        if shards != 1:
            raise Damaged(f"{shards} shards")
        whole = map_file(data)
        return {name.decode(): read_tensor(value, whole) for name, value in table.items()}
    except (Damaged, IndexError, KeyError, UnicodeDecodeError, ValueError, struct.error) as error:
        raise GPTError("checkpoint.tensorflow", file=index.name, reason=error) from None


def read_table(data: bytes) -> dict[bytes, bytes]:
    """Return the keys and values of a LevelDB table."""
    footer = data[-FOOTER_BYTES:]
    if int.from_bytes(footer[-8:], "little") != MAGIC:
        raise Damaged("no LevelDB table")
    _, at = read_handle(footer, 0)  # the other index is empty
    blocks = read_block(data, read_handle(footer, at)[0])
    return {
        key: value for handle in blocks.values() for key, value in read_block(data, read_handle(handle, 0)[0]).items()
    }


def read_handle(data: bytes, at: int) -> tuple[tuple[int, int], int]:
    """Return the offset and the size of a block, and the place after them."""
    offset, at = read_varint(data, at)
    size, at = read_varint(data, at)
    return (offset, size), at


def read_block(data: bytes, handle: tuple[int, int]) -> dict[bytes, bytes]:
    """Return the entries of a block. Each key begins with a number of bytes of the key before it."""
    start, size = handle
    block, kind = data[start : start + size], data[start + size]
    if kind != 0:
        raise Damaged("compressed")
    end = len(block) - 4 - 4 * int.from_bytes(block[-4:], "little")  # the rest are places to start at
    found: dict[bytes, bytes] = {}
    key, at = b"", 0
    while at < end:
        shared, at = read_varint(block, at)
        n_key, at = read_varint(block, at)
        n_value, at = read_varint(block, at)
        if shared > len(key) or at + n_key + n_value > end:
            raise Damaged(f"byte {start + at}")
        key = key[:shared] + block[at : at + n_key]
        found[key] = block[at + n_key : at + n_key + n_value]
        at += n_key + n_value
    return found


def read_tensor(entry: bytes, whole: torch.UntypedStorage) -> Tensor:
    """Return the tensor that an entry of the index describes: its type, shape, offset and size."""
    values: dict[int, Any] = dict(fields(entry))
    sizes = [dict(fields(size)).get(1, 0) for number, size in fields(values.get(2, b"")) if number == 2]
    dtype, start, n_bytes = TYPES[values.get(1, 0)], values.get(4, 0), values.get(5, 0)
    shape = torch.Size(sizes)
    if start + n_bytes > whole.nbytes() or shape.numel() * dtype.itemsize != n_bytes or 7 in values:
        raise Damaged(f"{tuple(shape)}: {start} + {n_bytes} / {whole.nbytes()}")
    return torch.empty(0, dtype=dtype).set_(whole[start : start + n_bytes]).view(shape)


OPENAI = Reader("OpenAI GPT-2 (hparams.json, model.ckpt.*)", find_index, read_openai)
