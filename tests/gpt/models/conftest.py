"""Fixtures for the tests of models."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import huggingface_hub
import pytest
from huggingface_hub import constants

from gpt.config import GPTConfig
from gpt.model import GPT
from gpt.models.checkpoints.tokenizer_formats import write_gpt2_files
from gpt.models.checkpoints.writing import save_hugging_face, save_model
from gpt.tokenizer import PlainIds, Tokenizer
from tests.gpt.models.hub_server import Hub
from tests.gpt.models.registries import CONFIG


@pytest.fixture
def folders(tmp_path: Path) -> list[Path]:
    """The folders of four models of equal size."""
    for name in "abcd":
        save_model(tmp_path / name, GPT(CONFIG), PlainIds(50))
    return [tmp_path / name for name in "abcd"]


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, byte_tokenizer: Tokenizer) -> Iterator[Hub]:
    """A hub with one small model, a client configured for it, and an empty cache."""
    folder = tmp_path / "repository"
    config = GPTConfig(vocab_size=byte_tokenizer.n_vocab, block_size=16, n_layer=2, n_head=2, n_embd=64)
    save_hugging_face(GPT(config), folder, byte_tokenizer)
    write_gpt2_files(byte_tokenizer, folder)
    (folder / "pytorch_model.bin").write_bytes(b"not for us")
    server = Hub({file.name: file.read_bytes() for file in folder.iterdir()})
    for name, value in {
        "ENDPOINT": server.url,
        "HUGGINGFACE_CO_URL_TEMPLATE": server.url + "/{repo_id}/resolve/{revision}/{filename}",
        "HF_HUB_CACHE": str(tmp_path / "cache"),
    }.items():
        monkeypatch.setattr(constants, name, value)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    huggingface_hub.close_session()
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()
    huggingface_hub.close_session()
