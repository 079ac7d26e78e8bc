"""Generating in Write, picking a model, a full context, a cluster: only the newest run generates."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from components.share.link import document_values
from components.state import admission
from components.state.example import example
from components.state.session import Session
from components.state.settings import Settings
from components.tabs.playground import editing, generation
from components.tabs.playground.editing import dropped
from components.tabs.playground.prediction import without_attention
from gpt import GPT, Generation, GPTConfig, LoadedModel, SamplingParams, generate_greedy, get_model
from gpt.documents import generation as documents
from gpt.documents.snippets import python_snippet
from gpt.models.checkpoints.tokenizer_formats import suggested_sampling
from gpt.models.checkpoints.vocabularies import Characters
from gpt.models.checkpoints.writing import save_model
from gpt.models.registry import add_model, remove_model
from tests.components.drawing import as_read, compute_now
from tests.components.tabs.playground_session import PICTURES, drawn, ids, new_session, run, type_in, write
from tests.gpt.documents.fake_cluster import FakeCluster, deployed
from tests.gpt.fake_models import tiny_model

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


@pytest.mark.parametrize("change", [generation.stop, generation.clear, editing.undo])
def test_a_generation_that_is_stopped_before_its_first_token_adds_none(
    session: Session, monkeypatch: pytest.MonkeyPatch, change: Callable[[Session], Iterator[None] | None]
) -> None:
    monkeypatch.setattr("components.state.document_lock.MAX_STREAM_WAIT_SECONDS", 0)
    type_in(session, "The dog")
    steps = generation.go_on(session)
    next(steps)
    assert session.lock.streaming
    run(change(session) or ())
    assert not session.lock.streaming
    before = None if session.document is None else ids(session)
    run(steps)
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
    run(generation.go_on(session))
    assert "more than the 256" in drawn(session, "notice")["text"]
    assert ids(session) == first
    assert session.too_long > 256
    run(generation.write_tail(session))
    assert session.document.n_prompt <= 128


def test_an_empty_prompt_and_the_untrained_model_are_remarked_on(session: Session) -> None:
    write(session, "")
    assert "might begin with" in drawn(session, "notice")["text"]
    assert session.document.n_prompt == 1
    run(generation.pick_model(session, "untrained"))
    assert "never been trained" in drawn(session, "notice")["text"]


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
    run(generation.go_on(session))
    assert "seed" in drawn(session, "notice")["text"].lower()
    assert ids(session) == first
    assert not session.lock.streaming


# Picking a model


def test_a_model_picked_twice_begins_once(session: Session) -> None:
    first = generation.pick_model(session, "untrained")
    next(first)
    assert run(generation.pick_model(session, "untrained")) == 0
    run(first)
    assert session.document.loaded.name == "untrained"
    assert run(generation.pick_model(session, "untrained")) == 0


@pytest.mark.parametrize("has_text", [True, False])
def test_a_model_that_does_not_come_can_be_picked_again(session: Session, has_text: bool) -> None:
    if not has_text:
        session.document = None
    for _ in range(2):
        run(generation.pick_model(session, "nowhere"))
        assert "There is no model" in drawn(session, "notice")["text"]
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


def test_an_undo_brings_an_emptied_text_back_from_one_that_cannot_be_read(session: Session, letters: str) -> None:
    run(generation.pick_model(session, letters))
    first = ids(session)
    type_in(session, "")
    type_in(session, "?")
    editing.undo(session)
    assert ids(session) == first


# Many visitors generating at once


@pytest.fixture
def crowd(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Twenty other visitors generate, and updates cost so much that only the first and the last are due."""
    monkeypatch.setattr(admission, "UPDATE_COST_SECONDS", 60.0)
    with ExitStack() as stack:
        for _ in range(20):
            stack.enter_context(get_model().engine.admission.enter())
        yield


@pytest.mark.parametrize("pace", [0, 50])
def test_the_page_gets_the_whole_text_in_fewer_frames_in_a_crowd(session: Session, crowd: None, pace: int) -> None:
    generation.set_value("length", session, 4)
    generation.set_value("pace", session, pace)
    session.settings = session.settings.with_value("seed", "3")
    type_in(session, PROMPT)
    assert run(generation.go_on(session)) == 4  # the page that waits, the prompt, the first token, and the end
    assert len(ids(session)) - session.document.n_prompt == 4
    assert session.finish_reason == "max_new_tokens"


FULL_PROMPT = "a rat on a road"


@pytest.fixture
def full(tmp_path: Path) -> Iterator[Session]:
    """A text that fills the 16-token context of its model."""
    model = GPT(GPTConfig(7, 16, n_layer=1, n_head=1, n_embd=8), generator=torch.Generator().manual_seed(2))
    save_model(tmp_path, model, Characters(list(" adnort")))
    name = add_model(tmp_path)
    session = Session(Generation(get_model(name), FULL_PROMPT))
    list(session.document.steps(SamplingParams(temperature=0), 99))
    assert session.document.full
    for setting, value in {"length": 6, "temperature": 0, "seed": "1", "pace": 0}.items():
        generation.set_value(setting, session, value)
    yield session
    remove_model(name)


def go_on(session: Session) -> None:
    list(generation.go_on_here(session))


def test_continue_drops_a_token_for_each_new_one_and_shows_it(full):
    before = full.document
    model, ids = before.loaded.model, list(before.ids)
    assert dropped(full.snapshot()) == ""
    go_on(full)
    expected = generate_greedy(model, torch.tensor([ids]), 6)[0].tolist()
    assert full.document.dropped + full.document.ids == expected
    assert full.document.n_read == 16
    assert full.finish_reason == "max_new_tokens"
    assert before.ids == ids
    shown = dropped(full.snapshot())
    assert before.tokenizer.decode(expected[:6]) in shown
    assert "dropped: 6" in shown
    assert "16 tokens" in shown
    compute_now(full, without_attention)
    for name in PICTURES:
        drawn(full, name)


def test_the_text_cannot_become_a_link_or_a_program(full):
    go_on(full)
    for of in (lambda: document_values(full.document, SamplingParams()), lambda: python_snippet(full.document)):
        with pytest.raises(ValueError, match="have been dropped from the context"):
            of()


PARAMS = SamplingParams(seed=3)
LENGTH = 8


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> tuple[LoadedModel, FakeCluster]:
    monkeypatch.setattr(documents, "POLL_SECONDS", 0.01)
    return deployed(get_model())


@pytest.fixture
def remote(model: tuple[LoadedModel, FakeCluster]) -> Session:
    """A session that is about to generate."""
    remote = new_session(as_read(model[0], "Once upon a time"))
    remote.settings = Settings(temperature=1, seed="3", length=LENGTH, pace=0)
    return remote


def test_the_page_says_that_the_cluster_is_away_and_writes_on_when_it_is_back(
    remote: Session, model: tuple[LoadedModel, FakeCluster]
) -> None:
    model[1].is_there = False
    frames = generation.write(remote, lambda loaded: remote.document)
    next(frames)  # the page that waits
    next(frames)  # the prompt
    next(frames)
    assert drawn(remote, "status")["text"].startswith("The cluster that runs the model is unreachable.")
    remote.language = "zh"
    assert drawn(remote, "status")["text"].startswith("暂时连接不上运行模型的集群")
    model[1].is_there = True
    run(frames)
    remote.language = "en"
    assert "8 tokens" in drawn(remote, "status")["text"]
    alone = Generation(get_model(), "Once upon a time")
    list(alone.steps(PARAMS, LENGTH, local=True))
    assert ids(remote) == alone.ids


def test_the_settings_that_a_model_suggests_are_offered_and_not_applied(tmp_path, written):
    (tmp_path / "generation_config.json").write_text('{"do_sample": true, "temperature": 0.6, "top_k": 1000}')
    session = new_session(written)
    session.loaded = replace(tiny_model(), suggested=suggested_sampling(tmp_path))
    assert generation.preset_of(session) == "balanced"
    generation.choose_preset(session, "own")
    assert (session.settings.temperature, session.settings.top_k) == (0.6, 200)  # within the slider
    assert generation.preset_of(session) == "own"
    (tmp_path / "generation_config.json").write_text('{"temperature": "hot"}')
    assert suggested_sampling(tmp_path) is None
