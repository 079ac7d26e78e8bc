"""Causes for one visitor: every picture belongs to the selected position and the explained token."""

from __future__ import annotations

import re
from types import SimpleNamespace as Named

import numpy as np
import pytest
import torch

from components.causes import Fall, Falls, causes_sentence, main_word
from components.labels import percent, quoted
from components.state.session import Session
from components.state.typed_text import word_name, words_of
from components.tabs.why import answer, explained, lens
from components.tabs.why import tab as why
from components.tabs.why.explained import Chosen
from components.tabs.why.tab import tab
from gpt import Edits, get_model, gpt2_tokenizer
from gpt.analysis.attribution import direct_logit_attribution
from gpt.analysis.lens import lens_top_tokens, logit_lens
from gpt.analysis.tracing import trace_text
from gpt.edits import Steering
from tests.components.drawing import Drawn, as_read

TEXT = "Lily saw a dog. The dog saw Lily. Then Lily and the dog ran to the park and played. Lily saw a cat. The cat"
SHORT = "Lily saw a dog. The"
CHARTS = ("influence", "lens", "cell", "path", "parts", "heads", "head")


@pytest.fixture(scope="module")
def document():
    return as_read(get_model(), TEXT)


@pytest.fixture(scope="module")
def explained_once(document):
    session = Session(document.copy(), TEXT)
    Drawn(session, tab).update()
    return session


@pytest.fixture
def drawn(explained_once):
    """The tab, open at the last token, with what was computed for it."""
    return Drawn(explained_once.copy(), tab)


def explanation(drawn):
    drawn.update()
    return explained.latest(drawn.session)


def test_every_picture_is_about_the_selected_position(drawn):
    shown = drawn.update()
    here = drawn.session.document.tokenizer.decode(drawn.session.document.ids[-1:]).strip()
    assert f"After “{here}”" in shown["why-lead"]["text"]
    assert re.search(
        r"^“.+”.* is the main reason: if you hide it, “.+” drops from \d+% to .*\. Among the heads, layer \d, head \d",
        shown["why-because"]["text"],
    )
    drawn.session.select(position=4)
    drawn.session.numbers = True
    shown = drawn.update()
    assert "After “.”, position 4," in shown["why-lead"]["text"]
    assert shown["why-strip"]["selected"] == 4
    assert all(shown[f"why-{name}"]["figure"] for name in CHARTS)


def test_the_sentence_the_ribbons_and_the_evidence_name_the_same_word_and_numbers(drawn):
    shown = drawn.update()
    word, before, after = re.match(
        r"“(.+)”.* is the main reason: if you hide it, .*? drops from (\d+%) to (.+?)\.", shown["why-because"]["text"]
    ).groups()
    flow = shown["why-flow"]
    words, heads = (column["nodes"] for column in flow["columns"])
    least = min(words[:-1], key=lambda node: node["number"])
    assert (least["name"], percent(flow["before"]), percent(least["number"])) == (word, before, after)
    texts = [text for trace in shown["why-influence"]["figure"]["data"] for text in trace.get("text", ())]
    assert after in [text.strip("\u00a0") for text in texts]
    assert f"to {percent(heads[0]['number'])}." in shown["why-because"]["text"]


@pytest.mark.parametrize(
    ("p", "without", "is_main"),
    [(0.91, 0.09, True), (0.91, 0.88, True), (0.05, 0.04, False), (0.015, 0.002, True), (0.912, 0.911, False)],
)
def test_a_word_is_the_main_reason_where_hiding_it_makes_a_difference_to_the_reader(p, without, is_main):
    word, tokenizer = Fall((1,), without), gpt2_tokenizer()
    ids = tokenizer.encode(", rain. Tom")
    assert main_word(Falls(p, (word,), (), (word,)), ids, tokenizer) == (word if is_main else None)


def test_a_punctuation_mark_is_the_main_reason_only_where_no_word_comes_close_and_a_word_is_named_beside_it():
    ids, tokenizer = gpt2_tokenizer().encode(", rain. Tom"), gpt2_tokenizer()
    comma, near, far = Fall((0,), 0.1), Fall((1,), 0.4), Fall((1,), 0.6)
    for words, main in (((comma, near), near), ((comma, far), comma)):
        assert main_word(Falls(0.9, words, (), words), ids, tokenizer) is main
        sentence = causes_sentence(Falls(0.9, words, (), words), ids[3], ids, tokenizer)
        assert ("carry a meaning, “rain” matters most: without it, 60%" in sentence) == (main is comma)
    tied = (Fall((0,), 0.004), Fall((1,), 0.006))
    sentence = causes_sentence(Falls(0.9, tied, (), tied), ids[3], ids, tokenizer)
    assert sentence.startswith("Several words decide it, “rain” among them")


def test_a_repeated_word_is_named_by_its_place():
    tokenizer = gpt2_tokenizer()
    ids = tokenizer.encode("A dog saw my dog by that dog and one dog by that dog near a cat")
    dogs = [word for word in words_of(tokenizer, ids) if tokenizer.decode(ids[word.start : word.stop]) == " dog"]
    names = [word_name(tokenizer, ids, word).removeprefix("“dog” ") for word in dogs]
    assert names == ["(the first one)", "(after “my”)", "(occurrence 3)", "(after “one”)", "(the last one)"]
    assert word_name(tokenizer, ids, [len(ids) - 1]) == "“cat”"


def test_the_flow_says_when_no_single_part_carries_the_prediction():
    flows = [answer.CauseFlow([Fall((0,), 0.998)], [Fall((0, 0), p)], np.ones((1, 1))) for p in (0.997, 0.5)]
    said = [answer.flow_says(Named(token_name="a"), flow, [], 0.999, None) for flow in flows]
    assert [text.startswith("No single word or head") for text in said] == [True, False]


def test_what_is_switched_off_in_the_flow_is_measured(drawn):
    def switched(**sent):
        answer.switch(drawn.session, sent)
        return drawn.update()["why-flow"]

    words, heads = (column["nodes"] for column in drawn.update()["why-flow"]["columns"])
    assert heads == sorted(heads, key=lambda node: node["number"])
    answer.switch(drawn.session, {"key": heads[0]["key"]})
    assert "Reading the text again" in drawn.update(compute=False)["why-flow"]["says"]
    flow = drawn.update()["why-flow"]
    assert flow["after"] == pytest.approx(heads[0]["number"], abs=1e-3)  # same as the answer
    assert re.search(rf"^Without {heads[0]['name']}, “.*” goes from .* to ", flow["says"])
    into_first = [edge for edge in flow["edges"] if edge[2] == 0]
    assert sum(size for _, _, _, size, *_ in into_first) == pytest.approx(heads[0]["adds"], abs=1e-3)
    read, word = into_first[0][4], words[0]["key"]
    assert switched(key=read)["off"] == [heads[0]["key"], read]
    assert switched(key=word)["off"] == [word, heads[0]["key"], read]
    assert switched(key="head 9.9")["off"] == [word, heads[0]["key"], read]
    flow = switched(all=True)
    assert (flow["after"], flow["off"]) == (None, [])


def test_the_clicked_cell_of_the_lens_is_opened(drawn):
    e = explanation(drawn)
    Chosen.stage.set(drawn.session, "resid_mid")
    lens.choose_cell(drawn.session, {"x": 12, "y": 3})
    said, e = drawn.update()["why-cell"]["text"], explanation(drawn)
    assert e.prediction.position == e.first + 12
    top, _ = lens_top_tokens(e.model, e.trace, 3, "resid_mid", e.column)
    assert said.startswith("In layer 3 after attention")
    assert f"the top token is {quoted(e.tokenizer, int(top[0]))}" in said


def test_after_a_held_space_every_part_explains_the_prediction_of_a_word():
    typed = as_read(get_model(), SHORT)
    typed.held = " "
    typed.read()
    drawn = Drawn(Session(typed), tab)
    e, logits = explanation(drawn), typed.logits(typed.n_read - 1)
    s = drawn.session.snapshot()
    assert logits.isinf().any()
    p = logits.softmax(0)
    assert (s[lens.lens].token[-1, -1, e.column], e.prediction.token) == (p.argmax(), p.argmax())
    for probability in (s[lens.lens].probability[-1, -1, e.column], s[lens.token_paths][1][0, -1]):
        assert float(probability) == pytest.approx(p.max().item(), abs=1e-4)
    for others in (s[answer.causes].logits, answer.without.function(s)):
        torch.testing.assert_close(others.softmax(0), p, atol=1e-4, rtol=0)


# The evidence


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
    ids, *paths = s[lens.token_paths]
    assert ids == [e.prediction.token, 7]
    for token, p, rank in zip(ids, *paths, strict=True):
        found = logit_lens(e.model, whole, positions=[last], chosen=token)
        np.testing.assert_allclose(p, found.chosen_probability.flatten(), atol=1e-4)
        assert p[-1] == pytest.approx(document.logits(last).softmax(0)[token].item(), abs=1e-4)
        assert rank[-1] == explained.predict(s.text, last, token).rank
    expected = direct_logit_attribution(e.model, whole, last, e.prediction.token)
    torch.testing.assert_close(s[why.attribution].heads, expected.heads, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize(
    "edits", [None, Edits(steering=(Steering(2, torch.linspace(-1, 1, 192)),))], ids=["plain", "steered"]
)
def test_the_sentence_and_the_bars_of_the_parts_add_up_to_the_logit(edits, monkeypatch):
    document = as_read(get_model(), SHORT, edits=edits)
    drawn, bars = Drawn(Session(document), tab), []
    signed_bars = why.signed_bars
    monkeypatch.setattr(why, "signed_bars", lambda *given, **more: bars.append(given[1]) or signed_bars(*given, **more))
    asked = explanation(drawn).prediction
    logits, best = document.logits(document.n_read - 1), asked.token
    for against in (None, asked.best[1]):
        why.choose_against(drawn.session, why.NOTHING if against is None else against)
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


def test_a_text_of_one_token_has_nothing_to_hide_and_says_so(drawn):
    drawn.session.select(position=0)
    assert "nothing can be hidden" in drawn.update()["why-trouble"]["text"]
    assert drawn.session.snapshot()[answer.causes].words == {}


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


def test_another_token_can_be_asked_about_and_another_position_forgets_it(drawn):
    why.choose_token(drawn.session, 7)
    assert explanation(drawn).prediction.token == 7
    drawn.session.select(position=4)
    assert explanation(drawn).prediction.token == drawn.session.document.ids[5]
