"""Files that strangers wrote, opened without running their code or taking memory that they only claim to need.

Tensors come back mapped to the file: nothing is read before it is used, so shapes can be judged first.
"""

from __future__ import annotations

import json
import pickle
import pickletools
import re
import zipfile
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from gpt.errors import GPTError
from gpt.models.memory import gigabytes

MAX_HEADER = 100_000_000  # bytes; the limit of the safetensors format
MAX_PICKLE = 16_000_000  # bytes; the part of a torch file that is no tensor
MAX_TUPLES = 20_000  # in a pickle; far more, each inside the next, overflow the stack of what computes their hash
MAX_SMALL = 64_000_000  # bytes of a configuration or a vocabulary
STATE_KEYS = ("model", "model_state_dict", "state_dict")  # under which training scripts keep the weights

# What a pickle of numbers, texts and containers is made of.
PLAIN_OPCODES = re.compile(
    "PROTO|FRAME|STOP|MARK|MEMOIZE|(LONG_)?BIN(GET|PUT)|NONE|NEW(TRUE|FALSE)|BININT[12]?|LONG1|BINFLOAT"
    "|(SHORT_)?BINUNICODE|EMPTY_(LIST|TUPLE|DICT)|APPENDS?|TUPLE[123]?|SETITEMS?"
)
# What a state dict has besides: functions that make tensors, called by name.
TENSOR_OPCODES = re.compile(f"{PLAIN_OPCODES.pattern}|GLOBAL|REDUCE|BUILD|BINPERSID")
TENSOR_GLOBALS = re.compile(
    r"collections (OrderedDict|defaultdict)|torch\._utils _rebuild_(tensor_v2|parameter)"
    r"|torch (Size|device|\w+Storage|b?float\d+|double|half|u?int\d+|long|int|short|bool)"
)


def open_weights(path: Path) -> tuple[dict[str, Tensor], dict[str, object]]:
    """The tensors of a .safetensors file or of one that torch.save wrote, and what else the latter says.

    Raises ValueError, with a sentence that names the file, if it is damaged, would run code, or is neither.
    """
    with path.open("rb") as file:
        start = file.read(9)
    if start.startswith(b"PK"):
        return open_torch(path)
    if start[8:] == b"{":
        return open_safetensors(path), {}
    if start.startswith(b"\x80"):
        raise GPTError("checkpoint.old_format", file=path.name)
    raise GPTError("checkpoint.unknown_format", file=path.name)


def open_safetensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file, its header checked against its size."""
    size = path.stat().st_size
    with path.open("rb") as file:
        header = int.from_bytes(file.read(8), "little")
    if header > min(size - 8, MAX_HEADER):
        raise GPTError("checkpoint.header", file=path.name, header=header, size=size)
    try:
        tensors = load_file(path)
    except (SafetensorError, ValueError, RuntimeError, KeyError) as error:
        check_mapped(path, error)
        raise GPTError("file.cut_short", file=path.name, reason=error) from None
    return tensors


def open_torch(path: Path) -> tuple[dict[str, Tensor], dict[str, object]]:
    """The tensors of a file that torch.save wrote, and the other entries of the checkpoint around them."""
    check_archive(path)
    try:
        saved = torch.load(path, map_location="cpu", mmap=True, weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, ValueError, TypeError, KeyError, EOFError, OverflowError) as error:
        check_mapped(path, error)
        first_line = str(error).strip().split("\n")[0]
        raise GPTError("checkpoint.more_than_weights", file=path.name, reason=first_line) from None
    extras: dict[str, object] = {}
    if isinstance(saved, dict):
        key = next((key for key in STATE_KEYS if isinstance(saved.get(key), dict)), None)
        if key is not None:
            saved, extras = saved[key], {name: value for name, value in saved.items() if name != key}
    if not isinstance(saved, dict) or not saved or not all(isinstance(value, Tensor) for value in saved.values()):
        raise GPTError("checkpoint.no_state_dict", file=path.name)
    for name, tensor in saved.items():
        check_tensor(path, str(name), tensor)
    return {str(name): tensor.detach() for name, tensor in saved.items()}, extras


def check_mapped(path: Path, error: Exception) -> None:
    """Raise ValueError with the size of the file if it could not be mapped because it is too large."""
    if "Cannot allocate memory" in str(error):
        size = gigabytes(path.stat().st_size)
        raise GPTError("memory.file", file=path.name, need=size) from None


def check_archive(path: Path) -> None:
    """Refuse a zip file that grows when it is opened, is cut short, or holds a program."""
    size = path.stat().st_size
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            if any(entry.compress_type != zipfile.ZIP_STORED or entry.flag_bits & 1 for entry in entries):
                raise GPTError("checkpoint.compressed", file=path.name)
            if sum(entry.file_size for entry in entries) > size:
                raise GPTError("checkpoint.entries", file=path.name, size=size)
            pickles = [entry for entry in entries if entry.filename.endswith(".pkl")]
            if len(pickles) != 1 or not pickles[0].filename.endswith("data.pkl"):
                raise GPTError("checkpoint.other_zip", file=path.name)
            if pickles[0].file_size > MAX_PICKLE:
                raise GPTError("checkpoint.pickle_size", file=path.name, n=pickles[0].file_size)
            check_pickle(path.name, archive.read(pickles[0]), TENSOR_OPCODES)
    except (zipfile.BadZipFile, EOFError, NotImplementedError, UnicodeDecodeError) as error:
        raise GPTError("file.cut_short", file=path.name, reason=error) from None


def check_pickle(name: str, data: bytes, opcodes: re.Pattern[str] = PLAIN_OPCODES) -> None:
    """Refuse a pickle that does anything but build containers of plain values, without executing it."""
    texts, n_tuples = ["", ""], 0
    try:
        for opcode, argument, _ in pickletools.genops(data):
            if opcode.name == "GLOBAL" and opcodes is TENSOR_OPCODES:
                if not TENSOR_GLOBALS.fullmatch(argument):
                    raise GPTError("checkpoint.code_in_weights", file=name, code=argument.replace(" ", "."))
            elif not opcodes.fullmatch(opcode.name):
                called = {"STACK_GLOBAL": ".".join(texts[-2:]), "GLOBAL": str(argument).replace(" ", ".")}
                raise GPTError("checkpoint.code", file=name, code=called.get(opcode.name, opcode.name))
            n_tuples += opcode.name.startswith("TUPLE")
            if n_tuples > MAX_TUPLES:
                raise GPTError("checkpoint.tuples", file=name, limit=MAX_TUPLES)
            if "PUT" in opcode.name and int(argument) > len(data):  # the reader would take memory for that many
                raise GPTError("checkpoint.memo", file=name)
            if isinstance(argument, str):
                texts.append(argument)
    except GPTError:
        raise
    except ValueError as error:
        raise GPTError("file.cut_short", file=name, reason=error) from None


def check_tensor(path: Path, name: str, tensor: Tensor) -> None:
    """Refuse a tensor that is not simply there, number by number, in the file."""
    if tensor.layout != torch.strided or tensor.device.type != "cpu" or tensor.is_quantized:
        raise GPTError("checkpoint.tensor_kind", file=path.name, name=name)
    if tensor.numel() * tensor.element_size() > tensor.untyped_storage().nbytes():
        raise GPTError("checkpoint.tensor_size", file=path.name, name=name, n=tensor.numel())


def read_bytes(path: Path) -> bytes:
    """All of a file that must be small."""
    if path.stat().st_size > MAX_SMALL:
        raise GPTError("file.too_large", file=path.name, limit=MAX_SMALL)
    return path.read_bytes()


def read_text(path: Path) -> str:
    """All of a small file in UTF-8."""
    try:
        return read_bytes(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise GPTError("file.damaged", file=path.name, reason=error) from None


def read_json(path: Path, kind: type) -> object:
    """A JSON file whose outermost value is a `kind`."""
    try:
        value = json.loads(read_text(path))
    except (json.JSONDecodeError, RecursionError) as error:
        raise GPTError("file.damaged", file=path.name, reason=error) from None
    if not isinstance(value, kind):
        raise GPTError("file.json_type", file=path.name, expected=kind.__name__, type=type(value))
    return value
