"""Downloads models from the Hugging Face hub into the cache of its client, and continues interrupted downloads."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, cast

from huggingface_hub import (
    constants,
    get_hf_file_metadata,
    get_session,
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
from gpt.models.checkpoints.bpe_files import MERGES_TXT, TOKENIZER_JSON, VOCAB_JSON

CONFIG, WEIGHTS = "config.json", "model.safetensors"
FILES = (CONFIG, WEIGHTS, VOCAB_JSON, MERGES_TXT)
COMPLETE_SETS = (FILES, (CONFIG, WEIGHTS, TOKENIZER_JSON))  # either set of files is a complete model
# Renamed repositories of the hub; caches contain them under either name.
RENAMED = {
    **{name: f"openai-community/{name}" for name in ("gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl")},
    "distilgpt2": "distilbert/distilgpt2",
}
# The bases include the error of the client's HTTP library.
NETWORK_ERRORS = cast("tuple[type[Exception], ...]", (OSError, *HfHubHTTPError.__bases__))
TIMEOUT_SECONDS = 10.0
MAX_FAILURES = 5


class HubUnreachable(GPTError):
    """The hub cannot be reached, and the cache has no copy of the model."""


def download(repo_id: str, progress: Progress | None = None) -> Path:
    """The folder of a model's files, downloaded unless the cache has them.

    progress: called with the bytes downloaded and their total; None shows a bar on the terminal.
    Raises ValueError if there is no such model, HubUnreachable if the hub cannot be reached.
    """
    if repo_id in RENAMED and (folder := cached_folder(repo_id)) is not None:
        return folder
    try:
        fetch_weights(repo_id, progress)
        folder = Path(snapshot_download(repo_id, allow_patterns=list(FILES)))
        if not (folder / VOCAB_JSON).is_file():  # since version 5, transformers writes tokenizer.json alone
            snapshot_download(repo_id, allow_patterns=[TOKENIZER_JSON])
        return folder
    except (GatedRepoError, RepositoryNotFoundError, HFValidationError):
        raise GPTError("hub.unknown", name=repo_id) from None
    except EntryNotFoundError as error:
        if not isinstance(error, LocalEntryNotFoundError):
            raise GPTError("hub.format", name=repo_id, file=WEIGHTS) from None
        reason: object = GPTError("hub.no_network")
    except NETWORK_ERRORS as error:
        reason = str(error).strip().split("\n")[0] or type(error).__name__
    if (folder := cached_folder(repo_id)) is not None:
        return folder
    raise HubUnreachable("hub.unreachable", name=repo_id, reason=reason)


def cached_folder(repo_id: str) -> Path | None:
    """The folder of a model if the cache has all its files, under its name or the one it had before."""
    for name in dict.fromkeys((repo_id, RENAMED.get(repo_id, repo_id))):
        with suppress(LocalEntryNotFoundError):
            folder = Path(snapshot_download(name, allow_patterns=list(FILES), local_files_only=True))
            if any(all((folder / file).is_file() for file in files) for files in COMPLETE_SETS):
                return folder
    return None


def fetch_weights(repo_id: str, progress: Progress | None) -> None:
    """Download the weights into the hub's cache, or the missing part; snapshot_download would restart.

    The partial file becomes a blob of the cache only if it has the size and the SHA-256 that the hub states.
    """
    url = hf_hub_url(repo_id, WEIGHTS)
    stated = get_hf_file_metadata(url)
    if stated.etag is None or stated.size is None:
        return  # not stored as a large file: snapshot_download fetches it
    cache, folder = Path(constants.HF_HUB_CACHE), f"models--{repo_id.replace('/', '--')}"
    blob = cache / folder / "blobs" / stated.etag
    partial = blob.with_name(f"{stated.etag}.incomplete")
    lock = cache / ".locks" / folder / f"{stated.etag}.lock"
    for path in (blob, lock):
        path.parent.mkdir(parents=True, exist_ok=True)
    with WeakFileLock(lock):
        if blob.exists():
            return
        with (
            partial.open("ab") as file,
            tqdm(desc=repo_id, total=stated.size, unit="B", unit_scale=True, disable=progress is not None) as bar,
        ):
            for done in resume_download(url, file, stated.size):
                bar.update(done - bar.n)
                if progress is not None:
                    progress(done, stated.size)
        if len(stated.etag) == 64 and sha256(partial) != stated.etag:
            partial.unlink()
            raise OSError("it arrived damaged")
        os.replace(partial, blob)


def resume_download(url: str, file: BinaryIO, size: int) -> Iterator[int]:
    """Append the missing part of a file of `size` bytes; yields its length at the start and after each chunk.

    Retries after network errors, until MAX_FAILURES attempts in a row have received nothing.
    """
    failures = 0
    yield file.tell()
    while (start := file.tell()) < size:
        headers = build_hf_headers() | {"Range": f"bytes={start}-", "Accept-Encoding": "identity"}
        try:
            with get_session().stream("GET", url, headers=headers, timeout=TIMEOUT_SECONDS) as response:
                hf_raise_for_status(response)
                if response.status_code == 200:  # the server sends the whole file instead of the rest
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


def sha256(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal digits."""
    total = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            total.update(block)
    return total.hexdigest()
