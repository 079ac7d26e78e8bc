"""A chat in a browser: the caret stays in the message while the template is inserted around it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from components.page import build_app, launch_options
from gpt import add_model
from gpt.models.registry import remove_model
from tests.browser.playground_page import open_playground, text
from tests.gpt.models.tokenizer_families import save_chat_model

pytestmark = pytest.mark.thorough

USER, ASSISTANT = "<|im_start|>user\n", "<|im_end|>\n<|im_start|>assistant\n"
EMPTY = re.compile(r"\b1 of 256 tokens")  # the start-of-text token


@pytest.fixture(scope="module")
def address(serve: Callable[..., str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder: Path = tmp_path_factory.mktemp("chat")
    save_chat_model(folder)
    name = add_model(folder)
    yield serve(build_app(name), **launch_options())
    remove_model(name)


def test_the_template_is_written_around_a_composed_message_once_it_is_committed(page: Page, address: str) -> None:
    open_playground(page, address)
    box, keyboard = page.locator("#prompt textarea"), page.context.new_cdp_session(page)
    box.fill("")
    expect(page.locator("#prompt-count")).to_have_text(EMPTY)
    page.locator("#chat input").check()
    expect(box).to_have_attribute("placeholder", "Write a message …")
    box.focus()
    for part in ("He", "Hello"):
        keyboard.send("Input.imeSetComposition", {"text": part, "selectionStart": len(part), "selectionEnd": len(part)})
        expect(page.locator("body")).not_to_have_class(re.compile("gb-stale"))
        assert text(page).replace("⏎", "\n") == f"{USER}{part}{ASSISTANT}"
        expect(box).to_have_value(part)
    keyboard.send("Input.insertText", {"text": "Hello"})
    expect(box).to_have_value(f"{USER}Hello{ASSISTANT}")
    assert box.evaluate("box => box.selectionStart") == len(USER) + len("Hello")
    box.press_sequentially("!")
    expect(box).to_have_value(f"{USER}Hello!{ASSISTANT}")
