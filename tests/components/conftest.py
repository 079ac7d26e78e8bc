"""What the tests of the page share."""

import gradio as gr
import pytest

from components.page import build_app


@pytest.fixture(scope="session")
def built_page() -> gr.Blocks:
    """The whole page; only to look at."""
    return build_app()
