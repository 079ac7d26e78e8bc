"""A text with branches looks the same as the same text generated without any."""

from __future__ import annotations

import json
import random
from itertools import pairwise

import pytest

from components.state.session import Session
from components.state.text import Selection, TokenStatisticsCache
from components.tabs.playground.editing import draw, hits, tree
from components.text_views import document_lines, surprisal_chart
from gpt import Generation, SamplingParams, distribution
from tests.components.drawing import as_read
from tests.gpt.fake_models import tiny_model

SEEDS = range(3)


def wandered(seed: int, actions: int = 25) -> Generation:
    """Create a document by many random actions."""
    chance, document = random.Random(seed), Generation(tiny_model(block_size=48), "the cat sat")
    document.read()
    for _ in range(actions):
        match chance.randrange(6):
            case 0:
                document.append(chance.randrange(250), after=chance.randrange(min(len(document.ids), 40)))
            case 1:
                document.append_text(
                    "狐 the"[: chance.randrange(1, 6)], after=chance.randrange(min(len(document.ids), 40))
                )
            case 2:
                document.go_back(chance.randrange(len(document.ids)))
            case 3 if document.can_undo:
                document.undo()
            case 4 if document.can_redo:
                document.redo()
            case _ if not document.full:
                list(document.steps(SamplingParams(seed=chance.randrange(3)), chance.randrange(1, 5)))
        document.read()
    return document


def afresh(document: Generation) -> Generation:
    return as_read(document.loaded, document.ids[: document.block_size])


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_known_of_a_token_is_what_a_fresh_reading_says(seed: int) -> None:
    chance, known, document = random.Random(seed), TokenStatisticsCache(), wandered(seed)
    for _ in range(8):
        found = known.of(document)
        expected = [None, *afresh(document).statistics().tokens]
        assert len(found) == len(document.ids)
        for mine, theirs in zip(found, expected, strict=False):
            assert (mine is None) == (theirs is None)
            if mine is not None:
                assert mine.probability == pytest.approx(theirs.probability, rel=1e-3)
                assert mine.entropy == pytest.approx(theirs.entropy, abs=1e-3)
        document.switch(chance.randrange(len(document.tree)))
        document.read()


def snapshot(document: Generation, **changes: object):
    session = Session(document, "the")
    for name, value in changes.items():
        setattr(session, name, value)
    return session.snapshot()


def lines(document: Generation) -> list[list[object]]:
    return [json.loads(line) for line in document_lines(document)]


def test_the_strip_says_how_each_token_came_about_and_what_the_model_thought_of_it() -> None:
    document = Generation(tiny_model(), "the")
    list(document.steps(SamplingParams(seed=1), 2))
    document.append(65)
    document.append_text("é")
    document.read()
    shown = lines(document)
    assert [line[0] for line in shown] == document.ids
    assert "".join(line[4] for line in shown) == "p" * document.n_prompt + "gghhh"
    for line, token in zip(shown[1:], document.statistics().tokens, strict=True):
        assert line[2] == pytest.approx(token.probability, rel=1e-3)
        assert (line[3], line[6]) == (token.rank, pytest.approx(token.entropy, rel=1e-3))
    now = snapshot(document)
    document.append(66)
    document.read()
    figure, sentence = surprisal_chart(now)
    document.undo()
    for trace, name in zip(figure["data"], ("surprisal", "entropy"), strict=True):
        expected = [getattr(token, name) for token in document.statistics().tokens]
        assert list(trace["y"]) == pytest.approx(expected, rel=1e-3)
    assert f"{len(document.ids) - 1} tokens, mean surprisal" in sentence


@pytest.mark.parametrize("seed", SEEDS)
def test_every_branch_has_one_line_that_starts_where_it_parts(seed: int) -> None:
    document = wandered(seed, 60)
    branches, path = document.tree, document.path
    lanes = tree(snapshot(document))["lanes"]
    assert sorted(lane["sent"]["node"] for lane in lanes) == [
        node for node, after in enumerate(branches.children()) if not after
    ]
    assert sum(lane["here"] for lane in lanes) == 1
    for number, lane in enumerate(lanes):
        leaf, parent = lane["sent"]["node"], lane["parent"]
        assert lane["end"] == branches.depths[leaf]
        if parent is not None:
            assert parent < number
            own = branches.path(leaf, after=branches.path(lanes[parent]["sent"]["node"]))
            assert lane["start"] == branches.depths[leaf] - len(own)
        on_path = len(path) - 1 if lane["here"] else branches.depths[leaf] - len(branches.path(leaf, after=path))
        assert lane["reached"] == on_path or lane["reached"] < lane["start"]
    for parent in range(len(lanes)):
        forks = [lane["start"] for lane in lanes if lane["parent"] == parent]
        assert forks == sorted(forks, reverse=True)  # so that no lines cross


@pytest.mark.parametrize("params", [SamplingParams(seed=4), SamplingParams(temperature=2.0, top_k=9, seed=9)])
def test_the_number_falls_on_the_piece_of_the_token_that_was_drawn(params: SamplingParams) -> None:
    document = Generation(tiny_model(), "the cat")
    list(document.steps(params, 12))
    document.read()
    for position in range(document.n_prompt, len(document.ids)):
        value = draw(snapshot(document, selection=Selection(position=position)))
        ends = [0.0, *(end for end, *_ in value["pieces"])]
        assert ends == sorted(ends)
        assert ends[-1] == pytest.approx(1)
        assert all(is_several == ("others" in says) for _, says, is_several in value["pieces"])
        start, end = list(pairwise(ends))[value["place"]]
        assert start <= value["number"] < end
        final = distribution(
            document.logits(position - 1), params, previous_ids=document.ids[:position]
        ).final  # the width of a piece is the token's probability
        assert end - start == pytest.approx(final[document.ids[position]].item(), abs=1e-6)


def test_a_search_tells_rank_and_probability_over_the_whole_vocabulary() -> None:
    document = as_read(tiny_model(), "the cat")
    p = document.logits(2).softmax(dim=0)
    shown = hits(snapshot(document, selection=Selection(position=2), query="th"))["lines"]
    assert shown[0]["sent"]["text"] == "th"
    for line in shown[1:]:
        token_id = line["sent"]["token"]
        assert b"th" in document.loaded.tokenizer.token_bytes(token_id)
        assert line["cells"][1] == str(1 + int((p > p[token_id]).sum()))
        assert line["sent"]["behind"] == document.path[2]
