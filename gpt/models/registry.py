"""The shared models: each loaded once, kept while there is room, let go when nobody uses them."""

from __future__ import annotations

import copyreg
import os
import shutil
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

import torch

from gpt.inference.zero_gpu import on_zero_gpu
from gpt.model import GPT
from gpt.models import hub
from gpt.models.checkpoints import weight_files
from gpt.models.gpu_twin import gpu_twin
from gpt.models.loading import Load, LoadedModel, Precision, best_device, build, check_precision, memory_of
from gpt.models.memory import free_memory, gigabytes
from gpt.models.sources import DEFAULT_MODEL, MODELS, Source, find_source

SAID = 200  # characters of a name that is not known


class Registry:
    """Shared models: each loaded once, kept while they fit in a memory budget.

    A model is in use as long as anybody holds it: hold what `get` returns while you use it, and no longer. When
    room is needed, those that nobody holds are let go, the longest unused first.

    memory: bytes for all models together; None is half of what is free when the first is loaded.
    """

    def __init__(
        self, *, memory: int | None = None, device: torch.device | None = None, precision: Precision = "fp32"
    ) -> None:
        check_precision(precision)
        self.memory, self.device, self.precision = memory, device, precision
        self._sources: dict[str, Source] = {name: find_source(name) for name in MODELS}
        self._uploads: dict[str, TemporaryDirectory[str]] = {}
        self._unlisted: set[str] = set()  # somebody's own, in nobody else's list
        self._lock = threading.Lock()  # never held while a model loads
        self._loads: dict[str, Load] = {}
        self._promised: dict[Load, int] = {}  # bytes of models that are being made
        self._kept: OrderedDict[str, LoadedModel] = OrderedDict()  # the longest unused first
        self._alive: WeakValueDictionary[str, LoadedModel] = WeakValueDictionary()
        self._sizes: WeakKeyDictionary[GPT, int] = WeakKeyDictionary()  # of every model in memory, kept or held

    def names(self) -> list[str]:
        """All that everybody can ask for, the bundled model first."""
        with self._lock:
            return self._listed()

    def has(self, loaded: LoadedModel) -> bool:
        """Whether this is the shared model of its name."""
        return self._alive.get(loaded.name) is loaded

    def title(self, name: str) -> str:
        """The end of its path, and its layout if it is loaded."""
        loaded = self._alive.get(name)
        return "/".join(Path(name).parts[-2:]) + (f" · {loaded.layout}" if loaded else "")

    def add(self, name_or_path: str | Path, n_head: int | None = None, *, name: str | None = None) -> str:
        """Let a path or a repository of the hub be asked for; returns its name. Nothing is loaded yet."""
        source = find_source(name_or_path, n_head)
        name = name or str(name_or_path)
        with self._lock:
            if self._sources.setdefault(name, source) != source and name not in MODELS:
                self._sources[name] = source
                for known in (self._loads, self._kept, self._alive):
                    known.pop(name, None)
        return name

    def add_upload(
        self,
        files: Sequence[str | Path],
        n_head: int | None = None,
        *,
        name: str | None = None,
        listed: bool = True,
    ) -> str:
        """Load the checkpoint in some uploaded files, and keep it in the list; returns its name.

        files: the weights and what belongs beside them (config.json, vocabulary), linked or copied to a folder
            that is deleted with the process. Raises ValueError as loading does, and keeps nothing then.
        name: with a number after it where it is taken; None is the name of the weights' file.
        listed: False if only those should ask for it who know its name.
        """
        folder = TemporaryDirectory(prefix="glassbox-", ignore_cleanup_errors=True)
        for file in map(Path, files):
            try:
                os.link(file.resolve(), Path(folder.name) / file.name)
            except FileExistsError:
                raise ValueError(f"two of the files are named {file.name}") from None
            except OSError:
                _copy(file, Path(folder.name))
        wanted = name or weight_files(Path(folder.name))[0].name
        with self._lock:
            numbered = (f"{wanted} ({number})" for number in count(2))
            name = next(name for name in chain([wanted], numbered) if name not in self._sources)
            self._sources[name] = Source(Path(folder.name), n_head)
            if not listed:
                self._unlisted.add(name)
            self._uploads[name] = folder
        try:
            self.get(name)
        except BaseException:
            self.remove(name)
            raise
        return name

    def remove(self, name: str) -> None:
        """Forget a model that `add` or `add_upload` added."""
        with self._lock:
            if name in MODELS:
                return
            for known in (self._sources, self._loads, self._kept, self._alive):
                known.pop(name, None)
            self._unlisted.discard(name)
            if name in self._uploads:
                self._uploads.pop(name).cleanup()

    def get(self, name: str, progress: hub.Progress | None = None) -> LoadedModel:
        """The shared model of that name, loaded on first use. Raises ValueError if that is not possible."""
        with self._lock:
            if name not in self._sources:
                raise ValueError(f"there is no model {name[:SAID]!r}: known models are {', '.join(self._listed())}")
            loaded = self._kept.get(name) or self._alive.get(name)
            if loaded is not None:
                self._keep(loaded)
                return loaded
            load = self._loads.get(name)
            if load is None:
                load = Load()
                load.start(self._run, name, self._sources[name], load)
                self._loads[name] = load
        return load.wait(progress)

    def given_heads(self, name: str) -> int | None:
        """How many heads were asked for with a checkpoint that does not say it."""
        source = self._sources.get(name)
        return None if source is None else source.n_head

    def exact(self, name: str) -> LoadedModel:
        """The same model in float32, shared with nobody. Raises ValueError where that cannot be loaded beside it."""
        source, device = self._sources.get(name), self.device or best_device()
        if source is None:
            raise ValueError(f"{name} is no shared model")
        checkpoint = source.open()
        n_bytes, free = memory_of(checkpoint, "fp32", device), free_memory(device)
        if n_bytes > free:
            raise ValueError(f"{name} in fp32 needs {gigabytes(n_bytes)} of memory, and {gigabytes(free)} are free")
        return build(name, checkpoint, device, "fp32", untrained=source.untrained)

    def _run(self, name: str, source: Source, load: Load) -> None:
        """Load a model in a thread of its own: nobody who stops waiting stops it for the others."""
        try:
            checkpoint = source.open(load.report)
            device = self.device or best_device()
            self._make_room(name, memory_of(checkpoint, self.precision, device), device, load)
            loaded = build(name, checkpoint, device, self.precision, untrained=source.untrained)
            if on_zero_gpu():
                gpu_twin(loaded)
        except BaseException as error:
            with self._lock:
                self._promised.pop(load, None)
                self._over(name, load)
            load.result.set_exception(error)
            return
        with self._lock:
            self._sizes[loaded.model] = self._promised.pop(load)
            if self._sources.get(name) is source:  # nobody has put another model in its place meanwhile
                self._keep(loaded)
            self._over(name, load)
        load.result.set_result(loaded)

    def _over(self, name: str, load: Load) -> None:
        if self._loads.get(name) is load:
            del self._loads[name]

    def _listed(self) -> list[str]:
        return [name for name in self._sources if name not in self._unlisted]

    def _keep(self, loaded: LoadedModel) -> None:
        self._alive[loaded.name] = self._kept[loaded.name] = loaded
        self._kept.move_to_end(loaded.name)

    def _make_room(self, name: str, n_bytes: int, device: torch.device, load: Load) -> None:
        """Let go of unused models until there is room, and promise it. Raises ValueError if there never is."""
        with self._lock:
            if self.memory is None:
                self.memory = free_memory("cpu" if on_zero_gpu() else device) // 2
            if n_bytes > self.memory:
                raise ValueError(
                    f"{name} needs {gigabytes(n_bytes)} of memory, and models may take {gigabytes(self.memory)}: "
                    "choose a smaller one, or give models more memory"
                )
            for candidate in list(self._kept):
                if self._taken() + n_bytes <= self.memory:
                    break
                self._release(candidate)
            if self._taken() + n_bytes > self.memory:
                raise ValueError(
                    f"{name} needs {gigabytes(n_bytes)} of memory, but other models are in use: try again later"
                )
            self._promised[load] = n_bytes

    def _taken(self) -> int:
        return sum(self._sizes.values()) + sum(self._promised.values())

    def _release(self, name: str) -> None:
        """Let go of a model, unless somebody still holds it: then it counts as just used."""
        self._alive[name] = self._kept.pop(name)
        held = self._alive.get(name)
        if held is not None:
            self._kept[name] = held


def _copy(file: Path, folder: Path) -> None:
    try:
        shutil.copyfile(file, folder / file.name)
    except OSError as error:
        raise ValueError(f"{file.name} cannot be read: {error.strerror or error}") from None


_shared = Registry()


def configure(**options: Any) -> None:
    """Set memory, device and precision of the shared models, before the first is loaded; as in `Registry`."""
    global _shared
    _shared = Registry(**options)


def get_model(name: str = DEFAULT_MODEL, progress: hub.Progress | None = None) -> LoadedModel:
    """The shared model of that name, loaded on first use; whoever asks meanwhile waits for the same load.

    progress: called in the caller's thread with the bytes that are here and those there will be, while it waits.
    Hold the result while you use it, and no longer: what nobody holds may make room for another model.
    Raises ValueError, with a sentence for a person, if there is no such model or it cannot be loaded.
    """
    return _shared.get(name, progress)


def given_heads(name: str) -> int | None:
    """How many heads were said to belong to a checkpoint that does not say it; None for any other model."""
    return _shared.given_heads(name)


def exact_model(name: str) -> LoadedModel:
    """A shared model in float32, shared with nobody, as `Registry.exact`."""
    return _shared.exact(name)


def add_model(name_or_path: str | Path, n_head: int | None = None, *, name: str | None = None) -> str:
    """Let `get_model` and `list_models` know a path or a repository of the hub; returns the name it goes by."""
    return _shared.add(name_or_path, n_head, name=name)


def add_upload(files: Sequence[str | Path], n_head: int | None = None) -> str:
    """Load a checkpoint from uploaded files, as `Registry.add_upload`; for launches on one's own computer only."""
    return _shared.add_upload(files, n_head)


def add_trained(files: Sequence[str | Path], name: str) -> str:
    """Let `get_model` know a model that somebody trained, for those who know its name; returns that name."""
    return _shared.add_upload(files, name=name, listed=False)


def remove_model(name: str) -> None:
    """Forget a model that was added; whoever holds it can still use it."""
    _shared.remove(name)


def list_models() -> list[str]:
    """The names that a picker offers, the bundled model first."""
    return _shared.names()


def title(name: str) -> str:
    """What somebody's own checkpoint is called in a list: "out/ckpt.pt · nanoGPT"; its layout once it is loaded."""
    return _shared.title(name)


def _reduce(loaded: LoadedModel) -> Any:
    """Copied, or sent to another process, a shared model stays the shared one of its name."""
    return (get_model, (loaded.name,)) if _shared.has(loaded) else object.__reduce_ex__(replace(loaded), 4)


copyreg.pickle(LoadedModel, _reduce)
