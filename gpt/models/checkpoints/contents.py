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
    """

    tensors: Mapping[str, Tensor]
    vocabulary: Callable[[int], Vocabulary]
    config: Mapping[str, object] | None = None
    settings: Beside | None = None
    entries: Mapping[str, object] = field(default_factory=dict)
    layout: Layout | None = None
    folder: Path | None = None


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

    Views of it are deferred as well; any other operation reads it.

    Args:
        read: Returns the numbers.
        shape, dtype: Shape and data type of what `read` returns.
    """

    read: Callable[[], Tensor]

    @staticmethod
    def __new__(cls, read: Callable[[], Tensor], shape: Sequence[int], dtype: torch.dtype) -> Deferred:
        deferred: Deferred = Tensor._make_wrapper_subclass(cls, tuple(shape), dtype=dtype)
        deferred.read = read
        return deferred

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # type: ignore[override]
        """Run an operation on the numbers, or later if it returns only views."""

        def read(deferred: Deferred) -> Tensor:
            return deferred.read().contiguous() if func.is_view else deferred.read()

        def run(number: int | None = None) -> Any:
            given, named = tree_map_only(Deferred, read, (args, kwargs or {}))
            found = func(*given, **named)
            return found if number is None else found[number]

        if not func.is_view:
            return run()
        shapes = tree_map_only(Deferred, lambda each: torch.empty(each.shape, dtype=each.dtype, device="meta"), args)
        views = func(*shapes, **(kwargs or {}))
        if isinstance(views, Tensor):
            return Deferred(run, views.shape, views.dtype)
        return [Deferred(lambda i=i: run(i), view.shape, view.dtype) for i, view in enumerate(views)]  # type: ignore[misc]
