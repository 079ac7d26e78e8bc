"""Words hidden from the model, and attention switched off: the bars and sentences of Write."""

from __future__ import annotations

import re

import pytest
import torch

from components.labels import percent
from components.state.example import example
from components.state.reads import is_ready
from components.state.session import Session
from components.tabs.playground import box as boxes
from components.tabs.playground import prediction
from components.tabs.playground.prediction import VISIBLE_BARS
from components.words import words_of
from gpt import Edits, Generation, LoadedModel, distribution, get_model
from tests.components.drawing import compute_now
from tests.components.tabs.playground_session import drawn, new_session, type_in, write

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
    assert drawn(session, "bars")["text"].endswith(" Wide bars: with no words hidden.")
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


@pytest.mark.parametrize("sent", [{}, {"hidden": "2"}, {"hidden": [True, "x", -3, 10**9]}, {"hidden": list(range(13))}])
def test_positions_that_cannot_be_hidden_are_ignored(session: Session, sent: dict) -> None:
    boxes.hide_words(session, sent)
    assert drawn(session, "prompt")["hidden"] == []


def test_without_attention_every_word_sees_only_itself(session: Session) -> None:
    assert drawn(session, "prompt")["arcs"]
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
    document = Generation(get_model("untrained"), TEXT)
    document.read()
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
