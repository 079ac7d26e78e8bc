"""Models that run on a cluster, as seen by the web process."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from gpt import GPT, GPTConfig, save_model
from gpt.inference.cluster import DeployedModel, ModelSpec
from gpt.models.checkpoints import open_checkpoint
from gpt.models.loading import build, memory_of
from gpt.models.registry import Registry
from gpt.models.sources import BUNDLED
from tests.gpt.fake_models import N_VOCAB, tiny_tokenizer

CPU = torch.device("cpu")
IDS = torch.tensor([[5, 3, 9]])


CLUSTER = SimpleNamespace(max_replicas=3)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    model = GPT(GPTConfig(vocab_size=N_VOCAB, block_size=16, n_layer=2, n_head=2, n_embd=16))
    save_model(tmp_path / "tiny", model, tiny_tokenizer(), dtype=torch.float32)
    return tmp_path / "tiny"


def test_float32_weights_stay_in_their_file_and_refuse_changes_that_would_not_reach_the_replicas(folder: Path) -> None:
    checkpoint = open_checkpoint(folder)
    mapped = build("tiny", checkpoint, CPU, "fp32", deployed=DeployedModel(CLUSTER, ModelSpec("", "fp32")))
    for name, parameter in mapped.model.named_parameters():
        assert parameter.stored.tensor.data_ptr() == checkpoint.weights[name][0].data_ptr(), name
        with pytest.raises(ValueError, match="cannot be changed"):
            parameter.data.zero_()
    assert memory_of(checkpoint, "fp32", CPU, deployed=True) == 0
    usual = build("tiny", checkpoint, CPU, "fp32")
    torch.testing.assert_close(mapped.model(IDS), usual.model(IDS))


def test_weights_in_half_precision_are_copied() -> None:
    checkpoint = open_checkpoint(BUNDLED)
    assert memory_of(checkpoint, "fp32", CPU, deployed=True) == checkpoint.n_bytes(torch.float32)


def test_listed_models_are_deployed_and_uploads_are_not(folder: Path) -> None:
    registry = Registry(cluster=CLUSTER)
    registry.add(folder, name="tiny")
    deployed = [registry.get(name).deployed for name in ("tiny", "untrained")]
    assert [each.spec.location for each in deployed] == [str(folder.resolve()), "untrained"]
    upload = registry.get(registry.add_upload(sorted(folder.iterdir())))
    assert upload.deployed is None
    assert registry.get("tiny").engine.admission.limit == 3 * upload.engine.admission.limit
    registry.remove(upload.name)
