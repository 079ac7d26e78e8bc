"""Read untrusted files without running their code and without using more memory than their size.

Tensors are memory-mapped, so shapes can be checked before any data is read.
"""

from __future__ import annotations

import io
import json
import pickle
import pickletools
import re
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TypeVar

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from gpt.errors import GPTError
from gpt.models.memory import format_bytes

MAX_PICKLE_BYTES = 16_000_000  # limit on the pickle in a torch file
MAX_TUPLES = 20_000  # per torch file; hashing 100,000 nested tuples overflows the C stack
MAX_HEADER_BYTES = 2_000_000  # about 20,000 tensors in a safetensors file; reading 400,000 takes 20 seconds
MAX_TEXT_BYTES = 64_000_000  # limit on configuration and vocabulary files
OLD_MAGIC = 0x1950A86A20F9469CFC6C
STATE_KEYS = ("model", "model_state_dict", "state_dict")  # weight entries; otherwise, the only state dict is used

# The only functions that a state dict needs. torch.load(weights_only=True) allows others, such as bytearray(10**12).
TENSOR_GLOBALS = re.compile(
    r"collections (OrderedDict|defaultdict)|torch\._utils _rebuild_(tensor_v2|parameter)"
    r"|torch (Size|device|(?!Q)\w+Storage|b?float\d+|double|half|u?int\d+|long|int|short|bool)"
)

T = TypeVar("T")


class PlainUnpickler(pickle.Unpickler):
    """Unpickles numbers, strings and containers. Rejects every class and function."""

    def __init__(self, data: bytes, file: str) -> None:
        super().__init__(io.BytesIO(data))
        self.file = file

    def find_class(self, module: str, name: str) -> object:
        raise GPTError(
            "checkpoint.code",
            "{file} would run code ({code}) and was not opened",
            file=self.file,
            code=f"{module}.{name}",
        )


def open_weights(path: Path) -> tuple[dict[str, Tensor], dict[str, object]]:
    """Return the tensors in a .safetensors or torch.save file, and the other entries of a torch.save file.

    Raises ValueError, naming the file, if it is damaged, would run code, or has another format.
    """
    with path.open("rb") as file:
        start = file.read(9)
    if start.startswith(b"PK"):
        return open_torch(path)
    if start[8:] == b"{":
        return open_safetensors(path), {}
    if start.startswith(b"\x80"):
        if is_old_torch(path):
            raise GPTError(
                "checkpoint.old_format",
                "{file} has torch's old format, from before 2020: save it again with a newer torch",
                file=path.name,
            )
        raise GPTError(
            "checkpoint.pickle",
            "{file} is a pickled Python object, which would run code when it is opened: save model.state_dict() with "
            "torch.save",
            file=path.name,
        )
    raise GPTError(
        "checkpoint.unknown_format",
        "{file} is neither a safetensors file nor a torch.save file, or it is damaged",
        file=path.name,
    )


def is_old_torch(path: Path) -> bool:
    """Return whether a pickle begins with the magic number that torch.save wrote before 2020."""
    with path.open("rb") as file, suppress(ValueError):
        return any(argument == OLD_MAGIC for _, argument, _ in islice(pickletools.genops(file), 3))
    return False


def open_safetensors(path: Path) -> dict[str, Tensor]:
    """Return the tensors in a safetensors file. Raises ValueError if it is damaged or its header is too large."""
    with path.open("rb") as file:
        n_bytes = int.from_bytes(file.read(8), "little")
    if n_bytes > MAX_HEADER_BYTES:
        raise GPTError(
            "checkpoint.header_size",
            "{file} has a header of {n:,} bytes, more than the limit of {limit:,}",
            file=path.name,
            n=n_bytes,
            limit=MAX_HEADER_BYTES,
        )
    try:
        return load_file(path)
    except (SafetensorError, ValueError, RuntimeError, KeyError) as error:
        raise unreadable(path, error) from None


def open_torch(path: Path) -> tuple[dict[str, Tensor], dict[str, object]]:
    """Return the tensors in a torch.save file, and the checkpoint's other entries."""
    check_archive(path)
    try:
        saved = torch.load(path, map_location="cpu", mmap=True, weights_only=True)
    except Exception as error:  # unpickling damaged data raises almost anything
        raise unreadable(path, error) from None
    extras: dict[str, object] = {}
    if isinstance(saved, dict):
        usual = [key for key in STATE_KEYS if isinstance(saved.get(key), dict)][:1]
        keys = usual or [key for key, value in saved.items() if is_state_dict(value)]
        if len(keys) == 1:
            saved, extras = saved[keys[0]], {str(name): value for name, value in saved.items() if name != keys[0]}
        elif not keys:  # weights among other entries
            extras = {str(name): value for name, value in saved.items() if not isinstance(value, Tensor)}
        saved = {name: value for name, value in saved.items() if isinstance(value, Tensor)}
    if not is_state_dict(saved):
        raise GPTError(
            "checkpoint.no_state_dict", "{file} contains no state dict: save model.state_dict()", file=path.name
        )
    for name, tensor in saved.items():
        if tensor.numel() * tensor.element_size() > tensor.untyped_storage().nbytes():
            raise GPTError(
                "checkpoint.tensor_size",
                "{file}: {name} claims {n:,} numbers, more than the file contains",
                file=path.name,
                name=name,
                n=tensor.numel(),
            )
    return {str(name): tensor.detach() for name, tensor in saved.items()}, extras


def is_state_dict(value: object) -> bool:
    """Return whether value is a dict that contains only tensors."""
    return isinstance(value, dict) and bool(value) and all(isinstance(each, Tensor) for each in value.values())


def check_archive(path: Path) -> None:
    """Raise ValueError for a zip file that is compressed, truncated, or would run code."""
    size = path.stat().st_size
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            if any(entry.compress_type != zipfile.ZIP_STORED or entry.flag_bits & 1 for entry in entries):
                raise GPTError(
                    "checkpoint.compressed",
                    "{file} is compressed or encrypted, which torch.save never does: unpack it first",
                    file=path.name,
                )
            if sum(entry.file_size for entry in entries) > size:
                raise GPTError(
                    "checkpoint.entries",
                    "{file} is damaged: its entries are larger than its {size:,} bytes",
                    file=path.name,
                    size=size,
                )
            pickles = [entry for entry in entries if entry.filename.endswith(".pkl")]
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
            data = archive.read(pickles[0])
    except (zipfile.BadZipFile, EOFError, NotImplementedError, UnicodeDecodeError) as error:
        raise unreadable(path, error) from None
    for opcode, argument in opcodes(path, data, max_tuples=MAX_TUPLES):
        if opcode == "GLOBAL" and not TENSOR_GLOBALS.fullmatch(str(argument)):
            raise GPTError(
                "checkpoint.code_in_weights",
                "{file} would run code ({code}) and was not opened: save only model.state_dict()",
                file=path.name,
                code=str(argument).replace(" ", "."),
            )


def opcodes(path: Path, data: bytes, *, max_tuples: int) -> Iterator[tuple[str, object]]:
    """Yield each operation in a pickle with its argument, without running any.

    Raises ValueError if the pickle is damaged, or if running it would need more memory or stack than the size of the
    file.
    """
    n_tuples = 0
    try:
        for opcode, argument, _ in pickletools.genops(data):
            n_tuples += opcode.name.startswith("TUPLE")
            if n_tuples > max_tuples:
                raise GPTError(
                    "checkpoint.tuples",
                    "{file} has more than {limit:,} tuples, far more than any file of this kind",
                    file=path.name,
                    limit=max_tuples,
                )
            if "PUT" in opcode.name and int(argument or 0) > len(data):
                raise GPTError(
                    "checkpoint.memo", "{file} is damaged: it numbers its values beyond its size", file=path.name
                )  # the unpickler allocates a table of that length
            yield opcode.name, argument
    except GPTError:
        raise
    except ValueError as error:
        raise unreadable(path, error) from None


def read_pickle(path: Path) -> object:
    """Read a pickle of numbers, strings, lists and dicts. Raises ValueError for anything else."""
    data = read_bytes(path)
    for opcode, _ in opcodes(path, data, max_tuples=0):
        if "GLOBAL" in opcode:
            break  # the unpickler's error will name it
    try:
        return PlainUnpickler(data, path.name).load()
    except GPTError:
        raise
    except Exception as error:  # unpickling damaged data raises almost anything
        raise unreadable(path, error) from None


def unreadable(path: Path, error: Exception) -> GPTError:
    """Return the error for a file that could not be read. error: the cause."""
    first_line = str(error).strip().partition("\n")[0]
    if "Cannot allocate memory" in first_line:  # the whole file is mapped
        return GPTError(
            "memory.file",
            "{file} needs {need} of memory, more than this computer has",
            file=path.name,
            need=format_bytes(path.stat().st_size),
        )
    return GPTError("file.cut_short", "{file} is damaged or cut short: {reason}", file=path.name, reason=first_line)


def damaged(path: Path, reason: object) -> GPTError:
    """Return the error for a text file with invalid contents."""
    return GPTError("file.damaged", "{file} is damaged: {reason}", file=path.name, reason=reason)


def not_readable(path: Path, error: OSError) -> GPTError:
    """Return the error for a file that the operating system cannot read."""
    return GPTError(
        "file.unreadable", "{file} cannot be read: {reason}", file=path.name, reason=error.strerror or error
    )


def read_bytes(path: Path) -> bytes:
    """Read a file of at most MAX_TEXT_BYTES. Raises ValueError if it is larger."""
    with path.open("rb") as file:
        data = file.read(MAX_TEXT_BYTES + 1)  # the reported size can be 0, as for files in /proc
    if len(data) > MAX_TEXT_BYTES:
        raise GPTError(
            "file.too_large",
            "{file} has more than {limit:,} bytes: too many for a file of this kind",
            file=path.name,
            limit=MAX_TEXT_BYTES,
        )
    return data


def read_text(path: Path) -> str:
    """Read a UTF-8 file of at most MAX_TEXT_BYTES. Removes the byte order mark that Windows editors write."""
    try:
        return read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise damaged(path, error) from None


def read_json(path: Path, kind: type[T]) -> T:
    """Read a JSON file whose outermost value has the type `kind`."""
    try:
        value = json.loads(read_text(path))
    except (json.JSONDecodeError, RecursionError) as error:
        raise damaged(path, error) from None
    if not isinstance(value, kind):
        raise GPTError(
            "file.json_type",
            "{file} is damaged: it should contain a {expected}, not a {type}",
            file=path.name,
            expected=kind.__name__,
            type=type(value),
        )
    return value
