"""Read files that may be damaged or malicious: no code in them runs, and their tensors are memory-mapped."""

from __future__ import annotations

import json
import pickle
import re
import sys
import zipfile
from _compat_pickle import IMPORT_MAPPING
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor

from gpt.errors import GPTError, require
from gpt.models.memory import format_bytes

# Modules of the standard library that only hold data. Pickles that name anything else in it are refused.
PLAIN = re.compile(
    r"(argparse|types|collections|copyreg|_codecs|_io|pathlib|datetime|decimal|enum|fractions|uuid|functools|re|typing"
    r"|array|logging)\b.*"
    r"|builtins\.(set|frozenset|complex|bytearray|bytes|list|dict|tuple|int|float|str|bool|object|slice|range|getattr)"
)

T = TypeVar("T")


class RunsCode(Exception):
    """A pickle names a function of the standard library."""


@contextmanager
def reading(path: Path | str, key: str = "file.damaged") -> Iterator[None]:
    """Turn whatever damaged data raises, in Rust as well, into a ValueError that names the file and the cause."""
    name = path.name if isinstance(path, Path) else path
    try:
        yield
    except GPTError:
        raise
    except RunsCode as code:
        raise GPTError("checkpoint.code", file=name, code=str(code)) from None
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":  # raised by Rust
            raise
        reason = str(error).strip().partition("\n")[0]
        if "Cannot allocate memory" in reason and isinstance(path, Path):  # the whole file is mapped
            raise GPTError("memory.file", file=name, need=format_bytes(path.stat().st_size)) from None
        raise GPTError(key, file=name, reason=reason or type(error).__name__) from None


def open_safetensors(path: Path) -> dict[str, Tensor]:
    with reading(path):
        return load_file(path)


def existing(path: Path) -> Path:
    """Return the path of a file or a folder. Raises ValueError if it does not exist."""
    require(path.is_file() or path.is_dir(), "file.unknown", path=path)
    return path


def read_text(path: Path) -> str:
    """Read a UTF-8 file. Removes the byte order mark that Windows editors write."""
    with reading(path):
        return path.read_text("utf-8-sig")


def read_json(path: Path, kind: type[T]) -> T:
    with reading(path):
        value = json.loads(read_text(path))
    require(isinstance(value, kind), "file.damaged", file=path.name, reason=type(value).__name__)
    return value


class Record(dict[Any, Any]):
    """An object whose class was not imported: its attributes, and the items of a dictionary."""

    __hash__ = object.__hash__  # type: ignore[assignment]

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__()
        self.args = args  # of its constructor
        self.state: Any = None  # if that is not a dictionary of attributes

    def append(self, value: object) -> None:
        """Ignore an item of a list."""

    def __setstate__(self, state: Any) -> None:
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


def number(dtype: Record, data: str | bytes = b"") -> object:
    """Return one of NumPy's numbers as Python's; anything else is a Record."""
    if not re.fullmatch(r"[fiub]\d{1,2}", dtype.args[0]):
        return Record()
    order = dtype.state[1] if isinstance(dtype.state, tuple) else "="
    raw = data.encode("latin-1") if isinstance(data, str) else data
    return np.frombuffer(raw, np.dtype(dtype.args[0]).newbyteorder(order), 1)[0].item()


# What pickles may call. All other names become classes of records.
CALLED: dict[str, Any] = {
    "collections.OrderedDict": OrderedDict,
    "collections.defaultdict": lambda *args: {},
    "_codecs.encode": lambda text, *_: text,
    "copyreg._reconstructor": lambda kind, *_: kind(),
    "torch.Size": torch.Size,
    "torch.device": torch.device,
    "torch._utils._rebuild_parameter": lambda tensor, *_: tensor,
    "torch._utils._rebuild_parameter_with_state": lambda tensor, *_: tensor,
    **{f"torch._utils._rebuild_tensor_v{n}": getattr(torch._utils, f"_rebuild_tensor_v{n}") for n in (2, 3)},
    "torch._tensor._rebuild_from_type_v2": lambda rebuild, kind, args, state: rebuild(*args),
    **{f"builtins.{kind.__name__}": kind for kind in (set, frozenset, complex, list, dict, tuple, int, float, str)},
    **{f"torch.{name}": each for name, each in vars(torch).items() if isinstance(each, torch.dtype)},
    **{f"{numpy}.multiarray.scalar": number for numpy in ("numpy.core", "numpy._core")},
}


class PlainUnpickler(pickle.Unpickler):
    """Reads a pickle as plain data: names are not looked up, except for those in CALLED."""

    def find_class(self, module: str, name: str) -> Any:
        """Return what stands for a name. Raises ValueError for what could run code, such as `os.system`."""
        full = f"{IMPORT_MAPPING.get(module, module)}.{name}"
        if module.partition(".")[0] in sys.stdlib_module_names and not PLAIN.fullmatch(full):
            raise RunsCode(full)
        return CALLED.get(full) or type(name, (Record,), {})


def read_pickle(path: Path) -> Any:
    """Read a pickle as plain data. Raises ValueError if it would run code."""
    with path.open("rb") as file, reading(path):
        return PlainUnpickler(file).load()


def open_torch(path: Path) -> object:
    """Return what torch.save wrote, as plain data. Raises ValueError if it is something else or would run code."""
    with path.open("rb") as file:
        is_zip = file.read(2) == b"PK"
    module = SimpleNamespace(Unpickler=PlainUnpickler, load=lambda file, **_: PlainUnpickler(file).load(), __name__="")
    with reading(path) if is_zip else reading(path, "checkpoint.pickle"):
        if is_zip:
            with zipfile.ZipFile(path) as archive:
                names = [Path(entry.filename).name for entry in archive.infolist() if not entry.compress_type]
            if "data.pkl" not in names or "constants.pkl" in names:  # the latter is TorchScript, which holds programs
                raise GPTError("checkpoint.other_zip", file=path.name)
        return torch.load(path, "cpu", module, weights_only=False, mmap=is_zip)


def map_file(path: Path) -> torch.UntypedStorage:
    """Map a file into memory. Writing to it does not change the file."""
    return torch.UntypedStorage.from_file(str(path), False, path.stat().st_size)  # type: ignore[return-value]
