"""What the Why tab asks and says: the same numbers as whole analyses, in windows that are small."""

from __future__ import annotations

import copy
import re
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch

from components.causes import MIN_LEFT_OUT_TOKENS, left_out_positions
from components.i18n import has_text
from components.state.selection import Selection
from components.state.session import Session
from components.state.text import Text
from components.tabs.why import analysis, handlers, predictions
from components.tabs.why.components import WhyState
from components.tabs.why.views import VIEWS, parts, tokens
from components.tabs.why.views import lens as lens_views
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


def traced(document, position, before=None):
    return predictions.trace_around(Text.of(document), position, before)


def predicted(document, position, token=None):
    return predictions.predict(Text.of(document), position, token)


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
    part, alone = predictions.lens(reading), logit_lens(reading.model, whole, positions=[last])
    torch.testing.assert_close(part.probability[..., place], alone.probability[..., 0], atol=1e-4, rtol=0)
    paths = predictions.token_paths(reading, last, [asked.token, 7])
    for token, p, rank in zip((asked.token, 7), paths.probability, paths.rank, strict=True):
        lens = logit_lens(reading.model, whole, positions=[last], chosen=token)
        np.testing.assert_allclose(p, lens.chosen_probability.flatten(), atol=1e-4)
        assert p[-1] == pytest.approx(document.logits(last).softmax(0)[token].item(), abs=1e-4)
        assert rank[-1] == predicted(document, last, token).rank
    found = direct_logit_attribution(reading.model, reading.trace, place, asked.token)
    expected = direct_logit_attribution(reading.model, whole, last, asked.token)
    torch.testing.assert_close(found.heads, expected.heads, atol=1e-4, rtol=1e-4)
    assert found.total == pytest.approx(document.logits(last)[asked.token].item(), abs=1e-3)


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
    reading, asked = traced(document, 9), predicted(document, 9)
    steps, found = run(predictions.left_out(reading, asked))
    assert steps[-1] == (10, 10)
    assert (found.first, len(found.values)) == (0, 10)
    monkeypatch.setattr(predictions, "left_out_positions", partial(left_out_positions, limit=0))
    _, few = run(predictions.left_out(reading, asked))
    assert (few.first, len(few.values)) == (10 - MIN_LEFT_OUT_TOKENS, MIN_LEFT_OUT_TOKENS)
    np.testing.assert_allclose(few.values, found.values[few.first :], atol=1e-4)


def test_a_text_of_one_token_has_nothing_to_leave_out_and_says_so(document):
    reading, asked = traced(document, 0), predicted(document, 0)
    _, found = run(predictions.left_out(reading, asked))
    assert found is None
    assert "nothing can be left out" in tokens.no_influence(reading, asked, "left_out", "en")


def test_a_text_too_long_for_the_gradient_is_refused_with_both_numbers(document, last, monkeypatch):
    reading, asked = traced(document, last), predicted(document, last)
    assert len(predictions.gradient(reading, asked).values) == document.n_read
    monkeypatch.setattr(predictions, "MAX_GRADIENT_BYTES", 8 * 4 * 8 * (12 * 192 + 3 * 768))  # of eight tokens
    assert predictions.gradient(reading, asked) is None
    said = tokens.no_influence(reading, asked, "gradient", "en")
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


def test_the_shade_is_each_token_s_share_of_the_influence_whichever_way_it_goes():
    largest, _, _ = tokens.shade(predictions.Influence(np.array([1.0, -3.0, 0.0]), 2)).partition(":")
    assert float(largest) == 0.75
    assert tokens.shade(None).startswith("0:")


def test_the_sentence_of_the_parts_adds_up_to_the_logit(document, last):
    reading, asked = traced(document, last), predicted(document, last)
    for against in (None, asked.best[1]):
        found = direct_logit_attribution(
            reading.model, reading.trace, last - reading.first, asked.token, against=against
        )
        for by_layer in (False, True):
            drawn = parts.parts_bars(reading, asked, found, against, by_layer, "en")
            *added, total = [
                float(n.replace("−", "-")) for n in re.findall(r"(?<= )[+−]?\d+\.\d\d(?=[,: ])", drawn["text"])
            ]
            assert len(added) == 5
            assert sum(added) == pytest.approx(total, abs=0.03)
            logits = document.logits(last)
            expected = logits[asked.token] - (logits[against] if against is not None else 0)
            assert total == pytest.approx(expected.item(), abs=0.006)
            assert f"{found.scale:.2f}" in drawn["note"]


def test_the_bars_of_the_parts_add_up_to_the_logit(document, last, monkeypatch):
    reading, asked = traced(document, last), predicted(document, last)
    found = direct_logit_attribution(reading.model, reading.trace, last - reading.first, asked.token)
    drawn = []
    monkeypatch.setattr(parts, "part_bars", lambda names, values, ends, **_: drawn.append(values) or _figure())
    parts.parts_bars(reading, asked, found, None, False, "en")
    assert drawn[0].sum() == pytest.approx(found.logit, abs=1e-3)
    assert len(drawn[0]) == parts.MAX_PARTS + 1


def _figure():
    return parts.Figure()


def test_a_role_without_a_place_to_be_measured_at_is_said_and_not_drawn():
    document = Generation(get_model(), "Lily saw")
    document.read()
    roles, n = predictions.roles_of_text(traced(document, 0))
    assert parts.roles_map(roles, n, "induction", Selection(), "en")["figure"] is None
    assert "for which this can be measured" in parts.role_sentence(roles, "induction", "en")
    assert (parts.roles_map(roles, n, "previous_token", Selection(), "en"))["text"].startswith("Strongest")


def test_every_view_speaks_both_languages(document, last):
    reading, asked = traced(document, last), predicted(document, 5)
    asked = replace(asked, position=last)
    lens, influence = predictions.lens(reading), predictions.Influence(np.array([0.5, -0.2]), 3)
    paths = predictions.token_paths(reading, last, [asked.token, 7])
    for language in ("en", "zh"):
        texts = [
            tokens.lead_sentence(reading, asked, language),
            (lens_views.lens_map(reading, asked, lens, LENS_POINTS[0], 3, language))["text"],
            (lens_views.path_lines(document.tokenizer, paths, (), language))["note"],
            (tokens.influence_bars(reading, asked, influence, language))["text"],
            (parts.head_bars(reading, asked, Selection(layer=2, head=1), language))["text"],
        ]
        for text in texts:
            assert "{" not in text
            assert bool(re.search("[\u4e00-\u9fff]", text)) == (language == "zh")


def test_influences_that_are_all_small_are_not_written_as_zero(document):
    reading, asked = traced(document, 5), predicted(document, 5)
    influence = predictions.Influence(np.linspace(-0.004, 0.004, 6), 0)
    said = (tokens.influence_bars(reading, asked, influence, "en"))["text"]
    assert "(+0.0040 nats)" in said
    assert "(−0.0040 nats)" in said


@pytest.mark.parametrize("sign", [1, -1])
def test_what_reads_as_zero_is_named_neither_for_nor_against(document, sign):
    reading, asked = traced(document, 5), predicted(document, 5)
    influence = predictions.Influence(sign * np.array([1.5, 0.2, -0.004]), 0)
    said = (tokens.influence_bars(reading, asked, influence, "en"))["text"]
    assert ("Most for" in said, "Most against" in said) == (sign > 0, sign < 0)


def test_every_word_of_the_tab_is_there_and_every_choice_has_one():
    wanted = {f"why.{name}.{value}" for name, values in handlers.CHOICES.items() for value in values}
    assert all(map(has_text, wanted))


@pytest.fixture
def session(document):
    """A session with the tab open at the last token."""
    opened = Session(document.copy(), TEXT)
    opened.tab = "why"
    return opened


def answered(session):
    for _ in analysis.analyse(session):
        pass
    assert analysis.wanted(session.snapshot()) is None
    snapshot = session.snapshot()
    return {view.name: view.draw(snapshot) for view in VIEWS}


def test_every_panel_is_about_the_selected_position(session):
    drawn = answered(session)
    assert "position 28," in drawn["why-lead"]["text"]
    assert re.search(
        r"mostly because of “.+”.*: without it .* instead of .* Without layer \d head \d: .* Measured by leaving out",
        drawn["why-because"]["text"],
    )
    session.select(position=4)
    assert analysis.wanted(session.snapshot()) is not None
    drawn = answered(session)
    assert "position 4," in drawn["why-lead"]["text"]
    assert drawn["why-strip"]["selected"] == 4
    assert all(
        drawn[f"why-{name}"]["figure"] for name in ("influence", "lens", "cell", "path", "parts", "heads", "head")
    )


def switched(session, **sent):
    for _ in handlers.switch(session, sent):
        pass
    return next(view for view in VIEWS if view.name == "why-flow").draw(session.snapshot())


def test_what_is_switched_off_in_the_flow_is_measured_at_once(session):
    drawn = answered(session)
    flow = drawn["why-flow"]
    assert flow["heads"] == sorted(flow["heads"], key=lambda head: -head[2])
    assert all(sum(row) <= 1.001 for row in flow["weights"])
    layer, head, fall = flow["heads"][0]
    drawn = switched(session, part="heads", place=[layer, head])
    assert drawn["after"] == pytest.approx(flow["before"] * (1 - fall), abs=1e-3)  # as the answer says
    assert re.search(rf"^Without layer {layer} head {head}, “.*” goes from .* to ", drawn["says"])
    position = flow["tokens"][0][0]
    drawn = switched(session, part="reads", place=[layer, head, position])
    assert drawn["off"] == {"tokens": [], "heads": [[layer, head]], "reads": [[layer, head, position]]}
    drawn = switched(session, part="tokens", place=[position])
    assert drawn["off"]["tokens"] == [[position]]
    drawn = switched(session, all=True)
    assert (drawn["after"], drawn["off"]) == (None, {"tokens": [], "heads": [], "reads": []})


@pytest.mark.parametrize(
    "sent",
    [{}, {"part": "heads"}, {"part": "heads", "place": [99, 0]}, {"part": "n_bytes", "place": [1]},
     {"part": ["heads"], "place": [0, 0]}, {"part": "tokens", "place": ["1"]}, {"part": "tokens", "place": [10**9]}],
)  # fmt: skip
def test_only_what_the_flow_shows_can_be_switched(session, sent):
    answered(session)
    before = session.state(WhyState).shown
    assert [*handlers.switch(session, sent)] == []
    assert session.state(WhyState).shown is before


def test_the_only_token_of_a_text_cannot_be_left_out(session):
    session.select(position=0)
    flow = answered(session)["why-flow"]
    assert [*handlers.switch(session, {"part": "tokens", "place": [0]})] == []
    assert all(place == 0 for place, _ in flow.get("tokens", []))


def test_a_question_is_forgotten_at_another_position(session):
    answered(session)
    handlers.choose_token(session, 7)
    answered(session)
    assert session.state(WhyState).shown.prediction.token == 7
    handlers.choose_against(session, 9)
    answered(session)
    assert (session.state(WhyState).shown.prediction.token, session.state(WhyState).shown.against) == (7, 9)
    handlers.choose_position(session, {"index": 4})
    answered(session)
    assert session.state(WhyState).shown.prediction.token == session.document.ids[5]
    assert session.state(WhyState).shown.against is None


def test_watched_tokens_stay_at_another_position_and_leave_with_their_vocabulary(session):
    best = int(session.document.logits(28).argmax())
    handlers.watch(session, ["", 7, " girl", "no token has this", 10**9, best])
    drawn = answered(session)
    girl = session.document.tokenizer.encode(" girl")[0]
    assert session.state(WhyState).shown.paths.tokens == (best, 7, girl)
    assert [line.get("name") for line in drawn["why-path"]["figure"]["data"][::2]][2] == "·girl"
    rank = 1 + int((session.document.logits(28) > session.document.logits(28)[girl]).sum())
    assert re.search(rf"“·girl” starts at rank [\d,]+ and ends at rank {rank:,} with", drawn["why-path"]["note"])
    assert "No token contains “no·token·has·this”" in drawn["why-path"]["note"]
    session.select(position=4)
    answered(session)
    assert session.state(WhyState).shown.paths.tokens == (session.document.ids[5], 7, girl)
    before = session.state(WhyState).watched
    handlers.watch(session, [7, " girl", "no token has this"])  # as the page sends what the server has set
    assert session.state(WhyState).watched is before
    other = replace(session.document.loaded, tokenizer=copy.copy(session.document.tokenizer))
    session.document = Generation(other, "Lily saw")
    session.document.read()
    answered(session)
    assert len(session.state(WhyState).shown.paths.tokens) == 1


def test_only_what_a_choice_changes_is_computed_again(session):
    answered(session)
    before = session.state(WhyState).shown
    handlers.choose("method", predictions.METHODS, session, "left_out")
    answered(session)
    after = session.state(WhyState).shown
    assert after.traced is before.traced
    assert after.lens is before.lens
    assert after.influence is not before.influence


def test_nothing_is_computed_while_the_text_is_written_and_the_status_says_so(session):
    session.lock.begin()
    snapshot = session.snapshot()
    assert analysis.wanted(snapshot) is None
    assert "writing" in tokens.status(snapshot)["text"]


@pytest.mark.parametrize(
    "sent", [{}, {"index": "4"}, {"index": -2}, {"index": 10**9}, {"x": 1.5, "y": None}, {"customdata": [0]}]
)
def test_what_a_browser_sends_may_be_anything(session, sent):
    answered(session)
    before = session.selection
    for handler in (handlers.choose_position, handlers.choose_cell, handlers.choose_head, handlers.choose_bar):
        handler(session, sent)
    handlers.choose_token(session, sent)
    handlers.choose("role", ("induction",), session, "nothing")
    assert session.selection == before


def test_without_a_text_the_tab_says_so(session):
    session.document = None
    drawn = answered(session)
    assert "no text" in drawn["why-lead"]["text"]
    assert drawn["why-lens"]["figure"] is None


def test_the_gradient_s_limit_leaves_the_bundled_model_its_whole_context():
    assert predictions.longest_gradient(get_model().model.config) >= 256
    assert 256 <= predictions.longest_gradient(GPTConfig()) < 1024
