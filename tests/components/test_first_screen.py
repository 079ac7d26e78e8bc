"""The first screen as plain HTML, and the middleware that inserts it into the page."""

from __future__ import annotations

import gzip
from typing import Any

import gradio as gr
import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from components.first_screen import MIN_ARC_SHARE, FirstScreen, first_screen, writing_steps
from components.i18n import LANGUAGES, t
from components.labels import percent
from components.state.session import Session
from components.state.typed_text import words_of
from components.tabs.playground.prediction import stages_of
from gpt import distribution, get_model
from gpt.analysis.saliency import logits_without_each
from tests.components.drawing import as_read, spoken_in

PAGE = "<html><head></head><body class='a'><p>page</p></body></html>"


@pytest.fixture
def client() -> TestClient:
    """Serve a page with two addresses and a first screen in its components."""

    def page(_: Request) -> HTMLResponse:
        return HTMLResponse(PAGE)

    def other(_: Request) -> PlainTextResponse:
        return PlainTextResponse(PAGE)

    class App(Starlette):
        def get_blocks(self) -> Any:
            with gr.Blocks() as blocks:
                gr.Textbox("not this")
            blocks.first_screen = "<i>screen</i>"  # type: ignore[attr-defined]
            return blocks

    routes = [Route("/", page, methods=["GET", "POST"]), Route("/other", page), Route("/text", other)]
    return TestClient(App(routes=routes, middleware=[Middleware(FirstScreen, head="<style></style>")]))


def test_it_shows_the_text_and_the_prediction_in_each_language_as_text():
    session = Session(as_read(get_model(), 'Tom said, "<b>Hello</b>'))
    html = first_screen(dict.fromkeys(LANGUAGES, session), ["playground", "look"])
    stages = stages_of(session.snapshot())
    assert stages is not None
    assert session.language == "en"
    assert html.count("<template") == len(LANGUAGES)
    for language in LANGUAGES:
        shown = html.split(f'<template data-language="{language}">')[1].split("</template>")[0]
        assert spoken_in(language, t, "generate") in shown
        assert spoken_in(language, t, "tab.look") in shown
        assert percent(float(stages.final.max())) in shown
        assert "<b>Hello" not in shown
        assert "&lt;" in shown


@pytest.mark.parametrize(
    ("model", "text"), [("stories", "Lily had a dog. Tom saw Lily"), ("poems", "白日依山尽，黄河入")]
)
def test_the_arc_of_each_step_is_what_leaving_words_out_of_the_text_so_far_finds(model: str, text: str):
    snapshot = Session(as_read(get_model(model), text)).snapshot()
    assert snapshot.text is not None
    ids, tokenizer, settings = snapshot.text.ids, snapshot.text.tokenizer, snapshot.settings.sampling()
    words, steps = words_of(tokenizer, ids), writing_steps(snapshot)
    assert len(steps) == len(words) - 1
    assert any(step["arc"] for step in steps)
    for step, word, number in zip(steps, words, range(len(words)), strict=False):
        seen = ids[: word.stop]
        whole, *parts = (
            distribution(logits, settings, previous_ids=seen).final
            for several in logits_without_each(get_model(model).model, seen, [(), *words[:number]])
            for logits in several
        )
        best = int(whole.argmax())
        shares = [1 - float(part[best] / whole[best]) for part in parts]
        largest = max(shares, default=0)
        assert step["bars"][0][1] == pytest.approx(float(whole[best]), abs=1e-5)
        if largest > MIN_ARC_SHARE:
            assert step["arc"] == (words[shares.index(largest)].start, pytest.approx(largest, abs=1e-3))
        else:
            assert step["arc"] is None


@pytest.mark.parametrize("encoding", ["gzip", "identity"])
def test_the_page_begins_with_it(client, encoding):
    answer = client.get("/", headers={"Accept-Encoding": encoding})
    assert answer.text == PAGE.replace("<p>", "<i>screen</i><p>").replace("</head>", "<style></style></head>")
    sent = gzip.compress(answer.content, 5) if encoding == "gzip" else answer.content
    assert int(answer.headers["content-length"]) == len(sent)
    assert answer.headers["vary"] == "Accept-Encoding"


def test_nothing_else_begins_with_it(client):
    assert client.get("/other").text == client.get("/text").text == client.post("/").text == PAGE
