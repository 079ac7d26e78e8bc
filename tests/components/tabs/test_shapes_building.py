"""The Shapes tab without a browser: building a shape, and the sentences about it."""

from __future__ import annotations

import gc
import weakref
from contextlib import ExitStack

import pytest

from components.i18n import t
from components.panels.shape_settings import RANGES
from components.state.jobs import stop
from components.tabs.shapes import building, size
from components.tabs.shapes.building import Building, can_build, is_building
from components.tabs.shapes.tab import shapes_card
from gpt import Generation, get_model
from gpt.experiments.random_models import RandomModels, memory_bytes
from gpt.models.checkpoints.vocabularies import PlainIds
from tests.components.drawing import Drawn
from tests.components.tabs.shapes_session import PROMPT, SMALL, drawn, new_session


@pytest.fixture
def session():
    return new_session()


def built(session, models=None):
    for _ in building.build(models or RandomModels(), session):
        pass
    return drawn(session)


def test_both_models_go_on_with_the_prompt_in_turn_and_its_shapes_are_shown(session):
    size.set_shape(session, SMALL)
    session.settings = session.settings.with_value("seed", "1")
    n_prompt = len(get_model().tokenizer.encode(PROMPT))
    lengths = []
    for _ in building.build(RandomModels(), session):
        assert is_building(session.snapshot())
        shown = drawn(session)
        lengths.append((len(shown["random"]["lines"]), len(shown["trained"]["lines"])))
    shown = drawn(session)
    grown = [pair for pair in lengths if pair != (0, 0)]
    assert grown[0] == (n_prompt, n_prompt)
    assert grown == sorted(grown)
    assert all(abs(random - trained) <= 1 for random, trained in grown[:-1])
    assert len(shown["trained"]["lines"]) == n_prompt + building.LENGTH
    assert shown["status"]["text"].endswith("40 tokens")
    assert "random weights drawn in" in shown["status"]["text"]
    assert shown["trained-name"]["text"] == "Trained: Stories"
    assert f"turns [1, {n_prompt}] token ids into [1, {n_prompt}, 5000]" in shown["stages"]["text"]
    assert not is_building(session.snapshot())


def test_the_same_seed_writes_the_same_and_the_trained_text_is_that_of_the_model(session):
    size.set_shape(session, SMALL)
    session.settings = session.settings.with_value("seed", "7")
    first, second = built(session), built(session)
    for side in ("random", "trained"):
        assert first[side]["lines"] == second[side]["lines"]
    document = Generation(get_model(), PROMPT)
    for _ in document.steps(session.settings.sampling_with_seed(), building.LENGTH):
        pass
    ids = [int(line[1 : line.index(",")]) for line in second["trained"]["lines"]]
    assert ids == list(document.ids)


def test_the_skeleton_has_the_same_shapes_and_says_that_it_computes_nothing(session):
    size.set_shape(session, SMALL)
    whole = built(session)["stages"]
    size.set_shape(session, SMALL, skeleton=True)
    bare = built(session)["stages"]
    assert whole["note"] == ""
    assert "computes nothing" in bare["note"]
    assert bare["text"] == whole["text"]
    assert "× identity" in str(bare["figure"])


def test_a_shape_over_the_limit_is_counted_and_not_built(session):
    size.choose_preset(session, "gpt2-xl")
    shown = drawn(session)
    assert shown["headline"]["text"] == "1,557,611,200 parameters"
    assert "would need 6.69 GiB" in shown["room"]["text"]
    assert not can_build(session.snapshot())
    assert "would need 6.69 GiB" in built(session)["trouble"]["text"]
    assert session.state(Building).built is None


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"prompt": "word " * 300}, "the prompt"),
        ({"model": "none"}, "no model"),
        ({"seed": "x"}, "seed"),
        ({"n_head": 7}, "not divisible by 7 heads"),
        ({"vocab_size": 100}, "257"),
    ],
)
def test_what_cannot_be_built_is_one_sentence_until_a_control_is_moved_and_the_last_texts_stay(session, change, says):
    size.set_shape(session, SMALL)
    before = built(session)
    for name, value in change.items():
        if name == "seed":
            session.settings = session.settings.with_value(name, value)
        elif name in RANGES:
            size.set_value(name, session, value)
        else:
            setattr(session, name, value)
    after = built(session)
    assert says in after["trouble"]["text"]
    for view in ("random", "trained", "status", "stages"):
        assert after[view] == before[view]
    assert not is_building(session.snapshot())
    size.set_value("n_layer", session, 2)
    assert drawn(session)["trouble"]["text"] == ""


def test_where_others_use_the_memory_it_says_so(session):
    size.set_shape(session, SMALL)
    models = RandomModels(memory_bytes(SMALL))
    with models.model(SMALL, PlainIds(SMALL.vocab_size)):
        assert "Other visitors are building" in built(session, models)["trouble"]["text"]
    assert built(session, models)["trouble"]["text"] == ""


def test_stopped_both_texts_stay_as_they_are_and_the_model_is_freed(session, monkeypatch):
    monkeypatch.setattr(building, "UPDATE_SECONDS", 0)
    size.set_shape(session, SMALL)
    models, made = RandomModels(memory_bytes(SMALL)), []

    def remembered(loaded, prompt):
        made.append(weakref.ref(loaded.model))
        return Generation(loaded, prompt)

    monkeypatch.setattr(building, "Generation", remembered)
    run = building.build(models, session)
    for _ in run:
        if session.state(Building).built is not None and session.state(Building).built.n_tokens > 3:
            break
    stop(Building, session)
    assert not session.busy
    shown = drawn(session)
    assert shown["status"]["text"].endswith("stopped")
    assert len(shown["random"]["lines"]) == len(get_model().tokenizer.encode(PROMPT)) + 4
    next(run, None)
    assert drawn(session) == shown
    gc.collect()
    assert made[0]() is None
    assert built(session, models)["trouble"]["text"] == ""


def test_a_run_that_was_replaced_or_closed_leaves_the_newer_one_alone(session):
    size.set_shape(session, SMALL)
    first, second = (building.build(RandomModels(), session) for _ in range(2))
    next(first)
    next(second)
    for _ in first:
        pass
    assert session.busy
    for _ in second:
        pass
    assert not session.busy
    assert session.state(Building).built.finished


def test_building_waits_for_its_turn(session):
    size.set_shape(session, SMALL)
    admission = get_model().engine.admission
    with ExitStack() as others:
        for _ in range(admission.limit):
            others.enter_context(admission.enter())
        run = building.build(RandomModels(), session)
        for _ in run:
            if session.progress is not None and session.progress.key == "status.waiting":
                break
        assert drawn(session)["status"]["text"] == t("status.waiting", before=1)
        assert session.state(Building).built is None
    for _ in run:
        pass
    assert session.state(Building).built.finished
    assert admission.n_admitted == 0


def test_the_page_s_text_stands_beside_random_weights_until_something_is_built(session):
    written = Generation(get_model(), PROMPT)
    for _ in written.steps(session.settings.sampling_with_seed(), 5):
        pass
    session.sent.clear()
    drawn = Drawn(session, size.tab, shapes_card(RandomModels(), written))
    views = drawn.update()
    assert views["shape-status"]["text"].startswith("Sample: 4,394,880 random weights")
    assert len(views["shape-trained"]["lines"]) == len(written.ids)
    assert "Trained: Stories" in views["shape-trained-name"]["text"]
    size.set_shape(session, SMALL)
    for _ in building.build(RandomModels(), session):
        pass
    assert not drawn.update()["shape-status"]["text"].startswith("Sample")


def test_a_large_model_has_no_sample(session, monkeypatch):
    monkeypatch.setattr(building, "EXAMPLE_PARAMETERS", 4_000_000)
    assert drawn(session, example=session.document)["status"]["text"] == ""
