"""The Loss tab without a browser: scoring a text, the sentences about it, and rejected inputs."""

from __future__ import annotations

import math
import re

import pytest
import torch

from components.state.session import Session
from components.tabs import loss
from components.tabs.loss import Loss, tab
from components.widgets.tokens import shade_value
from gpt import GPT, GPTConfig, LoadedModel, get_model
from gpt.models.checkpoints.vocabularies import Characters
from tests.components.drawing import Drawn, as_read


@pytest.fixture
def drawn():
    return Drawn(Session(as_read(get_model(), "The dog")), tab)


def shown(drawn):
    return {name: data["text"] for name, data in drawn.update().items() if "text" in data}


def measured(drawn, text):
    Loss.text.set(drawn.session, text)
    list(loss.measure(drawn.session))
    return shown(drawn)


def use(session, loaded):
    session.model, session.loaded = loaded.name, loaded


def test_the_example_is_scored_when_the_tab_is_first_opened_and_never_in_place_of_a_text(drawn):
    assert "nats per token" in shown(drawn)["loss-says"]
    Loss.text.set(drawn.session, "The dog")
    assert not drawn.is_waiting
    assert loss.text_in_box(drawn.session.snapshot()) == "The dog"


def test_another_model_scores_the_shown_text_again_or_says_why_it_cannot(drawn):
    letters = Characters(list("Once upatim"))
    config = GPTConfig(letters.n_vocab, 24, n_layer=1, n_head=1, n_embd=8)
    few = LoadedModel("few", GPT(config).eval(), letters, torch.device("cpu"), "fp32")
    session = drawn.session
    for loaded in (get_model(), few, get_model("untrained")):
        use(session, loaded)
        assert shown(drawn)["loss-headline"]
        assert loss.scored.latest(session.snapshot()).text == loss.text_in_box(session.snapshot())
    use(session, get_model())
    before = measured(drawn, "The dog ran.")
    use(session, get_model("untrained"))
    assert shown(drawn)["loss-headline"] != before["loss-headline"]
    use(session, few)
    said = shown(drawn)
    assert "does not know" in said["loss-notice"]
    assert said["loss-headline"] == ""
    use(session, get_model())
    assert shown(drawn) == before


def test_the_three_numbers_agree_and_the_most_surprising_token_is_selected(drawn):
    said = measured(drawn, "Tom saw a big dog. The dog raised the interest rates.")
    nats, perplexity = re.search(r"([\d.]+) nats .* perplexity ([\d,.]+) ", said["loss-says"]).groups()
    assert math.log(float(perplexity.replace(",", ""))) == pytest.approx(float(nats), abs=1e-3)
    losses = drawn.session.state(Loss).measured.result.losses
    strip = drawn.views["loss-strip"]
    assert losses[strip["selected"] - 1].surprisal == max(loss.surprisal for loss in losses)
    assert strip["shade"] == shade_value([0.0, *(loss.surprisal for loss in losses)])
    assert "as unsure as if it had to pick one of" in said["loss-headline"]
    assert "The text fits into the context of 256" in said["loss-says"]
    assert said["loss-status"] == ""


def test_a_selected_token_says_its_probability_and_only_tokens_of_the_text_can_be_selected(drawn):
    measured(drawn, "The dog ran home.")
    loss.pick(drawn.session, {"index": 0})
    assert "comes first" in shown(drawn)["loss-token"]
    loss.pick(drawn.session, {"index": 1})
    assert "of 4,096" in shown(drawn)["loss-token"]
    for wrong in (-1, 10_000, True, "2", None, 2.0):
        loss.pick(drawn.session, {"index": wrong})
        drawn.update()
        assert drawn.views["loss-strip"]["selected"] == 1


def test_a_text_longer_than_the_context_is_read_in_windows_of_the_chosen_stride(drawn):
    says = measured(drawn, "The dog ran. " * 100)["loss-says"]
    assert "windows, each starting 128 tokens after the previous one" in says
    assert "at least 128, or all of them" in says
    assert [loss.stride_of(divisor, 256) for divisor in (1, 2, 8)] == [255, 128, 32]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "There is no text"),
        ("a", "a single token"),
        ("a b " * 3000, "the limit here is 4,096"),
        ("x" * 100_001, "100,001 characters"),
    ],
)
def test_what_cannot_be_measured_is_said_in_place_and_the_last_result_stays(drawn, text, sentence):
    before = measured(drawn, "The dog ran.")
    said = measured(drawn, text)
    assert sentence in said["loss-notice"]
    assert {**said, "loss-notice": ""} == before
    assert measured(drawn, "The dog ran.")["loss-notice"] == ""


def test_half_a_surrogate_pair_is_read_as_the_replacement_character_and_said(drawn):
    assert "were replaced with U+FFFD" in measured(drawn, "a \ud83d b")["loss-says"]


def test_an_example_is_measured_with_the_chosen_stride(drawn):
    Loss.stride.set(drawn.session, 8)
    list(loss.measure_text(drawn.session, text="The dog ran."))
    state = drawn.session.state(Loss)
    assert (state.text, state.measured.text, state.measured.divisor) == ("The dog ran.", "The dog ran.", 8)
