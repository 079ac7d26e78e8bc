"""The Shapes tab without a browser: building a shape, and the sentences about it."""

from __future__ import annotations

import gc
import weakref
from contextlib import ExitStack

import pytest

from components.i18n import t
from components.panels.shape_settings import RANGES
from components.state.jobs import stop
from components.state.session import Session
from components.tabs.shapes import handlers
from components.tabs.shapes.state import ShapesState
from components.tabs.shapes.tab import can_build, is_building
from gpt import Generation, get_model
from gpt.experiments.random_models import RandomModels, memory_bytes
from gpt.models.checkpoints.vocabularies import PlainIds
from tests.components.tabs.shapes_session import PROMPT, SMALL, drawn, new_session


@pytest.fixture
def session():
    return new_session()


def built(session, models=None):
    for _ in handlers.build(models or RandomModels(), session):
        pass
    return drawn(session)


def test_both_models_go_on_with_the_prompt_in_turn_and_its_shapes_are_shown(session):
    handlers.set_shape(session, SMALL)
    session.settings = session.settings.with_value("seed", "1")
    n_prompt = len(get_model().tokenizer.encode(PROMPT))
    lengths = []
    for _ in handlers.build(RandomModels(), session):
        assert is_building(session.snapshot())
        shown = drawn(session)
        lengths.append((len(shown["random"]["lines"]), len(shown["trained"]["lines"])))
    shown = drawn(session)
    grown = [pair for pair in lengths if pair != (0, 0)]
    assert grown[0] == (n_prompt, n_prompt)
    assert grown == sorted(grown)
    assert all(abs(random - trained) <= 1 for random, trained in grown[:-1])
    assert len(shown["trained"]["lines"]) == n_prompt + handlers.LENGTH
    assert shown["status"]["text"].endswith("40 tokens")
    assert "random weights drawn in" in shown["status"]["text"]
    assert shown["trained-name"]["text"] == "Trained: Stories"
    assert f"turns [1, {n_prompt}] token ids into [1, {n_prompt}, 5000]" in shown["stages"]["text"]
    assert not is_building(session.snapshot())


def test_the_same_seed_writes_the_same_and_the_trained_text_is_that_of_the_model(session):
    handlers.set_shape(session, SMALL)
    session.settings = session.settings.with_value("seed", "7")
    first, second = built(session), built(session)
    for side in ("random", "trained"):
        assert first[side]["lines"] == second[side]["lines"]
    document = Generation(get_model(), PROMPT)
    for _ in document.steps(session.settings.sampling_with_seed(), handlers.LENGTH):
        pass
    ids = [int(line[1 : line.index(",")]) for line in second["trained"]["lines"]]
    assert ids == list(document.ids)


def test_the_skeleton_has_the_same_shapes_and_says_that_it_computes_nothing(session):
    handlers.set_shape(session, SMALL)
    whole = built(session)["stages"]
    handlers.set_shape(session, SMALL, skeleton=True)
    bare = built(session)["stages"]
    assert whole["note"] == ""
    assert "computes nothing" in bare["note"]
    assert bare["text"] == whole["text"]
    assert "× identity" in str(bare["figure"])


def test_the_sentences_follow_the_language_at_any_time(session):
    handlers.set_shape(session, SMALL)
    english = built(session)
    session.language = "zh"
    chinese = drawn(session)
    for name in ("headline", "cost", "room", "status", "trained-name", "stages", "parts"):
        assert english[name]["text"] != chinese[name]["text"]
    assert "个随机权重" in chinese["status"]["text"]
    assert "构建" in chinese["random"]["labels"]["empty"]
    assert chinese["random"]["lines"] == english["random"]["lines"]


def test_a_shape_over_the_limit_is_counted_and_not_built(session):
    handlers.choose_preset(session, "gpt2-xl")
    shown = drawn(session)
    assert shown["headline"]["text"] == "1,557,611,200 parameters"
    assert "would need 6.69 GiB" in shown["room"]["text"]
    assert not can_build(session.snapshot())
    assert "would need 6.69 GiB" in built(session)["trouble"]["text"]
    assert session.state(ShapesState).built is None


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
    handlers.set_shape(session, SMALL)
    before = built(session)
    for name, value in change.items():
        if name == "seed":
            session.settings = session.settings.with_value(name, value)
        elif name in RANGES:
            handlers.set_value(name, session, value)
        else:
            setattr(session, name, value)
    after = built(session)
    assert says in after["trouble"]["text"]
    for view in ("random", "trained", "status", "stages"):
        assert after[view] == before[view]
    assert not is_building(session.snapshot())
    handlers.set_value("n_layer", session, 2)
    assert drawn(session)["trouble"]["text"] == ""


def test_where_others_use_the_memory_it_says_so(session):
    handlers.set_shape(session, SMALL)
    models = RandomModels(memory_bytes(SMALL))
    with models.model(SMALL, PlainIds(SMALL.vocab_size)):
        assert "Other visitors are building" in built(session, models)["trouble"]["text"]
    assert built(session, models)["trouble"]["text"] == ""


def test_stopped_both_texts_stay_as_they_are_and_the_model_is_freed(session, monkeypatch):
    monkeypatch.setattr(handlers, "UPDATE_SECONDS", 0)
    handlers.set_shape(session, SMALL)
    models, made = RandomModels(memory_bytes(SMALL)), []

    def remembered(loaded, prompt):
        made.append(weakref.ref(loaded.model))
        return Generation(loaded, prompt)

    monkeypatch.setattr(handlers, "Generation", remembered)
    run = handlers.build(models, session)
    for _ in run:
        if session.state(ShapesState).built is not None and session.state(ShapesState).built.n_tokens > 3:
            break
    stop(ShapesState, session)
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
    handlers.set_shape(session, SMALL)
    first, second = (handlers.build(RandomModels(), session) for _ in range(2))
    next(first)
    next(second)
    for _ in first:
        pass
    assert session.busy
    for _ in second:
        pass
    assert not session.busy
    assert session.state(ShapesState).built.finished


def test_building_waits_for_its_turn(session):
    handlers.set_shape(session, SMALL)
    admission = get_model().engine.admission
    with ExitStack() as others:
        for _ in range(admission.limit):
            others.enter_context(admission.enter())
        run = handlers.build(RandomModels(), session)
        for _ in run:
            if session.progress is not None and session.progress.key == "status.waiting":
                break
        assert drawn(session)["status"]["text"] == t("status.waiting", before=1)
        assert session.state(ShapesState).built is None
    for _ in run:
        pass
    assert session.state(ShapesState).built.finished
    assert admission.n_admitted == 0


# The example


def example_shown(session, analysis):
    for _ in analysis.run(session):
        pass
    return drawn(session)


def test_the_page_s_example_stands_beside_random_weights_until_something_is_built(session):
    written = Generation(get_model(), PROMPT)
    for _ in written.steps(session.settings.sampling_with_seed(), 5):
        pass
    analysis = handlers.example_analysis(RandomModels(), written)
    assert analysis.wanted(session.snapshot()) is not None
    shown = example_shown(session, analysis)
    assert analysis.wanted(session.snapshot()) is None
    assert shown["status"]["text"].startswith("Sample: 4,394,880 random weights")
    assert len(shown["trained"]["lines"]) == len(written.ids)
    assert "Trained: Stories" in shown["trained-name"]["text"]
    other = Session(written.copy(), PROMPT)
    assert example_shown(other, analysis)["random"]["doc"] == shown["random"]["doc"]  # computed once for all visitors
    handlers.set_shape(other, SMALL)
    mine = built(other)
    assert not mine["status"]["text"].startswith("Sample")
    assert example_shown(other, analysis) == mine


def test_a_large_model_has_no_example(session, monkeypatch):
    monkeypatch.setattr(handlers, "EXAMPLE_PARAMETERS", 4_000_000)
    analysis = handlers.example_analysis(RandomModels(), session.document)
    assert example_shown(session, analysis)["status"]["text"] == ""
    assert analysis.wanted(session.snapshot()) is None
