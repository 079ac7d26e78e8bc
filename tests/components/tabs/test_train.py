"""The Train tab without a browser: accepted inputs, and the life of a visitor's runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from components.model_names import model_choices, short_name
from components.state.session import Session
from components.tabs.inside.machine import ExamplePass
from components.tabs.train import choices
from components.tabs.train import tab as train
from components.tabs.train.curve import choose_step, curve_card
from components.tabs.train.film import choose_head, choose_moment, film_card, select_in_machine
from components.tabs.train.tab import OWN, Train, progress_of
from gpt.models.checkpoints.token_table import Characters
from gpt.models.registry import get_model, list_models
from gpt.tokenizer import Tokenizer
from gpt.training.live_run import LiveRun
from gpt.training.recipe import LIVE_RECIPES, RECIPE_PRESETS, Recipe
from gpt.training.run_queue import RunQueue
from gpt.training.tasks import TASKS, TaskDataset
from tests.components.drawing import Drawn, spoken_in

TINY = Recipe(n_layer=1, n_head=1, n_embd=8, steps=1, batch_size=2, warmup=1)
ENDLESS = replace(TINY, steps=5000)
SHAPE = {"n_layer": 2, "n_head": 4, "n_embd": 64, "dropout": 0.2, "steps": 300}
LANGUAGES = ("en", "zh")


@pytest.fixture
def queue() -> Iterator[RunQueue]:
    made = RunQueue(max_running=1)
    yield made
    made.close()


@pytest.fixture
def visitors(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Session]]:
    """Two sessions whose runs are tiny."""
    monkeypatch.setattr(train, "_new_run", lambda state: LiveRun(TaskDataset(TASKS["add"]), state.recipe))
    monkeypatch.setattr(Train, "recipe", TINY, raising=False)
    sessions = [Session(None), Session(None)]
    yield sessions
    for session in sessions:
        session.close()


def start(queue: RunQueue, session: Session) -> LiveRun:
    train.start(queue, session)
    return session.state(Train).run


def finish(queue: RunQueue, session: Session) -> LiveRun:
    """Run a visitor's training from start to end."""
    run = start(queue, session)
    assert run.wait(120)
    return run


def opened(queue: RunQueue, session: Session) -> str:
    finish(queue, session)
    open_model(session)
    return session.model


def open_model(session: Session) -> None:
    """Open the model in every tab without generating."""
    list(train.open_model(lambda session: iter(()), session))


def known(name: str) -> bool:
    try:
        get_model(name)
    except ValueError:
        return False
    return True


def drawn(session: Session) -> dict:
    """Return the data of the views of a newly opened page."""
    session.sent.clear()
    cards = train.run_card(RunQueue(), iter), curve_card(OWN, progress_of), film_card(OWN, ExamplePass)
    return Drawn(session, train.tab, *cards).update()


def test_an_opened_model_is_its_visitors_until_the_session_closes(queue: RunQueue, visitors: list[Session]) -> None:
    before = list_models()
    mine, theirs = (opened(queue, session) for session in visitors)
    assert mine != theirs
    assert list_models() == before
    assert visitors[0].own_models == (mine,)
    visitors[0].close()
    assert not known(mine)
    assert known(theirs)


def test_one_more_model_takes_the_place_of_the_oldest_that_is_not_in_use(
    queue: RunQueue, visitors: list[Session]
) -> None:
    session = visitors[0]
    names = [opened(queue, session) for _ in range(train.MAX_TRAINED_MODELS)]
    session.model = names[0]
    finish(queue, session)
    session.model = names[0]
    open_model(session)
    assert names[0] in session.own_models
    assert names[1] not in session.own_models
    assert not known(names[1])
    assert len(session.own_models) == train.MAX_TRAINED_MODELS


def test_snapshots_of_the_newest_run_alone_are_in_memory_and_counted(queue: RunQueue, visitors: list[Session]) -> None:
    session = visitors[0]
    opened(queue, session)
    first = session.state(Train).run
    assert session.state(Train).n_bytes > 2 * first.n_parameters  # before and after the step
    second = finish(queue, session)
    assert (first.progress.evaluations, first.state) == ((), "finished")
    assert session.state(Train).n_bytes == sum(each.n_bytes for each in second.progress.evaluations)


def test_a_run_that_was_not_opened_is_closed_by_the_next(queue: RunQueue, visitors: list[Session]) -> None:
    first = finish(queue, visitors[0])
    finish(queue, visitors[0])
    assert first.state == "cancelled"


def test_a_visitor_has_one_run_at_a_time_and_is_told_so(
    queue: RunQueue, visitors: list[Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Train, "recipe", ENDLESS)
    first = start(queue, visitors[0])
    assert start(queue, visitors[0]) is first
    assert drawn(visitors[0])["train-notice"]["text"]
    waiting = start(queue, visitors[1])
    assert waiting.state == "waiting"
    assert visitors[1].busy
    assert visitors[1].state(Train).progress().queue_position == 1
    visitors[0].close()
    assert first.state == "cancelled"
    queue.position(waiting)
    assert waiting.state == "training"


def test_pause_and_cancel_are_those_of_the_run(
    queue: RunQueue, visitors: list[Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Train, "recipe", ENDLESS)
    session = visitors[0]
    run = start(queue, session)
    train.pause(session)
    assert run.state == "paused"
    train.pause(session)
    assert run.state == "training"
    train.change_rate(session, 3.0)
    train.change_rate(session, 7.0)  # not one of the choices
    assert session.state(Train).factor == 3.0
    train.cancel(session)
    assert run.state == "cancelled"
    assert not session.busy


@pytest.mark.parametrize(
    "sent", [{}, {"x": "1"}, {"x": -1}, {"x": float("nan")}, {"layer": 0}, {"layer": True, "head": 0}]
)
def test_what_a_browser_sends_may_be_anything(queue: RunQueue, visitors: list[Session], sent: dict) -> None:
    session = visitors[0]
    finish(queue, session)
    choose_step(OWN, session, sent)
    choose_moment(OWN, session, {"moment": sent.get("x", sent.get("layer"))})
    choose_head(OWN, session, sent)
    select_in_machine(OWN, session, {"position": sent.get("x")})
    train.choose_task(session, sent.get("x"))
    state = session.state(Train)
    assert (state.layer, state.head, state.position) == (None, None, None)
    assert drawn(session)["train-curve"]["figure"] is not None


def test_another_task_brings_its_own_settings() -> None:
    session = Session(None)
    for kind in choices.KINDS:
        train.choose_task(session, kind)
        recipe, state = LIVE_RECIPES[kind], session.state(Train)
        assert (state.n_layer, state.steps, state.rate) == (recipe.n_layer, recipe.steps, recipe.learning_rate)


def test_own_models_stand_behind_the_others_under_names_that_can_be_told_apart() -> None:
    own = ["sort-00000000", "add-11111111", "sort-22222222"]
    for language in LANGUAGES:
        everybodys, mine = spoken_in(language, model_choices), spoken_in(language, model_choices, own)
        assert mine[: len(everybodys)] == everybodys
        assert [name for _, name in mine[len(everybodys) :]] == own
        assert len({label for label, _ in mine}) == len(mine)
    assert short_name("sort-00000000") == "Sort letters"
    assert short_name("sort-of-mine") == "sort-of-mine"


def test_every_default_is_among_the_choices_and_gives_its_own_recipe() -> None:
    for kind in choices.KINDS:
        recipe = LIVE_RECIPES[kind]
        shape = {name: getattr(recipe, name) for name in SHAPE}
        for name, value in shape.items():
            assert getattr(Train, name).checked(Session(None), value) == value
        assert choices.checked_recipe(kind, shape, recipe.learning_rate) == recipe


def test_both_learning_rates_follow_the_one_that_is_asked_for() -> None:
    recipe, usual = choices.checked_recipe("sort", SHAPE, 0.02), LIVE_RECIPES["sort"]
    assert recipe.muon_lr == 0.02
    assert recipe.adamw_lr / recipe.muon_lr == usual.adamw_lr / usual.muon_lr


@pytest.mark.parametrize("rate", [0, -1.0, 101, float("nan"), float("inf"), None, True, "fast"])
def test_a_learning_rate_that_cannot_be_used_is_refused_by_name(rate: object) -> None:
    session = Session(None)
    train.set_rate(session, rate)
    for language in LANGUAGES:
        with pytest.raises(ValueError, match=spoken_in(language, choices.t, "train.rate")):
            spoken_in(language, choices.checked_recipe, "sort", SHAPE, session.state(Train).rate)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "There is no text"),
        (" \n\t ", "There is no text"),
        ("too short", "9 characters long; at least 260"),
        ("ä" * 500_001, "1,000,002 bytes long; the limit is 1,000,000"),
    ],
)
def test_texts_that_cannot_be_learned_are_refused(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        choices.dataset_for("text", text)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"\x89PNG\r\n\x1a\n" * 100, "novel.bin is not UTF-8 text"),
        (b"a\0" * 1000, "novel.bin is not UTF-8 text"),
        (b"a" * 1_000_001, "1,000,001 bytes"),
        (b"", "There is no text"),
    ],
)
def test_files_that_cannot_be_learned_are_refused(data: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / "novel.bin").write_bytes(data)
    with pytest.raises(ValueError, match=said):
        choices.read_text_file(tmp_path / "novel.bin")


def test_a_file_is_known_by_its_name_and_its_text(tmp_path: Path) -> None:
    (tmp_path / "tea.txt").write_bytes("\ufeffTee für zwei\n".encode() * 30)
    given = choices.read_text_file(tmp_path / "tea.txt")
    assert (given.name, given.text[:12]) == ("tea.txt", "Tee für zwei")
    assert "tea.txt, " in choices.source(given)
    assert f"{len(given.text):,} characters" in choices.source(given)


def test_a_text_of_many_characters_is_learned_byte_by_byte() -> None:
    few, many = "tea for two\n" * 30, "".join(map(chr, range(0x4E00, 0x4E00 + 600)))
    assert isinstance(choices.dataset_for("text", few).vocabulary, Characters)
    assert isinstance(choices.dataset_for("text", many).vocabulary, Tokenizer)


def test_shakespeare_is_trained_in_nanogpts_setting_for_a_cpu() -> None:
    recipe = RECIPE_PRESETS["shakespeare-cpu"]
    shape = {"n_layer": 4, "n_head": 4, "n_embd": 128, "dropout": 0.0, "steps": 2000}
    assert choices.checked_recipe("shakespeare", shape, 0.001) == recipe
    run = LiveRun(choices.dataset_for("shakespeare", ""), recipe)
    assert (run.recipe.block_size, run.dataset.vocabulary.n_vocab) == (64, 65)
    for language in LANGUAGES:
        assert "nanoGPT" in spoken_in(language, choices.about, "shakespeare")
    assert short_name("shakespeare-00000000") == "Shakespeare"


def test_the_text_at_hand_can_be_learned() -> None:
    given = choices.own_code()
    assert "class GPT(" in given.text
    assert isinstance(choices.dataset_for("text", given.text).vocabulary, Characters)
