"""Computations of Causes: small windows give the same numbers as whole analyses."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from components.causes import MIN_LEFT_OUT_TOKENS, causes_of
from components.tabs.why import predictions
from components.tabs.why.views import tokens
from components.words import words_of
from gpt import PRESETS, GPTConfig, SamplingParams, get_model
from gpt.analysis.attribution import direct_logit_attribution
from gpt.analysis.causes import Ablation
from gpt.analysis.lens import logit_lens
from gpt.analysis.tracing import trace_text
from tests.components.tabs.why_session import predicted, read_text, traced


@pytest.fixture(scope="module")
def document():
    return read_text()


@pytest.fixture
def last(document):
    return document.n_read - 1


def test_a_window_traces_what_a_pass_over_the_whole_text_traces(document, last):
    reading = traced(document, last)
    whole = trace_text(reading.model, reading.ids)
    assert reading.end - reading.first == predictions.LENS_POSITIONS < document.n_read
    for part, of_all in zip(reading.trace.layers, whole.layers, strict=True):
        rows = slice(reading.first, reading.end)
        torch.testing.assert_close(part.resid_post, of_all.resid_post[:, rows], atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(part.attn_weights, of_all.attn_weights[:, :, rows], atol=1e-5, rtol=1e-4)


def test_lens_and_attribution_of_a_window_are_those_of_the_whole_text(document, last):
    reading, asked = traced(document, last), predicted(document, last)
    whole, place = trace_text(reading.model, reading.ids), last - reading.first
    part, alone = predictions.lens(reading, asked), logit_lens(reading.model, whole, positions=[last])
    torch.testing.assert_close(part.probability[..., place], alone.probability[..., 0], atol=1e-4, rtol=0)
    paths = predictions.token_paths(reading, asked, [asked.token, 7])
    for token, p, rank in zip((asked.token, 7), paths.probability, paths.rank, strict=True):
        lens = logit_lens(reading.model, whole, positions=[last], chosen=token)
        np.testing.assert_allclose(p, lens.chosen_probability.flatten(), atol=1e-4)
        assert p[-1] == pytest.approx(document.logits(last).softmax(0)[token].item(), abs=1e-4)
        assert rank[-1] == predicted(document, last, token).rank
    found = direct_logit_attribution(reading.model, reading.trace, place, asked.token)
    expected = direct_logit_attribution(reading.model, whole, last, asked.token)
    torch.testing.assert_close(found.heads, expected.heads, atol=1e-4, rtol=1e-4)
    assert found.total == pytest.approx(document.logits(last)[asked.token].item(), abs=1e-3)


def test_after_a_held_space_every_part_explains_the_prediction_of_a_word(document, last):
    typed = document.copy()
    typed.held = " "
    typed.read()
    reading, asked = traced(typed, last), predicted(typed, last)
    logits = typed.logits(last)
    assert logits.isinf().any()
    lens, place = predictions.lens(reading, asked), last - reading.first
    p = logits.softmax(0)
    assert (lens.token[-1, -1, place], asked.token) == (p.argmax(), p.argmax())
    assert lens.probability[-1, -1, place].item() == pytest.approx(p.max().item(), abs=1e-4)
    paths = predictions.token_paths(reading, asked, [asked.token])
    assert paths.probability[0, -1] == pytest.approx(p.max().item(), abs=1e-4)
    for others in (predictions.causes(reading, asked).logits, predictions.without(reading, asked, Ablation())):
        torch.testing.assert_close(others.softmax(0), p, atol=1e-4, rtol=0)


@pytest.mark.parametrize("position", [0, 3, 20, 28])
def test_the_window_holds_the_position_and_stays_while_it_does(document, position):
    reading = traced(document, position)
    assert reading.first <= position < reading.end <= document.n_read
    assert traced(document, reading.first, reading) is reading
    assert traced(document, reading.end - 1, reading) is reading
    outside = reading.end if reading.end < document.n_read else reading.first - 1
    assert traced(document, outside, reading) is not reading
    assert traced(document.copy(), position, reading) is not reading


def test_the_token_asked_about_is_the_one_that_follows_else_the_best(document, last):
    assert predicted(document, 4).token == document.ids[5]
    assert predicted(document, 4).follows
    end = predicted(document, last)
    assert (end.token, end.rank, end.follows) == (int(document.logits(last).argmax()), 1, False)
    own = predicted(document, last, 7)
    assert own.token == 7
    raw = own.probabilities(SamplingParams())[7].item()
    assert raw == pytest.approx(document.logits(last).softmax(0)[7].item(), rel=1e-4)
    assert own.rank == 1 + int((document.logits(last) > document.logits(last)[7]).sum())


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


def test_a_text_of_one_token_has_nothing_to_hide_and_says_so(document):
    reading, asked = traced(document, 0), predicted(document, 0)
    assert predictions.causes(reading, asked).words == ()
    assert "nothing can be hidden" in tokens.no_influence(reading, asked, "hidden")


def test_a_text_too_long_for_the_gradient_is_refused_with_both_numbers(document, last, monkeypatch):
    reading, asked = traced(document, last), predicted(document, last)
    assert len(predictions.gradient(reading, asked).values) == document.n_read
    monkeypatch.setattr(predictions, "MAX_GRADIENT_BYTES", 8 * 4 * 8 * (12 * 192 + 3 * 768))  # eight tokens
    assert predictions.gradient(reading, asked) is None
    said = tokens.no_influence(reading, asked, "gradient")
    assert "at most 8 tokens" in said
    assert f"{document.n_read} come before" in said


@pytest.mark.parametrize("name", ["gpt2", "gpt2-xl"])
def test_roles_are_measured_on_as_many_tokens_as_fit_into_memory(name):
    config = PRESETS[name]
    n = predictions.longest_roles(config)
    assert 4 * config.n_layer * config.n_head * n * n <= predictions.MAX_ROLE_BYTES
    assert n > 100


def test_a_text_shorter_than_the_limit_is_measured_whole(document, monkeypatch):
    reading = traced(document, 0)
    assert predictions.roles_of_text(reading)[1] == document.n_read
    monkeypatch.setattr(predictions, "MAX_ROLE_BYTES", 4 * 8 * 6 * 100)
    assert predictions.roles_of_text(reading)[1] == 10


def test_the_gradient_s_limit_leaves_the_bundled_model_its_whole_context():
    assert predictions.longest_gradient(get_model().model.config) >= 256
    assert 256 <= predictions.longest_gradient(GPTConfig()) < 1024
