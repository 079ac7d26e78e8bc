"""Read the folders of transformers, of this project and of training programs as `Contents`, like every reader."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils._pytree import tree_map_only

from gpt.errors import GPTError, require
from gpt.models.checkpoints.layouts import INFER, LAYOUT_FILE, Hints, Layout, read_layout
from gpt.models.checkpoints.untrusted import Record, existing, open_safetensors, open_torch, read_json
from gpt.models.checkpoints.vocabularies import read_vocabulary
from gpt.tokenizer import Vocabulary

CONFIG, WEIGHTS = "config.json", "model.safetensors"
# Files of other programs that state options. They are read if there is no config.json.
SETTINGS = ("params.json", "model_config.json", "hparams.json", "args.json")
ADAPTER_CONFIG = "adapter_config.json"
TORCH_WEIGHTS = "pytorch_model.bin"
TORCH_FILES = ("ckpt.pt", TORCH_WEIGHTS, "model.pt", "model.pth")
INDEX_SUFFIX = ".index.json"  # suffix of files that list the shards of the weights
INDEXES = (WEIGHTS + INDEX_SUFFIX, TORCH_WEIGHTS + INDEX_SUFFIX)
SUFFIXES = (".safetensors", ".pt", ".pth", ".ckpt", ".bin")
# Other files found next to weights: adapters, concepts, data, settings, and optimizer, schedule and generator states.
NO_WEIGHTS = re.compile(
    r"(adapter_model|concepts|(.*[_.-])?optim(izer)?s?|scheduler|scaler|rng_state|random_states|training_args"
    r"|(train|val|valid|test)\.bin$)(?![a-z])"
)
MAX_MODULE_DEPTH = 20
# Files of other programs that are not read: {file names: (format, command that converts it)}. The first fit applies.
FLAX = "transformers 4: from_pretrained(folder, from_flax=True).save_pretrained(new)"
KERAS = "keras_hub: model.export_to_transformers(new)"
NUMPY = ("NumPy", "safetensors.numpy.save_file({name: a.copy() for name, a in numpy.load(file).items()}, new)")
NAMES = {
    "*.msgpack": ("Flax", FLAX),
    "*.keras *.weights.h5": ("Keras", KERAS),
    "*.h5": ("TensorFlow, as saved by transformers", FLAX.replace("flax", "tf")),
    "*.distcp .metadata": (
        "torch.distributed.checkpoint",
        "python -m torch.distributed.checkpoint.format_utils dcp_to_torch folder file.pt",
    ),
    "zero_pp_rank_*.pt bf16_zero_pp_rank_*.pt zero_to_fp32.py": ("DeepSpeed", "python zero_to_fp32.py folder new"),
    "lit_model.pth": ("LitGPT", "litgpt convert_from_litgpt folder new; cp folder/*.json new"),
    "lit_model.pth.lora": ("LoRA adapter of LitGPT", "litgpt merge_lora folder"),
    "*.npy *.npz": NUMPY,
    "*.zip *.tar *.tgz *.gz *.7z *.rar *.zst": ("zip / tar", "tar -xf file"),
}
STARTS = {  # by the first bytes
    b"\x89HDF": ("HDF5 (Keras)", KERAS),
    b"\x93NUMPY": NUMPY,
    (20240326).to_bytes(4, "little"): ("llm.c", "python dev/eval/export_hf.py --input file --output new"),
    b"version https://git-lfs": ("Git LFS", "git lfs pull"),
    b"\x1f\x8b": ("gzip", "gunzip file"),
}


@dataclass(frozen=True, eq=False)
class Contents:
    """The contents of a checkpoint's files."""

    tensors: Mapping[str, Tensor]  # weights by their stored names, memory-mapped or `Deferred`
    vocabulary: Callable[[int], Vocabulary]  # returns it, with its chat template, given the model's number of tokens
    config: Mapping[str, object] | None = None  # as in config.json, our own or, with a "model_type", of transformers
    settings: Mapping[str, Any] | None = None  # another file next to the weights that states options
    entries: Mapping[str, object] = field(default_factory=dict)  # other entries of a torch.save file
    layout: Layout | None = None  # names of the weights, if a person gives them; by default, they are detected
    folder: Path | None = None
    family: Layout | None = None  # config's family with the names and storage format of these weights, if others
    stored_as: str = ""  # type in which most of the weights are quantised, such as "Q4_K"


class Reader(NamedTuple):
    """A reader of one file format. Raises ValueError if files are damaged or not supported."""

    find: Callable[[Path], list[Path]]  # returns the files to read, given a file or a folder; [] for another format
    read: Callable[[list[Path], Hints], Contents]
    formats: Mapping[str, str]  # {name of a format: what it is recognised by, in Markdown}


class Deferred(Tensor):
    """A tensor that is read whenever its numbers are needed, for files that cannot be memory-mapped.

    Views of it are deferred as well; any other operation reads it. `numbers_of` reads several at a time. Can be a
    parameter of a module.
    """

    read: Callable[[torch.dtype, range], Tensor]  # returns some rows, in this data type if that saves memory
    like: Tensor  # on the meta device, with this tensor's shape and the data type of what `read` returns
    rows: range  # the rows to read
    view_of: Callable[[Tensor], Tensor] | None  # returns this tensor, given these rows; for views
    _is_param = True  # makes isinstance(weight, nn.Parameter) true

    @staticmethod
    def __new__(cls, read: Any, like: Tensor, rows: range | None = None, view_of: Any = None) -> Deferred:
        deferred: Deferred = Tensor._make_wrapper_subclass(cls, like.shape, like.stride(), dtype=like.dtype)
        deferred.read, deferred.like, deferred.view_of = read, like, view_of
        deferred.rows = range(len(like)) if rows is None else rows
        return deferred

    def split(self, size: int, dim: int = 0) -> Iterator[Tensor]:  # type: ignore[override]
        """Read the rows, `size` at a time."""
        for start in range(0, len(self), size):
            yield numbers_of([self[start : start + size]], self.dtype)[0]

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # type: ignore[override]
        """Run an operation on the numbers, or later if it returns only views."""
        if not func.is_view:
            given, named = tree_map_only(Deferred, lambda each: numbers_of([each], each.dtype)[0], (args, kwargs or {}))
            return func(*given, **named)
        source, *rest = args
        if func is torch.ops.aten.detach.default:
            return source
        views = func(source.like, *rest, **(kwargs or {}))
        is_rows = func is torch.ops.aten.slice.Tensor and rest[0] == 0 and rest[3:] in ([], [1])
        if is_rows and source.view_of is None:
            return Deferred(source.read, views, source.rows[slice(*rest[1:])])

        def view_of(rows: Tensor, i: int | None = None) -> Any:
            found = func(rows if source.view_of is None else source.view_of(rows), *rest, **(kwargs or {}))
            return found if i is None else found[i]

        if isinstance(views, Tensor):
            return Deferred(source.read, views, source.rows, view_of)
        return [Deferred(source.read, view, source.rows, partial(view_of, i=i)) for i, view in enumerate(views)]


def numbers_of(parts: Sequence[Tensor], dtype: torch.dtype = torch.float32) -> list[Tensor]:
    """Return tensors with those that are `Deferred` read. Views of the same rows read them once."""
    read: dict[object, Tensor] = {}
    found = []
    for part in parts:
        if isinstance(part, Deferred):
            key = part.read, part.rows
            rows = read[key] = read[key] if key in read else part.read(dtype, part.rows)
            part = rows if part.view_of is None else part.view_of(rows)
        found.append(part)
    return found


def read_weights(files: list[Path], hints: Hints) -> Contents:
    folder = files[0].parent
    config = read_json(folder / CONFIG, dict) if (folder / CONFIG).is_file() else None
    if config:
        config.pop("sha256", None)  # in folders of earlier versions
    tensors, entries = open_weights(files[0], hints.weights)
    for file in files[1:]:
        tensors |= open_weights(file, hints.weights)[0]
    if any(".lora_" in name for name in tensors):
        raise GPTError("checkpoint.adapter", file=files[0].name, config=ADAPTER_CONFIG)
    named = next((folder / name for name in SETTINGS if config is None and (folder / name).is_file()), None)
    settings = read_json(named, dict) if named else None
    names = folder / LAYOUT_FILE if hints.names is None else Path(hints.names)
    is_given = hints.names != INFER and (hints.names is not None or names.is_file())
    layout = read_layout(existing(names)) if is_given else None
    return Contents(tensors, partial(read_vocabulary, folder, entries), config, settings, entries, layout, folder)


def weight_files(path: Path) -> list[Path]:
    """Return the weight files in a folder or an index. For a weight file, return only that file."""
    if path.is_file():
        files = [path.with_name(name) for name in listed_files(path)]
        for file in files:
            require(file.is_file(), "checkpoint.missing_file", index=path.name, file=file.name)
        return files
    for name in (WEIGHTS, *INDEXES):
        if (path / name).is_file():
            return weight_files(path / name)
    if parts := sorted(path.glob("model-*-of-[0-9][0-9][0-9][0-9][0-9].safetensors")):
        return parts
    usual = [path / name for name in TORCH_FILES if (path / name).is_file()]
    files = [file for file in sorted(path.iterdir()) if file.is_file()]
    others = [file for file in files if file.suffix in SUFFIXES and not NO_WEIGHTS.match(file.name)]
    if other := next((error for file in others or files if (error := other_format(file))), None):
        raise other
    require(others, "checkpoint.no_weights")
    if not usual and len(others) > 1:
        raise several_files(others)
    return usual[:1] or others


def several_files(files: Sequence[Path]) -> GPTError:
    """Return the error for a folder with weights that do not belong together."""
    names = ", ".join(file.name for file in files[:5]) + (", …" if len(files) > 5 else "")
    return GPTError("checkpoint.several_weights", n=len(files), names=names)


def listed_files(path: Path) -> list[str]:
    """Return the names of the files that an index lists, or the name of a weight file itself."""
    if not path.name.endswith(INDEX_SUFFIX):
        return [path.name]
    listed = read_json(path, dict).get("weight_map")
    names = sorted(set(map(str, listed.values()))) if isinstance(listed, dict) else []
    suffix = Path(path.name.removesuffix(INDEX_SUFFIX)).suffix
    if not names or not all(re.fullmatch(rf"\w[\w.-]*\{suffix}", name) for name in names):
        raise GPTError("file.damaged", file=path.name, reason=f"weight_map: {names[:3]}")
    return names


class WeightsUnknown(GPTError):
    """Raised when a file contains several models. `choices` are their names, for `Hints.weights`."""

    @property
    def choices(self) -> list[str]:
        return str(self.values["names"]).split(", ")


def open_weights(path: Path, wanted: str | None = None) -> tuple[dict[str, Tensor], dict[str, object]]:
    """Return the weights in a .safetensors or torch.save file, and the other entries of a torch.save file.

    wanted: Name of the model. Raises WeightsUnknown if the file contains several, and ValueError for any other file.
    """
    with path.open("rb") as file:
        start = file.read(32)
    if other := other_format(path, start):
        raise other
    if start[8:9] == b"{":
        saved: object = open_safetensors(path)
    elif start.startswith((b"PK", b"\x80")):
        saved = open_torch(path)
    else:
        raise GPTError("checkpoint.unknown_format", file=path.name)
    found = models_in(saved)
    require(found, "checkpoint.no_state_dict", file=path.name)
    names = list(found) if wanted is None else [wanted]
    if len(names) > 1 or names[0] not in found:
        raise WeightsUnknown("checkpoint.several_states", file=path.name, names=", ".join(found))
    name, entries = names[0], as_dict(saved)
    whole = entries.get(name) if name else saved
    attributes = whole if isinstance(whole, Record) else {}  # of a module that was saved whole
    beside = {str(key): each for key, each in entries.items() if str(key) != name and not isinstance(each, Tensor)}
    return found[name], {**attributes, **beside}


def models_in(saved: object) -> dict[str, dict[str, Tensor]]:
    """Return {entry: its weights} for each model in a file, or {"": weights} for one without entries."""
    own = tensors_in(saved)
    inside = {str(name): tensors_in(value) for name, value in as_dict(saved).items() if "optim" not in str(name)}
    largest = max(map(len, inside.values()), default=0)
    if len(own) >= max(largest, 1):
        return {"": own}
    return {name: tensors for name, tensors in inside.items() if 2 * len(tensors) > largest}


def tensors_in(value: object, prefix: str = "") -> dict[str, Tensor]:
    """Return the tensors of a dictionary, or those of a module that was saved whole."""
    tensors, modules = as_dict(value), {}
    if isinstance(value, Record) and "_modules" in value:
        tensors = {**as_dict(value.get("_parameters")), **as_dict(value.get("_buffers"))}
        modules = as_dict(value["_modules"]) if prefix.count(".") < MAX_MODULE_DEPTH else {}
    found = {f"{prefix}{name}": each.detach() for name, each in tensors.items() if isinstance(each, Tensor)}
    for name, child in modules.items():
        found |= tensors_in(child, f"{prefix}{name}.")
    return found


def as_dict(value: object) -> dict[Any, Any]:
    return value if isinstance(value, dict) else {}


def other_format(file: Path, start: bytes = b"") -> GPTError | None:
    """Return the error for a file of another program, or None for an unknown kind of file. start: its first bytes."""
    matches = partial(fnmatchcase, file.name)
    found = next((row for names, row in NAMES.items() if any(map(matches, names.split()))), None)
    name, command = found or next((row for magic, row in STARTS.items() if start.startswith(magic)), ("", ""))
    return GPTError("checkpoint.other_format", file=file.name, format=name, command=command) if name else None


WEIGHT_FILES = Reader(
    weight_files,
    read_weights,
    {
        "Hugging Face": "`model.safetensors`, `pytorch_model.bin` or an index of their shards",
        "torch.save, safetensors": "any such file, by the names of its weights",
    },
)
