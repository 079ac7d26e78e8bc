"""Sentences of Causes contain the numbers of its figures."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
import torch

from components.causes import Fall, Falls, main_word
from components.i18n import has_text
from components.state.selection import Selection
from components.tabs.why import handlers, predictions
from components.tabs.why.views import lens as lens_views
from components.tabs.why.views import parts, tokens
from gpt import Edits, Generation, SamplingParams, get_model
from gpt.analysis.attribution import direct_logit_attribution
from gpt.analysis.lens import LENS_POINTS
from gpt.edits import Steering
from tests.components.drawing import spoken_in
from tests.components.tabs.why_session import predicted, read_text, traced


@pytest.fixture(scope="module")
def document():
    return read_text()


@pytest.fixture
def last(document):
    return document.n_read - 1


@pytest.mark.parametrize(
    ("p", "without", "is_main"),
    [(0.91, 0.09, True), (0.91, 0.88, True), (0.05, 0.04, False), (0.015, 0.002, True), (0.912, 0.911, False)],
)
def test_a_word_is_the_main_reason_where_hiding_it_makes_a_difference_to_the_reader(p, without, is_main):
    word = Fall((1,), without)
    assert main_word(Falls(p, (word,), (), (word,))) == (word if is_main else None)


def test_the_shade_is_each_token_s_share_of_the_influence_whichever_way_it_goes():
    largest, _, _ = tokens.shade(np.array([1.0, -3.0, 0.0])).partition(":")
    assert float(largest) == 0.75
    assert tokens.shade(None).startswith("0:")


@pytest.mark.parametrize(
    "edits", [None, Edits(steering=(Steering(2, torch.linspace(-1, 1, 192)),))], ids=["plain", "steered"]
)
def test_the_sentence_of_the_parts_adds_up_to_the_logit(document, last, edits):
    document = Generation(document.loaded, document.ids, edits=edits)
    document.read()
    reading, asked = traced(document, last), predicted(document, last)
    for against in (None, asked.best[1]):
        found = direct_logit_attribution(
            reading.model, reading.trace, last - reading.first, asked.token, against=against
        )
        for by_layer in (False, True):
            drawn = parts.parts_bars(reading, asked, found, against, by_layer)
            *added, total = [
                float(n.replace("−", "-")) for n in re.findall(r"(?<= )[+−]?\d+\.\d\d(?=[,: ])", drawn["text"])
            ]
            assert len(added) == (5 if edits is None else 6)
            assert sum(added) == pytest.approx(total, abs=0.03)
            logits = document.logits(last)
            expected = logits[asked.token] - (logits[against] if against is not None else 0)
            assert total == pytest.approx(expected.item(), abs=0.006)
            assert f"{found.scale:.2f}" in drawn["note"]


def test_the_bars_of_the_parts_add_up_to_the_logit(document, last, monkeypatch):
    reading, asked = traced(document, last), predicted(document, last)
    found = direct_logit_attribution(reading.model, reading.trace, last - reading.first, asked.token)
    drawn = []
    monkeypatch.setattr(parts, "signed_bars", lambda names, values, *_, **__: drawn.append(np.array(values)) or {})
    parts.parts_bars(reading, asked, found, None, False)
    assert drawn[0].sum() == pytest.approx(found.logit, abs=1e-3)
    assert len(drawn[0]) == parts.MAX_PARTS + 1


def test_a_role_without_a_place_to_be_measured_at_is_said_and_not_drawn():
    document = Generation(get_model(), "Lily saw")
    document.read()
    roles, n = predictions.roles_of_text(traced(document, 0))
    assert parts.roles_map(roles, n, "induction", Selection())["figure"] is None
    assert "cannot be measured on any token" in parts.role_sentence(roles, "induction")
    assert (parts.roles_map(roles, n, "previous_token", Selection()))["text"].startswith("The strongest heads")


def test_every_view_speaks_both_languages(document, last):
    reading, asked = traced(document, last), predicted(document, 5)
    asked = replace(asked, position=last)
    lens, influence = predictions.lens(reading, asked), predictions.Influence(np.array([0.5, -0.2]))
    paths = predictions.token_paths(reading, asked, [asked.token, 7])
    for language in ("en", "zh"):
        texts = [
            spoken_in(language, tokens.lead_sentence, reading, asked, SamplingParams()),
            (spoken_in(language, lens_views.lens_map, reading, asked, lens, LENS_POINTS[0], 3))["text"],
            (spoken_in(language, lens_views.path_lines, document.tokenizer, paths, ()))["note"],
            (spoken_in(language, tokens.influence_bars, reading, asked, influence))["text"],
            (spoken_in(language, parts.head_bars, reading, asked, Selection(layer=2, head=1)))["text"],
        ]
        for text in texts:
            assert "{" not in text
            assert bool(re.search("[\u4e00-\u9fff]", text)) == (language == "zh")


def test_influences_that_are_all_small_are_not_written_as_zero(document):
    reading, asked = traced(document, 5), predicted(document, 5)
    influence = predictions.Influence(np.linspace(-0.004, 0.004, 6))
    said = (tokens.influence_bars(reading, asked, influence))["text"]
    assert "(+0.0040 nats)" in said
    assert "(−0.0040 nats)" in said


@pytest.mark.parametrize("sign", [1, -1])
def test_parts_that_round_to_zero_are_named_neither_for_nor_against(document, sign):
    reading, asked = traced(document, 5), predicted(document, 5)
    influence = predictions.Influence(sign * np.array([1.5, 0.2, -0.004]))
    said = (tokens.influence_bars(reading, asked, influence))["text"]
    assert ("Most in favour of" in said, "Most against" in said) == (sign > 0, sign < 0)


def test_every_word_of_the_tab_is_there_and_every_choice_has_one():
    wanted = {f"why.{name}.{value}" for name, values in handlers.CHOICES.items() for value in values}
    assert all(map(has_text, wanted))
