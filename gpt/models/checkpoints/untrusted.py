"""Read untrusted files without running their code and without using more memory than their size.

Tensors are memory-mapped, so shapes can be checked before any data is read. Files of torch.save become plain data.
"""

from __future__ import annotations

import io
import json
import math
import pickle
import pickletools
import re
import struct
import sys
import zipfile
from _compat_pickle import IMPORT_MAPPING, NAME_MAPPING
from collections.abc import Callable
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, TypeVar

import numpy as np
import torch
import yaml  # type: ignore[import-untyped]
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from gpt.checks import require
from gpt.errors import GPTError
from gpt.models.memory import format_bytes

MAX_HEADER_BYTES = 2_000_000  # about 20,000 tensors in a safetensors file; reading 400,000 takes 20 seconds
MAX_TEXT_BYTES = 64_000_000  # limit on configuration and vocabulary files
MAX_PICKLE_BYTES = 16_000_000
OLD_MAGIC = 0x1950A86A20F9469CFC6C  # first value in a file from before 2020
LOCAL_HEADER = struct.Struct("<26x2H")  # start of an entry in a zip file: lengths of its name and of its extra field
STORAGES = {
    **{"Float": torch.float32, "Double": torch.float64, "Half": torch.float16, "BFloat16": torch.bfloat16},
    **{"Long": torch.int64, "Int": torch.int32, "Short": torch.int16, "Char": torch.int8, "Byte": torch.uint8},
    **{"Bool": torch.bool, "ComplexFloat": torch.complex64, "ComplexDouble": torch.complex128},
    "Untyped": torch.uint8,
}
MAX_PATH_CHARS = 4096
# Classes of the standard library whose objects are only data. Pickles that name anything else in it are refused.
PLAIN = re.compile(
    r"argparse\.Namespace|types\.SimpleNamespace|collections\.\w+|copyreg\._reconstructor|_codecs\.encode|_io\.BytesIO"
    r"|builtins\.(set|frozenset|complex|bytearray|bytes|list|dict|tuple|int|float|str|bool|object|slice|range|getattr)"
    r"|pathlib\.(_local\.)?\w+|datetime\.\w+|decimal\.Decimal|fractions\.Fraction|uuid\.UUID|functools\.partial"
    r"|re\._compile|typing\.\w+|array\._array_reconstructor|logging\.getLogger"
)
NUMBER = re.compile(r"[fiub]\d{1,2}")  # NumPy's name of a number's type, such as "f8"

T = TypeVar("T")


class Damaged(Exception):
    """A file contradicts itself. Its reader turns this into a sentence."""


def open_safetensors(path: Path) -> dict[str, Tensor]:
    """Return the tensors in a safetensors file. Raises ValueError if it is damaged or its header is too large."""
    with path.open("rb") as file:
        n_bytes = int.from_bytes(file.read(8), "little")
    require(n_bytes <= MAX_HEADER_BYTES, "checkpoint.header_size", file=path.name, n=n_bytes, limit=MAX_HEADER_BYTES)
    try:
        return load_file(path)
    except (SafetensorError, ValueError, RuntimeError, KeyError) as error:
        raise unreadable(path, error) from None


def existing(path: Path) -> Path:
    """Return the path of a file or a folder. Raises ValueError if it does not exist."""
    require(path.is_file() or path.is_dir(), "file.unknown", path=path)
    return path


def unreadable(path: Path, error: Exception) -> GPTError:
    """Return the error for a file that could not be read. error: the cause."""
    first_line = str(error).strip().partition("\n")[0]
    if "Cannot allocate memory" in first_line:  # the whole file is mapped
        return GPTError("memory.file", file=path.name, need=format_bytes(path.stat().st_size))
    return GPTError("file.cut_short", file=path.name, reason=first_line)


def not_readable(path: Path, error: OSError) -> GPTError:
    """Return the error for a file that the operating system cannot read."""
    return GPTError("file.unreadable", file=path.name, reason=error.strerror or error)


def read_bytes(path: Path) -> bytes:
    """Read a file of at most MAX_TEXT_BYTES. Raises ValueError if it is larger."""
    with path.open("rb") as file:
        data = file.read(MAX_TEXT_BYTES + 1)  # the reported size can be 0, as for files in /proc
    require(len(data) <= MAX_TEXT_BYTES, "file.too_large", file=path.name, limit=MAX_TEXT_BYTES)
    return data


def read_text(path: Path) -> str:
    """Read a UTF-8 file of at most MAX_TEXT_BYTES. Removes the byte order mark that Windows editors write."""
    try:
        return read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise GPTError("file.damaged", file=path.name, reason=error) from None


def read_json(path: Path, kind: type[T]) -> T:
    """Read a JSON file whose outermost value has the type `kind`."""
    try:
        value = json.loads(read_text(path))
    except (json.JSONDecodeError, RecursionError) as error:
        raise GPTError("file.damaged", file=path.name, reason=error) from None
    if not isinstance(value, kind):
        raise GPTError("file.json_type", file=path.name, expected=kind.__name__, type=type(value))
    return value


def read_yaml(path: Path) -> dict[str, object]:
    """Read a YAML file of options. Numbers such as 1e-5, which are text in YAML 1.1, become numbers."""
    try:
        value = yaml.safe_load(read_text(path))
    except (yaml.YAMLError, RecursionError) as error:
        raise GPTError("file.damaged", file=path.name, reason=str(error).partition("\n")[0]) from None
    if not isinstance(value, dict):
        raise GPTError("file.damaged", file=path.name, reason=type(value).__name__)
    for name, text in value.items():
        with suppress(ValueError):
            value[name] = float(text) if isinstance(text, str) else text
    return {str(name): each for name, each in value.items()}


class RunsCode(Exception):
    """Raised for a pickle that names a function of the standard library."""


class Name(str):
    """The name of a class or function, such as "torch.float32"."""

    __slots__ = ()


class Record(dict[Any, Any]):
    """An object whose class was not imported: its attributes, and the items of a dictionary.

    kind: name of its class, such as "__main__.GPTConfig". args: arguments of its constructor. state: its state if that
    is not a dictionary of attributes.
    """

    __slots__ = ("args", "kind", "state")
    __hash__ = object.__hash__  # type: ignore[assignment]

    def __init__(self, kind: str, args: tuple[Any, ...] = ()) -> None:
        super().__init__()
        self.kind, self.args = kind, args
        self.state: object = None

    def append(self, value: object) -> None:
        """Ignore an item of a list."""

    def extend(self, values: list[object]) -> None:
        """Ignore items of a list."""

    def build(self, state: object) -> None:
        """Add the attributes in a state: a dictionary, or a pair of one and the attributes stored in slots."""
        parts = state if isinstance(state, tuple) and len(state) == 2 else (state,)
        if not all(part is None or isinstance(part, dict) for part in parts):
            self.state = state
            return
        for attributes in filter(None, parts):
            self.update(attributes)
        if isinstance(attributes := self.get("__dict__"), dict):  # Pydantic
            self.update(attributes)
        if isinstance(nodes := self.get("_content"), dict):  # OmegaConf
            self.update({name: node.get("_val", node) for name, node in nodes.items() if isinstance(node, Record)})


class PlainUnpickler(pickle._Unpickler):
    """Python's interpreter of pickles, except that names are not looked up and nothing is called.

    load: returns the value of a persistent id; in torch's files, the numbers in a storage.
    """

    dispatch: ClassVar[dict[int, Any]] = dict(pickle._Unpickler.dispatch)
    stack: list[Any]
    append: Callable[[object], None]
    pop_mark: Callable[[], list[Any]]

    def __init__(self, file: BinaryIO, load: Callable[[Any], object] | None = None) -> None:
        super().__init__(file)
        self.load_storage = load

    def persistent_load(self, pid: Any) -> object:
        if self.load_storage is None:
            raise pickle.UnpicklingError("unexpected persistent id")
        return self.load_storage(pid)

    def find_class(self, module: str, name: str) -> Name:
        """Return the full name, as in Python 3. Raises RunsCode for what could run code, such as `os.system`."""
        module, name = NAME_MAPPING.get((module, name), (IMPORT_MAPPING.get(module, module), name))
        full = Name(f"{module}.{name}")
        if module.partition(".")[0] in sys.stdlib_module_names and not PLAIN.fullmatch(full):
            raise RunsCode(full)
        return full

    def get_extension(self, code: int) -> None:
        raise pickle.UnpicklingError("unexpected extension")

    def _instantiate(self, function: object, args: list[Any]) -> None:
        self.append(construct(function, tuple(args)))

    def call(self) -> None:
        args = self.stack.pop()
        self.stack[-1] = construct(self.stack[-1], args)

    def call_with_keywords(self) -> None:
        self.stack.pop()
        self.call()

    def build(self) -> None:
        state = self.stack.pop()
        if isinstance(self.stack[-1], Record):
            self.stack[-1].build(state)

    def make_dict(self) -> None:
        self.append(add_items({}, self.pop_mark()))

    def set_item(self) -> None:
        value, key = self.stack.pop(), self.stack.pop()
        add_items(self.stack[-1], [key, value])

    def set_items(self) -> None:
        values = self.pop_mark()
        add_items(self.stack[-1], values)

    dispatch |= {
        pickle.REDUCE[0]: call,
        pickle.NEWOBJ[0]: call,
        pickle.NEWOBJ_EX[0]: call_with_keywords,
        pickle.BUILD[0]: build,
        pickle.DICT[0]: make_dict,
        pickle.SETITEM[0]: set_item,
        pickle.SETITEMS[0]: set_items,
        # Sets become lists, because hashing nested tuples can take forever.
        pickle.EMPTY_SET[0]: dispatch[pickle.EMPTY_LIST[0]],
        pickle.ADDITEMS[0]: dispatch[pickle.APPENDS[0]],
        pickle.FROZENSET[0]: dispatch[pickle.TUPLE[0]],
    }


def add_items(target: Any, values: list[Any]) -> dict[Any, Any]:
    """Add keys and values, which alternate. Nested tuples as keys are refused: hashing them can take forever."""
    keys = values[::2]
    nested = (each for key in keys if isinstance(key, tuple) for each in key if isinstance(each, tuple))
    if not isinstance(target, dict) or any(True for _ in nested):
        raise pickle.UnpicklingError("a tuple of tuples is a key, or an object has keys")
    target.update(zip(keys, values[1::2], strict=True))
    return target


def construct(function: object, args: object) -> object:
    """Return what a call returns if that is plain data, else a `Record`. Copies no data, so the result is small."""
    if not isinstance(function, Name) or not isinstance(args, tuple):
        raise pickle.UnpicklingError("unexpected call")
    module, _, name = function.rpartition(".")
    first = args[0] if args else None
    if function in ("collections.OrderedDict", "collections.defaultdict", "collections.Counter"):
        return first if isinstance(first, dict) else {}
    if function in ("builtins.set", "builtins.frozenset", "collections.deque"):
        return first if isinstance(first, list) else []
    if function in ("_codecs.encode", "torch.Size"):
        return first
    if function == "copyreg._reconstructor":
        return Record(str(first))
    if module.startswith("pathlib") and sum(map(len, args)) <= MAX_PATH_CHARS:
        return "/".join(args).replace("//", "/")
    if function == "torch.device":
        return ":".join(map(str, args))
    if function.endswith("multiarray.scalar"):
        return number(*args)
    if module == "torch._utils" and name.startswith("_rebuild_parameter"):
        return first
    if function in ("torch._utils._rebuild_tensor_v2", "torch._utils._rebuild_tensor_v3"):
        return tensor(*args)
    if function == "torch._tensor._rebuild_from_type_v2" and first == "torch._utils._rebuild_tensor_v2":
        return tensor(*args[2])
    return Record(function, args)


def number(dtype: Record, data: str | bytes = b"") -> object:
    """Return one of NumPy's numbers as Python's. Text is a Record, as are other types."""
    code = dtype.args[0]
    if not NUMBER.fullmatch(code):
        return Record("numpy." + code)
    order = dtype.state[1] if isinstance(dtype.state, tuple) else "="
    raw = data.encode("latin-1") if isinstance(data, str) else data
    return np.frombuffer(raw, np.dtype(code).newbyteorder(order), 1)[0].item()


def tensor(storage: Tensor, offset: int, size: tuple[int, ...], stride: tuple[int, ...], *more: Any) -> Tensor:
    """Return a tensor that is a view of a storage. more: whether it needs a gradient, its hooks, its data type."""
    if len(more) > 2:
        storage = storage.view(getattr(torch, more[2].removeprefix("torch.")))
    if math.prod(size) > storage.numel():
        raise pickle.UnpicklingError(f"a tensor claims {math.prod(size):,} numbers, more than the file contains")
    return storage.as_strided(size, stride, offset)


def read_pickle(path: Path) -> object:
    """Read a pickle as plain data. Raises ValueError if it would run code."""
    data = read_bytes(path)
    return as_data(path, lambda: PlainUnpickler(io.BytesIO(data)).load())


def as_data(path: Path, read: Callable[[], object]) -> object:
    """Return the value of a function that unpickles a file. Raises ValueError if the file cannot be read."""
    try:
        return read()
    except GPTError:
        raise
    except RunsCode as name:
        raise GPTError("checkpoint.code", file=path.name, code=str(name)) from None
    except Exception as error:  # damaged data raises almost anything
        raise unreadable(path, error) from None


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
            raise GPTError("checkpoint.compressed", file=path.name)
        pickles = [entry for name, entry in entries.items() if name.endswith(".pkl")]
        if len(pickles) != 1 or not pickles[0].filename.endswith("data.pkl"):
            raise GPTError("checkpoint.other_zip", file=path.name)
        if pickles[0].file_size > MAX_PICKLE_BYTES:
            raise GPTError("checkpoint.pickle_size", file=path.name, n=pickles[0].file_size)
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
        """Return a storage without numbers. pid: see `read_zip`; "module" stands for the class of a module."""
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
        return pid[1] if pid[0] == "module" else numbers(pid[1], whole[starts[pid[2]] : starts[pid[2]] + sizes[pid[2]]])

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
