"""The first screen as plain HTML, and the middleware that puts it into the page."""

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

from components.first_screen import FirstScreen, first_screen
from components.i18n import LANGUAGES, t
from components.labels import percent
from components.state.session import Session
from components.tabs.playground.views.prediction import stages_of
from gpt import Generation, get_model

PAGE = "<html><head></head><body class='a'><p>page</p></body></html>"


@pytest.fixture
def client() -> TestClient:
    """A page with two addresses, and a first screen in its components."""

    def page(_: Request) -> HTMLResponse:
        return HTMLResponse(PAGE)

    def other(_: Request) -> PlainTextResponse:
        return PlainTextResponse(PAGE)

    class App(Starlette):
        def get_blocks(self) -> Any:
            with gr.Blocks() as blocks:
                gr.Textbox("not this")
                gr.State("<i>screen</i>")
            return blocks

    routes = [Route("/", page, methods=["GET", "POST"]), Route("/other", page), Route("/text", other)]
    return TestClient(App(routes=routes, middleware=[Middleware(FirstScreen, head="<style></style>")]))


def test_it_shows_the_text_and_the_prediction_in_each_language_as_text():
    document = Generation(get_model(), 'Tom said, "<b>Hello</b>')
    document.read()
    session = Session(document)
    html = first_screen(dict.fromkeys(LANGUAGES, session), ["playground", "reasons"])
    stages = stages_of(session.snapshot())
    assert stages is not None
    assert session.language == "en"
    assert html.count("<template") == len(LANGUAGES)
    for language in LANGUAGES:
        shown = html.split(f'<template data-language="{language}">')[1].split("</template>")[0]
        assert t("generate", language) in shown
        assert t("tab.reasons", language) in shown
        assert percent(float(stages.final.max())) in shown
        assert "<b>Hello" not in shown
        assert "&lt;" in shown


@pytest.mark.parametrize("encoding", ["gzip", "identity"])
def test_the_page_begins_with_it(client, encoding):
    answer = client.get("/", headers={"Accept-Encoding": encoding})
    assert answer.text == PAGE.replace("<p>", "<i>screen</i><p>").replace("</head>", "<style></style></head>")
    sent = gzip.compress(answer.content, 5) if encoding == "gzip" else answer.content
    assert int(answer.headers["content-length"]) == len(sent)
    assert answer.headers["vary"] == "Accept-Encoding"


def test_nothing_else_begins_with_it(client):
    assert client.get("/other").text == client.get("/text").text == client.post("/").text == PAGE
