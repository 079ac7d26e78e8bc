"""Fixtures of the tests of models."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpt.model import GPT
from gpt.models.checkpoints import save_model
from gpt.models.checkpoints.vocabularies import PlainIds
from tests.gpt.models.registries import CONFIG


@pytest.fixture
def folders(tmp_path: Path) -> list[Path]:
    """Four models of the same size."""
    for name in "abcd":
        save_model(tmp_path / name, GPT(CONFIG), PlainIds(50))
    return [tmp_path / name for name in "abcd"]
