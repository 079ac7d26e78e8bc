"""Metrics, health and logs of a page."""

from __future__ import annotations

import json
import logging
import re
import threading

import gradio as gr
import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from components import monitoring
from components.api.arguments import checked_text
from components.api.registration import register_endpoints
from components.monitoring import LOGGERS, start_logging
from gpt import get_model

CLIENT = TestClient(Starlette(routes=monitoring.ROUTES))


def value(name: str) -> float:
    """Return a metric of the page by its name and labels."""
    found = re.search(rf"^{re.escape(name)} (\S+)$", CLIENT.get("/metrics").text, flags=re.MULTILINE)
    assert found, name
    return float(found[1])


def test_the_engine_counts_tokens_and_who_waits() -> None:
    loaded = get_model()
    label = f'{{model="{loaded.name}"}}'
    before = value(f"glassbox_tokens_total{label}")
    with loaded.engine.admission.enter():
        assert value(f"glassbox_texts_running{label}") == 1
        assert value(f"glassbox_texts_waiting{label}") == 0
        CLIENT.get("/healthz")
    assert value(f"glassbox_tokens_total{label}") == before + 1
    assert value(f"glassbox_texts_running{label}") == 0


def test_calls_of_endpoints_are_timed_and_their_errors_counted() -> None:
    with gr.Blocks() as page:
        register_endpoints(page, get_model().name)
    calls = {str(each.api_name): each.fn for each in page.fns.values()}
    names = "glassbox_first_token_seconds_count", 'glassbox_errors_total{kind="sentence"}'
    before = [value(name) for name in names]
    assert "" in list(calls["generate"]("The dog", 2, 0))
    with pytest.raises(gr.Error):
        calls["tokenize"](5)
    assert [value(name) for name in names] == [count + 1 for count in before]


def test_an_error_is_logged_by_its_place_and_without_its_message(capsys: pytest.CaptureFixture[str]) -> None:
    loggers = [logging.getLogger(name) for name in LOGGERS]
    states = [(logger.handlers, logger.propagate, logger.level) for logger in loggers]
    start_logging()
    try:
        try:
            checked_text("prompt", "what a visitor wrote" * 10_000)
        except ValueError as problem:
            monitoring.count_error("unexpected", problem)
        monitoring.count_refusal(404, "closed")
    finally:
        for logger, (handlers, propagates, level) in zip(loggers, states, strict=True):
            logger.handlers, logger.propagate = handlers, propagates
            logger.setLevel(level)
    said = capsys.readouterr().err
    error, refusal = map(json.loads, said.splitlines())
    assert error["place"].startswith("components/api/arguments.py:")
    assert {name: error[name] for name in ("level", "event", "kind", "type")} == {
        "level": "error",
        "event": "error",
        "kind": "unexpected",
        "type": "PageError",
    }
    assert (refusal["event"], refusal["status"], refusal["route"]) == ("request refused", 404, "closed")
    assert "visitor" not in said


def test_it_is_healthy_while_its_engine_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = get_model()
    answer = CLIENT.get("/healthz")
    assert (answer.status_code, answer.json()["healthy"]) == (200, True)
    assert answer.json()["engines"][loaded.name] is True
    monkeypatch.setattr(monitoring, "PROBE_SECONDS", 0.01)
    with loaded.engine._pass_lock:
        answers = [CLIENT.get("/healthz") for _ in range(3)]
        assert [thread.name for thread in threading.enumerate()].count(f"probe of {loaded.name}") == 1
    assert [(answer.status_code, answer.json()["healthy"]) for answer in answers] == [(503, False)] * 3
    monkeypatch.undo()
    assert CLIENT.get("/healthz").status_code == 200
    monkeypatch.setattr(loaded.engine.admission, "closed", True)
    assert CLIENT.get("/healthz").status_code == 503
