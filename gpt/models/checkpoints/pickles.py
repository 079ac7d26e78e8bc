"""Read a pickle as plain data, without importing or calling anything that it names.

Tensors and objects that are only data, such as paths and NumPy's numbers, become
plain values. Any other object becomes a `Record` of its attributes.
"""

from __future__ import annotations

import math
import pickle
import re
import sys
from _compat_pickle import IMPORT_MAPPING, NAME_MAPPING
from collections.abc import Callable
from typing import Any, BinaryIO, ClassVar

import numpy as np
import torch
from torch import Tensor

MAX_PATH_CHARS = 4096
# Classes of the standard library whose objects are only data. Pickles that name anything else in it are refused.
PLAIN = re.compile(
    r"argparse\.Namespace|types\.SimpleNamespace|collections\.\w+|copyreg\._reconstructor|_codecs\.encode|_io\.BytesIO"
    r"|builtins\.(set|frozenset|complex|bytearray|bytes|list|dict|tuple|int|float|str|bool|object|slice|range|getattr)"
    r"|pathlib\.(_local\.)?\w+|datetime\.\w+|decimal\.Decimal|fractions\.Fraction|uuid\.UUID|functools\.partial"
    r"|re\._compile|typing\.\w+|array\._array_reconstructor|logging\.getLogger"
)
NUMBER = re.compile(r"[fiub]\d{1,2}")  # NumPy's name of a number's type, such as "f8"


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
        return checked_name(module, name)

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


def checked_name(module: str, name: str) -> Name:
    """Return the full name, as in Python 3. Raises RunsCode for what could run code, such as `os.system`."""
    module, name = NAME_MAPPING.get((module, name), (IMPORT_MAPPING.get(module, module), name))
    full = Name(f"{module}.{name}")
    if module.partition(".")[0] in sys.stdlib_module_names and not PLAIN.fullmatch(full):
        raise RunsCode(full)
    return full


class RunsCode(Exception):
    """Raised for a pickle that names a function of the standard library."""


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
