"""Fixtures for the tests of documents."""

from __future__ import annotations

import pytest

from gpt import LoadedModel
from tests.conftest import families
from tests.gpt.fake_models import family_model
from tests.gpt.family_configs import FAMILIES


@pytest.fixture(params=families(*FAMILIES))
def family(request: pytest.FixtureRequest) -> LoadedModel:
    """One model of each family, with a context of 24 tokens."""
    return family_model(request.param)
