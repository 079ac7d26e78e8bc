"""Read the files of torch.save as plain data, with memory-mapped tensors. No code in them runs."""

from __future__ import annotations

import io
import pickletools
import struct
import zipfile
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gpt.errors import GPTError
from gpt.models.checkpoints.pickles import PlainUnpickler
from gpt.models.checkpoints.untrusted import as_data

MAX_PICKLE_BYTES = 16_000_000
OLD_MAGIC = 0x1950A86A20F9469CFC6C  # first value in a file from before 2020
LOCAL_HEADER = struct.Struct("<26x2H")  # start of an entry in a zip file: lengths of its name and of its extra field
STORAGES = {
    **{"Float": torch.float32, "Double": torch.float64, "Half": torch.float16, "BFloat16": torch.bfloat16},
    **{"Long": torch.int64, "Int": torch.int32, "Short": torch.int16, "Char": torch.int8, "Byte": torch.uint8},
    **{"Bool": torch.bool, "ComplexFloat": torch.complex64, "ComplexDouble": torch.complex128},
    "Untyped": torch.uint8,
}


def open_torch(path: Path) -> object:
    """Return what torch.save wrote. Raises ValueError if the file is damaged or would run code."""
    with path.open("rb") as file:
        is_zip = file.read(2) == b"PK"
    return as_data(path, lambda: read_zip(path) if is_zip else read_old(path))


def read_zip(path: Path) -> object:
    """Read a file in torch's format: an uncompressed zip file of a pickle and a file for each storage."""
    with zipfile.ZipFile(path) as archive, path.open("rb") as file:
        entries = {entry.filename: entry for entry in archive.infolist()}
        if any(entry.compress_type != zipfile.ZIP_STORED or entry.flag_bits & 1 for entry in entries.values()):
            raise GPTError(
                "checkpoint.compressed",
                "{file} is compressed or encrypted, which torch.save never does: unpack it first",
                file=path.name,
            )
        pickles = [entry for name, entry in entries.items() if name.endswith(".pkl")]
        if len(pickles) != 1 or not pickles[0].filename.endswith("data.pkl"):
            raise GPTError(
                "checkpoint.other_zip",
                "{file} is a zip file but not a checkpoint: save model.state_dict()",
                file=path.name,
            )
        if pickles[0].file_size > MAX_PICKLE_BYTES:
            raise GPTError(
                "checkpoint.pickle_size",
                "{file} has {n:,} bytes in addition to its tensors, which is too many",
                file=path.name,
                n=pickles[0].file_size,
            )
        whole = map_file(path)
        folder = pickles[0].filename.removesuffix("data.pkl")

        def load(pid: Any) -> Tensor:
            """Return a storage. pid: ("storage", class, name of its file, device, number of elements)."""
            entry = entries[f"{folder}data/{pid[2]}"]
            file.seek(entry.header_offset)
            lengths = LOCAL_HEADER.unpack(file.read(LOCAL_HEADER.size))
            start = entry.header_offset + LOCAL_HEADER.size + sum(lengths)
            return numbers(pid[1], whole[start : start + entry.file_size])

        return PlainUnpickler(io.BytesIO(archive.read(pickles[0])), load).load()


def read_old(path: Path) -> object:
    """Read a file in the format from before 2020: pickles, of which the fourth is the value, and then the storages."""
    with path.open("rb") as file:
        head = io.BytesIO(file.read(MAX_PICKLE_BYTES))
    for _ in range(3):
        PlainUnpickler(head).load()
    at, sizes, starts = head.tell(), {}, {}

    def measure(pid: Any) -> object:
        if pid[0] == "module":
            return pid[1]
        sizes[pid[2]] = pid[4] * data_type(pid[1]).itemsize
        return torch.empty(pid[4], dtype=data_type(pid[1]), device="meta")

    PlainUnpickler(head, measure).load()
    keys: Any = PlainUnpickler(head).load()
    position = head.tell()
    for key in keys:
        starts[key] = position + 8  # after the number of elements
        position = starts[key] + sizes[key]
    whole = map_file(path)

    def load(pid: Any) -> object:
        if pid[0] == "module":
            return pid[1]
        return numbers(pid[1], whole[starts[pid[2]] : starts[pid[2]] + sizes[pid[2]]])

    head.seek(at)
    return PlainUnpickler(head, load).load()


def is_old(path: Path) -> bool:
    """Return whether a pickle begins with the magic number of torch's format from before 2020."""
    with path.open("rb") as file, suppress(ValueError):
        return any(argument == OLD_MAGIC for _, argument, _ in islice(pickletools.genops(file), 3))
    return False


def map_file(path: Path) -> torch.UntypedStorage:
    """Map a file into memory. Writing to it does not change the file."""
    return torch.UntypedStorage.from_file(str(path), False, path.stat().st_size)  # type: ignore[return-value]


def data_type(kind: str) -> torch.dtype:
    """Return the data type of a storage class, such as "torch.FloatStorage"."""
    return STORAGES[kind.rpartition(".")[2].removesuffix("Storage")]


def numbers(kind: str, storage: torch.UntypedStorage) -> Tensor:
    """Return the numbers in a storage as a flat tensor."""
    return torch.empty(0, dtype=data_type(kind)).set_(storage)
