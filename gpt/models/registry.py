"""Registry of shared models. Each model is loaded only once, and evicted when it is unused and memory is needed."""

from __future__ import annotations

import copyreg
import logging
import os
import shutil
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Collection, Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import fields, replace
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, get_args
from weakref import WeakKeyDictionary, WeakValueDictionary, ref

import torch

from gpt.analysis.predictions import kl_divergence
from gpt.background import Progress
from gpt.errors import GPTError, check_choice, require
from gpt.inference import on_zero_gpu
from gpt.inference.cluster import Cluster, DeployedModel
from gpt.inference.engine import Engine
from gpt.inputs import AnyModel, named, with_tokenizer
from gpt.models.checkpoints.checkpoint import name_of
from gpt.models.checkpoints.files import ADAPTER_CONFIG
from gpt.models.checkpoints.layouts import Hints
from gpt.models.loading import DTYPES, LoadedModel, Precision, best_device, build, gpu_copy, memory_of, with_adapted
from gpt.models.memory import format_bytes, free_memory, return_free_memory
from gpt.models.sources import BUNDLED, DEFAULT_MODEL, HUB_MODELS, MODELS, Source, find_source, load_model
from gpt.tokenizer import prompt_ids

_log = logging.getLogger(__name__)

MAX_NAME_CHARS = 200  # unknown names are truncated to this length in error messages


class Load(Future[LoadedModel]):
    """A model that is loading or loaded, shared by all callers of `Registry.get`. n_bytes: Downloaded, and in total."""

    n_bytes = (0, 0)
    thread: threading.Thread | None = None

    def wait(self, progress: Progress | None) -> LoadedModel:
        """Wait for the model. Calls progress ten times a second, in the waiting thread."""
        while progress is not None and not self.done():
            if self.n_bytes[1]:
                progress(*self.n_bytes)
            wait([self], timeout=0.1)
        loaded = self.result()
        if self.thread is not None:
            self.thread.join()  # the thread references the model until it ends
        if progress is not None and self.n_bytes[1]:
            progress(self.n_bytes[1], self.n_bytes[1])
        return loaded


class Registry:
    """Loads each model once and shares it, within a memory budget.

    A model is in use as long as something references the result of `get`. When memory is needed, unused models are
    evicted, the least recently requested first. Takes the same parameters as `configure`.
    """

    def __init__(self, **options: Any) -> None:
        self._lock = threading.RLock()  # never held while a model loads
        self._sizes: WeakKeyDictionary[Engine | Load, int] = WeakKeyDictionary()  # bytes of models loaded and loading
        self._strengths: WeakKeyDictionary[LoadedModel, WeakValueDictionary[float, LoadedModel]] = WeakKeyDictionary()
        self.configure(**options)

    def configure(
        self,
        *,
        memory: int | None = None,
        device: torch.device | None = None,
        precision: Precision = "fp32",
        context: int | None = None,
        downloads: Collection[str] = MODELS,
        cluster: Cluster | None = None,
    ) -> None:
        """Set the options for all shared models. Discards all added and loaded models.

        memory: limit in bytes for all models, the documents that they continue, and their `DecodeCache`; defaults to
            half the memory that is free when the first model is loaded.
        context: longest text, in tokens, of models whose own context is longer and whose positions are rotary.
        downloads: names that `get` may download. Other models are listed only if they are on this computer.
        cluster: cluster that generates text with the listed models. Their copies in this process then stay on the CPU
            and are used only for inspection.
        """
        check_choice("precision", precision, get_args(Precision))
        with self._lock:
            self.memory, self.precision, self.context, self.cluster = memory, precision, context, cluster
            self.device = torch.device("cpu") if cluster is not None else device
            self._sources = {
                name: source for name in MODELS if (source := find_source(name)).is_here or name in downloads
            }
            self._loads: OrderedDict[str, Load] = OrderedDict()  # least recently requested first

    def names(self) -> list[str]:
        """Return the names of the listed models, starting with the bundled one."""
        with self._lock:
            return [name for name, source in self._sources.items() if source.listed]

    def in_memory(self) -> list[LoadedModel]:
        with self._lock:
            return [load.result() for load in self._loads.values() if load.done()]

    def title(self, name: str) -> str:
        """Return a short name such as "out/ckpt.pt · nanoGPT": the end of the path and, once loaded, the layout."""
        layout = next((f" · {loaded.layout}" for loaded in self.in_memory() if loaded.name == name), "")
        return "/".join(Path(name).parts[-2:]) + layout

    def memory_of_listed(self, name: str) -> int | None:
        """Return the memory needed by a model in HUB_MODELS in this registry's precision, or None for other models."""
        return HUB_MODELS[name].n_parameters * DTYPES[self.precision].itemsize if name in HUB_MODELS else None

    def given_options(self, name: str) -> dict[str, object]:
        return {} if (source := self._sources.get(name)) is None else source.hints.given()

    def add(self, name_or_path: str | Path, n_head: int | None = None, *, name: str | None = None, **hints: Any) -> str:
        """Register a path or a hub repository without loading it, and return its name.

        n_head, hints: see `gpt.models.checkpoints.layouts.Hints`.
        """
        source = find_source(name_or_path, Hints(n_head, **hints))
        name = name or str(name_or_path)
        with self._lock:
            is_listed = name in MODELS and name in self._sources
            require(not is_listed or source.hints.base is None, "adapter.none", folder=name, file=ADAPTER_CONFIG)
            if not is_listed and self._sources.get(name) != source:
                self._forget(name)
                self._sources[name] = source
        return name

    def add_upload(self, files: Sequence[str | Path], n_head: int | None = None, **hints: Any) -> str:
        """Load a checkpoint from files, register it, and return its name.

        That is the name of the weight file, or of an adapter's base model, with a number if it is taken.
        files: the weights, config.json and vocabulary. They are linked or copied to a folder that `remove` deletes.
        n_head, hints: see `gpt.models.checkpoints.layouts.Hints`.
        Raises ValueError if the model cannot be loaded; nothing is registered in that case.
        """
        given, folder = Hints(n_head, **hints), folder_of(files)
        path = Path(folder.name)
        name = wanted = name_of(path)
        with self._lock:
            numbers = count(2)
            while name in self._sources:
                name = f"{wanted} ({next(numbers)})"
            self._sources[name] = Source(path, given, folder=folder)
        try:
            self.get(name)
        except BaseException:
            self.remove(name)
            raise
        return name

    def add_loaded(self, loaded: LoadedModel, *, listed: bool = True) -> None:
        """Register a model from this process, replacing any with the same name. It stays until `remove` is called.

        listed: whether `names` includes the model.
        """
        with self._lock:
            self._forget(loaded.name)
            self._sources[loaded.name] = Source(BUNDLED, listed=listed, loaded=loaded)
            self._loads[loaded.name] = load = Load()
            self._sizes[load] = sum(weight.nbytes for weight in loaded.model.parameters())
            self._count(loaded, load)
            load.set_result(loaded)

    def remove(self, name: str) -> None:
        """Remove an added model and delete any uploaded files. References to the model stay valid."""
        with self._lock:
            if name not in MODELS:
                self._forget(name)

    def get(self, name: str = DEFAULT_MODEL, progress: Progress | None = None, *, strength: float = 1.0) -> LoadedModel:
        """Return a shared model by its name in `list_models`. Loads it on first use.

        The model stays in memory while the result is referenced.
        progress: called in the waiting thread with the downloaded and total bytes.
        strength: factor of an adapter's changes, 0 for its base model. All weights that it doesn't change are shared.
        Raises ValueError if the model is unknown or cannot be loaded.
        """
        with self._lock:
            source = self._sources.get(name) if isinstance(name, str) else None
            if source is None:
                known = ", ".join(self.names())
                raise GPTError("model.unknown", name=str(name)[:MAX_NAME_CHARS], models=known)
            load = self._loads.pop(name, None)
            if load is None:
                load = Load()
                load.thread = threading.Thread(target=self._run, args=(name, source, load), daemon=True)
                load.thread.start()
            self._loads[name] = load  # the most recently requested
        loaded = load.wait(progress)
        return loaded if strength == 1 else self._at_strength(loaded, strength)

    def _at_strength(self, loaded: LoadedModel, strength: float) -> LoadedModel:
        """Return an adapter's model at another strength, kept for as long as it is used."""
        known = self._strengths.setdefault(loaded, WeakValueDictionary())
        if (found := known.get(strength)) is None:
            name, source, load = f"{loaded.name} × {strength:g}", self._sources[loaded.name], Load()
            checkpoint = replace(source, hints=replace(source.hints, strength=strength)).open()
            require(checkpoint.adapted, "adapter.none", folder=loaded.name, file=ADAPTER_CONFIG)
            n_bytes = sum(part.nbytes for each in checkpoint.adapted for part in checkpoint.weights[each])
            self._reserve(name, n_bytes, loaded.device, load)
            known[strength] = found = with_adapted(name, loaded, checkpoint)
            self._count(found, load)
        return found

    def trim(self) -> None:
        """Free the memory held by finished texts and return it to the system."""
        for engine in self._engines():
            engine.trim()
        return_free_memory()

    def _run(self, name: str, source: Source, load: Load) -> None:
        """Load a model. Runs in its own thread, so the load continues if a waiting caller is cancelled."""
        began = time.monotonic()
        try:
            checkpoint = source.open(lambda *n_bytes: setattr(load, "n_bytes", n_bytes)).within(self.context)
            device = self.device or best_device()
            deployed = None
            if self.cluster is not None and source.folder is None:  # no upload
                deployed = DeployedModel(self.cluster, source.spec(name, self.precision, self.context))
            n_bytes = memory_of(checkpoint, self.precision, device, deployed=deployed is not None)
            self._reserve(name, n_bytes, device, load)
            loaded = build(name, checkpoint, device, self.precision, deployed=deployed)
            if on_zero_gpu():
                gpu_copy(loaded)
        except BaseException as error:
            with self._lock:
                self._sizes.pop(load, None)
                if self._loads.get(name) is load:  # it has not been removed in the meantime
                    del self._loads[name]
            load.set_exception(error)
            return
        self._count(loaded, load)
        done = {"model": name, "seconds": round(time.monotonic() - began, 3), "bytes": n_bytes}
        _log.info("model loaded", extra={"fields": done})
        load.set_result(loaded)

    def _forget(self, name: str) -> None:
        source = self._sources.pop(name, None)
        if source is not None and source.folder is not None:
            source.folder.cleanup()
        self._loads.pop(name, None)

    def _reserve(self, name: str, n_bytes: int, device: torch.device, load: Load) -> None:
        """Evict unused models until there is enough memory, and reserve it. Raises ValueError if that is impossible."""
        with self._lock:
            if self.memory is None:
                self.memory = free_memory("cpu" if on_zero_gpu() else device) // 2
            if n_bytes > self.memory:
                raise GPTError("memory.limit", model=name, need=format_bytes(n_bytes), limit=format_bytes(self.memory))
            for candidate in [each for each, other in self._loads.items() if other.done()]:
                if n_bytes > self._free_bytes():
                    self._evict(candidate)
            require(n_bytes <= self._free_bytes(), "memory.in_use", model=name, need=format_bytes(n_bytes))
            self._sizes[load] = n_bytes

    def _count(self, loaded: LoadedModel, load: Load) -> None:
        """Count a model's memory for as long as its engine exists."""
        loaded.engine.decode_cache.free_bytes = self._free_bytes
        with self._lock:
            self._sizes[loaded.engine] = self._sizes.pop(load)

    def _engines(self) -> list[Engine]:
        with self._lock:
            return [each for each in list(self._sizes) if isinstance(each, Engine)]

    def _free_bytes(self) -> int:
        with self._lock:
            beside = sum(engine.decode_cache.n_bytes + engine.document_bytes for engine in self._engines())
            return sys.maxsize if self.memory is None else self.memory - sum(self._sizes.values()) - beside

    def _evict(self, name: str) -> None:
        """Drop the registry's reference to a model. A model in use becomes the most recently requested one instead."""
        loaded = ref(self._loads.pop(name).result())
        if (used := loaded()) is not None:
            self._loads[name] = load = Load()
            load.set_result(used)


def folder_of(files: Sequence[str | Path]) -> TemporaryDirectory[str]:
    """Link or copy files to a new temporary folder. Raises ValueError if a file cannot be read."""
    folder = TemporaryDirectory(prefix="glassbox-", ignore_cleanup_errors=True)
    for file in map(Path, files):
        target = Path(folder.name) / file.name
        require(not target.exists(), "file.duplicate", file=file.name)
        with suppress(OSError):  # different file system, or no support for links
            os.link(file.resolve(), target)
            continue
        try:
            shutil.copyfile(file, target)
        except OSError as error:
            raise GPTError("file.unreadable", file=file.name, reason=error.strerror or error) from None
    return folder


_shared = Registry()
get_model = _shared.get
configure = _shared.configure
list_models = _shared.names
models_in_memory = _shared.in_memory
trim_models = _shared.trim
add_model = _shared.add
add_upload = _shared.add_upload
add_loaded = _shared.add_loaded
remove_model = _shared.remove
title = _shared.title
given_options = _shared.given_options
memory_of_listed = _shared.memory_of_listed


def as_loaded(model: AnyModel) -> LoadedModel:
    """Convert a model in any form to a LoadedModel.

    The name of a shared model returns that; other names and paths are loaded with `load_model`. A GPT gets the
    vocabulary `NoTokenizer`. Raises ValueError for anything else.
    """
    if isinstance(model, LoadedModel):
        return model
    if isinstance(model, (str, Path)):
        return get_model(str(model)) if str(model) in _shared._sources else load_model(model)
    network, tokenizer = with_tokenizer(model)
    return LoadedModel("GPT", network, tokenizer, network.device, "fp32")


named.append(as_loaded)


def _reduce(loaded: LoadedModel) -> Any:
    if any(loaded is each for each in models_in_memory()):
        return as_loaded, (loaded.name,)
    return LoadedModel, tuple(getattr(loaded, each.name) for each in fields(loaded) if each.init)


copyreg.pickle(LoadedModel, _reduce)


# Text on which predictions in reduced precision are compared with those in float32.
TEXT = (
    "Once upon a time, there was a little girl named Lily. She loved to play outside in the park with her friends. "
    "One day she found a small red ball under a big tree. The ball was old and dirty, but Lily did not mind. She took "
    'it home and washed it. In the evening her father said: "What a nice ball you have! Where did you find it?"'
)
_comparing = threading.Lock()  # one comparison at a time, because each needs memory for a float32 copy
_errors: WeakKeyDictionary[LoadedModel, PrecisionError] = WeakKeyDictionary()


class PrecisionError(NamedTuple):
    """Differences between a model's predictions and those in float32."""

    kl: float  # mean Kullback-Leibler divergence per position, in bits
    logit: float  # largest difference between logits
    top_1: float  # fraction of positions at which the most likely token is the same


def precision_error(loaded: LoadedModel) -> PrecisionError:
    """Compare a shared model with a temporary float32 copy. The result is cached."""
    with _comparing:
        if loaded not in _errors:
            require(loaded.name in _shared._sources, "model.not_shared", name=loaded.name)
            exact = build(loaded.name, _shared._sources[loaded.name].open(), loaded.device, "fp32")
            _errors[loaded] = compare(loaded, exact)
        return _errors[loaded]


@torch.inference_mode()
def compare(loaded: LoadedModel, exact: LoadedModel, text: str = TEXT) -> PrecisionError:
    """Compare a model with its float32 copy on a text, or on 128 random ids if the vocabulary cannot encode it."""
    config = exact.model.config
    try:
        ids = prompt_ids(exact.tokenizer, text)
    except ValueError:
        ids = torch.randint(config.vocab_size, (128,), generator=torch.Generator().manual_seed(0)).tolist()
    idx = torch.tensor([ids[: config.block_size]])
    expected, found = (one.model(idx.to(one.device))[0].float().cpu() for one in (exact, loaded))  # (T, vocab_size)
    kl = kl_divergence(expected.log_softmax(dim=-1), found.log_softmax(dim=-1)).mean().item()
    same = (expected.argmax(dim=-1) == found.argmax(dim=-1)).double().mean().item()
    return PrecisionError(kl, (expected - found).abs().max().item(), same)
