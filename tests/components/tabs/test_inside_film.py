"""The film: its numbers are the model's, and its sentences are complete for every kind of model."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from components.i18n import LANGUAGES
from components.labels import percent, quoted, token_text
from components.state.example import example
from components.state.selection import NEWEST, Selection
from components.state.session import Session
from components.tabs.inside import film as films
from components.tabs.inside.film import BEATS, Stories, open_film, play_film, stories, write_next
from components.tabs.inside.scene import Chosen
from components.widgets.flow import PARTS
from gpt import SamplingParams, Tokenizer, distribution, get_model
from gpt.analysis.lens import lens_logits
from tests.components.tabs.inside_session import RANDOM_MODELS, Inside, document_of, random_document, trace_of
from tests.conftest import make_twins

LAYER, HEAD = 1, 2
ZONES = {"front", "text", "line", "machine"}  # what the camera can show besides parts of the picture


def filmed(inside: Inside, beat: str = "ending") -> dict[str, Any]:
    inside.session.film = beat
    film: dict[str, Any] = inside.shown("flow")["film"]
    return film


@pytest.fixture
def inside(byte_tokenizer: Tokenizer) -> Inside:
    _, model = make_twins(vocab_size=byte_tokenizer.n_vocab, n_positions=64, n_layer=3, n_head=3, n_embd=36)
    return Inside(document_of(model, byte_tokenizer), Selection(position=11, layer=LAYER, head=HEAD))


def test_the_tokens_that_are_asked_are_the_followed_one_and_those_with_the_largest_weights(inside: Inside) -> None:
    asked = filmed(inside)["asked"]
    row = trace_of(inside.session.document).layers[LAYER].attn_weights[0, HEAD, 11, :12].numpy()
    assert asked == sorted(asked)
    assert 11 in asked
    others = [i for i in range(inside.shown("flow")["start"], 11) if i not in asked]
    assert min(row[i] for i in asked if i != 11) >= max(row[others])
    says = filmed(inside)["words"]["answer"]["says"]
    largest = max(asked, key=lambda i: row[i])
    assert f"{round(100 * float(row[largest]))}%" in says


def test_the_token_that_counts_most_is_named_although_the_picture_begins_after_it(inside: Inside) -> None:
    inside.session.document.append(*[5] * 35)
    inside.session.document.read()
    inside.session.selection = Selection(position=60, layer=LAYER, head=HEAD)
    start = inside.shown("flow")["start"]
    rows = [trace_of(inside.session.document).layers[LAYER].attn_weights[0, head, 60] for head in range(3)]
    heads = [head for head, row in enumerate(rows) if row.argmax() < start]
    inside.session.selection = Selection(position=60, layer=LAYER, head=heads[0])
    says = filmed(inside)["words"]["answer"]["says"]
    target = inside.session.document.ids[int(rows[heads[0]].argmax())]
    assert f"{quoted(inside.session.document.tokenizer, target)} counts most" in says
    assert "before the part of the text" in says


def test_the_guesses_equal_the_lens_from_the_first_to_the_last_layer(inside: Inside) -> None:
    guesses, document = filmed(inside)["guesses"], inside.session.document
    assert [guess["layer"] for guess in guesses] == [0, 1, 2]
    for guess in guesses:
        logits = lens_logits(document.loaded.model, trace_of(document), guess["layer"], "resid_post", 11)
        p = (logits / inside.session.settings.temperature).softmax(0)
        assert guess["p"] == percent(p.max().item())


@pytest.mark.parametrize("name", ["stories", "poems"])
def test_at_the_text_that_opens_the_page_the_likeliest_token_is_drawn(name: str) -> None:
    document = example(get_model(name))
    draw = filmed(Inside(document, Selection(position=NEWEST)), "written")["draw"]
    settings = SamplingParams(temperature=0.8)
    likeliest = int(distribution(document.logits(len(document.ids) - 1), settings).final.argmax())
    assert draw["written"] == token_text(document.tokenizer, likeliest)


def test_the_draw_is_the_one_of_the_settings_and_the_token_it_names_is_written(inside: Inside) -> None:
    session, document = inside.session, inside.session.document
    session.selection = replace(session.selection, position=NEWEST)
    draw = filmed(inside, "written")["draw"]
    last = len(document.ids) - 1
    params = session.settings.sampling()
    final = distribution(document.logits(last), SamplingParams(temperature=params.temperature)).final
    _, start, p = draw["pieces"][draw["chosen"]]
    assert start <= draw["number"] < start + p
    assert p in np.round(final.numpy(), 6)
    assert draw["writes"]
    list(write_next(session, {}))
    assert token_text(session.document.tokenizer, session.document.ids[-1]) == draw["written"]
    assert session.selection.position == last, "the film goes on about the same token"
    again = filmed(inside, "written")
    assert (again["draw"]["pieces"], again["draw"]["number"]) == (draw["pieces"], draw["number"])
    assert not again["draw"]["writes"]
    assert quoted(session.document.tokenizer, session.document.ids[-1]) in again["words"]["written"]["says"]
    n = len(session.document.ids)
    list(write_next(session, {}))
    assert len(session.document.ids) == n, "once"


def test_a_text_with_another_next_token_is_not_changed(inside: Inside) -> None:
    film = filmed(inside)
    assert not film["draw"]["writes"]
    assert "stays as it is" in film["words"]["written"]["says"]


def test_the_bundled_model_tells_the_two_stories_apart_and_an_untrained_one_is_said_not_to(
    inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    def likeliest(name: str) -> list[str]:
        read = Stories.of(get_model(name))
        return [read.loaded.tokenizer.decode([int(logits.argmax())]).strip() for _, logits in read.texts]

    tokens, apart = likeliest("stories"), Stories.TEXTS["en"][2]
    assert tuple(tokens[:2]) == apart
    assert tokens[2] not in apart
    assert likeliest("poems")[:2] == ["乡", "家"], "what rhymes with 阳, and with 花"
    loaded, alike = inside.session.document.loaded, ((65,), inside.session.document.logits(0))
    for texts, beat, says in (((alike,) * 3, "differ", "hasn't learned"), ((), "ending", "can't read")):
        monkeypatch.setattr(films.Stories, "of", lambda _, texts=texts: Stories(loaded, texts))
        inside.session.keep(stories, None)
        assert says in filmed(inside)["words"][beat]["says"]


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", RANDOM_MODELS)
@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_every_sentence_is_complete(language: Any, name: str, temperature: float, byte_tokenizer: Tokenizer) -> None:
    inside = Inside(random_document(name, byte_tokenizer), Selection(position=2, layer=0, head=HEAD))
    inside.session.language = language
    inside.session.settings = replace(inside.session.settings, temperature=temperature)
    for layer in (0, 1, 2):
        inside.session.selection = Selection(position=11, layer=layer, head=HEAD)
        film = filmed(inside)
        assert (film["draw"]["number"] is None) == (temperature == 0)
        assert [beat["name"] for beat in film["beats"]] == list(film["words"])
        texts = [text for words in film["words"].values() for text in words.values()]
        assert all(texts)
        assert not [text for text in texts if re.search(r"[{}]|None|nan", text)]


def test_every_beat_shows_parts_that_the_picture_has() -> None:
    assert {part for beat in BEATS for part in (*beat.view, *beat.more)} <= {*PARTS} | ZONES
    assert 80 <= sum(beat.seconds for beat in BEATS) <= 90


def test_opening_stepping_and_leaving(inside: Inside) -> None:
    session = inside.session
    session.tab = "playground"
    open_film(session)
    assert (session.tab, session.film) == ("inside", "ending")
    for sent in ({"beat": 0}, {"beat": "none"}, {"beat": True}):
        play_film(session, sent)
        assert session.film == "ending"
    play_film(session, {"beat": "mix"})
    assert session.film == "mix"
    assert session.state(Chosen).film_plays, "a link opens it paused"
    play_film(session, {"beat": None})
    assert (session.film, session.tab) == (None, "inside")
    play_film(session, {"beat": "mix"})
    assert session.film is None
    with pytest.raises(ValueError, match="text"):
        open_film(Session(None))


def test_without_an_open_film_nothing_is_computed(inside: Inside) -> None:
    assert inside.shown("flow")["film"] is None
    assert inside.session.snapshot()[stories] is None
