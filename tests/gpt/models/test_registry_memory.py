"""The memory of shared models: a budget, and the order of eviction."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest
import torch

from gpt.cache import KVCache
from gpt.config import GPTConfig
from gpt.documents.generation import Generation
from gpt.inference.batched_decode import batched_hidden_states
from gpt.model import GPT
from gpt.models.checkpoints import open_checkpoint, save_model
from gpt.models.checkpoints.vocabularies import PlainIds
from gpt.models.loading import memory_of
from gpt.models.registry import Registry
from tests.gpt.models.registries import CONFIG, CPU, registry_for


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


def test_model_larger_than_the_budget_is_refused_and_nothing_is_evicted(folders: list[Path], tmp_path: Path) -> None:
    registry, names = registry_for(folders, 2)
    models = [id(registry.get(name).model) for name in names[:2]]
    save_model(tmp_path / "large", GPT(GPTConfig(500, 8, 1, 2, 64)), PlainIds(500))
    name = registry.add(tmp_path / "large")
    with pytest.raises(
        ValueError, match=r"needs .* KiB of memory, but models may use only .* KiB: choose a smaller model"
    ):
        registry.get(name)
    assert [id(registry.get(name).model) for name in names[:2]] == models


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


def test_budget_counts_the_keys_and_values_of_texts_that_generate_together(folders: list[Path]) -> None:
    registry, names = registry_for(folders, 2)
    held = registry.get(names[0])
    caches, whole = [KVCache(CONFIG) for _ in range(2)], KVCache(CONFIG, max_length=8)
    whole.reserve(8)
    row = whole.kv.nbytes

    def read_together() -> None:
        batched_hidden_states(held.model, [[1], [2]], caches, held.engine._decode_cache)

    registry.memory = registry._used_bytes() + 2 * row - 1  # a single row is of no use
    read_together()
    assert held.engine.copied_bytes == 0
    registry.memory += 1
    read_together()
    assert held.engine.copied_bytes == 2 * row
    registry.memory = 2 * registry._sizes[held.engine] + row
    with pytest.raises(ValueError, match="other models are in use"):
        registry.get(names[1])
    registry.trim()  # in use until now
    registry.trim()
    assert registry.get(names[1]).name == names[1]


def test_budget_counts_documents_as_long_as_they_exist(folders: list[Path]) -> None:
    registry, names = registry_for(folders, 2)
    document = Generation(registry.get(names[0]), [1, 2, 3])
    document.read()
    assert registry._used_bytes() == registry._sizes[document.loaded.engine] + document.n_bytes
    with pytest.raises(ValueError, match="other models are in use"):
        registry.get(names[1])
    del document
    assert registry.get(names[1]).name == names[1]


def test_default_budget_is_half_of_what_is_free(folders: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpt.models.registry.free_memory", lambda device: 10**9)
    registry = Registry(device=CPU)
    registry.get(registry.add(folders[0]))
    assert registry.memory == 5 * 10**8
