"""Session fixture for the tests of panels."""

from __future__ import annotations

import pytest

from components.state.example import example
from components.state.session import Session
from gpt import get_model


@pytest.fixture
def session() -> Session:
    return Session(example(get_model()))
