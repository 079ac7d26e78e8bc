"""Read the folders of transformers, of this project and of training programs: weights, options and a vocabulary."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from torch import Tensor

from gpt.errors import GPTError
from gpt.models.checkpoints.contents import Contents, Reader
from gpt.models.checkpoints.layouts import LAYOUT_FILE, Layout, read_layout
from gpt.models.checkpoints.other_formats import other_format
from gpt.models.checkpoints.stated import INFER, Beside, Hints
from gpt.models.checkpoints.token_table import table_inside, token_table
from gpt.models.checkpoints.torch_file import Record, is_old, open_torch
from gpt.models.checkpoints.untrusted import damaged, existing, open_safetensors, read_json, read_yaml
from gpt.models.checkpoints.vocabularies import FILES, find_vocabulary, pad_vocabulary, vocabulary_or_ids
from gpt.tokenizer import Vocabulary

CONFIG, WEIGHTS = "config.json", "model.safetensors"
# Files of other programs that state options. They are read if there is no config.json.
SETTINGS = ("params.json", "model_config.json", "model_config.yaml", "hparams.json", "args.json")
ADAPTER_CONFIG = "adapter_config.json"
CHECKSUM = "sha256"  # key in our config.json
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
IN_A_BLOCK = re.compile(r"(^|\.)\d+\.")
StateDict = dict[str, Tensor]


def read_weights(files: list[Path], hints: Hints) -> Contents:
    """Read weight files, with the options and the vocabulary in the same folder."""
    folder = files[0].parent
    config = read_json(folder / CONFIG, dict) if (folder / CONFIG).is_file() else None
    if config and (checksum := config.pop(CHECKSUM, None)) is not None and checksum != folder_digest(config, folder):
        raise GPTError("checkpoint.checksum", folder=folder.resolve().name, file=CONFIG)
    tensors, entries = open_weights(files[0], hints.weights)
    for file in files[1:]:
        tensors |= open_weights(file, hints.weights)[0]
    if any(".lora_" in name for name in tensors):
        raise GPTError("checkpoint.adapter", file=files[0].name, config=ADAPTER_CONFIG)
    settings = settings_beside(folder) if config is None else None
    vocabulary = partial(read_vocabulary, folder, entries)
    return Contents(tensors, vocabulary, config, settings, entries, given_layout(folder, hints.names), folder)


def read_vocabulary(folder: Path, entries: Mapping[str, object], n_vocab: int) -> Vocabulary:
    """Return the vocabulary among a checkpoint's entries or in its folder, for a model with n_vocab tokens."""
    if table := table_inside(entries, n_vocab):
        return pad_vocabulary(token_table(table), n_vocab)
    beside = vocabulary_folder(folder, entries)
    return vocabulary_or_ids(lambda: find_vocabulary(beside, n_vocab), n_vocab)


def settings_beside(folder: Path) -> Beside | None:
    """Return the options in one of SETTINGS, or None if there is no such file."""
    file = next((folder / name for name in SETTINGS if (folder / name).is_file()), None)
    if file is None:
        return None
    return Beside(file.name, read_yaml(file) if file.suffix == ".yaml" else read_json(file, dict))


def given_layout(folder: Path, names: Path | str | None) -> Layout | None:
    """Return the layout in a layout file, or None if there is no such file. names: see `Hints`."""
    if names == INFER or (names is None and not (folder / LAYOUT_FILE).is_file()):
        return None
    path = folder / LAYOUT_FILE if names is None else Path(names)
    return read_layout(existing(path))


def weight_files(path: Path) -> list[Path]:
    """Return the weight files in a folder or an index. For a weight file, return only that file."""
    if path.is_file():
        return shards(path) if path.name.endswith(INDEX_SUFFIX) else [path]
    for name in (WEIGHTS, *INDEXES):
        if (path / name).is_file():
            return weight_files(path / name)
    if parts := sorted(path.glob("model-*-of-[0-9][0-9][0-9][0-9][0-9].safetensors")):
        if len(parts) != int(parts[0].stem.rpartition("-")[2]):
            raise GPTError("checkpoint.missing_shards", folder=path.name, n=len(parts), file=parts[0].name)
        return parts
    usual = [path / name for name in TORCH_FILES if (path / name).is_file()]
    files = [file for file in sorted(path.iterdir()) if file.is_file()]
    others = [file for file in files if file.suffix in SUFFIXES and not NO_WEIGHTS.match(file.name)]
    if other := next((error for file in others or files if (error := other_format(file))), None):
        raise other
    if not others:
        raise GPTError("checkpoint.no_weights")
    if not usual and len(others) > 1:
        raise several_files(others)
    return usual[:1] or others


def several_files(files: Sequence[Path]) -> GPTError:
    """Return the error for a folder with weights that do not belong together."""
    return GPTError(
        "checkpoint.several_weights",
        n=len(files),
        names=", ".join(file.name for file in files[:5]) + (", …" if len(files) > 5 else ""),
    )


def shards(index: Path) -> list[Path]:
    """Return the files that an index lists. Raises ValueError if a file is missing or in another folder."""
    names = listed_files(index)
    for name in names:
        if not (index.parent / name).is_file():
            raise GPTError("checkpoint.missing_file", index=index.name, file=name)
    return [index.parent / name for name in names]


def listed_files(index: Path) -> list[str]:
    """Return the names of the files that an index lists. Raises ValueError for files outside the index's folder."""
    listed = read_json(index, dict).get("weight_map")
    names = sorted(set(map(str, listed.values()))) if isinstance(listed, dict) else []
    suffix = Path(index.name.removesuffix(INDEX_SUFFIX)).suffix
    if not names or not all(re.fullmatch(rf"\w[\w.-]*\{suffix}", name) for name in names):
        raise damaged(index, f"weight_map: {names[:3]}")
    return names


def vocabulary_folder(folder: Path, extras: Mapping[str, object]) -> Path:
    """Return the folder that contains the vocabulary: the weights' folder or, in nanoGPT, ../data/<dataset>."""
    settings = extras.get("config")
    dataset = settings.get("dataset") if isinstance(settings, dict) else None
    if (
        isinstance(dataset, str)
        and Path(dataset).name == dataset
        and not any((folder / name).is_file() for name in FILES)
    ):
        data = folder.resolve().parent / "data" / dataset
        return data if data.is_dir() else folder
    return folder


def folder_digest(config: Mapping[str, object], folder: Path) -> str:
    """Return the SHA-256 of a configuration together with the vocabulary and the weights in a folder."""
    total = hashlib.sha256(json.dumps(config, sort_keys=True).encode())
    for name in (*FILES, WEIGHTS):
        if (folder / name).is_file():
            with (folder / name).open("rb") as file:
                while block := file.read(1 << 20):
                    total.update(block)
    return total.hexdigest()


WEIGHT_FILES = Reader("safetensors, PyTorch", weight_files, read_weights)


class WeightsUnknown(GPTError):
    """Raised when a file contains several models. `choices` are their names, for `Hints.weights`."""

    @property
    def choices(self) -> list[str]:
        return str(self.values["names"]).split(", ")


def open_weights(path: Path, wanted: str | None = None) -> tuple[StateDict, dict[str, object]]:
    """Return the weights in a .safetensors or torch.save file, and the other entries of a torch.save file.

    wanted: name of the model, if the file contains several.
    Raises WeightsUnknown if `wanted` is needed, and ValueError, naming the file, if it is damaged, would run code, or
    has another format.
    """
    with path.open("rb") as file:
        start = file.read(32)
    if other := other_format(path, start):
        raise other
    if start[8:9] == b"{":
        saved: object = open_safetensors(path)
    elif start.startswith(b"PK") or (start.startswith(b"\x80") and is_old(path)):
        saved = open_torch(path)
    elif start.startswith(b"\x80"):
        raise GPTError("checkpoint.pickle", file=path.name)
    else:
        raise GPTError("checkpoint.unknown_format", file=path.name)
    found = models_in(saved)
    if not found:
        raise GPTError("checkpoint.no_state_dict", file=path.name)
    names = list(found) if wanted is None else [wanted]
    if len(names) > 1 or names[0] not in found:
        raise WeightsUnknown("checkpoint.several_states", file=path.name, names=", ".join(found))
    entry, weights = found[names[0]]
    return weights, entries_beside(saved, entry)


def models_in(saved: object) -> dict[str, tuple[str, StateDict]]:
    """Return {name of a model: (the entry that contains it, its weights)}. Without entries, the name is empty."""
    found: dict[str, tuple[str, StateDict]] = {}
    for entry, weights in state_dicts(saved).items():
        models = models_inside(weights) or {entry: weights}
        found |= {name: (entry, model) for name, model in models.items()}
    return found


def state_dicts(saved: object) -> dict[str, StateDict]:
    """Return {entry: weights} for the state dicts of models in a file, or only "" if the file is a state dict."""
    own = tensors_in(saved)
    entries = saved.items() if isinstance(saved, dict) else ()
    inside = {
        str(name): tensors for name, value in entries if "optim" not in str(name) and (tensors := tensors_in(value))
    }
    largest = max(map(len, inside.values()), default=0)
    if len(own) >= max(largest, 1):
        return {"": own}
    return {name: tensors for name, tensors in inside.items() if 2 * len(tensors) > largest}


def tensors_in(value: object) -> StateDict:
    """Return the tensors of a dictionary, or those of a module that was saved whole."""
    if isinstance(value, Record) and "_modules" in value:
        return module_tensors(value)
    return (
        {str(name): each.detach() for name, each in value.items() if isinstance(each, Tensor)}
        if isinstance(value, dict)
        else {}
    )


def module_tensors(module: Record) -> StateDict:
    """Return the state dict of a module that was saved whole."""
    found: StateDict = {}
    waiting = [("", module)]
    while waiting:
        prefix, each = waiting.pop()
        tensors = {**as_dict(each.get("_parameters")), **as_dict(each.get("_buffers"))}
        found |= {prefix + name: tensor for name, tensor in tensors.items() if isinstance(tensor, Tensor)}
        children = as_dict(each.get("_modules")) if prefix.count(".") < MAX_MODULE_DEPTH else {}
        waiting += [(f"{prefix}{name}.", child) for name, child in children.items() if isinstance(child, Record)]
    return found


def as_dict(value: object) -> dict[Any, Any]:
    """Return a dictionary, or an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def models_inside(weights: StateDict) -> dict[str, StateDict]:
    """Return {prefix: weights} if a state dict consists of several models with the same names, such as net and ema."""
    parts: dict[str, StateDict] = {}
    for name, tensor in weights.items():
        first, _, rest = name.partition(".")
        parts.setdefault(first, {})[rest] = tensor
    names = [part.keys() for part in parts.values()]
    twins = {first: part for first, part in parts.items() if names.count(part.keys()) > 1}
    numbered = {len({bool(IN_A_BLOCK.search(name)) for name in part}) for part in twins.values()}
    return twins if numbered == {2} else {}  # modules of a single model lack blocks, or have nothing outside them


def entries_beside(saved: object, name: str) -> dict[str, object]:
    """Return the entries beside the weights, and the attributes of a module that was saved whole."""
    whole = saved if not name else as_dict(saved).get(name)
    attributes = whole if isinstance(whole, Record) else {}
    beside = {
        str(key): value for key, value in as_dict(saved).items() if str(key) != name and not isinstance(value, Tensor)
    }
    return {**attributes, **beside}
