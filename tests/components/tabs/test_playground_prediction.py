"""What Write shows of a prediction: hidden words, attention switched off, the stages of sampling, averaged heads."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest
import torch

from components.labels import percent
from components.state.example import example
from components.state.reads import is_ready
from components.state.session import Session
from components.state.text import Selection, Text
from components.state.typed_text import words_of
from components.tabs.playground import box as boxes
from components.tabs.playground import prediction
from components.tabs.playground import stages as views
from components.tabs.playground.editing import select_token
from components.tabs.playground.prediction import VISIBLE_BARS, choose_head, heatmap
from components.text_views import AVERAGE, attention_heatmap, attention_shade, text_strip
from components.widgets.tokens import FULL
from gpt import Edits, Generation, LoadedModel, SamplingParams, Tokenizer, distribution, get_model
from gpt.sampling import token_at_stages
from tests.components.drawing import as_read, compute_now, spoken_in
from tests.components.tabs.inside_session import document_of, unpacked
from tests.components.tabs.playground_session import drawn, new_session, type_in, write
from tests.conftest import make_twins
from tests.gpt.fake_models import family_model, tiny_model

TEXT = "It was raining. Tom was sad because he could not play"
WORD = (2, 3)  # " rain" "ing"


@pytest.fixture(scope="module")
def written() -> Generation:
    return example(get_model())


@pytest.fixture
def session(written: Generation) -> Session:
    made = new_session(written)
    compute_now(made, prediction.reason)
    return made


def shares(session: Session, name: str = "bars") -> dict[str, float]:
    return {token: after for token, _, after, *_ in drawn(session, name)["bars"]}


@torch.inference_mode()
def expected(session: Session, ids: list[int], edits: Edits | None = None) -> torch.Tensor:
    logits = session.document.loaded.model(torch.tensor([ids]), edits=edits)[0, -1]
    return distribution(logits, session.settings.sampling(), previous_ids=ids).final


def decoded(loaded: LoadedModel, token: torch.Tensor) -> str:
    return loaded.tokenizer.decode([int(token)]).strip()


def test_the_first_text_stops_before_a_word_that_one_other_word_decides(session: Session) -> None:
    document = session.document
    assert document.tokenizer.decode(document.ids) == TEXT
    said = drawn(session, "reason")["text"]
    assert re.fullmatch("“raining” is the main reason: if you hide it, “outside” drops from 9[01]% to [89]%.", said)
    strongest = max(drawn(session, "prompt")["arcs"], key=lambda arc: arc[1])
    assert strongest[0] == WORD[0]


def test_the_bars_without_a_hidden_word_are_those_of_a_text_that_lacks_it(session: Session) -> None:
    before = shares(session)
    boxes.hide_words(session, {"hidden": [WORD[1]]})  # any token of the word
    assert drawn(session, "prompt")["hidden"] == list(WORD)
    assert WORD[0] not in [position for position, _ in drawn(session, "prompt")["arcs"]]
    ids = [token for i, token in enumerate(session.document.ids) if i not in WORD]
    final, loaded = expected(session, ids), session.document.loaded
    after = shares(session)
    for i in final.topk(4).indices:
        assert after[decoded(loaded, i)] == pytest.approx(final[i].item(), abs=2e-3)
    was = {token: old for token, old, *_ in drawn(session, "bars")["bars"]}
    assert drawn(session, "bars")["text"].endswith(" Thick bars: before hiding.")
    assert was["outside"] == pytest.approx(before["outside"], abs=1e-3)
    said = drawn(session, "reason")["text"]
    drops = f"drops from {percent(was['outside'])} to {percent(after['outside'])}"
    assert said.startswith(f"Without “raining”, “outside” {drops}. The top token is now “with”")
    assert drawn(session, "prompt")["ghost"] == " with"
    boxes.hide_words(session, {"hidden": []})
    assert shares(session) == before


def test_of_two_clicks_that_arrive_in_the_wrong_order_the_last_counts(session: Session) -> None:
    boxes.hide_words(session, {"hidden": [], "n": 2})
    boxes.hide_words(session, {"hidden": [WORD[0]], "n": 1})
    assert (drawn(session, "prompt")["hidden"], drawn(session, "prompt")["n"]) == ([], 2)


def test_hidden_words_stay_in_the_strip_and_a_click_shows_them_again(session: Session) -> None:
    boxes.hide_words(session, {"hidden": [0, WORD[0]]})
    strip = text_strip("strip", draw=lambda s: {}, on=select_token)
    click = strip.actions["select"].handler
    places = [
        (place, json.loads(line)[1], position) for place, line, position in strip.draw(session.snapshot())["hidden"]
    ]
    assert places == [(0, "It", 0), (1, " rain", WORD[0]), (1, "ing", WORD[1])]
    click(session, {"index": 1})  # "." as the model reads it
    assert session.selection.position == 4
    click(session, {"shown": WORD[1]})
    click(session, {"shown": "?"})
    assert session.hidden.positions == {0}


def test_several_hidden_words_are_measured_and_stay_hidden_while_the_text_goes_on(session: Session) -> None:
    boxes.hide_words(session, {"hidden": [0, WORD[0]]})
    assert not is_ready(session.snapshot(), prediction.reason)
    compute_now(session, prediction.reason)
    assert is_ready(session.snapshot(), prediction.reason)
    final = expected(session, [token for i, token in enumerate(session.document.ids) if i not in (0, *WORD)])
    assert max(shares(session).values()) == pytest.approx(final.max().item(), abs=2e-3)
    assert "these 2 words" in drawn(session, "reason")["text"]
    type_in(session, f"{TEXT} with")
    assert drawn(session, "prompt")["hidden"] == [0, *WORD]
    type_in(session, "The dog")
    assert drawn(session, "prompt")["hidden"] == []


def test_the_button_hides_the_word_of_the_sentence_and_shows_it_again(session: Session) -> None:
    prediction.hide_main(session)
    assert drawn(session, "prompt")["hidden"] == list(WORD)
    prediction.hide_main(session)
    assert drawn(session, "prompt")["hidden"] == []
    prediction.hide_main(session)
    write(session, None)  # the model generates with all words
    assert session.hidden.positions == frozenset()


def test_without_attention_every_word_sees_only_itself(session: Session) -> None:
    assert drawn(session, "prompt")["arcs"]
    session.more_controls = True  # lists more tokens
    prediction.switch_attention(session)
    compute_now(session, prediction.without_attention)
    assert drawn(session, "prompt")["arcs"] == []
    ids, loaded = session.document.ids, session.document.loaded
    alone = expected(session, ids[-1:], Edits(attn_scale=dict.fromkeys(range(loaded.model.config.n_layer), 0.0)))
    off = shares(session, "bars-off")
    assert max(off, key=off.__getitem__) == "ers"
    assert decoded(loaded, alone.argmax()) in off
    goes_on = drawn(session, "goes-on")["text"]
    assert goes_on.startswith("The model would continue: “")
    assert goes_on != drawn(session, "goes-on-off")["text"]
    prediction.switch_attention(session)
    assert drawn(session, "goes-on")["text"] == ""


def test_the_untrained_model_names_no_reason_and_what_stands_in_the_text_has_a_bar(session: Session) -> None:
    document = as_read(get_model("untrained"), TEXT)
    session = Session(document, TEXT)
    session.select(position=3)
    compute_now(session, prediction.reason)
    assert drawn(session, "reason")["text"].startswith("No single word decides it")
    bars = drawn(session, "bars")
    assert bars["bars"][bars["chosen"]][4] == {"token": document.ids[4]}
    assert bars["chosen"] < VISIBLE_BARS


def test_words_are_found_in_latin_and_chinese_text() -> None:
    tokenizer = get_model().tokenizer

    def words(text: str) -> list[str]:
        ids = tokenizer.encode(text)
        return [tokenizer.decode(ids[word.start : word.stop]) for word in words_of(tokenizer, ids)]

    assert words("Lily's umbrella, 狐狸!") == ["Lily's", " umbrella", ",", " ", "狐", "狸", "!"]
    document = Generation(get_model(), "")
    assert words_of(tokenizer, document.ids) == []


DOCUMENT = Generation(tiny_model(), "the cat <b>")
DOCUMENT.read()
LAST = len(DOCUMENT.ids) - 1
EVERYTHING = SamplingParams(temperature=0.8, top_k=40, top_p=0.9, min_p=0.05, repetition_penalty=1.3)


def pipeline_at_end(params=EVERYTHING, followed=97):
    return views.PipelineView(DOCUMENT, LAST, params, followed)


@pytest.mark.parametrize("unit", ["probability", "log_probability", "logit"])
def test_each_line_of_the_picture_is_one_token_and_ends_where_it_was_removed(unit):
    content = views.stage_chart(pipeline_at_end(followed=3), unit)
    data = content["figure"]["data"]
    lines = {line["customdata"][0]: line for line in data}
    assert 3 in lines
    assert len(lines) == len(data)
    for token_id, line in lines.items():
        rows = token_at_stages(DOCUMENT.logits(LAST), pipeline_at_end().stages, token_id)[:-1]
        values = [getattr(row, unit) for row in rows if row.rank is not None]
        removed = len(values) < 6
        assert line["y"] == pytest.approx([*values, values[-1]] if removed else values)
        assert line["marker"]["symbol"] == ["circle"] * len(values) + ["x"] * removed
    assert "<b>" not in str(content["figure"]["layout"])


def test_the_sentence_names_the_stage_that_removed_the_token():
    worst = int(DOCUMENT.logits(LAST).argmin())
    assert "before Top-k removed it" in views.sentence(pipeline_at_end(SamplingParams(top_k=5), worst))
    assert "5 of 260 tokens can be drawn" in views.sentence(pipeline_at_end(SamplingParams(top_k=5), worst))
    assert "在“Top-p”这一步被去掉了" in spoken_in(
        "zh", views.sentence, pipeline_at_end(SamplingParams(top_p=0.1), worst)
    )


LAYER, POSITION = 1, 7


@pytest.fixture
def shown(byte_tokenizer: Tokenizer) -> tuple[np.ndarray, Session]:
    """Return one layer's weights (T, T), averaged over transformers' heads, and a session that shows the average."""
    reference, ours = make_twins(vocab_size=byte_tokenizer.n_vocab, n_positions=64, n_layer=3, n_head=3, n_embd=36)
    session = Session(document_of(ours, byte_tokenizer))
    choose_head(session, AVERAGE)
    session.select(position=POSITION, layer=LAYER)
    with torch.inference_mode():
        heads = reference(torch.tensor([session.document.ids]), output_attentions=True).attentions[LAYER][0]
    assert (heads[0] - heads[1]).abs().max() > 0.01  # no single head may equal the average
    return np.mean([head.numpy() for head in heads], axis=0), session


def test_the_playground_s_heatmap_and_shades_show_the_mean_of_the_single_heads(
    shown: tuple[np.ndarray, Session],
) -> None:
    mean, session = shown
    picture = heatmap(session.snapshot())
    for n, row in enumerate(picture["cells"], start=1):
        np.testing.assert_allclose(unpacked(row, "f4", n), mean[n - 1, :n], atol=1e-5)
    assert n == len(mean)
    session.document.append(7)
    session.document.read()
    grown = heatmap(session.snapshot())
    assert grown["cells"][:-1] == picture["cells"]  # so a frame carries only the new row
    assert len(json.dumps(grown["figure"])) < 5000
    session.document.undo()
    assert "average of heads" in picture["text"]
    session.selection = replace(session.selection, shading="attention")
    snapshot = session.snapshot()
    largest, _, levels = attention_shade(snapshot.text, snapshot.selection).partition(":")
    shades = unpacked(levels, "<u2", -1) / FULL * float(largest)
    np.testing.assert_allclose(shades, mean[POSITION, : POSITION + 1], atol=2e-5)


@pytest.mark.parametrize("layer", [0, 1])
def test_the_heatmap_is_blank_where_a_layer_does_not_see(layer: int) -> None:
    document = Generation(family_model("gemma3", block_size=48), "the cat sat on the mat")
    document.read()
    window, n = document.loaded.model.config.window_of(layer), document.n_read
    shown = attention_heatmap(Text.of(document), Selection(n - 1, layer, 1))
    rows = [unpacked(row, "<f4", -1) for row in shown["cells"]]
    z = np.array([np.pad(row, (0, n - len(row)), constant_values=np.nan) for row in rows])
    back = np.arange(n)[:, None] - np.arange(n)
    np.testing.assert_array_equal(np.isnan(z), (back < 0) | (back >= (window or n)))
    assert ("sees only the last 5 tokens" in shown["text"]) == (window == 5) == (layer == 0)
