"""Fixtures shared by the tests of the page."""

from collections.abc import Iterator

import gradio as gr
import pytest

from components.page import build_app
from components.render import Renderer
from gpt import add_model
from gpt.models.registry import remove_model
from tests.gpt.models.tokenizer_families import save_chat_model


@pytest.fixture(scope="session")
def built() -> tuple[gr.Blocks, Renderer]:
    """The whole page and its renderer, read-only."""
    renderers: list[Renderer] = []
    build = Renderer.build
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Renderer, "build", lambda self, session: renderers.append(self) or build(self, session))
        page = build_app()
    return page, renderers[0]


@pytest.fixture(scope="session")
def built_page(built: tuple[gr.Blocks, Renderer]) -> gr.Blocks:
    """The whole page, read-only."""
    return built[0]


@pytest.fixture(scope="session")
def renderer(built: tuple[gr.Blocks, Renderer]) -> Renderer:
    """The whole page's renderer, read-only."""
    return built[1]


@pytest.fixture(scope="module")
def chat_model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Add a small random model with a chat template; returns its name."""
    folder = tmp_path_factory.mktemp("chat")
    save_chat_model(folder)
    name = add_model(folder)
    yield name
    remove_model(name)
