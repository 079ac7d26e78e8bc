"""Read GGUF, the file format of llama.cpp: metadata, and weights that are dequantised when they are needed."""

from __future__ import annotations

import math
import mmap
import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType, GGUFValueType
from gguf.quants import dequantize
from torch import Tensor

from gpt.errors import GPTError
from gpt.models.checkpoints.contents import Deferred
from gpt.models.checkpoints.torch_file import map_file
from gpt.models.checkpoints.untrusted import MAX_TEXT_BYTES, Damaged
from gpt.models.memory import release_file_pages

MAGIC, VERSIONS, ALIGNMENT = b"GGUF", (2, 3), 32
FORMATS = {"UINT8": "B", "INT8": "b", "UINT16": "H", "INT16": "h", "UINT32": "I", "INT32": "i", "FLOAT32": "f"}
FORMATS |= {"BOOL": "?", "UINT64": "Q", "INT64": "q", "FLOAT64": "d"}
SCALARS = {GGUFValueType[name].value: letter for name, letter in FORMATS.items()}
STRING, ARRAY = GGUFValueType.STRING.value, GGUFValueType.ARRAY.value
PLAIN = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "F64": torch.float64}
Q8_0, Q8_0_BYTES = GGMLQuantizationType.Q8_0, 34  # a block is a float16 scale and 32 integers
CHUNK = 2**18  # numbers that are dequantised at a time


@dataclass(frozen=True, eq=False)
class QuantizedRows:
    """The rows of a matrix as stored: (rows, bytes of a row). The numbers of a row are in blocks of their own."""

    stored: Tensor
    kind: GGMLQuantizationType
    shape: tuple[int, ...]

    def __call__(self, dtype: torch.dtype) -> Tensor:
        """Return the matrix in a data type, dequantised a few rows at a time."""
        found = torch.empty(self.shape, dtype=dtype)
        n_rows = max(1, CHUNK // self.shape[-1])
        for rows, out in zip(self.stored.split(n_rows), found.view(-1, self.shape[-1]).split(n_rows), strict=True):
            if self.kind == Q8_0:
                blocks = rows.reshape(-1, Q8_0_BYTES)
                numbers = blocks.view(torch.int8)[:, 2:].contiguous().float()
                numbers *= blocks[:, :2].contiguous().view(torch.float16).float()
            else:
                numbers = torch.from_numpy(dequantize(rows.numpy(), self.kind))
            out.copy_(numbers.view_as(out))
        release_file_pages([self.stored])
        return found


@dataclass(frozen=True, eq=False)
class GGUFFile:
    """The contents of a GGUF file.

    kinds: {name of a quantisation type, or of a data type: numbers stored in it}.
    """

    metadata: dict[str, Any]
    tensors: dict[str, Tensor]
    kinds: dict[str, int]

    @property
    def main_kind(self) -> str:
        """The type that most of the weights are stored in."""
        return max(self.kinds, key=lambda kind: self.kinds[kind], default="F32")


def bits_of(kind: str) -> int:
    """Return the bits that a type spends on a number, apart from scales: 4 for "Q4_K"."""
    return int(match[0]) if (match := re.search(r"\d+", kind)) else 32


def is_gguf(path: Path) -> bool:
    """Return whether a file begins as GGUF does."""
    with path.open("rb") as file:
        return file.read(4) == MAGIC


def read_gguf(paths: Sequence[Path]) -> GGUFFile:
    """Read a GGUF file, or the parts of one; the first contains the metadata.

    Raises ValueError if a file is damaged, or has a version or a type that cannot be read.
    """
    first, *others = map(read_part, paths)
    for path, part in zip(paths[1:], others, strict=True):
        if double := first.tensors.keys() & part.tensors.keys():
            raise damaged_gguf(path, min(double))
        first.tensors.update(part.tensors)
        first.kinds.update({kind: n + first.kinds.get(kind, 0) for kind, n in part.kinds.items()})
    return first


def read_part(path: Path) -> GGUFFile:
    """Read one file."""
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return Reader(path, data).read()
    except (Damaged, struct.error, UnicodeDecodeError, OverflowError, ValueError, RuntimeError) as error:
        if isinstance(error, GPTError):
            raise
        raise damaged_gguf(path, error) from None


def damaged_gguf(path: Path, reason: object) -> GPTError:
    """Return the error for a file whose parts lie beyond its end or contradict each other."""
    return GPTError("gguf.damaged", file=path.name, reason=reason)


class Reader:
    """Reads the header of a GGUF file from its start to its end."""

    def __init__(self, path: Path, data: mmap.mmap) -> None:
        self.path, self.data, self.at = path, data, 4
        self.end = min(len(data), MAX_TEXT_BYTES)

    def read(self) -> GGUFFile:
        version = self.number("I")
        if version not in VERSIONS:
            raise GPTError(
                "gguf.version",
                file=self.path.name,
                version=version
                if version & 65535
                else f"{int.from_bytes(version.to_bytes(4, 'big'), 'little')} (big-endian)",
            )
        n_tensors, n_values = self.count("Q", 24), self.count("Q", 12)
        metadata = {}
        for _ in range(n_values):
            name = self.text()
            metadata[name] = self.value(self.number("I"))
        infos = [self.tensor_info() for _ in range(n_tensors)]
        alignment = metadata.get("general.alignment", ALIGNMENT)
        if not isinstance(alignment, int) or alignment < 1:
            raise Damaged(f"general.alignment {alignment}")
        start = -(-self.at // alignment) * alignment
        whole, tensors = map_file(self.path), dict[str, Tensor]()
        kinds: dict[str, int] = {}
        for name, shape, kind, offset in infos:
            if name in tensors:
                raise Damaged(name)
            tensors[name] = self.tensor(whole, name, shape, kind, start + offset)
            kinds[kind.name] = kinds.get(kind.name, 0) + (math.prod(shape) if len(shape) > 1 else 0)
        return GGUFFile(metadata, tensors, kinds)

    def number(self, letter: str) -> Any:
        """Return the next number. letter: its type, as in `struct`."""
        found = struct.unpack_from(f"<{letter}", self.data, self.at)[0]
        self.at += struct.calcsize(f"<{letter}")
        return found

    def count(self, letter: str, n_bytes: int) -> int:
        """Return the next number, which counts items of at least n_bytes each."""
        found = self.number(letter)
        if self.at + found * n_bytes > self.end:
            raise Damaged(f"a count of {found:,}")
        return found

    def text(self) -> str:
        n_bytes = self.count("Q", 1)
        self.at += n_bytes
        return self.data[self.at - n_bytes : self.at].decode(errors="surrogateescape")

    def value(self, kind: int) -> Any:
        if kind == STRING:
            return self.text()
        if kind in SCALARS:
            found = self.number(SCALARS[kind])
            return shortest(found) if SCALARS[kind] == "f" else found
        if kind != ARRAY:
            raise Damaged(f"GGUFValueType {kind}")
        kind = self.number("I")
        if kind == STRING:
            return [self.text() for _ in range(self.count("Q", 8))]
        if kind not in SCALARS:
            raise Damaged(f"GGUFValueType {kind}")
        n_bytes = struct.calcsize(SCALARS[kind])
        n = self.count("Q", n_bytes)
        self.at += n * n_bytes
        return list(struct.unpack_from(f"<{n}{SCALARS[kind]}", self.data, self.at - n * n_bytes))

    def tensor_info(self) -> tuple[str, tuple[int, ...], GGMLQuantizationType, int]:
        """Return the name, the shape, the type and the offset of the next tensor. Stored sizes are in reverse."""
        name = self.text()
        shape = tuple(self.number("Q") for _ in range(self.count("I", 8)))[::-1]
        kind, offset = self.number("I"), self.number("Q")
        if kind not in GGMLQuantizationType._value2member_map_:
            raise unknown_kind(self.path, kind, name)
        return name, shape, GGMLQuantizationType(kind), offset

    def tensor(
        self, whole: torch.UntypedStorage, name: str, shape: tuple[int, ...], kind: GGMLQuantizationType, start: int
    ) -> Tensor:
        """Return a memory-mapped tensor, or a matrix that is dequantised later."""
        n_block, n_bytes = GGML_QUANT_SIZES[kind]
        if not shape or 0 in shape or shape[-1] % n_block:
            raise Damaged(f"{name} {shape}")
        n_row = shape[-1] // n_block * n_bytes
        size = math.prod(shape[:-1]) * n_row
        if start + size > len(self.data):
            raise Damaged(name)
        stored = torch.empty(0, dtype=torch.uint8).set_(whole[start : start + size])
        if kind.name in PLAIN:
            return stored.view(PLAIN[kind.name]).view(shape)
        rows = QuantizedRows(stored.view(-1, n_row), kind, shape)
        try:
            dequantize(rows.stored[:1].numpy(), kind)
        except NotImplementedError:
            raise unknown_kind(self.path, kind.name, name) from None
        return Deferred(rows, torch.empty(shape, device="meta"))


def shortest(value: float) -> float:
    """Return the number with the fewest digits that is the same in float32, such as 1e-5."""
    return float(str(np.float32(value)))


def unknown_kind(path: Path, kind: object, name: str) -> GPTError:
    """Return the error for a tensor of a type that cannot be dequantised."""
    return GPTError("gguf.type", file=path.name, name=name, kind=kind)
