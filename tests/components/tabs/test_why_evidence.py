"""The evidence of Causes: windows give the numbers of whole analyses, and sentences contain those of their figures."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch

from components.causes import MIN_LEFT_OUT_TOKENS, causes_of
from components.state.session import Session
from components.tabs.why import answer, explained, lens
from components.tabs.why import tab as why
from components.tabs.why.explained import Chosen
from components.words import words_of
from gpt import PRESETS, Edits, Generation, GPTConfig, get_model
from gpt.analysis.attribution import direct_logit_attribution
from gpt.analysis.lens import logit_lens
from gpt.analysis.tracing import trace_text
from gpt.edits import Steering
from tests.components.drawing import Drawn
from tests.components.tabs.test_why import TEXT, explanation


@pytest.fixture(scope="module")
def document():
    made = Generation(get_model(), TEXT)
    made.read()
    return made


@pytest.fixture
def drawn(document):
    return Drawn(Session(document.copy()), why.tab)


@pytest.fixture
def last(document):
    return document.n_read - 1


def test_lens_and_attribution_of_a_window_are_those_of_the_whole_text(document, drawn, last):
    lens.watch(drawn.session, [7])
    e, s = explanation(drawn), drawn.session.snapshot()
    whole = trace_text(e.model, e.ids)
    assert e.end - e.first < document.n_read
    for part, of_all in zip(e.trace.layers, whole.layers, strict=True):
        rows = slice(e.first, e.end)
        torch.testing.assert_close(part.attn_weights, of_all.attn_weights[:, :, rows], atol=1e-5, rtol=1e-4)
    alone = logit_lens(e.model, whole, positions=[last])
    at_place = s[lens.lens].probability[..., e.column]
    torch.testing.assert_close(at_place, alone.probability[..., 0], atol=1e-4, rtol=0)
    paths = s[lens.token_paths]
    for token, p, rank in zip((e.prediction.token, 7), paths.probability, paths.rank, strict=True):
        found = logit_lens(e.model, whole, positions=[last], chosen=token)
        np.testing.assert_allclose(p, found.chosen_probability.flatten(), atol=1e-4)
        assert p[-1] == pytest.approx(document.logits(last).softmax(0)[token].item(), abs=1e-4)
        assert rank[-1] == explained.predict(s.text, last, token).rank
    expected = direct_logit_attribution(e.model, whole, last, e.prediction.token)
    torch.testing.assert_close(s[why.attribution].heads, expected.heads, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize(
    "edits", [None, Edits(steering=(Steering(2, torch.linspace(-1, 1, 192)),))], ids=["plain", "steered"]
)
def test_the_sentence_and_the_bars_of_the_parts_add_up_to_the_logit(document, last, edits, monkeypatch):
    document = Generation(document.loaded, document.ids, edits=edits)
    document.read()
    drawn, bars = Drawn(Session(document), why.tab), []
    signed_bars = why.signed_bars
    monkeypatch.setattr(why, "signed_bars", lambda *given, **more: bars.append(given[1]) or signed_bars(*given, **more))
    asked = explanation(drawn).prediction
    logits, best = document.logits(last), asked.token
    for against in (None, asked.best[1]):
        explained.choose_against(drawn.session, explained.NOTHING if against is None else against)
        for order in ("layer", "size"):
            Chosen.order.set(drawn.session, order)
            shown = drawn.update()["why-parts"]
            *added, total = [
                float(n.replace("−", "-")) for n in re.findall(r"(?<= )[+−]?\d+\.\d\d(?=[,: ])", shown["text"])
            ]
            assert len(added) == (5 if edits is None else 6)
            assert sum(added) == pytest.approx(total, abs=0.03)
            expected = logits[best] - (logits[against] if against is not None else 0)
            assert total == pytest.approx(expected.item(), abs=0.006)
        assert sum(next(each for each in reversed(bars) if len(each) == why.MAX_PARTS + 1)) == pytest.approx(
            total, abs=0.02
        )


def test_the_shade_is_each_token_s_share_of_the_influence_whichever_way_it_goes():
    largest, _, _ = why.shade(np.array([1.0, -3.0, 0.0])).partition(":")
    assert float(largest) == 0.75
    assert why.shade(None).startswith("0:")


@pytest.mark.parametrize(
    ("values", "says"),
    [
        (np.linspace(-0.004, 0.004, 6), ["(+0.0040 nats)", "(−0.0040 nats)"]),
        (np.array([1.5, 0.2, -0.004]), ["Most in favour of"]),
        (np.array([-1.5, -0.2, 0.004]), ["Most against"]),
    ],
)
def test_influences_that_are_all_small_are_not_zero_and_the_smallest_are_not_named(drawn, values, says):
    _, said = why.influence_bars(explanation(drawn), values)
    assert all(each in said for each in says)
    assert len(re.findall("Most", said)) == len(says) if len(values) < 6 else 2


def test_a_text_of_one_token_has_nothing_to_hide_and_says_so(drawn):
    drawn.session.select(position=0)
    assert "nothing can be hidden" in drawn.update()["why-trouble"]["text"]
    assert drawn.session.snapshot()[answer.causes].words == ()


def test_a_text_too_long_for_the_gradient_is_refused_with_both_numbers(document, drawn, monkeypatch):
    Chosen.method.set(drawn.session, "gradient")
    drawn.update()
    assert len(drawn.session.snapshot()[why.gradient]) == document.n_read
    monkeypatch.setattr(answer, "MAX_GRADIENT_BYTES", 8 * 4 * 8 * (12 * 192 + 3 * 768))  # eight tokens
    drawn.session.select(position=20)
    said = drawn.update()["why-trouble"]["text"]
    assert "at most 8 tokens" in said
    assert "21 come before" in said
    assert drawn.views["why-influence"]["figure"] is None


def test_hiding_reaches_every_word_of_a_short_text_and_the_last_ones_of_a_long_one(document):
    model, tokenizer, ids = document.loaded.model, document.tokenizer, document.ids[:10]
    words = [*words_of(tokenizer, ids)][:-1]
    found = causes_of(model, tokenizer, ids, 7, None)
    assert [cause.place for cause in found.words] == [tuple(word) for word in words]
    few = causes_of(model, tokenizer, ids, 7, None, limit=0)
    assert all(cause.place[0] >= 10 - MIN_LEFT_OUT_TOKENS for cause in few.words)
    assert 0 < len(few.words) < len(found.words)
    for one, other in zip(reversed(few.words), reversed(found.words), strict=False):
        torch.testing.assert_close(one.logits, other.logits, atol=1e-3, rtol=1e-3)


def test_a_role_without_a_place_to_be_measured_at_is_said_and_not_drawn():
    document = Generation(get_model(), "Lily saw")
    document.read()
    drawn = Drawn(Session(document), why.tab)
    assert drawn.update()["why-roles"]["text"].startswith("The strongest heads")
    Chosen.role.set(drawn.session, "induction")
    assert "cannot be measured on any token" in drawn.update()["why-role-says"]["text"]
    assert drawn.views["why-roles"]["figure"] is None
    Chosen.sample.set(drawn.session, "noise")
    assert drawn.update()["why-roles"]["figure"] is not None


@pytest.mark.parametrize("name", ["gpt2", "gpt2-xl"])
def test_roles_are_measured_on_as_many_tokens_as_fit_into_memory(name):
    config = PRESETS[name]
    n = why.longest_roles(config)
    assert 4 * config.n_layer * config.n_head * n * n <= why.MAX_ROLE_BYTES
    assert n > 100


def test_a_long_text_is_measured_up_to_the_limit(document, drawn, monkeypatch):
    drawn.update()
    assert drawn.session.snapshot()[why.roles_of_text][1] == document.n_read
    monkeypatch.setattr(why, "MAX_ROLE_BYTES", 4 * 8 * 6 * 100)
    assert why.roles_of_text.function(drawn.session.snapshot())[1] == 10


def test_the_gradient_s_limit_leaves_the_bundled_model_its_whole_context():
    assert answer.longest_gradient(get_model().model.config) >= 256
    assert 256 <= answer.longest_gradient(GPTConfig()) < 1024


def test_every_picture_speaks_both_languages(drawn):
    Chosen.method.set(drawn.session, "gradient")
    lens.watch(drawn.session, [7])
    for language in ("en", "zh"):
        drawn.session.language = language
        drawn.update()
        texts = [drawn.views[name]["text"] for name in ("why-lead", "why-lens", "why-influence", "why-head")]
        for text in (*texts, drawn.views["why-path"]["note"]):
            assert "{" not in text
            assert bool(re.search("[\u4e00-\u9fff]", text)) == (language == "zh")
