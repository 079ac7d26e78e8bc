"""Download models from the Hugging Face hub into the `huggingface_hub` cache."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import cast

from huggingface_hub import hf_hub_download, model_info, snapshot_download
from huggingface_hub.errors import (
    EntryNotFoundError,
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    LocalEntryNotFoundError,
    RepositoryNotFoundError,
)
from tqdm.auto import tqdm

from gpt.background import Progress
from gpt.checks import require
from gpt.errors import GPTError
from gpt.models.checkpoints.files import ADAPTER_CONFIG, CONFIG, INDEXES, TORCH_WEIGHTS, WEIGHTS, listed_files
from gpt.models.checkpoints.gguf import part_names
from gpt.models.checkpoints.hugging_face_tokenizer import TOKENIZER_JSON
from gpt.models.checkpoints.options import check_config
from gpt.models.checkpoints.other_formats import ADAPTER_WEIGHTS
from gpt.models.checkpoints.tokenizer_formats import SETTINGS_FILES
from gpt.models.checkpoints.untrusted import read_json
from gpt.models.checkpoints.vocabularies import FILES

WEIGHT_NAMES = (WEIGHTS, INDEXES[0], TORCH_WEIGHTS, INDEXES[1])  # in order of preference
# Repositories that were renamed on the hub. A cache may contain them under either name.
RENAMED = {
    **{name: f"openai-community/{name}" for name in ("gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl")},
    "distilgpt2": "distilbert/distilgpt2",
}
# HfHubHTTPError's bases include its HTTP library's base error.
NETWORK_ERRORS = cast("tuple[type[Exception], ...]", (OSError, *HfHubHTTPError.__bases__))
UNREACHED = (ConnectionError, socket.gaierror)


def download(repo_id: str, progress: Progress | None = None) -> Path:
    """Return the folder with a model's files, or its GGUF file, downloading any that are not cached.

    Downloads the configuration first, so that unsupported models are rejected before their weights are downloaded.

    repo_id: Name of the repository, "owner/name", or of a GGUF file in one, "owner/name:file.gguf".
    progress: Called with the downloaded and total bytes. Defaults to progress bars on the terminal.
    Raises ValueError if the hub is unreachable and the cache has no copy, or if the model does not exist or is not
    supported.
    """
    if repo_id in RENAMED and (folder := cached_folder(repo_id)) is not None:
        return folder
    whole, (repo_id, _, file) = repo_id, repo_id.partition(":")
    wanted = file or CONFIG
    try:
        sizes = {each.rfilename: each.size or 0 for each in model_info(repo_id, files_metadata=True).siblings or ()}
        if file:
            parts = part_names(file)
            fetch_weights(repo_id, {name: sizes.get(name, 0) for name in parts}, progress)
            return fetch_files(repo_id, *parts) / file
        if ADAPTER_CONFIG in sizes:
            return fetch_files(repo_id, ADAPTER_CONFIG, *ADAPTER_WEIGHTS)
        first = next((name for name in WEIGHT_NAMES if name in sizes), "")
        require(first, "hub.format", name=repo_id, file=WEIGHTS)
        weights = listed_files(Path(hf_hub_download(repo_id, first))) if first in INDEXES else [first]
        check_config(read_json(Path(hf_hub_download(repo_id, CONFIG)), dict))
        folder = fetch_files(repo_id, CONFIG, TOKENIZER_JSON, *SETTINGS_FILES)
        if not (folder / TOKENIZER_JSON).is_file():
            fetch_files(repo_id, *FILES)
        fetch_weights(repo_id, {name: sizes.get(name, 0) for name in weights}, progress)
        return fetch_files(repo_id, *weights, *INDEXES)
    except GatedRepoError:
        raise GPTError("hub.gated", name=repo_id) from None
    except (RepositoryNotFoundError, HFValidationError):
        raise GPTError("hub.unknown", name=repo_id) from None
    except EntryNotFoundError as error:
        if not isinstance(error, LocalEntryNotFoundError):
            raise GPTError("hub.format", name=repo_id, file=wanted) from None
        reason = network_reason(error)
    except NETWORK_ERRORS as error:
        reason = network_reason(error)
    if (folder := cached_folder(whole)) is not None:
        return folder
    raise GPTError("hub.unreachable", name=repo_id, reason=reason)


def network_reason(error: Exception) -> object:
    """Return the reason for a failed download. Reports "no network" if the address is unreachable."""
    reason = str(error).strip().split("\n")[0]
    if isinstance(error, (*UNREACHED, LocalEntryNotFoundError)) or reason.startswith("[Errno"):
        return GPTError("hub.no_network")
    return reason or type(error).__name__


def fetch_files(repo_id: str, *names: str) -> Path:
    """Download these files, skipping any that the repository does not have, and return their folder."""
    return Path(snapshot_download(repo_id, allow_patterns=list(names)))


def cached_folder(repo_id: str) -> Path | None:
    """Return a model's folder, or its GGUF file, if the cache has all of its files, under either name."""
    repo_id, _, file = repo_id.partition(":")
    if file:
        with suppress(LocalEntryNotFoundError):
            parts = part_names(file)
            folder = Path(snapshot_download(repo_id, allow_patterns=parts, local_files_only=True))
            return folder / file if all((folder / part).is_file() for part in parts) else None
        return None
    for name in dict.fromkeys((repo_id, RENAMED.get(repo_id, repo_id))):
        with suppress(LocalEntryNotFoundError):
            folder = Path(snapshot_download(name, allow_patterns=[CONFIG], local_files_only=True))
            weights = next((listed_files(folder / file) for file in WEIGHT_NAMES if (folder / file).is_file()), [])
            has_weights = bool(weights) and all((folder / file).is_file() for file in weights)
            if has_weights and any((folder / file).is_file() for file in FILES):
                return folder
    return None


def fetch_weights(repo_id: str, sizes: Mapping[str, int], progress: Progress | None) -> None:
    """Download the weights into the cache. sizes: {file: bytes}."""
    total, done = sum(sizes.values()), 0

    class Bar(tqdm):
        def update(self, n: float | None = 1) -> bool | None:
            nonlocal done
            done += int(n or 0)
            if progress is not None:
                progress(done, total)
            return super().update(n)

    if progress is not None:
        progress(done, total)
    for name in sizes:
        hf_hub_download(repo_id, name, tqdm_class=None if progress is None else Bar)
