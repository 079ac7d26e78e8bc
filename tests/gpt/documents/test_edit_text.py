"""Edits as text: round trips, and rejected texts."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import get_args

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import gpt
from gpt import Edits, Steering
from gpt.analysis.patching import is_patch_of_model, patch_from
from gpt.config import Activation
from gpt.documents.edit_text import MAX_FACTOR, edits_as_python, format_edits, parse_edits
from gpt.edits import PATCHABLE, Patch
from tests.gpt.analysis.concept_dictionary import axis_concepts
from tests.gpt.fake_models import tiny_model

numbers = st.integers(0, 99)
factors = st.floats(-MAX_FACTOR, MAX_FACTOR)
all_edits = st.builds(
    Edits,
    head_scale=st.dictionaries(st.tuples(numbers, numbers), factors, max_size=6),
    attn_scale=st.dictionaries(numbers, factors, max_size=3),
    mlp_scale=st.dictionaries(numbers, factors, max_size=3),
    activation=st.none() | st.sampled_from(get_args(Activation)),
    drop_positions=st.booleans(),
)


@given(all_edits)
def test_text_and_python_of_edits_round_trip(edits):
    text = format_edits(edits)
    assert parse_edits(text) == edits
    assert parse_edits(",".join(reversed(text.split(",")))) == edits
    assert eval(edits_as_python(edits), {"Edits": gpt.Edits}) == edits


pieces = st.sampled_from([*"haf.=,-e0129", "nopos", "act=", "relu", "h1.1=0", "²", "nan", "\n"])


@given(st.lists(pieces, max_size=8).map("".join))
def test_edits_of_an_accepted_text_can_be_formatted_again(text):
    edits = Edits()
    with suppress(ValueError):
        edits = parse_edits(text)
    assert parse_edits(format_edits(edits)) == edits


def test_format_edits_of_each_kind():
    edits = Edits({(3, 2): 0.0}, {1: 0.0}, {0: 0.5}, activation="relu", drop_positions=True)
    assert format_edits(edits) == "h3.2=0,a1=0,f0=0.5,act=relu,nopos"
    assert format_edits(Edits()) == ""


@pytest.mark.parametrize(
    "text", ["h1=0", "a1.2=0", "h1.1=11", "a0=nan", "a0=1e9", "f0=0,f0=1", "nopos,nopos", "act=tanh", "a-1=0", "a٣=0"]
)
def test_an_invalid_part_is_named(text):
    with pytest.raises(ValueError, match=text.split(",")[-1].replace(".", r"\.")):
        parse_edits(text)


TINY = tiny_model()
places = st.tuples(st.sampled_from(PATCHABLE), st.integers(0, 1), st.integers(0, 3))


@given(st.lists(places, max_size=3, unique=True), st.lists(st.integers(0, 255), min_size=4, max_size=6))
def test_a_patch_from_a_text_is_recomputed_from_it(chosen, ids):
    patches = tuple(patch_from(TINY.model, ids, *place) for place in chosen)
    edits = Edits({(0, 1): 0.5}, drop_positions=True, patches=patches)
    text = format_edits(edits)
    space = {"Edits": gpt.Edits, "patch_from": patch_from, "loaded": TINY}
    for again in (parse_edits(text, TINY.model), eval(edits_as_python(edits), space)):
        assert replace(again, patches=()) == replace(edits, patches=())
        for ours, theirs, place in zip(again.patches, patches, chosen, strict=True):
            assert (ours.name, ours.layer, ours.position, ours.ids) == (*place, tuple(ids))
            assert torch.equal(ours.value, theirs.value)
            assert is_patch_of_model(TINY.model, ours)
            assert not is_patch_of_model(tiny_model(seed=9).model, ours)
    if patches:
        with pytest.raises(ValueError, match="is not an edit"):
            parse_edits(text)  # without a model


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("resid_pre2.0=1", "layer 2 does not exist"),
        ("resid_pre0.2=1-2", "position 2 does not exist"),
        ("attn_out0.0=99999", "token id 99999 does not exist"),
        ("attn_out0.0=" + "-".join(["1"] * 200), "200"),
        ("mlp_out0.0=1,mlp_out0.0=2", "twice"),
        (",".join(f"mlp_out0.{n}=" + "-".join(["1"] * 20) for n in range(17)), "exceeds the limit of 16"),
        ("attn_weights0.0=1", "is not an edit"),
        ("resid_pre0.0=", "is not an edit"),
    ],
)
def test_an_invalid_patch_is_refused_with_the_reason(text, why):
    with pytest.raises(ValueError, match=why):
        parse_edits(text, TINY.model)


def test_patches_without_ids_and_infinite_factors_have_no_text():
    with pytest.raises(ValueError, match="only a patch from a text"):
        format_edits(Edits(patches=(Patch("resid_pre", 0, 0, torch.zeros(4)),)))
    with pytest.raises(ValueError, match="inf"):
        format_edits(Edits(attn_scale={0: float("inf")}))


def test_concepts_that_are_turned_up_are_read_from_the_dictionary_of_the_model():
    concepts = axis_concepts()
    edits = Edits({(0, 1): 0.0}, steering=(concepts.steering(0, 3, -0.5), concepts.steering(0, 0, 2.0)))
    text = format_edits(edits)
    assert text == "h0.1=0,c0.3=-0.5,c0.0=2"
    assert parse_edits(text, concepts=concepts) == edits
    loaded = replace(tiny_model(), concepts=concepts)
    assert eval(edits_as_python(edits), {"Edits": gpt.Edits, "loaded": loaded}) == edits
    for part in ("c1.0=1", "c0.16=1", "c0.0=11", "c0.0=1,c0.0=1"):
        with pytest.raises(ValueError, match=r"must be|appears twice"):
            parse_edits(part, concepts=concepts)
    with pytest.raises(ValueError, match="not an edit"):
        parse_edits(text)


def test_vectors_of_no_concept_have_no_text_and_must_fit_the_model():
    config = tiny_model().model.config
    vector = Steering(1, torch.ones(16))
    with pytest.raises(ValueError, match="only a vector made from one of the model's concepts"):
        format_edits(Edits(steering=(vector,)))
    for wrong in (Steering(2, torch.ones(16)), Steering(1, torch.ones(15))):
        assert Edits(steering=(wrong, vector)).fitting(config) == Edits(steering=(vector,))
    with pytest.raises(ValueError, match="must be a tensor"):
        Steering(0, [1.0])
