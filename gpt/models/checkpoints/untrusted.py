"""Read untrusted files without running their code and without using more memory than their size.

Tensors are memory-mapped, so shapes can be checked before any data is read.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TypeVar

import yaml  # type: ignore[import-untyped]
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from gpt.errors import GPTError
from gpt.models.memory import format_bytes

MAX_HEADER_BYTES = 2_000_000  # about 20,000 tensors in a safetensors file; reading 400,000 takes 20 seconds
MAX_TEXT_BYTES = 64_000_000  # limit on configuration and vocabulary files

T = TypeVar("T")


class Damaged(Exception):
    """A file contradicts itself. Its reader turns this into a sentence."""


def open_safetensors(path: Path) -> dict[str, Tensor]:
    """Return the tensors in a safetensors file. Raises ValueError if it is damaged or its header is too large."""
    with path.open("rb") as file:
        n_bytes = int.from_bytes(file.read(8), "little")
    if n_bytes > MAX_HEADER_BYTES:
        raise GPTError("checkpoint.header_size", file=path.name, n=n_bytes, limit=MAX_HEADER_BYTES)
    try:
        return load_file(path)
    except (SafetensorError, ValueError, RuntimeError, KeyError) as error:
        raise unreadable(path, error) from None


def existing(path: Path) -> Path:
    """Return the path of a file or a folder. Raises ValueError if it does not exist."""
    if not (path.is_file() or path.is_dir()):
        raise GPTError("file.unknown", path=path)
    return path


def unreadable(path: Path, error: Exception) -> GPTError:
    """Return the error for a file that could not be read. error: the cause."""
    first_line = str(error).strip().partition("\n")[0]
    if "Cannot allocate memory" in first_line:  # the whole file is mapped
        return GPTError("memory.file", file=path.name, need=format_bytes(path.stat().st_size))
    return GPTError("file.cut_short", file=path.name, reason=first_line)


def damaged(path: Path, reason: object) -> GPTError:
    """Return the error for a text file with invalid contents."""
    return GPTError("file.damaged", file=path.name, reason=reason)


def not_readable(path: Path, error: OSError) -> GPTError:
    """Return the error for a file that the operating system cannot read."""
    return GPTError("file.unreadable", file=path.name, reason=error.strerror or error)


def read_bytes(path: Path) -> bytes:
    """Read a file of at most MAX_TEXT_BYTES. Raises ValueError if it is larger."""
    with path.open("rb") as file:
        data = file.read(MAX_TEXT_BYTES + 1)  # the reported size can be 0, as for files in /proc
    if len(data) > MAX_TEXT_BYTES:
        raise GPTError("file.too_large", file=path.name, limit=MAX_TEXT_BYTES)
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
        raise GPTError("file.json_type", file=path.name, expected=kind.__name__, type=type(value))
    return value


def read_yaml(path: Path) -> dict[str, object]:
    """Read a YAML file of options. Numbers such as 1e-5, which are text in YAML 1.1, become numbers."""
    try:
        value = yaml.safe_load(read_text(path))
    except (yaml.YAMLError, RecursionError) as error:
        raise damaged(path, str(error).partition("\n")[0]) from None
    if not isinstance(value, dict):
        raise damaged(path, type(value).__name__)
    return {str(name): number_or_text(each) for name, each in value.items()}


def number_or_text(value: object) -> object:
    """Convert text to a number if possible."""
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value
