"""Model sources: a known name, a path, or a repository on the Hugging Face hub, downloaded into its cache."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast, get_args

import torch
from huggingface_hub import HfApi, errors, hf_hub_download, snapshot_download
from tqdm.auto import tqdm

from gpt.background import Progress
from gpt.config import Activation
from gpt.errors import GPTError, check_choice, require
from gpt.inference.cluster import ModelSpec
from gpt.models.checkpoints.checkpoint import Checkpoint, open_checkpoint
from gpt.models.checkpoints.files import ADAPTER_CONFIG, CONFIG, INDEXES, TORCH_WEIGHTS, WEIGHTS, listed_files
from gpt.models.checkpoints.gguf import part_names
from gpt.models.checkpoints.hugging_face_tokenizer import TOKENIZER_JSON
from gpt.models.checkpoints.layouts import INFER, NO_HINTS, AttnScale, Hints, NamesInferred
from gpt.models.checkpoints.options import check_config
from gpt.models.checkpoints.other_formats import ADAPTER_WEIGHTS, base_of, is_adapter
from gpt.models.checkpoints.tokenizer_formats import SETTINGS_FILES
from gpt.models.checkpoints.untrusted import read_json
from gpt.models.checkpoints.vocabularies import FILES
from gpt.models.loading import LoadedModel, Precision, best_device, build

DEFAULT_MODEL = "stories"
LLAMA_MODEL = "stories-llama"  # Llama architecture; about the same size and the same training data as DEFAULT_MODEL
POEMS_MODEL = "poems"  # Chinese regulated verse, one token per character
ASSETS = Path(__file__).parent.parent / "assets"
BUNDLED = ASSETS / DEFAULT_MODEL
UNTRAINED = "untrained"  # the bundled model's configuration and vocabulary with random weights
WEIGHT_NAMES = (WEIGHTS, INDEXES[0], TORCH_WEIGHTS, INDEXES[1])  # in order of preference
# The bases of HfHubHTTPError include the errors of its HTTP library, which is not the same in all versions.
NETWORK_ERRORS = cast("tuple[type[Exception], ...]", (OSError, *errors.HfHubHTTPError.__bases__))


@dataclass(frozen=True)
class Corpus:
    """The training data of a model."""

    languages: tuple[str, ...] = ("en",)  # ISO 639-1 codes of the languages that the model can write
    facts: bool = True  # whether the texts contain facts about the world, which answers to questions need

    def fits(self, language: str, *, facts: bool) -> bool:
        return language in self.languages and (self.facts or not facts)


STORIES = Corpus(facts=False)  # simple English stories
POEMS = Corpus(("zh",), facts=False)  # regulated verse of the Tang and Song dynasties
ENGLISH = Corpus()
MANY = Corpus(("en", "zh", "fr", "es", "de", "it", "pt", "ru", "ja", "ko", "ar", "vi", "th"))


@dataclass(frozen=True)
class HubModel:
    """A model on the Hugging Face hub that the page offers."""

    title: str
    n_parameters: int  # tied weights count once
    corpus: Corpus = ENGLISH


HUB_MODELS = {
    "distilgpt2": HubModel("DistilGPT-2", 81_912_576),
    "gpt2": HubModel("GPT-2 small", 124_439_808),
    "gpt2-medium": HubModel("GPT-2 medium", 354_823_168),
    "gpt2-large": HubModel("GPT-2 large", 774_030_080),
    "gpt2-xl": HubModel("GPT-2 XL", 1_557_611_200),
    "roneneldan/TinyStories-33M": HubModel("TinyStories-33M", 68_514_048, STORIES),
    "EleutherAI/pythia-14m": HubModel("Pythia", 14_067_712),
    "EleutherAI/pythia-70m": HubModel("Pythia", 70_426_624),
    "EleutherAI/pythia-160m": HubModel("Pythia", 162_322_944),
    "EleutherAI/pythia-410m": HubModel("Pythia", 405_334_016),
    "HuggingFaceTB/SmolLM2-135M": HubModel("SmolLM2", 134_515_008),
    "HuggingFaceTB/SmolLM2-135M-Instruct": HubModel("SmolLM2 Instruct", 134_515_008),
    "HuggingFaceTB/SmolLM2-360M": HubModel("SmolLM2", 361_821_120),
    "Qwen/Qwen2.5-0.5B-Instruct": HubModel("Qwen2.5 Instruct", 494_032_768, MANY),
    "Qwen/Qwen3-0.6B": HubModel("Qwen3", 596_049_920, MANY),
    "google/gemma-3-270m": HubModel("Gemma 3", 268_098_176, MANY),
    "google/gemma-3-270m-it": HubModel("Gemma 3 Instruct", 268_098_176, MANY),
    "microsoft/phi-1_5": HubModel("Phi-1.5", 1_418_270_720),
}
TRAINED_HERE = {DEFAULT_MODEL: STORIES, POEMS_MODEL: POEMS, LLAMA_MODEL: STORIES}  # folders in ASSETS
MODELS = (*TRAINED_HERE, UNTRAINED, *HUB_MODELS)


def corpus_of(name: str) -> Corpus | None:
    """Return the training data of a listed model, or None for other models and for untrained ones."""
    return HUB_MODELS[name].corpus if name in HUB_MODELS else TRAINED_HERE.get(name)


@dataclass(frozen=True)
class Source:
    """The origin of a model."""

    location: Path | str  # a path, or a repository on the hub
    hints: Hints = NO_HINTS
    untrained: bool = False
    listed: bool = True  # whether `list_models` includes it
    folder: TemporaryDirectory[str] | None = None  # with uploaded files
    loaded: LoadedModel | None = None  # a model that was created in this process and cannot be loaded again

    @property
    def is_here(self) -> bool:
        return isinstance(self.location, Path) or cached_folder(self.location) is not None

    def spec(self, name: str, precision: Precision, context: int | None) -> ModelSpec:
        """Return the model's specification for a replica. A path must refer to the same files on both computers."""
        location = str(self.location.resolve() if isinstance(self.location, Path) else self.location)
        location = name if name in MODELS else location  # a bundled model's path differs on the other computer
        options = self.hints.given() | ({} if context is None else {"context": context})
        return {"name_or_path": location, "precision": precision, **options}

    def open(self, progress: Progress | None = None) -> Checkpoint:
        checkpoint = open_checkpoint(*self.fetch(progress))
        return checkpoint.untrained() if self.untrained else checkpoint

    def fetch(self, progress: Progress | None = None) -> tuple[Path, Hints]:
        """Return the path of the files, downloaded if necessary, and the hints, with the path of an adapter's base."""
        path = self._fetch(progress)
        if not is_adapter(path):
            return path, self.hints
        base = base_of(path, self.hints.base)
        # An upload names no other files.
        require(self.folder is None or base in (path, *MODELS), "adapter.base", base=base)
        try:
            source = find_source(base)
        except GPTError:
            raise GPTError("adapter.base", base=base) from None
        return path, replace(self.hints, base=source._fetch(progress))

    def _fetch(self, progress: Progress | None) -> Path:
        return self.location if isinstance(self.location, Path) else download(self.location, progress)


def find_source(name_or_path: str | Path, hints: Hints = NO_HINTS) -> Source:
    """Find the source for a name in MODELS, a path, or a hub repository, tried in this order."""
    name = str(name_or_path)
    if name == UNTRAINED:
        return Source(BUNDLED, hints, untrained=True)
    if name in TRAINED_HERE:
        return Source(ASSETS / name, hints)
    if name in MODELS:
        return Source(name, hints)
    with suppress(OSError, RuntimeError, ValueError):  # name too long, unknown user, or null byte
        if (path := Path(name).expanduser()).exists():
            return Source(path, hints)
    if not re.fullmatch(r"[\w-][\w.-]*/[\w-][\w.-]*(:[\w-][\w./-]*\.gguf)?", name):
        raise GPTError("model.unknown_source", name=name, models=", ".join(MODELS))
    return Source(name, hints)


def download(repo_id: str, progress: Progress | None = None) -> Path:
    """Return the folder with a model's files, or its GGUF file, downloading any that are not cached.

    Downloads the configuration first, so that unsupported models are rejected before their weights are downloaded.

    repo_id: Name of the repository, "owner/name", or of a GGUF file in one, "owner/name:file.gguf".
    progress: Called with the downloaded and total bytes. Defaults to progress bars on the terminal.
    Raises ValueError if the hub is unreachable and the cache has no copy, or if the model does not exist or is not
    supported.
    """
    whole, (repo_id, _, file) = repo_id, repo_id.partition(":")
    try:
        listed = HfApi().model_info(repo_id, files_metadata=True).siblings or ()
        sizes = {each.rfilename: each.size or 0 for each in listed}
        if file:
            return fetch_weights(repo_id, {name: sizes.get(name, 0) for name in part_names(file)}, progress) / file
        if ADAPTER_CONFIG in sizes:
            return Path(snapshot_download(repo_id, allow_patterns=[ADAPTER_CONFIG, *ADAPTER_WEIGHTS]))
        first = next((name for name in WEIGHT_NAMES if name in sizes), "")
        require(first, "hub.format", name=repo_id, file=WEIGHTS)
        weights = listed_files(Path(hf_hub_download(repo_id, first))) if first in INDEXES else [first]
        check_config(read_json(Path(hf_hub_download(repo_id, CONFIG)), dict))
        vocabulary = (TOKENIZER_JSON,) if TOKENIZER_JSON in sizes else FILES
        snapshot_download(repo_id, allow_patterns=[*SETTINGS_FILES, *vocabulary])
        return fetch_weights(repo_id, {name: sizes.get(name, 0) for name in weights}, progress)
    except errors.GatedRepoError:
        raise GPTError("hub.gated", name=repo_id) from None
    except (errors.RepositoryNotFoundError, errors.HFValidationError):
        raise GPTError("hub.unknown", name=repo_id) from None
    except NETWORK_ERRORS as error:
        if isinstance(error, errors.RemoteEntryNotFoundError):
            raise GPTError("hub.format", name=repo_id, file=file or CONFIG) from None
        if (folder := cached_folder(whole)) is not None:
            return folder
        reason: object = str(error).strip().split("\n")[0] or type(error).__name__
        if isinstance(error, ConnectionError | errors.LocalEntryNotFoundError) or str(reason).startswith("[Errno"):
            reason = GPTError("hub.no_network")
        raise GPTError("hub.unreachable", name=repo_id, reason=reason) from None


def cached_folder(repo_id: str) -> Path | None:
    """Return a model's folder, or its GGUF file, if the cache has all of its files."""
    repo_id, _, file = repo_id.partition(":")
    try:
        folder = Path(snapshot_download(repo_id, allow_patterns=part_names(file or CONFIG), local_files_only=True))
    except errors.LocalEntryNotFoundError:
        return None
    if file:
        return folder / file if all((folder / part).is_file() for part in part_names(file)) else None
    weights = next((listed_files(folder / name) for name in WEIGHT_NAMES if (folder / name).is_file()), [])
    has_vocabulary = any((folder / name).is_file() for name in FILES)
    return folder if weights and has_vocabulary and all((folder / name).is_file() for name in weights) else None


def fetch_weights(repo_id: str, sizes: Mapping[str, int], progress: Progress | None) -> Path:
    """Download files of these sizes, and return their folder."""
    report: Progress = progress or (lambda done, total: None)
    total, before, done = sum(sizes.values()), 0, 0

    class Bar(tqdm):  # type: ignore[misc]
        def update(self, n: int = 1) -> Any:
            nonlocal done
            done += n
            report(min(done, total), total)
            return super().update(n)

    report(0, total)
    for name, size in sizes.items():
        hf_hub_download(repo_id, name, tqdm_class=None if progress is None else Bar)
        before = done = before + size  # also if the file was there, or partly
        report(before, total)
    return Path(snapshot_download(repo_id, allow_patterns=list(sizes)))


def available_device(device: str | torch.device) -> torch.device:
    """Return a device that torch can use on this computer. Raises ValueError for other devices and for "meta"."""
    try:
        found = torch.device(device)
        torch.empty(1, device=found).item()
    except (AssertionError, NotImplementedError, RuntimeError, TypeError):
        raise GPTError("device.unknown", device=str(device)) from None
    return found


def load_model(
    name_or_path: str | Path,
    *,
    device: str | torch.device | None = None,
    precision: Precision = "fp32",
    context: int | None = None,
    n_head: int | None = None,
    activation: Activation | None = None,
    attn_scale: AttnScale | None = None,
    names: Path | str | None = None,
    weights: str | None = None,
    base: Path | str | None = None,
    adapter: Path | str | None = None,
    strength: float | None = None,
    trainable: bool = False,
    progress: Progress | None = None,
) -> LoadedModel:
    """Load a model, without sharing it, from a name in `list_models`, a path, or a hub repository.

    device: Defaults to CUDA if available, else MPS, else the CPU.
    context: Longest text in tokens, for a model with rotary positions. Defaults to the model's own.
    n_head, activation, attn_scale, names, weights, base: Settings that the checkpoint does not contain; see
        `gpt.models.checkpoints.layouts.Hints`. If the roles of the weights have to be inferred, a warning shows the
        inferred table; names="infer" accepts it.
    adapter: Folder of a LoRA adapter that is merged into the model. An adapter can also be loaded by its own name; its
        base model is then the one that it states, or `base`.
    strength: Factor of the adapter's changes; defaults to 1.
    trainable: Whether to load ordinary parameters with gradients. By default, parameters have no gradients, and
        matrices are packed where that makes generation faster: in half and int8 on a CPU, and in fp32 the large ones on
        an AMD CPU. Packed weights are read-only; changes to all others take effect everywhere.
    progress: Called during a download with the downloaded and total bytes.
    Raises ValueError if the model cannot be loaded.
    """
    check_choice("precision", precision, get_args(Precision))
    if adapter is not None:
        name_or_path, base = adapter, name_or_path
    source = find_source(name_or_path, Hints(n_head, activation, attn_scale, names, weights, base, strength))
    chosen = best_device() if device is None else available_device(device)
    try:
        checkpoint = source.open(progress)
    except NamesInferred as unconfirmed:
        warnings.warn(str(unconfirmed), stacklevel=2)
        checkpoint = replace(source, hints=replace(source.hints, names=INFER)).open(progress)
    return build(str(name_or_path), checkpoint.within(context), chosen, precision, trainable=trainable)
