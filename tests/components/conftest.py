"""Fixtures shared by the tests of the page."""

from collections.abc import Iterator

import pytest

from components.page import build_app
from components.render import Renderer
from gpt import add_model
from gpt.models.registry import remove_model
from tests.gpt.models.tokenizer_families import save_chat_model


@pytest.fixture(scope="session")
def renderer() -> Renderer:
    """The whole page's renderer, read-only."""
    renderers: list[Renderer] = []
    build = Renderer.build
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Renderer, "build", lambda self, session: renderers.append(self) or build(self, session))
        build_app()
    return renderers[0]


@pytest.fixture(scope="module")
def chat_model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Add a small random model with a chat template; returns its name."""
    folder = tmp_path_factory.mktemp("chat")
    save_chat_model(folder)
    name = add_model(folder)
    yield name
    remove_model(name)
