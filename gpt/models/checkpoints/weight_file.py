"""Find the weights in a file: a state dict, alone or among other entries, or a whole module."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from torch import Tensor

from gpt.errors import GPTError
from gpt.models.checkpoints.pickles import Record
from gpt.models.checkpoints.torch_file import is_old, open_torch
from gpt.models.checkpoints.untrusted import open_safetensors

MAX_MODULE_DEPTH = 20
IN_A_BLOCK = re.compile(r"(^|\.)\d+\.")
StateDict = dict[str, Tensor]


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
        start = file.read(9)
    if start[8:] == b"{":
        saved: object = open_safetensors(path)
    elif start.startswith(b"PK") or (start.startswith(b"\x80") and is_old(path)):
        saved = open_torch(path)
    elif start.startswith(b"\x80"):
        raise GPTError(
            "checkpoint.pickle",
            "{file} is a pickled Python object, which would run code when it is opened: save model.state_dict() with "
            "torch.save",
            file=path.name,
        )
    else:
        raise GPTError(
            "checkpoint.unknown_format",
            "{file} is neither a safetensors file nor a torch.save file, or it is damaged",
            file=path.name,
        )
    found = models_in(saved)
    if not found:
        raise GPTError(
            "checkpoint.no_state_dict", "{file} contains no state dict: save model.state_dict()", file=path.name
        )
    names = list(found) if wanted is None else [wanted]
    if len(names) > 1 or names[0] not in found:
        raise WeightsUnknown(
            "checkpoint.several_states",
            "{file} contains these models: {names}. Choose one with weights (--weights on the command line)",
            file=path.name,
            names=", ".join(found),
        )
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
