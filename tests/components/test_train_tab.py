"""The Train tab without a browser: what may be asked for, what the desk keeps, and whose it is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from components.errors import PageError
from components.frame import model_choices, short_name
from components.tabs.train import choices
from components.tabs.train.desk import MAX_MODELS, Desk
from gpt.models.checkpoints.vocabularies import Characters
from gpt.models.registry import get_model, list_models
from gpt.tokenizer import Tokenizer
from gpt.training.live_run import LiveRun
from gpt.training.recipe import Recipe
from gpt.training.run_queue import RunQueue
from gpt.training.tasks import TASKS, TaskDataset

TINY = Recipe(n_layer=1, n_head=1, n_embd=8, steps=1, batch_size=2, warmup=1)
ENDLESS = replace(TINY, steps=5000)
GOOD = {"n_layer": 2, "n_head": 4, "n_embd": 64, "steps": 300, "rate": 0.02}
LANGUAGES = ("en", "zh")


@pytest.fixture
def desk() -> Iterator[Desk]:
    desk = Desk(RunQueue(max_running=1))
    yield desk
    desk.leave("a")
    desk.leave("b")


def finish(desk: Desk, owner: str) -> LiveRun:
    """A run of this owner, from its start to its end."""
    run = LiveRun(TaskDataset(TASKS["add"]), TINY)
    desk.submit(owner, run)
    assert run.wait(120)
    return run


def known(name: str) -> bool:
    try:
        get_model(name)
    except ValueError:
        return False
    return True


def test_an_opened_model_is_its_owners_until_the_owner_leaves(desk: Desk) -> None:
    before = list_models()
    (mine,), (theirs,) = (desk.open(owner, finish(desk, owner)) for owner in "ab")
    assert mine != theirs
    assert list_models() == before
    desk.leave("a")
    assert not known(mine)
    assert known(theirs)


def test_one_more_model_takes_the_place_of_the_oldest_that_is_not_in_use(desk: Desk) -> None:
    names = [desk.open("a", finish(desk, "a"))[-1] for _ in range(MAX_MODELS)]
    left = desk.open("a", finish(desk, "a"), used=names[0])
    assert left[:-1] == [names[0], *names[2:]]
    assert not known(names[1])
    assert all(known(name) for name in left)


def test_a_run_that_was_not_opened_is_closed_by_the_next(desk: Desk) -> None:
    first = finish(desk, "a")
    archive = first.archive()
    second = finish(desk, "a")
    assert desk.run("a") is second
    assert first.state == "cancelled"
    assert not archive.exists()


def test_an_owner_has_one_run_at_a_time(desk: Desk) -> None:
    desk.submit("a", LiveRun(TaskDataset(TASKS["add"]), ENDLESS))
    for change in (lambda: None, desk.run("a").pause):
        change()
        with pytest.raises(PageError):
            desk.submit("a", LiveRun(TaskDataset(TASKS["add"]), TINY))
    desk.run("a").cancel()
    finish(desk, "a")


def test_leaving_cancels_what_is_trained_and_lets_the_next_begin(desk: Desk) -> None:
    runs = {owner: LiveRun(TaskDataset(TASKS["add"]), ENDLESS) for owner in "ab"}
    for owner, run in runs.items():
        desk.submit(owner, run)
    assert [(desk.snapshot(owner).state, desk.snapshot(owner).queue_position) for owner in "ab"] == [
        ("training", 0),
        ("waiting", 1),
    ]
    desk.leave("a")
    assert [run.state for run in runs.values()] == ["cancelled", "training"]
    desk.leave("b")
    desk.leave("nobody")
    assert runs["b"].state == "cancelled"
    assert desk.run("a") is desk.run("b") is desk.snapshot("a") is None


def test_the_runs_of_so_many_visitors_are_kept_that_have_ended(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("components.tabs.train.desk.MAX_VISITORS", 2)
    runs = {owner: finish(desk, owner) for owner in "abcd"}
    assert [desk.run(owner) for owner in "abcd"] == [None, None, runs["c"], runs["d"]]
    assert runs["a"].state == "cancelled"
    for owner in "cd":
        desk.leave(owner)


def test_own_models_stand_behind_the_others_under_names_that_can_be_told_apart() -> None:
    own = ["sort-00000000", "add-11111111", "sort-22222222"]
    for language in LANGUAGES:
        everybodys, mine = model_choices(language), model_choices(language, own)
        assert mine[: len(everybodys)] == everybodys
        assert [name for _, name in mine[len(everybodys) :]] == own
        assert len({label for label, _ in mine}) == len(mine)
    assert short_name("sort-00000000", "en") == "Sort letters"
    assert short_name("sort-of-mine", "en") == "sort-of-mine"


def test_every_default_is_among_the_choices_and_gives_its_own_recipe() -> None:
    for kind in choices.KINDS:
        recipe = choices.recipe_for(kind)
        given = {name: getattr(recipe, name) for name in ("n_layer", "n_head", "n_embd", "steps")}
        assert choices.checked_recipe(kind, {**given, "rate": recipe.muon_lr}, "en") == recipe


def test_both_learning_rates_follow_the_one_that_is_asked_for() -> None:
    recipe, usual = choices.checked_recipe("sort", GOOD, "en"), choices.recipe_for("sort")
    assert recipe.muon_lr == 0.02
    assert recipe.adamw_lr / recipe.muon_lr == usual.adamw_lr / usual.muon_lr


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_layer", 5),
        ("n_head", 3),
        ("n_embd", 100),
        ("n_embd", None),
        ("steps", 10_000),
        ("steps", "many"),
        ("rate", 0),
        ("rate", -1.0),
        ("rate", float("nan")),
        ("rate", float("inf")),
        ("rate", None),
        ("rate", True),
    ],
)
@pytest.mark.parametrize("language", LANGUAGES)
def test_settings_that_are_not_offered_are_refused_by_name(name: str, value: object, language: str) -> None:
    with pytest.raises(ValueError, match=choices.t(f"train.{name}", language)):
        choices.checked_recipe("sort", {**GOOD, name: value}, language)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "There is no text"),
        (" \n\t ", "There is no text"),
        ("too short", "9 characters, and 260"),
        ("ä" * 500_001, "1,000,002 bytes, more than the 1,000,000"),
    ],
)
def test_texts_that_cannot_be_learned_are_refused(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        choices.dataset_for("text", text, "en")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"\x89PNG\r\n\x1a\n" * 100, "novel.bin is not text in UTF-8"),
        (b"a\0" * 1000, "novel.bin is not text in UTF-8"),
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
    assert "tea.txt, " in choices.source(given, "en")
    assert f"{len(given.text):,} characters" in choices.source(given, "en")


def test_a_text_of_many_characters_is_learned_byte_by_byte() -> None:
    few, many = "tea for two\n" * 30, "".join(map(chr, range(0x4E00, 0x4E00 + 600)))
    assert isinstance(choices.dataset_for("text", few, "en").vocabulary, Characters)
    assert isinstance(choices.dataset_for("text", many, "en").vocabulary, Tokenizer)


def test_a_kind_that_does_not_exist_is_refused() -> None:
    for kind in ("paint", None, ["sort"]):
        with pytest.raises(ValueError, match="What to learn must be one of"):
            choices.dataset_for(kind, "", "en")


def test_the_same_example_explains_a_task_in_both_languages() -> None:
    for kind, task in TASKS.items():
        longest = [
            max(re.findall(f"[{re.escape(task.characters)}]+", choices.about(kind, each)), key=len)
            for each in LANGUAGES
        ]
        assert longest[0].rstrip(".") == longest[1]


def test_the_text_at_hand_can_be_learned() -> None:
    given = choices.own_code()
    assert "class GPT(" in given.text
    assert isinstance(choices.dataset_for("text", given.text, "en").vocabulary, Characters)
