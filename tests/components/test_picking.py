"""Picking a model: once for each pick, whatever the browser says, with a prompt that the model can spell."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gradio as gr
import pytest

from components.state.example import example
from components.state.session import Session
from components.state.settings import LIMITS
from components.tabs.shapes import tab as shapes
from components.tabs.shapes.settings import values_of
from gpt import GPT, Generation, GPTConfig, get_model
from gpt.experiments.shapes import count_parameters
from gpt.models.checkpoints import save_model
from gpt.models.checkpoints.vocabularies import Characters
from gpt.models.registry import add_model, remove_model


class Names:
    """Stands for the components of the tab: each is its name."""

    def __init__(self, prefix: str = "") -> None:
        self._prefix = prefix

    def __getattr__(self, name: str) -> Any:
        return Names("frame.") if name == "frame" else self._prefix + name


UI = Names()


@pytest.fixture(scope="module")
def written() -> Generation:
    return example(get_model())


@pytest.fixture
def values(written: Generation) -> dict[str, Any]:
    session = Session(written.copy())
    set_by_hand = {"prompt": "The dog ran", "length": 3, "seed": "1", "pace": 0, "box": "", "shading": "probability"}
    chosen = {"session": session, "frame.model": "stories", "frame.language": "en", "layer": 0, "head": 0}
    return {**{name: limit.default for name, limit in LIMITS.items()}, **set_by_hand, **chosen}


@pytest.fixture
def letters(tmp_path: Path) -> Iterator[str]:
    """A model that knows a few letters."""
    save_model(tmp_path, GPT(GPTConfig(7, 16, n_layer=1, n_head=1, n_embd=8)), Characters(list(" adnort")))
    name = add_model(tmp_path)
    yield name
    remove_model(name)


def picked(values: dict[str, Any]) -> dict[str, Any]:
    """Everything that is said after a pick."""
    said: dict[str, Any] = {}
    for update in starting.pick(UI, values):
        said |= update
    return said


def test_a_list_that_is_left_again_changes_nothing(values: dict[str, Any]) -> None:
    session = values["session"]
    document = session.document
    assert picked(values).keys() == {"status"}
    assert session.document is document
    assert session.pending is None


def test_a_model_picked_twice_begins_once(values: dict[str, Any]) -> None:
    values["frame.model"] = "untrained"
    first = starting.pick(UI, values)
    next(first)
    assert picked(values).keys() == {"status"}
    for _ in first:
        pass
    assert values["session"].document.loaded.name == values["session"].begun.document.loaded.name == "untrained"
    begun = values["session"].begun
    assert picked(values).keys() == {"status"}
    assert values["session"].begun is begun


def test_a_model_that_does_not_come_can_be_picked_again(values: dict[str, Any]) -> None:
    values["frame.model"] = "nowhere"
    for _ in range(2):
        assert "there is no model" in picked(values)["notice"].lower()
    values["frame.model"] = "untrained"
    picked(values)
    assert values["session"].document.loaded.name == "untrained"


def test_the_prompt_becomes_what_the_model_can_spell_and_stays_where_it_can(
    values: dict[str, Any], letters: str
) -> None:
    values["frame.model"] = letters
    assert picked(values)["prompt"] == "ran"
    values |= {"frame.model": "untrained", "prompt": "The dog ran"}
    assert "prompt" not in picked(values)


def test_the_shapes_tab_shows_the_model_that_was_picked_unless_another_shape_was_chosen(letters: str) -> None:
    shown = {**values_of(get_model().model.config), "preset": shapes.PICKED, "frame.language": "en"}
    assert shapes.follow(UI, shown | {"frame.model": "untrained"}) == gr.skip()
    assert shapes.follow(UI, shown | {"frame.model": letters, "preset": "gpt2-xl"}) == gr.skip()
    update = shapes.follow(UI, shown | {"frame.model": letters})
    assert (update["n_embd"]["value"], update["n_layer"]["value"], update["preset"]) == (8, 1, shapes.PICKED)
    numbers = count_parameters(get_model(letters).model.config)
    assert f"{numbers:,}" in update["headline"]
