"""Beam search: equality with transformers on tiny random models, and the recorded candidates."""

from __future__ import annotations

import math
from collections import Counter

import pytest
import torch

from gpt import Generation, LoadedModel
from gpt.documents.beam_search import BeamSearch
from gpt.tokenizer import PlainIds
from tests.conftest import make_twins
from tests.gpt.fake_models import bigram_model, tiny_model


class Ids(PlainIds):
    """Plain ids, with 0 as end-of-text."""

    eot_id = 0
    eot_ids = special_ids = frozenset({0})


class SeveralEnds(Ids):
    eot_ids = special_ids = frozenset(range(8))


def twins(seed, ids=Ids):
    torch.manual_seed(seed)
    shape = {"vocab_size": 12, "n_positions": 24, "n_embd": 24, "n_layer": 2, "n_head": 2}
    reference, ours = make_twins(**shape, tie_word_embeddings=False)
    with torch.no_grad():  # sharper predictions, so that some texts end early
        reference.lm_head.weight *= 4
        ours.lm_head.weight *= 4
    return reference, LoadedModel("tiny", ours, ids(12), torch.device("cpu"), "fp32")


@torch.inference_mode()
def theirs(reference, ids, width, new, penalty, ends):
    found = reference.generate(
        torch.tensor([ids]),
        attention_mask=torch.ones(1, len(ids)),
        num_beams=width,
        num_return_sequences=width,
        max_new_tokens=new,
        length_penalty=penalty,
        do_sample=False,
        eos_token_id=ends,
        pad_token_id=0,
        return_dict_in_generate=True,
        output_scores=True,
    )
    sequences = [row[len(ids) :].tolist() for row in found.sequences]
    lengths = [next((n for n, i in enumerate(row, 1) if i in ends), len(row)) for row in sequences]
    return [row[:n] for row, n in zip(sequences, lengths, strict=True)], found.sequences_scores.tolist()


@pytest.mark.parametrize("vocabulary", [pytest.param(Ids, marks=pytest.mark.thorough), SeveralEnds])
def test_the_beams_and_their_scores_are_those_of_transformers(vocabulary):
    ended = Counter()
    for seed in (0, 3, 5):  # with 5, looking at only twice the width finds other beams
        reference, loaded = twins(seed, vocabulary)
        ids = torch.randint(8, 12, (1 + seed % 4,)).tolist()
        for width, new, penalty in ((2, 8, 1.0), (3, 8, 0.0), (5, 6, 2.5), (4, 6, -1.0)):
            search = BeamSearch(Generation(loaded, ids), width, new, length_penalty=penalty)
            search.run()
            sequences, scores = theirs(reference, ids, width, new, penalty, sorted(vocabulary.eot_ids))
            assert [list(beam.ids) for beam in search.finished] == sequences, (seed, width, new, penalty)
            assert [beam.score for beam in search.finished] == pytest.approx(scores, abs=1e-4)
            ended[sequences[0][-1] in vocabulary.eot_ids, len(sequences[0]) == new] += 1
    assert ended[True, False]  # the best text ended before the limit
    assert ended[False, True] or vocabulary is SeveralEnds  # the best text was ended by the limit


def test_beam_search_finds_a_better_text_than_greedy():
    loaded = bigram_model({98: {5: 0.6, 6: 0.4}, 5: {7: 0.5, 8: 0.5}, 6: {7: 1.0}})
    search = BeamSearch(Generation(loaded, "ab"), 2, 2)
    first, second = search.steps()
    assert [(c.token_id, c.outcome, c.parent) for c in first] == [
        (5, "kept", None),
        (6, "kept", None),
    ]
    assert (second[0].token_id, second[0].parent, second[0].outcome) == (7, 1, "finished")
    assert search.best.ids == (6, 7)
    assert math.exp(second[0].total) == pytest.approx(0.4)
    assert search.best.score == pytest.approx(math.log(0.4) / 2)
    assert math.exp(second[1].total) == pytest.approx(0.3)


def test_every_candidate_has_its_parent_total_score_and_outcome():
    document = Generation(tiny_model(), "the cat")
    search = BeamSearch(document, 3, 6, length_penalty=0.7)
    steps = list(search.steps())
    assert [len(step) for step in steps] == [6] * 6
    assert [c.number for c in search.candidates] == list(range(36))
    for candidate in search.candidates:
        parent = None if candidate.parent is None else search.candidates[candidate.parent]
        assert candidate.depth == (1 if parent is None else parent.depth + 1)
        assert parent is None or parent.outcome == "kept"
        assert candidate.total == pytest.approx((parent.total if parent else 0) + candidate.log_probability, abs=1e-4)
        assert candidate.score == pytest.approx(candidate.total / candidate.depth**0.7)
    for step in steps[:-1]:
        assert Counter(c.outcome for c in step)["kept"] == 3
        totals = [c.total for c in step]
        assert totals == sorted(totals, reverse=True)


def test_a_search_leaves_the_document_unchanged_and_stops_at_the_end_of_the_context():
    document = Generation(tiny_model(block_size=8), "the cat")
    ids = list(document.ids)
    best = BeamSearch(document, 2, 100).run()
    assert document.ids == ids
    assert len(best.ids) == 8 + 1 - len(ids)
    document.append(*best.ids)
    with pytest.raises(ValueError, match="context of 8 tokens is full"):
        BeamSearch(document, 2, 5)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((0, 5), "width must be a whole number between 1 and 32, not 0"),
        ((33, 5), "not 33"),
        ((True, 5), "not True"),
        ((2, 0), "max_new_tokens must be a whole number of at least 1, not 0"),
        ((2, 1.5), "not 1.5"),
    ],
)
def test_arguments_out_of_range_are_refused(arguments, said):
    document = Generation(tiny_model(), "the")
    with pytest.raises(ValueError, match=said):
        BeamSearch(document, *arguments)
    with pytest.raises(ValueError, match="length_penalty must be a number between"):
        BeamSearch(document, 2, 2, length_penalty=math.nan)
