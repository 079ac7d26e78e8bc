"""What a reader finds in the files of a checkpoint: tensors under their stored names, options, and the vocabulary."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils._pytree import tree_map_only

from gpt.models.checkpoints.layouts import Layout
from gpt.models.checkpoints.stated import Beside, Hints
from gpt.tokenizer import Vocabulary


@dataclass(frozen=True, eq=False)
class Contents:
    """The contents of a checkpoint's files.

    Attributes:
        tensors: Weights by their stored names, memory-mapped or `Deferred`.
        vocabulary: Returns the vocabulary, with its chat template, for a model with a given number of tokens.
        config: Options as in config.json, in our own format or, with a "model_type", in that of transformers.
        settings: Another file next to the weights that states options.
        entries: The other entries of a torch.save file.
        layout: Names of the weights, if a reader or a person gives them. By default they are detected.
        folder: Folder that contains the files.
        family: Family of config's model_type, with the names and the storage format of these weights, if transformers
            has others.
        stored_as: Type in which most of the weights are quantised, such as "Q4_K".
    """

    tensors: Mapping[str, Tensor]
    vocabulary: Callable[[int], Vocabulary]
    config: Mapping[str, object] | None = None
    settings: Beside | None = None
    entries: Mapping[str, object] = field(default_factory=dict)
    layout: Layout | None = None
    folder: Path | None = None
    family: Layout | None = None
    stored_as: str = ""


class Reader(NamedTuple):
    """A reader of one file format.

    Attributes:
        title: Name of the format.
        find: Returns the files to read, given a file or a folder; an empty list if it has another format.
        read: Reads these files. Raises ValueError if they are damaged or not supported.
    """

    title: str
    find: Callable[[Path], list[Path]]
    read: Callable[[list[Path], Hints], Contents]


class Deferred(Tensor):
    """A tensor that is read whenever its numbers are needed, for files that cannot be memory-mapped.

    Views of it are deferred as well; any other operation reads it. `numbers_of` reads several at a time.

    Args:
        read: Returns the numbers. May return them in the given data type if that saves memory.
        like: A tensor on the meta device with the shape and the data type of what `read` returns.
        view_of: Returns this tensor, given the whole one; for views.
    """

    read: Callable[[torch.dtype], Tensor]
    like: Tensor
    view_of: Callable[[Tensor], Tensor]

    @staticmethod
    def __new__(
        cls,
        read: Callable[[torch.dtype], Tensor],
        like: Tensor,
        view_of: Callable[[Tensor], Tensor] = lambda whole: whole,
    ) -> Deferred:
        deferred: Deferred = Tensor._make_wrapper_subclass(cls, like.shape, like.stride(), dtype=like.dtype)
        deferred.read, deferred.like, deferred.view_of = read, like, view_of
        return deferred

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # type: ignore[override]
        """Run an operation on the numbers, or later if it returns only views."""
        if not func.is_view:
            given, named = tree_map_only(Deferred, lambda each: numbers_of([each])[0], (args, kwargs or {}))
            return func(*given, **named)
        source, *rest = args
        views = func(source.like, *rest, **(kwargs or {}))

        def view_of(whole: Tensor) -> Any:
            return func(source.view_of(whole), *rest, **(kwargs or {}))

        if isinstance(views, Tensor):
            return Deferred(source.read, views, view_of)
        return [Deferred(source.read, view, lambda whole, i=i: view_of(whole)[i]) for i, view in enumerate(views)]  # type: ignore[misc]


def numbers_of(parts: Sequence[Tensor], dtype: torch.dtype = torch.float32) -> list[Tensor]:
    """Return tensors with those that are `Deferred` read. Views of the same tensor read it once.

    dtype: See `Deferred.read`.
    """
    read: dict[Callable[[torch.dtype], Tensor], Tensor] = {}
    found = []
    for part in parts:
        if isinstance(part, Deferred):
            if part.read not in read:
                read[part.read] = part.read(dtype)
            part = part.view_of(read[part.read])
        found.append(part)
    return found
