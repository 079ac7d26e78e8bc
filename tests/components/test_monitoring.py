"""What a page says of itself to machines."""

from __future__ import annotations

import re
import threading

import gradio as gr
import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from components import monitoring
from components.events import Events
from components.render import Renderer
from components.state.session import Session
from components.state.store import SessionStore
from components.state.throughput import measured
from gpt import get_model

CLIENT = TestClient(Starlette(routes=monitoring.ROUTES))


def value(name: str) -> float:
    """A metric of the page, by its name with its labels."""
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


def test_the_first_token_of_each_text_is_timed() -> None:
    before = value("glassbox_first_token_seconds_count")
    list(measured(iter("abc"), 0, 0.0, lambda throughput: None))
    assert value("glassbox_first_token_seconds_count") == before + 1


@pytest.mark.parametrize(("problem", "kind"), [(ValueError, "sentence"), (KeyError, "unexpected")])
def test_events_that_fail_are_counted(problem: type[Exception], kind: str) -> None:
    def fail(session: Session) -> None:
        raise problem("x")

    store, session = SessionStore(), Session(None)
    store.put("0" * 32, session)
    with gr.Blocks() as page:
        events = Events(store, Renderer(), gr.Textbox(), gr.HTML())
        event = events.on(gr.Button().click, fail)
    before = value(f'glassbox_errors_total{{kind="{kind}"}}')
    with pytest.raises((gr.Error, KeyError)):
        page.fns[event["id"]].fn(None, session.id)
    assert value(f'glassbox_errors_total{{kind="{kind}"}}') == before + 1


def test_it_is_healthy_while_its_engine_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = get_model()
    answer = CLIENT.get("/healthz")
    assert (answer.status_code, answer.json()["healthy"]) == (200, True)
    assert answer.json()["engines"][loaded.name] is True
    monkeypatch.setattr(monitoring, "PROBE_SECONDS", 0.01)
    n_threads = threading.active_count()
    with loaded.engine._round_lock:
        answers = [CLIENT.get("/healthz") for _ in range(3)]
        assert threading.active_count() <= n_threads + 2
    assert [(answer.status_code, answer.json()["healthy"]) for answer in answers] == [(503, False)] * 3
    monkeypatch.undo()
    assert CLIENT.get("/healthz").status_code == 200


def test_without_a_model_it_is_not_healthy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monitoring, "models_in_memory", list)
    assert CLIENT.get("/healthz").status_code == 503
