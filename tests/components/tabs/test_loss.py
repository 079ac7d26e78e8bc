"""The Loss tab without a browser: scoring a text, the sentences about it, and rejected inputs."""

from __future__ import annotations

import json
import math
import re

import pytest
import torch
from plotly.utils import PlotlyJSONEncoder

from components.state.jobs import stop
from components.state.session import Session
from components.tabs.loss import handlers
from components.tabs.loss.state import FIRST_EXAMPLE, LossState
from components.tabs.loss.views import VIEWS
from components.widgets.tokens import shade_value
from gpt import GPT, Generation, GPTConfig, LoadedModel, get_model
from gpt.models.checkpoints.token_table import Characters
from tests.components.drawing import in_its_language


@pytest.fixture
def session():
    document = Generation(get_model(), "The dog")
    document.read()
    return Session(document)


def tiny_model(tokenizer):
    config = GPTConfig(tokenizer.n_vocab, 24, n_layer=1, n_head=1, n_embd=8)
    return LoadedModel("few", GPT(config).eval(), tokenizer, torch.device("cpu"), "fp32")


@in_its_language
def drawn(session):
    snapshot = session.snapshot()
    fields = {view.name.removeprefix("loss-"): view.draw(snapshot) for view in VIEWS}
    return json.loads(json.dumps(fields, cls=PlotlyJSONEncoder))


def measured(session, text):
    handlers.type_text(session, text)
    for _ in handlers.measure_box(session):
        pass
    return drawn(session)


def test_a_perplexity_above_the_vocabulary_is_no_choice_among_more_tokens_than_there_are(session):
    text = measured(session, "zq zq Ω≠∂ girl,,,!! 7a7 the the upon")["says"]["text"]
    assert "was confident about the wrong tokens: picking at random from all 4,096" in text
    assert "choosing at random" not in text


def test_the_example_is_scored_when_the_tab_is_first_opened_and_never_in_place_of_a_text(session):
    analysis = handlers.analysis(get_model())
    assert analysis.wanted(session.snapshot()) is not None
    handlers.type_text(session, "The dog")
    for _ in analysis.run(session):
        pass
    assert "nats per token" in drawn(session)["headline"]["text"]
    assert session.state(LossState).text == "The dog"
    assert analysis.wanted(session.snapshot()) is None
    measured(session, "The dog ran.")
    assert analysis.wanted(session.snapshot()) is None


def use(session, loaded):
    session.model, session.loaded = loaded.name, loaded


def test_another_model_scores_the_shown_text_again_or_says_why_it_cannot(session, monkeypatch):
    analysis = handlers.analysis(get_model())
    shown, few = get_model("untrained"), tiny_model(Characters(list("Once upatim")))
    monkeypatch.setattr(handlers, "load_with_progress", lambda session, name: (yield) or session.loaded)

    def show():
        assert analysis.wanted(session.snapshot()) is not None
        for _ in analysis.run(session):
            pass
        assert analysis.wanted(session.snapshot()) is None
        return session.state(LossState)

    assert show().scored.loaded is get_model()
    use(session, shown)
    assert show().scored.loaded is shown
    use(session, few)
    assert show().scored.loaded is few
    assert session.state(LossState).text == session.state(LossState).scored.text != FIRST_EXAMPLE
    use(session, get_model())
    assert show().text == FIRST_EXAMPLE
    measured(session, "The dog ran.")
    use(session, shown)
    assert show().scored.text == "The dog ran."
    use(session, few)
    state = show()
    assert state.scored is None
    assert state.notice is not None


def test_the_three_numbers_agree_and_the_most_surprising_token_is_selected(session):
    shown = measured(session, "Tom saw a big dog. The dog raised the interest rates.")
    nats, perplexity = re.search(r"([\d.]+) nats .* perplexity ([\d,.]+) ", shown["headline"]["text"]).groups()
    assert math.log(float(perplexity.replace(",", ""))) == pytest.approx(float(nats), abs=1e-3)
    losses = session.state(LossState).scored.result.losses
    selected = shown["strip"]["selected"]
    assert losses[selected - 1].surprisal == max(loss.surprisal for loss in losses)
    assert shown["strip"]["shade"] == shade_value([0.0, *(loss.surprisal for loss in losses)])
    assert "as unsure as if it had to pick one of" in shown["says"]["text"]
    assert "The text fits into the context of 256" in shown["says"]["text"]
    assert shown["status"]["text"] == ""


def test_a_selected_token_says_its_probability_and_only_tokens_of_the_text_can_be_selected(session):
    measured(session, "The dog ran home.")
    handlers.select(session, {"index": 0})
    assert "comes first" in drawn(session)["token"]["text"]
    handlers.select(session, {"index": 1})
    assert "of 4,096" in drawn(session)["token"]["text"]
    for wrong in (-1, 10_000, True, "2", None, 2.0):
        handlers.select(session, {"index": wrong})
        assert session.state(LossState).selected == 1


def test_a_text_longer_than_the_context_is_read_in_windows_of_the_chosen_stride(session):
    says = measured(session, "The dog ran. " * 100)["says"]["text"]
    assert "windows, each starting 128 tokens after the previous one" in says
    assert "from at least 128 earlier tokens" in says
    assert [handlers.stride_of(parts, 256) for parts in (1, 2, 8)] == [255, 128, 32]


def test_an_example_is_measured_with_the_chosen_stride_and_what_the_controls_do_not_offer_changes_nothing(session):
    handlers.choose_stride(session, 8)
    for wrong in (3, None, [], True):
        handlers.choose_stride(session, wrong)
        handlers.type_text(session, wrong)
    for _ in handlers.measure_text(session, text="The dog ran."):
        pass
    state = session.state(LossState)
    assert (state.text, state.scored.text, state.scored.parts) == ("The dog ran.", "The dog ran.", 8)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "There is no text"),
        ("a", "a single token"),
        ("a b " * 3000, "the limit here is 4,096"),
        ("x" * 100_001, "100,001 characters"),
    ],
)
def test_what_cannot_be_measured_is_said_in_place_and_the_last_result_stays(session, text, sentence):
    before = measured(session, "The dog ran.")
    shown = measured(session, text)
    assert sentence in shown["notice"]["text"]
    assert {**shown, "notice": before["notice"]} == before
    assert not session.state(LossState).busy
    assert measured(session, "The dog ran.")["notice"]["text"] == ""


def test_half_a_surrogate_pair_is_read_as_the_replacement_character_and_said(session):
    assert "were replaced with U+FFFD" in measured(session, "a \ud83d b")["says"]["text"]


def test_a_run_that_was_stopped_changes_nothing_and_an_older_one_never_ends_a_newer(session):
    before = measured(session, "The dog ran.")
    first = handlers.measure(session, "The cat sat.", 2)
    next(first)
    assert session.state(LossState).busy
    stop(LossState, session)
    assert not session.state(LossState).busy
    second = handlers.measure(session, "The cat ran.", 2)
    next(second)
    first.close()
    assert session.state(LossState).busy
    second.close()
    assert drawn(session) == before


def test_the_sentences_follow_the_language(session):
    measured(session, "The dog ran.")
    session.language = "zh"
    shown = drawn(session)
    assert "每词元" in shown["headline"]["text"]
    assert "惊异度" in shown["strip"]["labels"]["surprisal"]
