"""Download models from the Hugging Face hub into the `huggingface_hub` cache, resuming interrupted downloads."""

from __future__ import annotations

import hashlib
import os
import re
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, cast

from huggingface_hub import (
    constants,
    get_hf_file_metadata,
    get_session,
    hf_hub_download,
    hf_hub_url,
    hf_raise_for_status,
    snapshot_download,
)
from huggingface_hub.errors import (
    EntryNotFoundError,
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    LocalEntryNotFoundError,
    RepositoryNotFoundError,
)
from huggingface_hub.utils import WeakFileLock, build_hf_headers
from tqdm.auto import tqdm

from gpt.background import Progress
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
TIMEOUT_SECONDS = 10.0
MAX_FAILURES = 5


class HubUnreachable(GPTError):
    """Raised when the hub is unreachable and the cache has no copy of the model."""


def download(repo_id: str, progress: Progress | None = None) -> Path:
    """Return the folder with a model's files, or its GGUF file, downloading any that are not cached.

    Downloads the configuration first, so that unsupported models are rejected before their weights are downloaded.

    repo_id: Name of the repository, "owner/name", or of a GGUF file in one, "owner/name:file.gguf".
    progress: Called with the downloaded and total bytes. Defaults to a progress bar on the terminal.
    Raises HubUnreachable if the hub is unreachable and the cache has no copy, and ValueError if the model does not
    exist or is not supported.
    """
    if repo_id in RENAMED and (folder := cached_folder(repo_id)) is not None:
        return folder
    whole, (repo_id, _, file) = repo_id, repo_id.partition(":")
    wanted = file or WEIGHTS
    try:
        if file:
            parts = part_names(file)
            fetch_weights(repo_id, parts, progress)
            return fetch_files(repo_id, *parts) / file
        if has_file(repo_id, ADAPTER_CONFIG):
            return fetch_files(repo_id, ADAPTER_CONFIG, *ADAPTER_WEIGHTS)
        weights = weight_names(repo_id)
        wanted = CONFIG
        config = read_json(Path(hf_hub_download(repo_id, wanted)), dict)
        check_config(config)
        folder = fetch_files(repo_id, CONFIG, TOKENIZER_JSON, *SETTINGS_FILES)
        if not (folder / TOKENIZER_JSON).is_file():
            fetch_files(repo_id, *FILES)
        fetch_weights(repo_id, weights, progress)
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
    raise HubUnreachable("hub.unreachable", name=repo_id, reason=reason)


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


def has_file(repo_id: str, name: str) -> bool:
    """Return whether a repository has a file."""
    try:
        get_hf_file_metadata(hf_hub_url(repo_id, name))
    except EntryNotFoundError as error:
        if isinstance(error, LocalEntryNotFoundError):
            raise
        return False
    return True


def weight_names(repo_id: str) -> list[str]:
    """Return the first of WEIGHT_NAMES that the repository has. If it is an index, return the files that it lists."""
    for name in WEIGHT_NAMES:
        if has_file(repo_id, name):
            return listed_files(Path(hf_hub_download(repo_id, name))) if name in INDEXES else [name]
    raise GPTError("hub.format", name=repo_id, file=WEIGHTS)


def fetch_weights(repo_id: str, names: Sequence[str], progress: Progress | None) -> None:
    """Download the weights into the cache, resuming partial files. snapshot_download would start over."""
    stated = {name: get_hf_file_metadata(hf_hub_url(repo_id, name)) for name in names}
    total, before = sum(file.size or 0 for file in stated.values()), 0
    with tqdm(desc=repo_id, total=total, unit="B", unit_scale=True, disable=progress is not None) as bar:
        for name, file in stated.items():
            if file.etag is None or file.size is None:
                continue  # not stored as a large file, so snapshot_download fetches it
            for done in fetch_blob(repo_id, name, file.etag, file.size):
                bar.update(before + done - bar.n)
                if progress is not None:
                    progress(before + done, total)
            before += file.size


def fetch_blob(repo_id: str, name: str, etag: str, size: int) -> Iterator[int]:
    """Download a file into the cache unless it is already there. Yields the same values as `resume_download`.

    The partial file becomes a blob in the cache only if its size and checksum match those on the hub.
    """
    cache, folder = Path(constants.HF_HUB_CACHE), f"models--{repo_id.replace('/', '--')}"
    blob = cache / folder / "blobs" / etag
    partial = blob.with_name(f"{etag}.incomplete")
    lock = cache / ".locks" / folder / f"{etag}.lock"
    for path in (blob, lock):
        path.parent.mkdir(parents=True, exist_ok=True)
    with WeakFileLock(lock):
        if blob.exists():
            return
        with partial.open("ab") as file:
            yield from resume_download(hf_hub_url(repo_id, name), file, size)
        if checksum(partial, etag) != etag:
            partial.unlink()
            raise OSError("the download was damaged")
        os.replace(partial, blob)


def resume_download(url: str, file: BinaryIO, size: int) -> Iterator[int]:
    """Append the missing bytes to a file, up to `size`. Yields the file's length at the start and after each chunk.

    Retries after network errors, until MAX_FAILURES attempts in a row have received no data.
    """
    failures = 0
    yield file.tell()
    while (start := file.tell()) < size:
        headers = build_hf_headers() | {"Range": f"bytes={start}-", "Accept-Encoding": "identity"}
        try:
            with get_session().stream("GET", url, headers=headers, timeout=TIMEOUT_SECONDS) as response:
                hf_raise_for_status(response)
                if response.status_code == 200:  # the server sends the whole file instead of the missing part
                    file.seek(0)
                    file.truncate()
                for chunk in response.iter_bytes():
                    file.write(chunk)
                    yield file.tell()
            if file.tell() == start:
                raise OSError("no data")
        except NETWORK_ERRORS:
            failures = failures + 1 if file.tell() == start else 0
            if failures == MAX_FAILURES:
                raise
            time.sleep(1)


def checksum(path: Path, etag: str) -> str:
    """Return the SHA-256 of a file, which is its etag on the hub. Other etags are returned unchanged."""
    if not re.fullmatch(r"[0-9a-f]{64}", etag):
        return etag
    total = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            total.update(block)
    return total.hexdigest()
