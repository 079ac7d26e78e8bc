"""Downloads from a small server with the part of the hub's API that its client needs."""

from __future__ import annotations

import hashlib
import subprocess
import threading
from pathlib import Path

import pytest
import torch
from huggingface_hub import constants
from transformers import GPT2Tokenizer

from gpt.models import hub
from gpt.models.registry import Registry
from gpt.models.sources import find_source, load_model
from tests.gpt.models.hub_server import REPO, Hub
from tests.parity.gguf_models import reference_model, write_gguf


def test_only_the_four_files_are_fetched_and_only_once(served: Hub) -> None:
    folder = hub.download(REPO)
    wanted = ["config.json", "vocab.json", "merges.txt", hub.WEIGHTS]
    assert sorted(name for name, _ in served.gets) == sorted(wanted)
    assert {file.name for file in folder.iterdir()} == set(wanted)
    assert all((folder / name).read_bytes() == served.files[name] for name in wanted)
    served.gets.clear()
    assert hub.download(REPO) == folder
    assert served.gets == []


def test_vocabulary_in_one_file_is_fetched_only_where_there_is_no_pair(served: Hub, tmp_path: Path) -> None:
    (tmp_path / "pair").mkdir()
    for name in ("vocab.json", "merges.txt"):
        (tmp_path / "pair" / name).write_bytes(served.files.pop(name))
    GPT2Tokenizer.from_pretrained(tmp_path / "pair").save_pretrained(tmp_path / "one")
    served.files["tokenizer.json"] = (tmp_path / "one" / "tokenizer.json").read_bytes()
    loaded = load_model(REPO)
    assert sorted(name for name, _ in served.gets) == ["config.json", hub.WEIGHTS, "tokenizer.json"]
    assert loaded.tokenizer.encode("the 你") == GPT2Tokenizer.from_pretrained(tmp_path / "one").encode("the 你")
    served.down = True
    assert load_model(REPO).tokenizer.n_vocab == loaded.tokenizer.n_vocab


def test_a_gguf_file_is_fetched_by_its_name(served: Hub, tmp_path: Path) -> None:
    write_gguf(tmp_path / "small.gguf", reference_model("llama"), "llama")
    served.files["small.gguf"] = (tmp_path / "small.gguf").read_bytes()
    name = f"{REPO}:small.gguf"
    assert not find_source(name).is_here
    assert load_model(name).layout == "GGUF (Llama)"
    assert {file for file, _ in served.gets} == {"small.gguf"}
    assert find_source(name).is_here
    served.down = True
    assert load_model(name).layout == "GGUF (Llama)"
    served.down = False
    with pytest.raises(ValueError, match=r"someone/tiny has no other\.gguf on the hub"):
        load_model(f"{REPO}:other.gguf")


def test_interrupted_download_is_not_used_and_is_resumed(served: Hub, tmp_path: Path) -> None:
    served.cut = 50_000
    with pytest.raises(ValueError, match=r"could not be downloaded.*resumes where it stopped"):
        load_model(REPO)
    assert not list((tmp_path / "cache").rglob(hub.WEIGHTS))
    served.cut, served.down = None, False
    seen: list[int] = []
    folder = hub.download(REPO, lambda done, total: seen.append(done))
    starts = [start for name, start in served.gets if name == hub.WEIGHTS]
    assert starts[0] == 0
    assert starts[-1] == 50_000 == seen[0]
    assert (folder / hub.WEIGHTS).read_bytes() == served.files[hub.WEIGHTS]
    assert not list((tmp_path / "cache").rglob("*.incomplete"))


def test_download_continues_after_each_broken_connection(served: Hub) -> None:
    served.cut, served.recovers = 50_000, True
    folder = hub.download(REPO)
    starts = [start for name, start in served.gets if name == hub.WEIGHTS]
    assert starts == list(range(0, len(served.files[hub.WEIGHTS]), 50_000))
    assert (folder / hub.WEIGHTS).read_bytes() == served.files[hub.WEIGHTS]


def test_download_restarts_if_the_server_does_not_support_ranges(served: Hub) -> None:
    served.cut = 50_000
    with pytest.raises(ValueError, match="could not be downloaded"):
        hub.download(REPO)
    served.cut, served.down, served.ranges = None, False, False
    assert (hub.download(REPO) / hub.WEIGHTS).read_bytes() == served.files[hub.WEIGHTS]


@pytest.mark.parametrize("in_git", [False, True])
def test_partial_file_with_another_checksum_is_deleted(served: Hub, tmp_path: Path, in_git: bool) -> None:
    served.in_git, weights = in_git, served.files[hub.WEIGHTS]
    (tmp_path / "weights").write_bytes(weights)
    git = ["git", "hash-object", "--no-filters", str(tmp_path / "weights")]
    sha1 = subprocess.run(git, capture_output=True, check=True, text=True).stdout.strip()
    blob = sha1 if in_git else hashlib.sha256(weights).hexdigest()
    part = tmp_path / "cache" / "models--someone--tiny" / "blobs" / f"{blob}.incomplete"
    part.parent.mkdir(parents=True)
    part.write_bytes(b"x" * 1000)
    with pytest.raises(ValueError, match="the download was damaged"):
        hub.download(REPO)
    assert not part.exists()
    assert (hub.download(REPO) / hub.WEIGHTS).read_bytes() == served.files[hub.WEIGHTS]


def test_offline_raises_an_error_that_says_what_to_do(served: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    for name in (REPO, "gpt2"):
        with pytest.raises(ValueError, match=f"{name} could not be downloaded.*connect to the internet"):
            load_model(name)
    assert served.gets == []


def test_moved_models_are_found_in_the_cache_under_their_long_name(
    served: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = hub.download(REPO)
    monkeypatch.setitem(hub.RENAMED, "gpt2", REPO)
    served.down = True
    assert hub.download("gpt2") == folder


def test_unknown_repository_and_missing_weights_are_refused(served: Hub) -> None:
    with pytest.raises(ValueError, match="no public model 'nobody/nothing'"):
        load_model("nobody/nothing")
    for name in (hub.WEIGHTS, "pytorch_model.bin"):
        del served.files[name]
    with pytest.raises(ValueError, match=r"someone/tiny has no model\.safetensors"):
        load_model(REPO)


def test_concurrent_callers_share_one_download_and_each_gets_its_progress(served: Hub) -> None:
    registry = Registry(memory=10**9, device=torch.device("cpu"))
    name = registry.add(REPO)
    start, results, reports = threading.Barrier(4), [], [[] for _ in range(4)]

    def visit(number: int) -> None:
        start.wait()
        results.append(registry.get(name, lambda *bytes_: reports[number].append(bytes_)))

    threads = [threading.Thread(target=visit, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(loaded) for loaded in results}) == 1
    assert [name for name, _ in served.gets].count(hub.WEIGHTS) == 1
    size = len(served.files[hub.WEIGHTS])
    assert [seen[-1] for seen in reports] == [(size, size)] * 4
