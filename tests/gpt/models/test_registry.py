"""The shared models: loaded once, kept while there is room, let go when nobody uses them."""

from __future__ import annotations

import copy
import gc
import pickle
import threading
from pathlib import Path

import pytest
import torch

from gpt.config import GPTConfig
from gpt.model import GPT
from gpt.models import registry as registry_module
from gpt.models import sources
from gpt.models.checkpoints import open_checkpoint, save_model
from gpt.models.checkpoints.layouts import HeadsUnknown
from gpt.models.checkpoints.vocabularies import PlainIds
from gpt.models.loading import LoadedModel, memory_of
from gpt.models.registry import Registry, get_model, list_models
from gpt.models.sources import DEFAULT_MODEL, load_model
from gpt.tokenizer import Tokenizer
from tests.parity.lookalikes import BookGPT

CONFIG = GPTConfig(vocab_size=50, block_size=8, n_layer=1, n_head=2, n_embd=8)


@pytest.fixture
def folders(tmp_path: Path) -> list[Path]:
    """Four models of the same size."""
    paths = [tmp_path / name for name in "abcd"]
    for path in paths:
        save_model(path, GPT(CONFIG), PlainIds(50))
    return paths


def shelf(folders: list[Path], places: float) -> tuple[Registry, list[str]]:
    """A registry with room for so many of these models, and their names."""
    size = memory_of(open_checkpoint(folders[0]), "fp32", torch.device("cpu"))
    registry = Registry(memory=int(places * size), device=torch.device("cpu"))
    return registry, [registry.add(folder) for folder in folders]


def test_first_visitors_at_the_same_moment_load_it_once(folders: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    registry, names = shelf(folders, 4)
    opened: list[Path] = []
    go_on = threading.Event()

    def slowly(path: Path, **options: object) -> object:
        opened.append(path)
        assert go_on.wait(10)
        return open_checkpoint(path, **options)

    monkeypatch.setattr(sources, "open_checkpoint", slowly)
    results: list[LoadedModel] = []
    threads = [threading.Thread(target=lambda: results.append(registry.get(names[0]))) for _ in range(8)]
    for thread in threads:
        thread.start()
    go_on.set()
    for thread in threads:
        thread.join()
    assert len(results) == 8
    assert len({id(loaded) for loaded in results}) == 1
    assert opened == [folders[0]]


def test_one_model_does_not_wait_for_another(folders: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    registry, names = shelf(folders, 4)
    go_on = threading.Event()

    def first_one_hangs(path: Path, **options: object) -> object:
        if path == folders[0]:
            assert go_on.wait(10)
        return open_checkpoint(path, **options)

    monkeypatch.setattr(sources, "open_checkpoint", first_one_hangs)
    waiting = threading.Thread(target=registry.get, args=(names[0],))
    waiting.start()
    assert registry.get(names[1]).name == names[1]
    assert waiting.is_alive()
    go_on.set()
    waiting.join()


def test_failure_reaches_everybody_who_waits_and_the_next_try_is_fresh(
    folders: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    registry, names = shelf(folders, 4)
    kept = registry.get(names[1])
    go_on, errors = threading.Event(), []

    def broken(path: Path, **options: object) -> object:
        assert go_on.wait(10)
        raise ValueError("the disk is on fire")

    def visit() -> None:
        try:
            registry.get(names[0])
        except ValueError as error:
            errors.append(str(error))

    with monkeypatch.context() as patch:
        patch.setattr(sources, "open_checkpoint", broken)
        threads = [threading.Thread(target=visit) for _ in range(3)]
        for thread in threads:
            thread.start()
        go_on.set()
        for thread in threads:
            thread.join()
    assert errors == ["the disk is on fire"] * 3
    assert registry.get(names[1]) is kept
    assert registry.get(names[0]).name == names[0]


def test_visitor_who_stops_waiting_does_not_stop_the_load(folders: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    registry, _ = shelf(folders, 4)
    go_on = threading.Event()

    def slowly(place: object, **options: object) -> object:
        assert go_on.wait(10)
        return open_checkpoint(folders[0])

    def leave(done: int, total: int) -> None:
        raise InterruptedError

    monkeypatch.setattr(sources, "open_checkpoint", slowly)
    monkeypatch.setattr(sources.hub, "download", lambda name, progress: progress(1, 2) or folders[0])
    registry.add("someone/model")
    with pytest.raises(InterruptedError):
        registry.get("someone/model", leave)
    go_on.set()
    assert registry.get("someone/model").name == "someone/model"


def test_longest_unused_model_makes_room(folders: list[Path]) -> None:
    registry, names = shelf(folders, 3)
    first = [id(registry.get(name).model) for name in names[:3]]
    registry.get(names[0])  # now b is the longest unused
    registry.get(names[3])
    assert id(registry.get(names[0]).model) == first[0]
    assert id(registry.get(names[2]).model) == first[2]
    assert names[1] not in registry._kept
    registry.get(names[1])  # comes back
    assert names[3] not in registry._kept


def test_model_that_somebody_holds_stays(folders: list[Path]) -> None:
    registry, names = shelf(folders, 2)
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


def test_model_larger_than_the_budget_is_refused_and_nothing_is_let_go(folders: list[Path], tmp_path: Path) -> None:
    registry, names = shelf(folders, 2)
    models = [id(registry.get(name).model) for name in names[:2]]
    save_model(tmp_path / "large", GPT(GPTConfig(500, 8, 1, 2, 64)), PlainIds(500))
    name = registry.add(tmp_path / "large")
    with pytest.raises(ValueError, match=r"needs .* MiB of memory, and models may take .* MiB: choose a smaller one"):
        registry.get(name)
    assert [id(registry.get(name).model) for name in names[:2]] == models


def test_budget_counts_the_precision(folders: list[Path]) -> None:
    cpu = torch.device("cpu")
    checkpoint = open_checkpoint(folders[0])
    size = memory_of(checkpoint, "bf16", cpu)
    rows = CONFIG.vocab_size * CONFIG.n_embd * 4  # of the tied head, kept once more
    assert memory_of(checkpoint, "fp32", cpu) == 2 * size == checkpoint.n_bytes() + rows
    loaded = Registry(memory=size, device=cpu, precision="bf16")
    assert loaded.get(loaded.add(folders[0])).precision == "bf16"
    tight = Registry(memory=size, device=cpu)
    with pytest.raises(ValueError, match="choose a smaller one"):
        tight.get(tight.add(folders[0]))


def test_default_budget_is_half_of_what_is_free(folders: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry_module, "free_memory", lambda device: 10**9)
    registry = Registry(device=torch.device("cpu"))
    registry.get(registry.add(folders[0]))
    assert registry.memory == 5 * 10**8


def test_only_what_is_listed_can_be_asked_for(folders: list[Path]) -> None:
    registry = Registry(memory=10**9)
    for name in (str(folders[0]), "someone/model", "../secret", ""):
        with pytest.raises(ValueError, match="there is no model"):
            registry.get(name)
    with pytest.raises(ValueError, match=r"there is no model, file or folder 'nowhere'"):
        registry.add("nowhere")


def test_bundled_and_untrained_share_shape_and_words_but_not_weights() -> None:
    trained, untrained = get_model(), get_model("untrained")
    assert trained.name == DEFAULT_MODEL == list_models()[0]
    assert trained is get_model(DEFAULT_MODEL)
    assert untrained.model.config == trained.model.config
    assert untrained.tokenizer.encode("Once upon") == trained.tokenizer.encode("Once upon")
    assert not torch.equal(untrained.model.wte.weight, trained.model.wte.weight)
    assert torch.equal(untrained.model.ln_f.weight, torch.ones_like(untrained.model.ln_f.weight))
    again = load_model("untrained", device=untrained.device)
    assert torch.equal(again.model.wte.weight, untrained.model.wte.weight)
    assert again.model is not untrained.model


def test_gpt2_models_are_offered() -> None:
    assert {"gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl", "distilgpt2"} < set(list_models())


def test_copies_of_a_shared_model_are_the_shared_model() -> None:
    shared = get_model()
    assert copy.deepcopy(shared) is shared
    data = pickle.dumps({"model": shared})
    assert len(data) < 200
    assert pickle.loads(data)["model"] is shared


def test_copies_of_a_model_of_ones_own_are_models_of_their_own() -> None:
    own = load_model(DEFAULT_MODEL, device="cpu")
    for twin in (copy.deepcopy(own), pickle.loads(pickle.dumps(own))):
        assert twin.model is not own.model
        assert torch.equal(twin.model.wte.weight, own.model.wte.weight)
        assert twin.tokenizer.encode("Once upon") == own.tokenizer.encode("Once upon")


@pytest.mark.parametrize(("precision", "said"), [("fp64", "must be one of"), ("", "must be one of")])
def test_precision_that_there_is_not_is_refused(folders: list[Path], precision: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        load_model(folders[0], precision=precision)
    with pytest.raises(ValueError, match=said):
        Registry(precision=precision)


def test_uploaded_files_become_a_model_in_the_list(tmp_path: Path, byte_tokenizer: Tokenizer) -> None:
    save_model(tmp_path / "m", GPT(GPTConfig(261, 8, 1, 2, 8)), byte_tokenizer)
    registry = Registry(memory=10**9, device=torch.device("cpu"))
    files = []
    for number, file in enumerate((tmp_path / "m").iterdir()):  # each in a folder of its own, as browsers' arrive
        (tmp_path / str(number)).mkdir()
        files.append(file.rename(tmp_path / str(number) / file.name))
    names = [registry.add_upload(files), registry.add_upload(files)]
    assert names == ["model.safetensors", "model.safetensors (2)"]
    assert registry.names()[-2:] == names
    loaded = registry.get(names[0])
    assert loaded.tokenizer.encode("the") == byte_tokenizer.encode("the")
    kept = [registry._sources[name].place for name in names]
    registry.remove(names[0])
    assert registry.names()[-1:] == names[1:]
    assert [folder.exists() for folder in kept] == [False, True]
    registry.add(tmp_path, name=names[1])  # replaces it
    assert not kept[1].exists()


def test_own_checkpoints_are_called_by_the_end_of_their_path_and_their_layout(tmp_path: Path) -> None:
    registry = Registry(memory=10**9, device=torch.device("cpu"))
    (tmp_path / "out").mkdir()
    torch.save(BookGPT().state_dict(), tmp_path / "out" / "model.pth")
    name = registry.add(tmp_path / "out" / "model.pth", 3)
    assert registry.title(name) == "out/model.pth"
    loaded = registry.get(name)
    assert registry.title(name) == "out/model.pth · GPTModel" != loaded.name
    assert registry.title(registry.add("someone/model")) == "someone/model"


def test_upload_that_fails_leaves_nothing(tmp_path: Path) -> None:
    torch.save(BookGPT().state_dict(), tmp_path / "model.pth")
    (tmp_path / "noise.pt").write_bytes(b"PK\x03\x04 noise")
    registry = Registry(memory=10**9, device=torch.device("cpu"))
    before = registry.names()
    with pytest.raises(ValueError, match=r"noise\.pt is damaged"):
        registry.add_upload([tmp_path / "noise.pt"])
    with pytest.raises(HeadsUnknown):
        registry.add_upload([tmp_path / "model.pth"])
    assert registry.names() == before
    with pytest.raises(ValueError, match=r"gone\.pt cannot be read: No such file"):
        registry.add_upload([tmp_path / "gone.pt"])
    name = registry.add_upload([tmp_path / "model.pth"], n_head=3)
    assert registry.get(name).model.config.n_head == 3


def test_a_source_that_changes_while_it_loads_is_loaded_anew(
    folders: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    registry, (name, *_) = shelf(folders, 4)
    begun, go_on, heads = threading.Event(), threading.Event(), []

    def slowly(path: Path, *, n_head: int | None = None) -> object:
        heads.append(n_head)
        if n_head is None:
            begun.set()
            assert go_on.wait(10)
        return open_checkpoint(path)

    monkeypatch.setattr(sources, "open_checkpoint", slowly)
    results: list[LoadedModel] = []
    waiting = threading.Thread(target=lambda: results.append(registry.get(name)))
    waiting.start()
    assert begun.wait(10)
    registry.add(name, n_head=4)
    now = registry.get(name)
    go_on.set()
    waiting.join()
    assert heads == [None, 4]
    assert results[0] is not now
    assert registry.get(name) is now


def test_a_load_that_cannot_begin_is_tried_again(folders: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    registry, (name, *_) = shelf(folders, 4)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", lambda self: (_ for _ in ()).throw(RuntimeError("no more threads")))
        with pytest.raises(RuntimeError, match="no more threads"):
            registry.get(name)
    assert registry.get(name).name == name


def test_a_file_that_is_a_link_can_be_uploaded(folders: list[Path], tmp_path: Path) -> None:
    registry, _ = shelf(folders, 4)
    (tmp_path / "links").mkdir()
    files = []
    for file in folders[0].iterdir():
        link = tmp_path / "links" / file.name
        link.symlink_to(Path("..") / folders[0].name / file.name)
        files.append(link)
    assert registry.get(registry.add_upload(files)).model.config == CONFIG


@pytest.mark.parametrize("name", ["~nobody-of-that-name/model", "m" * 5000, "a\0b"])
def test_a_name_that_can_be_no_path_is_no_model(name: str) -> None:
    with pytest.raises(ValueError, match="there is no model, file or folder"):
        load_model(name)


def test_a_model_of_ones_own_can_be_copied_after_it_has_written(folders: list[Path]) -> None:
    loaded = load_model(folders[0])
    assert loaded.engine is loaded.engine
    assert copy.deepcopy(loaded).model is not loaded.model
