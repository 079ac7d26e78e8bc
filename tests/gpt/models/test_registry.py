"""Shared models: names, copies and uploads."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import pytest
import torch

from gpt.config import GPTConfig
from gpt.model import GPT
from gpt.models.checkpoints import HeadsUnknown, save_model
from gpt.models.registry import Registry, get_model, list_models
from gpt.models.sources import DEFAULT_MODEL, LLAMA_MODEL, POEMS_MODEL, load_model
from gpt.tokenizer import Tokenizer
from tests.gpt.models.registries import CPU
from tests.parity.reference_models import BookGPT


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


@pytest.mark.parametrize("precision", ["fp64", ""])
def test_unknown_precision_is_refused(folders: list[Path], precision: str) -> None:
    with pytest.raises(ValueError, match="must be one of"):
        load_model(folders[0], precision=precision)
    with pytest.raises(ValueError, match="must be one of"):
        Registry(precision=precision)


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
    monkeypatch.setattr("gpt.models.hub.cached_folder", lambda name: Path("here") if name == "distilgpt2" else None)
    registry = Registry(downloads=["gpt2-medium"])
    assert registry.names() == [DEFAULT_MODEL, POEMS_MODEL, LLAMA_MODEL, "untrained", "distilgpt2", "gpt2-medium"]
    with pytest.raises(ValueError, match="there is no model 'gpt2-xl'"):
        registry.get("gpt2-xl")
    assert registry.add("gpt2-xl") == "gpt2-xl"  # added by the host
    assert "gpt2-xl" in registry.names()
