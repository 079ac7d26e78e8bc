"""The Train tab without a browser: what may be asked for, what the desk keeps, and whose it is."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from components.frame import model_choices, short_name
from components.tabs.train import choices
from components.tabs.train.desk import MAX_MODELS, Desk
from gpt.models.checkpoints import open_checkpoint
from gpt.models.checkpoints.vocabularies import Characters
from gpt.models.registry import get_model, list_models
from gpt.tokenizer import Tokenizer
from gpt.training.live_run import LiveRun
from gpt.training.recipe import Recipe
from gpt.training.run_queue import LiveQueue
from gpt.training.tasks import TASKS, TaskMaterial

TINY = Recipe(n_layer=1, n_head=1, n_embd=8, steps=1, batch_size=2, warmup=1)
GOOD = {"n_layer": 2, "n_head": 4, "n_embd": 64, "steps": 300, "rate": 0.02}
LANGUAGES = ("en", "zh")


@pytest.fixture(scope="module")
def finished() -> LiveRun:
    run = LiveRun(TaskMaterial(TASKS["add"]), TINY)
    run.start()
    assert run.wait(120)
    return run


@pytest.fixture
def desk() -> Iterator[Desk]:
    desk = Desk(LiveQueue(at_once=1))
    yield desk
    desk.leave("a")
    desk.leave("b")


def known(name: str) -> bool:
    try:
        get_model(name)
    except ValueError:
        return False
    return True


def test_an_opened_model_is_its_owners_until_the_owner_leaves(desk: Desk, finished: LiveRun) -> None:
    before = list_models()
    (mine,), (theirs,) = desk.open("a", finished), desk.open("b", finished)
    assert mine != theirs
    assert list_models() == before
    desk.leave("a")
    assert not known(mine)
    assert known(theirs)


def test_one_more_model_takes_the_place_of_the_oldest_that_is_not_in_use(desk: Desk, finished: LiveRun) -> None:
    names = [desk.open("a", finished)[-1] for _ in range(MAX_MODELS)]
    left = desk.open("a", finished, used=names[0])
    assert left[:-1] == [names[0], *names[2:]]
    assert not known(names[1])
    assert all(known(name) for name in left)


def test_leaving_calls_off_what_is_trained_and_lets_the_next_begin(desk: Desk) -> None:
    endless = Recipe(**{**vars(TINY), "steps": 5000})
    runs = [LiveRun(TaskMaterial(TASKS["add"]), endless) for _ in range(2)]
    for owner, run in zip("ab", runs, strict=True):
        desk.queue.submit(owner, run)
    assert [run.state for run in runs] == ["training", "waiting"]
    desk.leave("b")
    desk.leave("a")
    assert [run.state for run in runs] == ["cancelled", "cancelled"]
    assert desk.queue.run("a") is desk.queue.run("b") is None


def test_the_archive_holds_the_model_and_goes_with_its_owner(desk: Desk, finished: LiveRun, tmp_path: Path) -> None:
    desk.queue._runs["a"] = finished
    path = desk.archive("a", finished)
    assert path == desk.archive("a", finished)
    with zipfile.ZipFile(path) as archive:
        assert len(archive.namelist()) == 3
        archive.extractall(tmp_path)
    idx = torch.tensor([finished.material.watched])
    with torch.inference_mode():
        assert torch.equal(open_checkpoint(tmp_path).build()(idx), finished.loaded.model(idx))
    desk.leave("a")
    assert not path.exists()


def test_archive_goes_with_its_owner_after_the_queue_has_forgotten_the_run(finished: LiveRun) -> None:
    desk = Desk(LiveQueue(kept=0))
    desk.queue._runs["a"] = finished
    path = desk.archive("a", finished)
    desk.queue.submit("b", LiveRun(TaskMaterial(TASKS["add"]), TINY))
    assert desk.queue.run("a") is None
    desk.leave("a")
    assert not path.exists()
    desk.leave("b")


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
        choices.material_for("text", text, "en")


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
    assert isinstance(choices.material_for("text", few, "en").vocabulary, Characters)
    assert isinstance(choices.material_for("text", many, "en").vocabulary, Tokenizer)


def test_a_kind_that_does_not_exist_is_refused() -> None:
    for kind in ("paint", None, ["sort"]):
        with pytest.raises(ValueError, match="What to learn must be one of"):
            choices.material_for(kind, "", "en")


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
    assert isinstance(choices.material_for("text", given.text, "en").vocabulary, Characters)
