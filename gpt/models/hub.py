"""Downloads models from the Hugging Face hub into the cache of its client, and continues interrupted downloads."""

from __future__ import annotations

import hashlib
import os
import re
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
from gpt.models.checkpoints.bpe_files import MERGES_TXT, TOKENIZER_JSON, VOCAB_JSON
from gpt.models.checkpoints.checkpoint import CONFIG, WEIGHTS
from gpt.models.checkpoints.families import FAMILIES, GPT2
from gpt.models.checkpoints.family_options import check_config
from gpt.models.checkpoints.untrusted import read_json

INDEX = "model.safetensors.index.json"  # of weights in several files
GPT2_FILES = (CONFIG, VOCAB_JSON, MERGES_TXT)
FAMILY_FILES = (CONFIG, TOKENIZER_JSON, "tokenizer_config.json", "chat_template.jinja", "generation_config.json", INDEX)
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
    wanted = WEIGHTS
    try:
        weights = weight_names(repo_id)
        wanted = CONFIG
        family = check_config(read_json(Path(hf_hub_download(repo_id, wanted)), dict))
        fetch_weights(repo_id, weights, progress)
        folder = fetch_files(repo_id, *weights, *(GPT2_FILES if family in (None, FAMILIES[GPT2]) else FAMILY_FILES))
        if not ((folder / VOCAB_JSON).is_file() or (folder / TOKENIZER_JSON).is_file()):
            wanted = TOKENIZER_JSON  # since version 5, transformers writes it alone for GPT-2, too
            hf_hub_download(repo_id, wanted)
        return folder
    except GatedRepoError:
        raise GPTError("hub.gated", name=repo_id) from None
    except (RepositoryNotFoundError, HFValidationError):
        raise GPTError("hub.unknown", name=repo_id) from None
    except EntryNotFoundError as error:
        if not isinstance(error, LocalEntryNotFoundError):
            raise GPTError("hub.format", name=repo_id, file=wanted) from None
        reason: object = GPTError("hub.no_network")
    except NETWORK_ERRORS as error:
        reason = str(error).strip().split("\n")[0] or type(error).__name__
    if (folder := cached_folder(repo_id)) is not None:
        return folder
    raise HubUnreachable("hub.unreachable", name=repo_id, reason=reason)


def fetch_files(repo_id: str, *names: str) -> Path:
    """The folder with those of the files that the repository has."""
    return Path(snapshot_download(repo_id, allow_patterns=list(names)))


def cached_folder(repo_id: str) -> Path | None:
    """The folder of a model if the cache has all its files, under its name or the one it had before."""
    for name in dict.fromkeys((repo_id, RENAMED.get(repo_id, repo_id))):
        with suppress(LocalEntryNotFoundError):
            folder = Path(snapshot_download(name, allow_patterns=[CONFIG], local_files_only=True))
            vocabularies = ((VOCAB_JSON, MERGES_TXT), (TOKENIZER_JSON,))
            weights = shards(folder / INDEX) if (folder / INDEX).is_file() else [WEIGHTS]
            if any(all((folder / file).is_file() for file in (CONFIG, *weights, *files)) for files in vocabularies):
                return folder
    return None


def weight_names(repo_id: str) -> list[str]:
    """The files of the weights: model.safetensors, or several that an index lists."""
    try:
        get_hf_file_metadata(hf_hub_url(repo_id, WEIGHTS))
        return [WEIGHTS]
    except EntryNotFoundError as error:
        if isinstance(error, LocalEntryNotFoundError):
            raise
        return shards(Path(hf_hub_download(repo_id, INDEX)))


def shards(index: Path) -> list[str]:
    """The files that an index lists. Raises ValueError unless they are named as transformers does."""
    listed = read_json(index, dict).get("weight_map")
    names = sorted(set(map(str, listed.values()))) if isinstance(listed, dict) else []
    if not names or not all(re.fullmatch(r"model-\d{5}-of-\d{5}\.safetensors", name) for name in names):
        raise GPTError("file.damaged", file=index.name, reason=f"weight_map: {names[:3]}")
    return names


def fetch_weights(repo_id: str, names: Sequence[str], progress: Progress | None) -> None:
    """Download the weights into the hub's cache, or the missing part; snapshot_download would restart."""
    stated = {name: get_hf_file_metadata(hf_hub_url(repo_id, name)) for name in names}
    total, before = sum(file.size or 0 for file in stated.values()), 0
    with tqdm(desc=repo_id, total=total, unit="B", unit_scale=True, disable=progress is not None) as bar:
        for name, file in stated.items():
            if file.etag is None or file.size is None:
                continue  # not stored as a large file: snapshot_download fetches it
            for done in fetch_blob(repo_id, name, file.etag, file.size):
                bar.update(before + done - bar.n)
                if progress is not None:
                    progress(before + done, total)
            before += file.size


def fetch_blob(repo_id: str, name: str, etag: str, size: int) -> Iterator[int]:
    """Download a file into the hub's cache, yielding as `resume_download`; nothing if it is there.

    The partial file becomes a blob of the cache only if it has the size and the checksum that the hub states.
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


def checksum(path: Path, etag: str) -> str:
    """Return the checksum of a file, in hexadecimal digits, of the kind that an etag of the hub has.

    64 digits are a SHA-256, 40 digits the SHA-1 of a git blob; any other etag is no checksum and is returned itself.
    """
    if re.fullmatch(r"[0-9a-f]{64}", etag):
        total = hashlib.sha256()
    elif re.fullmatch(r"[0-9a-f]{40}", etag):
        total = hashlib.sha1(b"blob %d\0" % path.stat().st_size, usedforsecurity=False)
    else:
        return etag
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            total.update(block)
    return total.hexdigest()
