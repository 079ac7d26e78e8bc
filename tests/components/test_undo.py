"""Nothing that was written is lost: undo goes back over Generate and Clear, and redo forward again."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import gradio as gr
import pytest

from components.state.example import example, opening
from components.state.session import Session
from components.state.settings import LIMITS
from components.tabs.playground import starting, steering, writing
from gpt import get_model
from gpt.models.registry import add_model, remove_model
from gpt.models.sources import BUNDLED


class Names:
    """Stands for the components of the tab: each is its name."""

    def __init__(self, prefix: str = "") -> None:
        self._prefix = prefix

    def __getattr__(self, name: str) -> Any:
        return Names("frame.") if name == "frame" else self._prefix + name


UI = Names()


def opening_with(settings: dict[str, Any]) -> dict[str, Any]:
    """What the tab hands to its events when the page is open, some of it set by hand."""
    session = opening(example(get_model()))
    set_by_hand = {"prompt": "The dog", "length": 3, "seed": "1", "pace": 0, "box": "", "shading": "probability"}
    chosen = {"session": session, "frame.model": "stories", "frame.language": "en", "layer": 0, "head": 0}
    return {**{name: limit.default for name, limit in LIMITS.items()}, **set_by_hand, **chosen, **settings}


@pytest.fixture
def values() -> dict[str, Any]:
    return opening_with({})


def generate(values: dict[str, Any], prompt: str) -> list[int]:
    for _ in starting.begin(UI, values | {"prompt": prompt}):
        pass
    for _ in writing.write(UI, values):
        pass
    return list(values["session"].document.ids)


def ids(session: Session) -> list[int]:
    return list(session.document.ids)


def test_undo_goes_back_to_the_text_before_and_redo_forward_again(values: dict[str, Any]) -> None:
    session = values["session"]
    first = ids(session)
    dog, cat = generate(values, "The dog"), generate(values, "The cat")
    steering.undo(UI, values)  # what was generated
    assert ids(session) == cat[:-3]
    update = steering.undo(UI, values)
    assert (ids(session), session.prompt, update["prompt"]) == (dog, "The dog", "The dog")
    assert session.document.n_read == len(dog)
    steering.undo(UI, values)
    assert ids(session) == dog[:-3]
    steering.undo(UI, values)
    assert ids(session) == first
    update = steering.undo(UI, values)  # nothing is left to take back
    assert ids(session) == first
    assert not session.can_undo
    assert update["undo"] == gr.update(interactive=False)
    for expected in (dog[:-3], dog, cat[:-3], cat):
        assert session.can_redo
        steering.redo(UI, values)
        assert ids(session) == expected
    assert not session.can_redo


def test_a_bar_under_the_opening_example_can_be_chosen_with_the_first_click(values: dict[str, Any]) -> None:
    everybodys = values["session"].document
    values["session"] = session = deepcopy(values["session"])  # as gradio gives each visitor a copy
    assert session.document is not everybodys
    shown = {"document": str(everybodys.key), "behind": everybodys.path[-1]}
    steering.choose(UI, values, {**shown, "token": 5})
    assert ids(session) == [*everybodys.ids, 5]


def test_what_was_cleared_comes_back(values: dict[str, Any]) -> None:
    session = values["session"]
    first = ids(session)
    update = starting.clear(UI, values)
    assert session.document is None
    assert update["undo"] == gr.update(interactive=True)
    steering.undo(UI, values)
    assert ids(session) == first


def test_another_way_on_leaves_nothing_to_redo(values: dict[str, Any]) -> None:
    session = values["session"]
    generate(values, "The dog")
    steering.undo(UI, values)
    steering.undo(UI, values)
    assert session.can_redo
    steering.type_text(UI, values | {"box": " red"})
    assert not session.can_redo


def test_a_few_texts_are_kept(values: dict[str, Any]) -> None:
    for n in range(KEPT + 3):
        generate(values, f"The dog {n}")
    assert len(values["session"].earlier) == KEPT


def test_a_text_whose_model_is_gone_is_said_and_the_one_on_the_screen_stays(values: dict[str, Any]) -> None:
    session = values["session"]
    name = add_model(BUNDLED, name="mine")
    generate(values | {"frame.model": name}, "The dog")
    here = generate(values, "The cat")
    session.document.undo()
    remove_model(name)
    with pytest.raises(gr.Error, match="mine"):
        steering.undo(UI, values)
    assert ids(session) == here[:-3]


def test_what_was_made_ready_and_stopped_before_it_was_written_is_not_waited_for(
    values: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    session = values["session"]
    monkeypatch.setattr("components.state.document_lock.MAX_STREAM_WAIT_SECONDS", 3600)
    for change in (writing.stop, starting.clear, steering.undo):
        list(starting.begin(UI, values))
        assert session.lock.streaming
        change(UI, values)
        assert not session.lock.streaming
        assert session.lock._stream is None
        list(writing.write(UI, values))  # the event may be on its way
        assert session.pending is None


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_text_whose_numbers_overflow_is_told_and_gives_the_buttons_back(
    values: dict[str, Any], monkeypatch: pytest.MonkeyPatch, language: str
) -> None:
    def overflow(*_: object) -> str:
        raise ValueError("logits must be finite or -inf: these hold +inf or NaN, or nothing but -inf")

    values["frame.language"] = language
    list(starting.begin(UI, values | {"prompt": "The dog"}))
    monkeypatch.setattr(writing.views, "bars", overflow)
    with pytest.raises(gr.Error, match="有限" if language == "zh" else "must be finite"):
        list(writing.write(UI, values))
    update = writing.finish(UI, values)
    assert update["generate"] == gr.update(interactive=True)
    assert ("有限" if language == "zh" else "must be finite") in update["status"]
