"""Generating, picking a model and selecting: only the newest run generates."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import torch

from components.api.text import TextEndpoints
from components.errors import localize_error
from components.state import throughput
from components.state.example import EXAMPLES, example
from components.state.session import Session
from components.state.throughput import MAX_UPDATE_SHARE, UPDATE_COST_SECONDS, min_update_interval
from components.tabs.playground import box as boxes
from components.tabs.playground import editing, generation, prediction, stages
from components.tabs.playground.box import Box
from gpt import GPT, Generation, GPTConfig, LoadedModel, SamplingParams, distribution, generate, get_model
from gpt.models.checkpoints import save_model
from gpt.models.checkpoints.token_table import Characters
from gpt.models.registry import add_model, remove_model
from tests.components.drawing import spoken_in
from tests.components.tabs.playground_session import drawn, ids, new_session, run, type_in, write

PROMPT = "Once upon a time"


@pytest.fixture(scope="module")
def written() -> Generation:
    return example(get_model())


@pytest.fixture
def session(written: Generation) -> Session:
    return new_session(written)


@pytest.fixture
def letters(tmp_path: Path) -> Iterator[str]:
    """Add a model whose vocabulary has only a few letters."""
    save_model(tmp_path, GPT(GPTConfig(7, 16, n_layer=1, n_head=1, n_embd=8)), Characters(list(" adnort")))
    name = add_model(tmp_path)
    yield name
    remove_model(name)


def test_a_run_writes_as_many_tokens_as_asked_for_and_says_how_it_ended(session: Session) -> None:
    found = write(session, "The dog")
    assert len(found) == session.document.n_prompt + 3
    assert "length reached" in drawn(session, "status")["text"]
    assert len(drawn(session, "strip")["lines"]) == len(found)
    assert write(session, "The dog") == found  # the same seed


@pytest.mark.parametrize("change", [generation.stop, generation.clear, editing.undo])
def test_a_prepared_generation_that_was_stopped_does_not_run(
    session: Session, monkeypatch: pytest.MonkeyPatch, change: Callable[[Session], None]
) -> None:
    monkeypatch.setattr("components.state.document_lock.MAX_STREAM_WAIT_SECONDS", 3600)
    type_in(session, "The dog")
    run(generation.prepare(session))
    assert session.lock.streaming
    change(session)
    assert not session.lock.streaming
    before = None if session.document is None else ids(session)
    assert run(generation.generate(session)) == 0  # the event may already be on its way
    assert session.pending is None
    assert before == (None if session.document is None else ids(session))


def test_a_step_adds_one_token_and_begins_anew_where_the_prompt_has_changed(session: Session) -> None:
    first = ids(session)
    run(generation.step(session))
    assert ids(session)[:-1] == first
    type_in(session, "The dog")
    run(generation.step(session))
    assert len(ids(session)) == session.document.n_prompt + 1


def test_a_prompt_that_is_too_long_says_by_how_much_and_its_last_part_fits(session: Session) -> None:
    first = ids(session)
    type_in(session, "The dog ran. " * 100)
    run(generation.prepare(session))
    assert "more than the 256" in drawn(session, "notice")["text"]
    assert ids(session) == first
    assert session.state(Box).too_long > 256
    run(generation.prepare_tail(session))
    assert session.document.n_prompt <= 128


def test_an_empty_prompt_and_the_untrained_model_are_remarked_on(session: Session) -> None:
    write(session, "")
    assert "might begin with" in drawn(session, "notice")["text"]
    assert session.document.n_prompt == 1
    run(generation.pick_model(session, "untrained"))
    run(generation.generate(session))
    assert "never been trained" in drawn(session, "notice")["text"]


def test_the_end_of_a_text_leaves_the_next_one_that_has_begun_alone(session: Session) -> None:
    for _ in range(2):
        type_in(session, "The dog")
        run(generation.prepare(session))
    generation.finish(session)
    assert session.lock.streaming
    assert session.finish_reason is None


def test_a_setting_moves_bars_and_stages_without_running_the_model(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = drawn(session, "bars")

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the model ran")

    monkeypatch.setattr(GPT, "hidden_states", refuse)
    generation.set_value("top_k", session, 3)
    assert "removed 4,093 of 4,096 tokens" in drawn(session, "bars")["text"]
    assert "3 of 4,096 tokens can be drawn" in drawn(session, "pipeline-lines")["text"]
    generation.set_value("top_k", session, 0)
    assert drawn(session, "bars") == before


@pytest.mark.parametrize("seed", ["-1", "1.5", "x"])
def test_a_seed_that_is_no_whole_number_is_said_and_nothing_is_lost(session: Session, seed: str) -> None:
    type_in(session, "The dog")
    first = ids(session)
    session.settings = session.settings.with_value("seed", seed)
    run(generation.prepare(session))
    assert "seed" in drawn(session, "notice")["text"].lower()
    assert ids(session) == first
    assert not session.lock.streaming


def test_logits_that_overflow_are_an_error_and_the_stream_has_ended(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    type_in(session, "The dog")
    run(generation.prepare(session))

    def overflow(*_: object, **__: object) -> Iterator[None]:
        raise_overflow()
        yield

    monkeypatch.setattr(generation, "stream", overflow)
    with pytest.raises(ValueError, match="finite") as problem:
        run(generation.generate(session))
    assert "不能有正无穷或 NaN" in spoken_in("zh", localize_error, problem.value)
    assert not session.lock.streaming


def raise_overflow() -> None:
    distribution(torch.full((4,), torch.nan), SamplingParams())


# Picking a model


def test_a_list_that_is_left_again_changes_nothing(session: Session) -> None:
    document = session.document
    assert run(generation.pick_model(session, "stories")) == 0
    assert session.document is document


def test_a_model_picked_twice_begins_once(session: Session) -> None:
    first = generation.pick_model(session, "untrained")
    next(first)
    assert run(generation.pick_model(session, "untrained")) == 0
    run(first)
    pending = session.pending
    assert session.document.loaded.name == pending.document.loaded.name == "untrained"
    assert run(generation.pick_model(session, "untrained")) == 0
    assert session.pending is pending


@pytest.mark.parametrize("has_text", [True, False])
def test_a_model_that_does_not_come_can_be_picked_again(session: Session, has_text: bool) -> None:
    if not has_text:
        session.document = None
    for _ in range(2):
        run(generation.pick_model(session, "nowhere"))
        assert "there is no model" in drawn(session, "notice")["text"].lower()
        assert session.model == "stories"
    loading = generation.pick_model(session, "untrained")
    next(loading)
    loading.close()  # stopped while the model loads
    assert session.model == "stories"
    type_in(session, "The dog")
    assert session.document.loaded.name == "stories"
    run(generation.pick_model(session, "untrained"))
    assert session.document.loaded.name == "untrained"


def test_the_prompt_becomes_what_the_model_can_spell_and_stays_where_it_can(session: Session, letters: str) -> None:
    session.set_typed("The dog ran", is_current=False)
    run(generation.pick_model(session, letters))
    assert session.prompt == "ran"
    session.set_typed("The dog ran", is_current=False)
    run(generation.pick_model(session, "untrained"))
    assert session.prompt == "The dog ran"


def test_an_example_is_taken_as_far_as_the_model_on_the_screen_can_spell_it() -> None:
    config = GPTConfig(vocab_size=3, block_size=8, n_layer=1, n_head=1, n_embd=8)
    own = LoadedModel("own", GPT(config).eval(), Characters(["a", "b", " "]), torch.device("cpu"), "fp32")
    text = EXAMPLES["en"]["example.story"]
    for loaded, whole in ((own, False), (get_model(), True)):
        session = Session(Generation(loaded, "ab"), "ab")
        run(generation.prepare_example(text, session))
        session.drop_pending()
        assert loaded.tokenizer.encode(session.prompt)
        assert (session.prompt == text) == whole


# Selection


@pytest.mark.parametrize("sent", [{}, {"index": "4"}, {"index": -1}, {"index": 10**9}, {"y": 1.5}, {"index": True}])
def test_what_a_browser_sends_may_be_anything(session: Session, sent: dict) -> None:
    before, text = session.selection, ids(session)
    for handler in (
        editing.select_token,
        prediction.select_row,
        boxes.select,
        editing.choose,
        editing.switch_branch,
    ):
        handler(session, sent)
    for handler in (prediction.choose_head, editing.choose_shading, stages.follow_picked):
        handler(session, sent.get("index", "x" * 10))
    assert session.selection.position == before.position
    assert ids(session) == text


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [("temperature", 9, 2.0), ("top_p", 0, 0.01), ("length", 10**9, 1024), ("pace", 7, 0)],
)
def test_a_setting_is_moved_into_its_limits(session: Session, name: str, value: float, expected: float) -> None:
    generation.set_value(name, session, value)
    assert getattr(session.settings, name) == expected


def test_the_preset_is_that_of_the_sliders(session: Session) -> None:
    assert generation.preset_of(session.snapshot()) == "balanced"
    generation.choose_preset(session, "greedy")
    assert session.settings.temperature == 0
    assert generation.preset_of(session.snapshot()) == "greedy"
    generation.set_value("top_k", session, 3)
    assert generation.preset_of(session.snapshot()) is None


# Many visitors generating at once


@pytest.fixture
def crowd(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Twenty other visitors generate, and updates cost so much that only the first and the last are due."""
    monkeypatch.setattr(throughput, "UPDATE_COST_SECONDS", 60.0)
    with ExitStack() as stack:
        for _ in range(20):
            stack.enter_context(get_model().engine.admission.enter())
        yield


def test_the_interval_between_updates_grows_with_the_number_of_streams() -> None:
    loaded = get_model()
    with loaded.engine.admission.enter():
        assert min_update_interval(loaded) == 0
        with loaded.engine.admission.enter(), loaded.engine.admission.enter():
            assert min_update_interval(loaded) == pytest.approx(2 * UPDATE_COST_SECONDS / MAX_UPDATE_SHARE)


def test_the_endpoint_gives_the_whole_text_in_fewer_pieces_to_a_crowd(crowd: None) -> None:
    steps = list(generate(get_model(), PROMPT, SamplingParams(temperature=0.8, seed=3), 12))
    found = list(TextEndpoints("").generate(PROMPT, 12, 0.8, seed=3, model="stories"))
    assert found == ["", steps[0].text, "".join(step.text for step in steps)]


@pytest.mark.parametrize("pace", [0, 50])
def test_the_page_gets_the_whole_text_in_fewer_frames_in_a_crowd(session: Session, crowd: None, pace: int) -> None:
    generation.set_value("length", session, 4)
    generation.set_value("pace", session, pace)
    session.settings = session.settings.with_value("seed", "3")
    type_in(session, PROMPT)
    run(generation.prepare(session))
    assert run(generation.generate(session)) == 3  # the prompt, the first token, and the end
    assert len(ids(session)) - session.document.n_prompt == 4
    assert session.finish_reason == "max_new_tokens"
