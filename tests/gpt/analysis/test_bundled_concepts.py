"""The concepts bundled with the models: names, evidence, and the effect of turning them up."""

import pytest

from benchmarks.concepts import measure
from components.concepts import LIMIT, N_CHIPS
from gpt import get_model


@pytest.fixture(params=["stories", "poems"])
def loaded(request):
    return get_model(request.param)


@pytest.fixture
def concepts(loaded):
    return loaded.concepts


def test_every_name_is_in_both_languages_and_its_feature_is_active_in_held_back_texts(loaded, concepts):
    tokenizer = loaded.tokenizer
    places = [(each.layer, each.feature) for each in concepts.named]
    assert len(places) == len(set(places))
    for each in concepts.named:
        assert set(each.names) == {"en", "zh"}
        assert all(each.names.values())
        assert len(concepts.snippets(each.layer, each.feature, tokenizer)) >= 8, each.names


def test_every_feature_has_less_activity_where_its_direction_is_taken_away(concepts):
    for dictionary in concepts.dictionaries.values():
        assert ((dictionary.encoder * dictionary.decoder).sum(1) > 0.1).all()


def test_enough_concepts_are_offered_with_strengths_that_the_slider_has(concepts):
    assert len(concepts.offered) >= 20
    assert len(concepts.offered[:N_CHIPS]) == N_CHIPS
    assert all(0 < each.strength <= LIMIT for each in concepts.offered)


@pytest.mark.thorough
@pytest.mark.parametrize("number", [0, 1])
def test_texts_mention_a_concept_that_is_turned_up_and_are_still_texts(loaded, concepts, number):
    assert measure(loaded, concepts.offered[number]).passes
