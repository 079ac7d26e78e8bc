"""What the Why tab asks and says: the same numbers as whole analyses, in windows that are small."""

from __future__ import annotations

import json
import re
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
import torch
from components.tabs.why.answers import CARDS, Memory
from components.tabs.why.reading import COLUMNS, METHODS

from components.i18n import has_text
from components.state.selection import Selection
from components.tabs.why import part_views as why_part_views
from components.tabs.why import reading as why_reading
from components.tabs.why import views as why_views
from components.tabs.why.tab import ROLES, Why
from gpt import PRESETS, Generation, GPTConfig, get_model
from gpt.analysis.attribution import direct_logit_attribution
from gpt.analysis.lens import LENS_POINTS, logit_lens
from gpt.analysis.tracing import trace_text

TEXT = "Lily saw a dog. The dog saw Lily. Then Lily and the dog ran to the park and played. Lily saw a cat. The cat"


@pytest.fixture(scope="module")
def document():
    made = Generation(get_model(), TEXT)
    made.read()
    return made


@pytest.fixture
def last(document):
    return document.n_read - 1


def content(value):
    return json.loads(value)


def test_a_window_traces_what_a_pass_over_the_whole_text_traces(document, last):
    reading = why_reading.read(document, last)
    whole = trace_text(reading.model, reading.ids)
    assert reading.end - reading.first == COLUMNS < document.n_read
    for part, of_all in zip(reading.trace.layers, whole.layers, strict=True):
        rows = slice(reading.first, reading.end)
        torch.testing.assert_close(part.resid_post, of_all.resid_post[:, rows], atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(part.attn_weights, of_all.attn_weights[:, :, rows], atol=1e-5, rtol=1e-4)


def test_lens_and_attribution_of_a_window_are_those_of_the_whole_text(document, last):
    reading, asked = why_reading.read(document, last), why_reading.predict(document, last)
    whole, place = trace_text(reading.model, reading.ids), last - reading.first
    part = why_reading.lens(reading, asked.token)
    alone = logit_lens(reading.model, whole, positions=[last], chosen=asked.token)
    torch.testing.assert_close(part.chosen_probability[..., place], alone.chosen_probability[..., 0], atol=1e-4, rtol=0)
    assert part.chosen_probability[-1, -1, place].item() == pytest.approx(asked.probability, abs=1e-4)
    assert part.chosen_rank[-1, -1, place].item() == asked.rank
    found = direct_logit_attribution(reading.model, reading.trace, place, asked.token)
    expected = direct_logit_attribution(reading.model, whole, last, asked.token)
    torch.testing.assert_close(found.heads, expected.heads, atol=1e-4, rtol=1e-4)
    assert found.total == pytest.approx(document.logits(last)[asked.token].item(), abs=1e-3)


@pytest.mark.parametrize("position", [0, 3, 20, 28])
def test_the_window_holds_the_position_and_stays_while_it_does(document, position):
    reading = why_reading.read(document, position)
    assert reading.first <= position < reading.end <= document.n_read
    assert why_reading.read(document, reading.first, reading) is reading
    assert why_reading.read(document, reading.end - 1, reading) is reading
    outside = reading.end if reading.end < document.n_read else reading.first - 1
    assert why_reading.read(document, outside, reading) is not reading
    assert why_reading.read(document.copy(), position, reading) is not reading


def test_the_token_asked_about_is_the_one_that_follows_else_the_best(document, last):
    assert why_reading.predict(document, 4).token == document.ids[5]
    assert why_reading.predict(document, 4).follows
    end = why_reading.predict(document, last)
    assert (end.token, end.rank, end.follows) == (int(document.logits(last).argmax()), 1, False)
    own = why_reading.predict(document, last, 7)
    assert own.token == 7
    assert own.probability == pytest.approx(document.logits(last).softmax(0)[7].item(), rel=1e-4)
    assert own.rank == 1 + int((document.logits(last) > document.logits(last)[7]).sum())


def run(generator):
    steps = []
    while True:
        try:
            steps.append(next(generator))
        except StopIteration as end:
            return steps, end.value


def test_leaving_out_reaches_every_token_of_a_short_text_and_the_last_ones_of_a_long_one(document, monkeypatch):
    reading, asked = why_reading.read(document, 9), why_reading.predict(document, 9)
    steps, found = run(why_reading.left_out(reading, asked))
    assert steps[-1] == (10, 10)
    assert (found.first, len(found.values)) == (0, 10)
    monkeypatch.setattr(why_reading, "WORK", 0)
    _, few = run(why_reading.left_out(reading, asked))
    assert (few.first, len(few.values)) == (10 - why_reading.FEWEST, why_reading.FEWEST)
    np.testing.assert_allclose(few.values, found.values[few.first :], atol=1e-4)


def test_a_text_of_one_token_has_nothing_to_leave_out_and_says_so(document):
    reading, asked = why_reading.read(document, 0), why_reading.predict(document, 0)
    _, found = run(why_reading.left_out(reading, asked))
    assert found is None
    assert "nothing can be left out" in why_views.no_influence(reading, asked, "left_out", "en")


def test_a_text_too_long_for_the_gradient_is_refused_with_both_numbers(document, last, monkeypatch):
    reading, asked = why_reading.read(document, last), why_reading.predict(document, last)
    assert len(why_reading.gradient(reading, asked).values) == document.n_read
    monkeypatch.setattr(why_reading, "GRADIENT_BYTES", 8 * 4 * 8 * (12 * 192 + 3 * 768))  # of eight tokens
    assert why_reading.gradient(reading, asked) is None
    said = why_views.no_influence(reading, asked, "gradient", "en")
    assert "8 tokens at most" in said
    assert f"{document.n_read} stand before" in said


@pytest.mark.parametrize("name", ["gpt2", "gpt2-xl"])
def test_roles_are_measured_on_as_many_tokens_as_fit_into_memory(name):
    config = PRESETS[name]
    n = why_reading.longest_roles(config)
    assert 4 * config.n_layer * config.n_head * n * n <= why_reading.ROLE_BYTES
    assert n > 100


def test_a_text_shorter_than_the_limit_is_measured_whole(document, monkeypatch):
    reading = why_reading.read(document, 0)
    assert why_reading.roles_of_text(reading)[1] == document.n_read
    monkeypatch.setattr(why_reading, "ROLE_BYTES", 4 * 8 * 6 * 100)
    assert why_reading.roles_of_text(reading)[1] == 10


def test_the_shade_is_each_token_s_share_of_the_influence_whichever_way_it_goes():
    largest, _, _ = why_views.shade(why_reading.Influence(np.array([1.0, -3.0, 0.0]), 2)).partition(":")
    assert float(largest) == 0.75
    assert why_views.shade(None).startswith("0:")


def test_the_sentence_of_the_parts_adds_up_to_the_logit(document, last):
    reading, asked = why_reading.read(document, last), why_reading.predict(document, last)
    for against in (None, asked.best[1]):
        found = direct_logit_attribution(
            reading.model, reading.trace, last - reading.first, asked.token, against=against
        )
        for by_layer in (False, True):
            drawn = content(why_part_views.parts(reading, asked, found, against, by_layer, "en"))
            *parts, total = [
                float(n.replace("−", "-")) for n in re.findall(r"(?<= )[+−]?\d+\.\d\d(?=[,: ])", drawn["text"])
            ]
            assert len(parts) == 5
            assert sum(parts) == pytest.approx(total, abs=0.03)
            logits = document.logits(last)
            expected = logits[asked.token] - (logits[against] if against is not None else 0)
            assert total == pytest.approx(expected.item(), abs=0.006)
            assert f"{found.scale:.2f}" in drawn["note"]


def test_the_bars_of_the_parts_add_up_to_the_logit(document, last, monkeypatch):
    reading, asked = why_reading.read(document, last), why_reading.predict(document, last)
    found = direct_logit_attribution(reading.model, reading.trace, last - reading.first, asked.token)
    drawn = []
    monkeypatch.setattr(why_part_views, "part_bars", lambda names, values, ends, **_: drawn.append(values) or _figure())
    why_part_views.parts(reading, asked, found, None, False, "en")
    assert drawn[0].sum() == pytest.approx(found.logit, abs=1e-3)
    assert len(drawn[0]) == why_part_views.PARTS + 1


def _figure():
    return why_part_views.Figure()


def test_a_role_without_a_place_to_be_measured_at_is_said_and_not_drawn():
    document = Generation(get_model(), "Lily saw")
    document.read()
    roles, n = why_reading.roles_of_text(why_reading.read(document, 0))
    assert why_part_views.roles_map(roles, n, "induction", Selection(), "en") == ""
    assert "has a place to measure this" in why_part_views.role_says(roles, "induction", "en")
    assert content(why_part_views.roles_map(roles, n, "previous_token", Selection(), "en"))["text"].startswith(
        "Strongest"
    )


def test_every_view_speaks_both_languages(document, last):
    reading, asked = why_reading.read(document, last), why_reading.predict(document, 5)
    asked = replace(asked, position=last)
    lens, influence = why_reading.lens(reading, asked.token), why_reading.Influence(np.array([0.5, -0.2]), 3)
    for language in ("en", "zh"):
        texts = [
            why_views.lead(document, asked, language),
            content(why_views.lens_map(reading, asked, lens, LENS_POINTS[0], 3, language))["text"],
            content(why_views.path(reading, asked, lens, language))["text"],
            content(why_views.influence_bars(reading, asked, influence, language))["text"],
            content(why_part_views.head_bars(reading, asked, Selection(layer=2, head=1), language))["text"],
        ]
        for text in texts:
            assert "{" not in text
            assert bool(re.search("[\u4e00-\u9fff]", text)) == (language == "zh")


def test_influences_that_are_all_small_are_not_written_as_zero(document):
    reading, asked = why_reading.read(document, 5), why_reading.predict(document, 5)
    influence = why_reading.Influence(np.linspace(-0.004, 0.004, 6), 0)
    said = content(why_views.influence_bars(reading, asked, influence, "en"))["text"]
    assert "(+0.0040 nats)" in said
    assert "(−0.0040 nats)" in said


@pytest.mark.parametrize("sign", [1, -1])
def test_what_reads_as_zero_is_named_neither_for_nor_against(document, sign):
    reading, asked = why_reading.read(document, 5), why_reading.predict(document, 5)
    influence = why_reading.Influence(sign * np.array([1.5, 0.2, -0.004]), 0)
    said = content(why_views.influence_bars(reading, asked, influence, "en"))["text"]
    assert ("Most for" in said, "Most against" in said) == (sign > 0, sign < 0)


def test_every_word_of_the_tab_is_there_and_every_choice_has_one():
    choices = {
        "role": ROLES,
        "method": METHODS,
        "stage": LENS_POINTS,
        "order": ("size", "layer"),
        "sample": ("text", "noise"),
    }
    wanted = {f"why.{name}.{value}" for name, values in choices.items() for value in values}
    assert all(map(has_text, wanted))


def test_every_card_fills_components_that_the_tab_has():
    names = set(Why.__dataclass_fields__)
    assert {name for card in CARDS.values() for name in card.outputs} <= names


def test_another_visitor_remembers_nothing(document):
    memory = Memory(reading=why_reading.read(document, 0), row=2)
    assert deepcopy(memory) == Memory()


def test_the_gradient_s_limit_leaves_the_bundled_model_its_whole_context():
    assert why_reading.longest_gradient(get_model().model.config) >= 256
    assert 256 <= why_reading.longest_gradient(GPTConfig()) < 1024
