"""The Change tab: what edits do to a text, said in words, as a program, and only where they fit."""

from __future__ import annotations

import contextlib
import io
import json
from dataclasses import fields, replace
from types import SimpleNamespace

import gradio as gr
import numpy as np
import pytest
import torch
from components.share.panel import page_values

from components.share.link import decode, encode
from components.share.opening import Asked, _edits
from components.state.session import Session
from components.state.settings import LIMITS
from components.tabs.change import answers, patching
from components.tabs.change import figures as change_figures
from components.tabs.change import views as change_views
from components.tabs.change.effect import head_costs, measure, text_of, text_of_ids
from components.tabs.change.experiments import EXPERIMENTS, localize_error, summary
from components.tabs.change.memory import Memory, Pair, Written
from components.tabs.change.program import program
from components.tabs.change.tab import Change
from components.widgets.switches import switches_value
from gpt import Edits, Generation, SamplingParams
from gpt.analysis.patching import patch_from, patch_sweep
from gpt.documents.comparison import relative_entropy
from tests.gpt.fake_models import tiny_model

PARAMS = SamplingParams(temperature=2.0, seed=3)


@pytest.fixture(scope="module")
def document():
    made = Generation(tiny_model(), "the cat sat")
    list(made.steps(PARAMS, 6))
    made.read()
    return made


@pytest.fixture
def text(document):
    return text_of(document)


@pytest.fixture
def ui():
    """The tab with names in place of components."""
    parts = {field.name: field.name for field in fields(Change)}
    playground = SimpleNamespace(session="session", frame=SimpleNamespace(language="language"))
    return Change(**(parts | {"playground": playground}))


def values(document, memory=None, **given):
    memory = memory or Memory()
    session = Session(document, edits=memory.edits)
    return {"session": session, "memory": memory, "language": "en", **given}


def some_edits(config):
    whole = Edits({(0, head): 0.0 for head in range(config.n_head)})
    return [*(make(config) for make in EXPERIMENTS.values()), whole, Edits(mlp_scale={1: 0.5}), Edits({(1, 0): 2.0})]


def test_the_effect_is_the_divergence_of_both_models_reading_the_same_text(document, text):
    edits = Edits({(0, 1): 0.0}, mlp_scale={1: 0.5}, drop_positions=True)
    effect = measure(text, edits)
    edited = Generation(document.loaded, document.ids[: document.n_read], edits=edits)
    edited.read()
    for position in range(document.n_read):
        p, q = (d.logits(position).softmax(0) for d in (document, edited))
        for ours, theirs in zip(effect.probabilities(position), (p, q), strict=True):
            torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=0)
        assert effect.bits[position] == pytest.approx(relative_entropy(p, q), abs=1e-4)
    assert effect.before == pytest.approx(document.statistics().mean_surprisal, abs=1e-5)
    assert effect.after == pytest.approx(edited.statistics().mean_surprisal, abs=1e-5)
    nothing = measure(text, Edits())
    assert nothing.bits.max() == 0
    assert nothing.after == nothing.before
    drawn = [json.loads(change_views.divergence(made, 0, "en"))["figure"] for made in (effect, nothing)]
    assert len(drawn[0]["data"]) > 0
    assert drawn[1] is None  # no axes without bars


def test_a_text_stays_what_it_was_when_the_document_goes_on(document):
    own = document.copy()
    text = text_of(own)
    before = text.states.clone()
    own.go_back(2)
    own.append(7, 8, 9)
    own.read()
    assert torch.equal(text.states, before)


def test_a_document_of_an_edited_model_is_read_again_by_the_original(document):
    edited = Generation(document.loaded, document.ids, edits=Edits(attn_scale={0: 0.0}))
    edited.read()
    torch.testing.assert_close(text_of(edited).states, text_of(document).states, atol=1e-5, rtol=1e-4)


def test_the_cost_of_a_head_is_what_switching_it_off_alone_changes(text):
    told = []
    costs = head_costs(text, lambda *counts: told.append(counts))
    assert told[-1] == (costs.size, costs.size)
    for layer, head in np.ndindex(costs.shape):
        alone = measure(text, Edits({(layer, head): 0.0})).bits.mean()
        assert costs[layer, head] == pytest.approx(alone, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_different_edits_are_said_differently_and_none_is_silent(text, language):
    said = [summary(edits, text.config, language) for edits in some_edits(text.config)]
    assert all(said)
    assert len(set(said)) == len(said)
    assert summary(Edits(), text.config, language) == ""
    assert summary(Edits(activation=text.config.activation), text.config, language) == ""


def test_what_belongs_together_is_said_together_and_much_is_counted(text):
    config = text.config
    every = range(config.n_layer)
    assert localize_error(Edits({}, {1: 0.0}, {1: 0.0}), config, "en") == ["layer 1 off"]
    assert localize_error(Edits({}, dict.fromkeys(every, 0.0)), config, "en") == ["attention of every layer off"]
    heads = {(0, head): 0.5 for head in range(config.n_head)}
    assert localize_error(Edits(heads), config, "en") == ["all heads of layer 0 × 0.5"]
    many = Edits({(layer, 0): 0.1 * layer for layer in range(20)})
    big = replace(config, n_layer=20)
    assert len(localize_error(many, big, "en")) == 20
    assert summary(many, big, "en").endswith("; 14 more")


@pytest.mark.parametrize(
    "sent", [{}, {"edits": None}, {"edits": "h9.0=0"}, {"edits": "nopos"}, {"edits": ["a0=0"]}, {"edits": "a0=nan"}]
)
def test_what_the_browser_sends_is_checked(ui, document, sent):
    memory = Memory()
    answers.follow(ui, values(document, memory))
    before = memory.edits = Edits({(0, 0): 0.5})
    update = answers.switch(ui, values(document, memory), sent)
    assert memory.edits is before
    assert "could not be read" in update["notice"]
    assert "h0.0=0.5" in update["switches"]


def test_switches_replace_all_factors_and_leave_the_rest(ui, document):
    memory = Memory(edits=Edits({(0, 0): 0.0}, activation="relu", drop_positions=True))
    answers.follow(ui, values(document, memory))
    update = answers.switch(ui, values(document, memory), {"edits": "a1=0.5"})
    assert memory.edits == Edits({}, {1: 0.5}, activation="relu", drop_positions=True)
    assert "attention of layer 1 × 0.5" in update["lead"]
    assert "switches" not in update  # a later click may be on its way


def test_a_new_model_keeps_what_fits_and_says_what_it_dropped(ui, document):
    memory = Memory(edits=Edits({(0, 0): 0.0}, {1: 0.0}, drop_positions=True))
    answers.follow(ui, values(document, memory))
    shallow = Generation(tiny_model(n_layer=1, seed=9), "the dog")
    shallow.read()
    update = answers.follow(ui, values(shallow, memory), only_changed=True)
    assert memory.edits == Edits({(0, 0): 0.0}, drop_positions=True)
    assert "attention of layer 1 off" in update["notice"]
    assert answers.follow(ui, values(shallow, memory), only_changed=True).keys() == {"status"}
    empty = answers.follow(ui, values(None, memory))
    assert empty["bars"] == empty["switches"] == ""
    assert answers.switch(ui, values(None, memory), {"edits": "a0=0"}) == gr.skip()


def test_the_edits_of_a_link_are_taken_over_and_those_made_here_go_into_one(ui, document):
    memory, asked = Memory(), Edits({(1, 0): 0.0}, {9: 0.0})
    given = values(document, memory)
    answers.follow(ui, given)
    given["session"].edits = asked
    update = answers.follow(ui, given, only_changed=True)
    assert "layer 1 head 0 off" in update["lead"]
    assert "attention of layer 9 off" in update["notice"]
    answers.switch(ui, given, {"edits": "f0=0"})
    assert given["session"].edits == Edits(mlp_scale={0: 0.0})


def test_a_link_with_a_patch_opens_on_its_prompt_and_shows_both_prompts(ui, document):
    loaded = document.loaded
    clean, corrupted = (tuple(loaded.tokenizer.encode(words)) for words in ("the cat", "the dog"))
    memory = Memory()
    given = values(document, memory, name="attn_out")
    answers.follow(ui, given)
    memory.pair, memory.cell = Pair(clean, corrupted, 7, 9), (1, 2)
    patching.keep(ui, given)
    sent = decode(encode(page_values(share_page(), link_values(given["session"]), "change")))[0]

    opened = Memory()
    other = values(document, opened)
    other["session"].edits, other["session"].edits_on = _edits(Asked(sent), loaded)
    update = answers.follow(ui, other)
    assert (update["clean"], update["corrupted"]) == ("the cat", "the dog")
    assert opened.text.ids == memory.text.ids == corrupted
    torch.testing.assert_close(opened.effect.states, memory.effect.states)
    shallow = Generation(tiny_model(n_layer=1, seed=9), "the dog")
    shallow.read()
    update = answers.follow(ui, values(shallow, opened), only_changed=True)
    assert "attention output of layer 1" in update["notice"]
    assert opened.edits.patches == ()
    assert not opened.own


def share_page():
    """The Playground with names in place of components, as far as a link asks for it."""
    names = {name: name for name in (*LIMITS, "seed", "length", "session")}
    return SimpleNamespace(**names, frame=SimpleNamespace(language="language"))


def link_values(session):
    settings = {name: limit.default for name, limit in LIMITS.items()}
    return {"session": session, "language": "en", "length": 8, "seed": "", **settings}


def run(source, loaded):
    """The program with this model in place of the named one."""
    out, space = io.StringIO(), {}
    head, body = source.split("\nloaded = ", 1)
    exec(head, space)
    with contextlib.redirect_stdout(out):
        exec("loaded = given\n" + body.split("\n", 1)[1], space | (made := {"given": loaded}) | space, made)
    return made, out.getvalue()


@pytest.mark.parametrize("patched", [False, True])
def test_the_program_writes_both_texts_and_measures_the_same(patched):
    loaded = tiny_model()
    prompt, clean = (loaded.tokenizer.encode(words) for words in ("the cat", "the dog"))
    edits = Edits({(0, 1): 0.0}, activation="relu")
    if patched:
        edits = replace(edits, patches=(patch_from(loaded.model, clean, "resid_pre", 1, 4),))
    pair = Generation(loaded, prompt), Generation(loaded, prompt, edits=edits)
    for each in pair:
        list(each.steps(PARAMS, 5))
    pair[0].read()
    memory = Memory(edits=edits, text=text_of(pair[0]))
    memory.written = Written(*(tuple(each.ids) for each in pair), PARAMS, 5, edits)
    space, printed = run(program(memory), loaded)
    assert [space["original"].ids, space["edited"].ids] == [each.ids for each in pair]
    assert all(each.text in printed for each in pair)
    torch.testing.assert_close(space["states"], measure(memory.text, edits).states, atol=1e-5, rtol=1e-4)


def test_a_kept_patch_does_what_its_cell_of_the_map_says(ui, document):
    loaded = document.loaded
    clean, corrupted = (tuple(loaded.tokenizer.encode(words)) for words in ("the cat", "the dog"))
    memory = Memory()
    answers.follow(ui, values(document, memory))
    memory.pair, name = Pair(clean, corrupted, 7, 9), "attn_out"
    sweep = memory.sweeps[name] = patch_sweep(loaded.model, clean, corrupted, 7, 9, name=name)
    layer, position = 1, len(clean) - 1
    given = values(document, memory, name=name)
    assert patching.choose_cell(ui, given, {"x": position, "y": 99}) == gr.skip()
    patching.choose_cell(ui, given, {"x": position, "y": layer})
    update = patching.keep(ui, given)
    assert memory.text.ids == corrupted
    assert f"attention output of layer {layer}" in update["lead"]
    _, edited = memory.effect.probabilities(position)
    difference = (edited[7].log() - edited[9].log()).item()
    expected = sweep.corrupted + sweep.recovered[layer, position].item() * (sweep.clean - sweep.corrupted)
    assert difference == pytest.approx(expected, abs=1e-3)


def test_pairs_that_cannot_be_compared_are_refused_with_a_sentence(ui, document):
    memory = Memory()
    answers.follow(ui, values(document, memory))

    def said(clean, corrupted, **chosen):
        asked = {"clean": clean, "corrupted": corrupted, "name": "resid_pre", "answer": None, "other": None} | chosen
        updates = {}
        for update in patching.sweep(ui, values(document, memory, **asked)):
            updates |= update
        return updates["trouble"], updates.get("map", "")

    assert "must have the same number" in said("the cat", "the catalogue")[0]
    assert "Type both" in said("", "the")[0]
    assert "the same." in said("the cat", "the cat")[0]
    trouble, drawn = said("the cat", "the dog")
    assert trouble == ""
    assert "logit difference" in json.loads(drawn)["text"]
    assert "must differ" in said("the cat", "the dog", answer=7, other=7)[0]
    assert "is not one token" in said("the cat", "the dog", answer="zebra")[0]


def test_a_map_has_zero_in_the_middle_of_its_colours_and_both_tokens_where_they_differ():
    figure = change_figures.recovery_heatmap(np.array([[0.2, 1.4], [-0.1, 0]]), ["<b>", "x"], ["y", "x"], cell=(1, 0))
    heat = figure.data[0]
    assert (heat.zmin, heat.zmax) == pytest.approx((-1.4, 1.4))
    assert figure.layout.xaxis.ticktext == ("&lt;b&gt; / y", "x")
    assert len(figure.layout.shapes) == 1
    with pytest.raises(ValueError, match="2 columns"):
        change_figures.recovery_heatmap(np.zeros((2, 2)), ["a"], ["b", "c"])


def test_values_that_do_not_belong_together_are_refused():
    with pytest.raises(ValueError, match="3 bars"):
        change_figures.divergence_bars(np.zeros(3), ["a"], selected=0)
    with pytest.raises(ValueError, match="2 layers of 3 heads"):
        switches_value(2, 3, "", np.zeros((3, 2)))


def test_a_prompt_read_here_is_the_prompt_of_a_document(document):
    ids = document.ids[: document.n_prompt]
    fresh = Generation(document.loaded, ids)
    fresh.read()
    text = text_of_ids(document.loaded, ids)
    torch.testing.assert_close(text.states, fresh.states(), atol=1e-5, rtol=1e-4)
    assert text.n_prompt == len(ids)
