"""Models from the Hugging Face hub, through its own client, its cache and its settings."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from huggingface_hub import constants, get_hf_file_metadata, hf_hub_url, snapshot_download
from huggingface_hub.errors import (
    EntryNotFoundError,
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    LocalEntryNotFoundError,
    RepositoryNotFoundError,
)
from huggingface_hub.file_download import http_get, repo_folder_name
from huggingface_hub.utils import WeakFileLock, build_hf_headers
from tqdm.auto import tqdm

from gpt.errors import GPTError
from gpt.models.checkpoints.bpe_files import MERGES, TOGETHER, WORDS

CONFIG, WEIGHTS = "config.json", "model.safetensors"
FILES = (CONFIG, WEIGHTS, WORDS, MERGES)
COMPLETE = (FILES, (CONFIG, WEIGHTS, TOGETHER))  # what a model consists of, either way
# OpenAI's models have moved to longer names; people have them in their caches under either.
MOVED = {
    **{name: f"openai-community/{name}" for name in ("gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl")},
    "distilgpt2": "distilbert/distilgpt2",
}
NETWORK_ERRORS = (OSError, *HfHubHTTPError.__bases__)  # those of its HTTP library among them

Progress = Callable[[int, int], None]  # bytes that are here, bytes there will be


class Unreachable(GPTError):
    """The hub does not answer, and the cache has no copy of the model."""


def download(repo_id: str, progress: Progress | None = None) -> Path:
    """The folder of a model's four files, fetched unless the cache has them; a broken download goes on.

    progress: called while the weights arrive; without it there is a bar on the terminal.
    Raises ValueError, with a sentence that says what to do, if there is no such model; Unreachable without a network.
    """
    for name in (repo_id, MOVED[repo_id]) if repo_id in MOVED else ():
        if (folder := cached(name)) is not None:
            return folder
    try:
        fetch_weights(repo_id, progress)
        folder = Path(snapshot_download(repo_id, allow_patterns=list(FILES)))
        if not (folder / WORDS).is_file():  # transformers writes one file since its version 5
            snapshot_download(repo_id, allow_patterns=[TOGETHER])
        return folder
    except (GatedRepoError, RepositoryNotFoundError, HFValidationError):
        raise GPTError("hub.unknown", name=repo_id) from None
    except EntryNotFoundError as error:
        if not isinstance(error, LocalEntryNotFoundError):
            raise GPTError("hub.format", name=repo_id, file=WEIGHTS) from None
        reason = "no network"
    except NETWORK_ERRORS as error:
        reason = str(error).strip().split("\n")[0] or type(error).__name__
    if (folder := cached(repo_id)) is not None:
        return folder
    raise Unreachable("hub.unreachable", name=repo_id, reason=reason)


def cached(repo_id: str) -> Path | None:
    """The folder of a model if the cache has all of it."""
    try:
        folder = Path(snapshot_download(repo_id, allow_patterns=list(FILES), local_files_only=True))
    except LocalEntryNotFoundError:
        return None
    return folder if any(all((folder / file).is_file() for file in files) for files in COMPLETE) else None


def fetch_weights(repo_id: str, progress: Progress | None) -> None:
    """Put the weights into the hub's cache, from where they stopped if a part is there.

    The client itself starts again after each failure. The part lies beside where the whole will be, which it
    becomes only if it has the length and the SHA-256 that the hub states.
    """
    url = hf_hub_url(repo_id, WEIGHTS)
    stated = get_hf_file_metadata(url)
    if stated.etag is None or stated.size is None:
        return  # not a large file: left to the client
    folder = repo_folder_name(repo_id=repo_id, repo_type="model")
    whole = Path(constants.HF_HUB_CACHE) / folder / "blobs" / stated.etag
    part = whole.with_name(whole.name + ".incomplete")
    lock = Path(constants.HF_HUB_CACHE) / ".locks" / folder / f"{stated.etag}.lock"
    for place in (whole, lock):
        place.parent.mkdir(parents=True, exist_ok=True)
    with WeakFileLock(lock):
        if whole.exists():
            return
        with part.open("ab") as file:
            http_get(
                url,
                file,
                resume_size=file.tell(),
                headers=build_hf_headers(),
                expected_size=stated.size,
                displayed_filename=f"{repo_id}/{WEIGHTS}",
                tqdm_class=None if progress is None else bar_for(progress),
            )
        if len(stated.etag) == 64 and sha256(part) != stated.etag:
            part.unlink()
            raise OSError("it arrived damaged")
        os.replace(part, whole)


def sha256(path: Path) -> str:
    total = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            total.update(block)
    return total.hexdigest()


def bar_for(progress: Progress) -> type[tqdm]:
    """A progress bar that shows nothing and reports instead."""

    class Bar(tqdm):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            progress(int(self.n), int(self.total or 0))

        def display(self, *args: Any, **kwargs: Any) -> bool:
            return True

        def update(self, n: float | None = 1) -> bool | None:
            shown = super().update(n)
            progress(int(self.n), int(self.total or 0))
            return shown

    return Bar
