"""Shared models: names, copies, uploads, concurrent loads, memory."""

from __future__ import annotations

import copy
import gc
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from gpt.config import GPTConfig
from gpt.documents.generation import Generation
from gpt.model import GPT
from gpt.models import sources
from gpt.models.checkpoints.checkpoint import Checkpoint, open_checkpoint
from gpt.models.checkpoints.layouts import HeadsUnknown
from gpt.models.checkpoints.writing import save_model
from gpt.models.loading import memory_of
from gpt.models.registry import Registry, get_model, list_models
from gpt.models.sources import DEFAULT_MODEL, LLAMA_MODEL, POEMS_MODEL, load_model
from gpt.tokenizer import PlainIds, Tokenizer
from tests.gpt.models.registries import CONFIG, CPU, registry_for
from tests.parity.named_models import BookGPT


def test_models_that_were_not_added_are_refused(folders: list[Path]) -> None:
    for name in (str(folders[0]), "someone/model", "../secret", ""):
        with pytest.raises(ValueError, match="there is no model"):
            Registry().get(name)


@pytest.mark.parametrize("name", ["nowhere", "~nobody-of-that-name/model", "m" * 5000, "a\0b"])
def test_name_of_no_model_file_or_folder_is_refused(name: str) -> None:
    for ask in (load_model, Registry().add):
        with pytest.raises(ValueError, match="there is no model, file or folder"):
            ask(name)


def test_bundled_and_untrained_share_configuration_and_vocabulary_but_not_weights() -> None:
    trained, untrained = get_model(), get_model("untrained")
    gpt2_models = ["gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl"]
    assert list_models()[:9] == [trained.name, POEMS_MODEL, LLAMA_MODEL, "untrained", "distilgpt2", *gpt2_models]
    assert trained is get_model(DEFAULT_MODEL)
    assert untrained.model.config == trained.model.config
    assert untrained.tokenizer.encode("Once upon") == trained.tokenizer.encode("Once upon")
    assert not torch.equal(untrained.model.wte.weight, trained.model.wte.weight)
    assert torch.equal(untrained.model.ln_f.weight, torch.ones_like(untrained.model.ln_f.weight))
    again = load_model("untrained", device=untrained.device)
    assert torch.equal(again.model.wte.weight, untrained.model.wte.weight)
    assert again.model is not untrained.model


def test_copies_of_a_shared_model_are_the_shared_model() -> None:
    shared = get_model()
    assert copy.deepcopy(shared) is shared
    data = pickle.dumps({"model": shared})
    assert len(data) < 200
    assert pickle.loads(data)["model"] is shared


def test_copies_of_a_model_that_is_not_shared_are_models_of_their_own() -> None:
    own = load_model(DEFAULT_MODEL, device="cpu")
    for twin in (copy.deepcopy(own), pickle.loads(pickle.dumps(own))):
        assert twin.model is not own.model
        assert torch.equal(twin.model.wte.weight, own.model.wte.weight)
        assert twin.tokenizer.encode("Once upon") == own.tokenizer.encode("Once upon")
        assert twin.engine is twin.engine is not own.engine


def test_uploaded_files_become_a_listed_model_and_are_deleted_with_it(
    tmp_path: Path, byte_tokenizer: Tokenizer
) -> None:
    save_model(tmp_path / "m", GPT(GPTConfig(261, 8, 1, 2, 8)), byte_tokenizer)
    registry = Registry(memory=10**9, device=CPU)
    files = []
    for number, file in enumerate((tmp_path / "m").iterdir()):  # each in its own folder, like uploads from a browser
        (tmp_path / str(number)).mkdir()
        files.append(tmp_path / str(number) / file.name)
        files[-1].symlink_to(Path("..") / "m" / file.name)
    names = [registry.add_upload(files), registry.add_upload(files)]
    assert names == ["model.safetensors", "model.safetensors (2)"]
    assert registry.names()[-2:] == names
    assert registry.get(names[0]).tokenizer.encode("the") == byte_tokenizer.encode("the")
    kept = [registry._sources[name].location for name in names]
    registry.remove(names[0])
    assert registry.names()[-1:] == names[1:]
    assert [folder.exists() for folder in kept] == [False, True]
    registry.add(tmp_path, name=names[1])  # replaces it
    assert not kept[1].exists()


def test_title_is_the_end_of_the_path_and_the_layout_once_loaded(tmp_path: Path) -> None:
    registry = Registry(memory=10**9, device=CPU)
    (tmp_path / "out").mkdir()
    torch.save(BookGPT().state_dict(), tmp_path / "out" / "model.pth")
    name = registry.add(tmp_path / "out" / "model.pth", 3)
    assert registry.title(name) == "out/model.pth"
    registry.get(name)
    assert registry.title(name) == "out/model.pth · GPTModel"
    assert registry.title(registry.add("someone/model")) == "someone/model"


def test_upload_that_fails_registers_nothing(tmp_path: Path) -> None:
    torch.save(BookGPT().state_dict(), tmp_path / "model.pth")
    (tmp_path / "noise.pt").write_bytes(b"PK\x03\x04 noise")
    registry = Registry(memory=10**9, device=CPU)
    before = registry.names()
    with pytest.raises(ValueError, match=r"noise\.pt is damaged"):
        registry.add_upload([tmp_path / "noise.pt"])
    with pytest.raises(HeadsUnknown):
        registry.add_upload([tmp_path / "model.pth"])
    with pytest.raises(ValueError, match=r"gone\.pt cannot be read: No such file"):
        registry.add_upload([tmp_path / "gone.pt"])
    assert registry.names() == before
    assert registry.get(registry.add_upload([tmp_path / "model.pth"], n_head=3)).model.config.n_head == 3


def test_of_the_models_that_may_not_be_downloaded_those_here_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpt.models.sources.cached_folder", lambda name: Path("here") if name == "distilgpt2" else None)
    registry = Registry(downloads=["gpt2-medium"])
    assert registry.names() == [DEFAULT_MODEL, POEMS_MODEL, LLAMA_MODEL, "untrained", "distilgpt2", "gpt2-medium"]
    with pytest.raises(ValueError, match="there is no model 'gpt2-xl'"):
        registry.get("gpt2-xl")
    assert registry.add("gpt2-xl") == "gpt2-xl"  # added by the host
    assert "gpt2-xl" in registry.names()


class Gate:
    """Replaces open_checkpoint. Loads of one path wait for `may_load`; `opened` lists the paths of all loads."""

    def __init__(self, closed: Path) -> None:
        self.closed, self.opened = closed, []
        self.began, self.may_load = threading.Event(), threading.Event()

    def __call__(self, path: Path, *hints: object, **options: object) -> Checkpoint:
        self.opened.append(path)
        if path == self.closed:
            self.began.set()
            assert self.may_load.wait(10)
        return open_checkpoint(path, *hints, **options)


@pytest.fixture
def gate(folders: list[Path], monkeypatch: pytest.MonkeyPatch) -> Gate:
    """Make loads of the first folder wait."""
    gate = Gate(folders[0])
    monkeypatch.setattr(sources, "open_checkpoint", gate)
    return gate


def test_concurrent_requests_wait_for_one_load(folders: list[Path], gate: Gate) -> None:
    registry, names = registry_for(folders, 4)
    with ThreadPoolExecutor(8) as threads:
        asked = [threads.submit(registry.get, names[0]) for _ in range(8)]
        gate.may_load.set()
        assert len({id(each.result()) for each in asked}) == 1
    assert gate.opened == [folders[0]]


def test_one_model_does_not_wait_for_another(folders: list[Path], gate: Gate) -> None:
    registry, names = registry_for(folders, 4)
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(registry.get, names[0])
        assert registry.get(names[1]).name == names[1]
        assert not waiting.done()
        gate.may_load.set()


def test_failure_is_raised_in_all_waiting_callers_and_the_next_request_loads_again(
    folders: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    registry, names = registry_for(folders, 4)
    kept = registry.get(names[1])
    may_fail = threading.Event()

    def broken(path: Path, *_: object, **options: object) -> object:
        assert may_fail.wait(10)
        raise ValueError("the disk is broken")

    with monkeypatch.context() as patch, ThreadPoolExecutor(3) as threads:
        patch.setattr(sources, "open_checkpoint", broken)
        asked = [threads.submit(registry.get, names[0]) for _ in range(3)]
        may_fail.set()
        assert [str(each.exception(10)) for each in asked] == ["the disk is broken"] * 3
    assert registry.get(names[1]) is kept
    assert registry.get(names[0]).name == names[0]


def test_caller_that_stops_waiting_does_not_stop_the_load(
    folders: list[Path], gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry, _ = registry_for(folders, 4)

    monkeypatch.setattr(sources, "download", lambda name, progress: progress(1, 2) or folders[0])
    registry.add("someone/model")
    with pytest.raises(ZeroDivisionError):
        registry.get("someone/model", lambda done, total: 1 // 0)
    gate.may_load.set()
    assert registry.get("someone/model").name == "someone/model"
    assert gate.opened == [folders[0]]


def test_least_recently_requested_model_is_evicted(folders: list[Path]) -> None:
    registry, names = registry_for(folders, 3)
    first = [id(registry.get(name).model) for name in names[:3]]
    registry.get(names[0])  # b is now the least recently requested
    registry.get(names[3])
    assert id(registry.get(names[0]).model) == first[0]
    assert id(registry.get(names[2]).model) == first[2]
    assert names[1] not in registry._loads
    registry.get(names[1])  # loads b again
    assert names[3] not in registry._loads


def test_a_limit_shortens_the_context_of_rotary_models_alone(tmp_path: Path) -> None:
    registry = Registry(memory=10**9, device=CPU, context=5)
    for position in ("rotary", "learned"):
        save_model(tmp_path / position, GPT(replace(CONFIG, position=position)), PlainIds(CONFIG.vocab_size))
    contexts = [registry.get(registry.add(tmp_path / name)).model.config.block_size for name in ("rotary", "learned")]
    assert contexts == [5, CONFIG.block_size]


def test_model_in_use_is_not_evicted(folders: list[Path]) -> None:
    registry, names = registry_for(folders, 2)
    held = registry.get(names[0])
    for name in (names[1], names[2], names[3], names[1]):
        registry.get(name)
    assert registry.get(names[0]) is held
    also = registry.get(names[1])
    with pytest.raises(ValueError, match="other models are in use: try again later"):
        registry.get(names[2])
    assert registry.get(names[0]) is held
    assert registry.get(names[1]) is also
    del also
    assert registry.get(names[2]).name == names[2]
    del held
    gc.collect()
    assert registry.get(names[3]).name == names[3]


def test_budget_counts_the_precision(folders: list[Path]) -> None:
    checkpoint = open_checkpoint(folders[0])
    size = memory_of(checkpoint, "half", CPU)
    assert size == checkpoint.n_bytes(torch.bfloat16) + 2 * CONFIG.vocab_size * CONFIG.n_embd  # tied: stored twice
    assert memory_of(checkpoint, "fp32", CPU) == checkpoint.n_bytes()
    registry = Registry(memory=size, device=CPU, precision="half")
    assert registry.get(registry.add(folders[0])).precision == "half"
    registry.configure(memory=size, device=CPU)
    with pytest.raises(ValueError, match="choose a smaller model"):
        registry.get(registry.add(folders[0]))


def test_budget_counts_documents_as_long_as_they_exist(folders: list[Path]) -> None:
    registry, names = registry_for(folders, 2)
    document = Generation(registry.get(names[0]), [1, 2, 3])
    document.read()
    used = registry._sizes[document.loaded.engine] + document.n_bytes
    assert registry.memory - registry._free_bytes() == used
    with pytest.raises(ValueError, match="other models are in use"):
        registry.get(names[1])
    del document
    assert registry.get(names[1]).name == names[1]
