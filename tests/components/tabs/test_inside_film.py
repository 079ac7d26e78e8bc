"""The film: its numbers are the model's, and its sentences are complete for every kind of model."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from components.labels import percent, token_text
from components.state.example import example
from components.state.hidden import hide
from components.state.session import Session
from components.state.text import NEWEST, Selection
from components.tabs.inside import film as films
from components.tabs.inside.film import (
    NAMES,
    TEXTS,
    asked_positions,
    film_card,
    look_inside,
    open_film,
    play_film,
    read_stories,
    stories,
)
from components.tabs.inside.scene import Chosen
from components.tabs.inside.tab import tab
from gpt import SamplingParams, Tokenizer, distribution, get_model
from gpt.analysis.lens import lens_logits
from tests.components.drawing import Drawn
from tests.components.tabs.inside_session import MODELS, TEXT, Inside, document_of, random_document, trace_of
from tests.conftest import make_twins

LAYER, HEAD = 1, 2


class Filmed(Inside):
    """A visitor who has opened the film."""

    def film(self, beat: str = "yours") -> dict[str, Any]:
        self.session.film = beat
        self.drawn = Drawn(self.session, tab, film_card({}))
        self.session.sent.clear()
        film: dict[str, Any] = self.shown("film")["film"]
        return film


@pytest.fixture
def inside(byte_tokenizer: Tokenizer) -> Filmed:
    _, model = make_twins(vocab_size=byte_tokenizer.n_vocab, n_positions=64, n_layer=3, n_head=3, n_embd=36)
    return Filmed(document_of(model, byte_tokenizer), Selection(position=11, layer=LAYER, head=HEAD))


def test_the_query_visits_the_tokens_with_the_largest_weights_and_the_arches_are_the_heads(inside: Filmed) -> None:
    film = inside.film()
    rows = trace_of(inside.session.document).layers[LAYER].attn_weights[0, :, 11, :12].numpy()
    asked = asked_positions(rows[HEAD])
    assert asked[-1] == 11
    assert min(rows[HEAD, asked[:-1]]) >= np.sort(rows[HEAD, :11])[-3]
    assert np.allclose(film["weights"], rows[:, asked], atol=1e-3)
    assert [each["asked"] for each in film["text"] if each["asked"] >= 0] == [0, 1, 2, 3]
    assert f"{percent(float(rows[HEAD].max()))}" in film["words"]["answer"]["says"]


def test_the_text_is_the_visitors_own_with_hidden_words_marked(inside: Filmed, monkeypatch: pytest.MonkeyPatch) -> None:
    hide(inside.session, (4, 5))
    said = {"word": "“a”", "guess": "“b”", "guess_p": "90%", "without": "10%"}
    monkeypatch.setattr(films, "main_cause", lambda s: ((6,), said))
    film = inside.film()
    assert "".join(each["text"] for each in film["text"]) == TEXT[: len(film["text"])]
    assert [i for i, each in enumerate(film["text"]) if each["hidden"]] == [4, 5]
    assert [i for i, each in enumerate(film["text"]) if each["cause"]] == [8], "as written, after the two hidden tokens"
    assert "hidden" in film["words"]["yours"]["says"]
    assert "from 90% to 10%" in film["words"]["cause"]["says"]


def test_the_guesses_equal_the_lens_from_the_first_to_the_last_layer(inside: Filmed) -> None:
    guesses, document = inside.film()["guesses"], inside.session.document
    assert [guess["layer"] for guess in guesses] == [0, 1, 2]
    for guess in guesses:
        logits = lens_logits(document.loaded.model, trace_of(document), guess["layer"], "resid_post", 11)
        assert guess["p"] == pytest.approx(
            (logits / inside.session.settings.temperature).softmax(0).max().item(), abs=1e-3
        )


@pytest.mark.parametrize("name", ["stories", "poems"])
def test_at_the_text_that_opens_the_page_the_likeliest_token_is_drawn(name: str) -> None:
    document = example(get_model(name))
    draw = Filmed(document, Selection(position=NEWEST)).film("written")["draw"]
    settings = SamplingParams(temperature=0.8)
    likeliest = int(distribution(document.logits(len(document.ids) - 1), settings).final.argmax())
    assert draw["pieces"][draw["chosen"]][0] == token_text(document.tokenizer, likeliest)


def test_the_draw_is_the_one_of_the_settings_and_the_film_changes_nothing(inside: Filmed) -> None:
    session, document = inside.session, inside.session.document
    session.selection = replace(session.selection, position=NEWEST)
    before = (list(document.ids), session.selection, session.settings)
    draw = inside.film("written")["draw"]
    _, start, p = draw["pieces"][draw["chosen"]]
    assert start <= draw["number"] < start + p
    params = SamplingParams(temperature=session.settings.temperature)
    assert p in np.round(distribution(document.logits(len(document.ids) - 1), params).final.numpy(), 6)
    for beat in (*NAMES, None):
        play_film({}, session, {"beat": beat})
    assert (list(session.document.ids), session.selection, session.settings) == before


def test_the_bundled_model_tells_the_two_stories_apart_and_an_untrained_one_is_said_not_to(
    inside: Filmed, monkeypatch: pytest.MonkeyPatch
) -> None:
    def likeliest(name: str) -> list[str]:
        loaded = get_model(name)
        return [loaded.tokenizer.decode([int(logits.argmax())]).strip() for _, logits in read_stories(loaded)]

    tokens, apart = likeliest("stories"), TEXTS["en"][2]
    assert tuple(tokens[:2]) == apart
    assert tokens[2] not in apart
    assert likeliest("poems")[:2] == ["乡", "家"], "what rhymes with 阳, and with 花"
    alike = ((65,), inside.session.document.logits(0))
    for texts, beat, says in (([alike] * 3, "differ", "hasn't learned"), ([], "ending", "can't read")):
        monkeypatch.setattr(films, "read_stories", lambda _, texts=texts: texts)
        inside.session.keep(stories, None)
        assert says in inside.film()["words"][beat]["says"]


@pytest.mark.parametrize(("language", "temperature"), [("en", 0.8), ("zh", 0.0)])
@pytest.mark.parametrize("name", MODELS)
def test_every_sentence_is_complete(language: Any, name: str, temperature: float, byte_tokenizer: Tokenizer) -> None:
    inside = Filmed(random_document(name, byte_tokenizer), Selection(position=2, layer=0, head=HEAD))
    inside.session.language = language
    inside.session.settings = replace(inside.session.settings, temperature=temperature)
    for layer in (0, 1, 2):
        inside.session.selection = Selection(position=11, layer=layer, head=HEAD)
        film = inside.film()
        assert (film["draw"]["number"] is None) == (temperature == 0)
        assert [beat["name"] for beat in film["beats"]] == list(film["words"])
        texts = [text for words in film["words"].values() for text in words.values()]
        assert all(texts)
        assert not [text for text in texts if re.search(r"[{}]|None|nan", text)]


def test_the_first_token_has_no_earlier_word(inside: Filmed) -> None:
    inside.session.selection = Selection(position=0, layer=LAYER, head=HEAD)
    assert "no earlier word" in inside.film()["words"]["cause"]["says"]


def test_opening_stepping_leaving_and_what_the_last_card_offers(inside: Filmed) -> None:
    session, taken = inside.session, list[str]()
    session.tab = "playground"
    play = partial(play_film, {"hide": lambda session: taken.append(session.tab)})
    open_film(session)
    assert (session.tab, session.film) == ("playground", "yours")
    for sent in ({"beat": 0}, {"beat": "none"}, {"beat": True}, {"beat": "yours", "next": "hide"}):
        play(session, sent)
        assert session.film == "yours"
    play(session, {"beat": "mix"})
    assert session.film == "mix"
    assert session.state(Chosen).film_plays, "a link opens it paused"
    play(session, {"beat": None, "next": "no"})
    assert (session.film, session.tab, taken) == (None, "playground", [])
    play(session, {"beat": None, "next": "hide"})
    assert taken == [], "it is closed"
    open_film(session)
    play(session, {"beat": None, "next": "hide"})
    assert taken == ["playground"]
    look_inside(session)
    assert (session.tab, session.state(Chosen).step) == ("inside", "numbers")
    with pytest.raises(ValueError, match="text"):
        open_film(Session(None))
