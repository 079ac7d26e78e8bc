"""`/metrics` for Prometheus, and `/healthz` for the supervisor that restarts the app.

Neither exposes visitors' texts.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
import traceback
from collections import Counter as Tally
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Literal

from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

import gpt.errors
from gpt import LoadedModel, list_models
from gpt.models.registry import models_in_memory

FOLDERS = (Path(gpt.errors.__file__).parent, Path(__file__).parent)
LOGGERS = ("app", __name__.rpartition(".")[0], gpt.errors.__name__.rpartition(".")[0])


class JSONLines(logging.Formatter):
    """Formats a record as {"time", "level", "event", ...}, followed by the event's fields."""

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, timezone.utc).isoformat(timespec="milliseconds")
        line = {"time": time, "level": record.levelname.lower(), "event": record.getMessage()}
        return json.dumps(line | getattr(record, "fields", {}))


def start_logging() -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(JSONLines())
    for name in LOGGERS:
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.INFO)


def place_of(problem: BaseException) -> str:
    """Return the file and line in this program that raised an exception, as "gpt/model.py:12"; "" if there is none."""
    places = [
        f"{path.relative_to(folder.parent).as_posix()}:{frame.lineno}"
        for frame in traceback.extract_tb(problem.__traceback__)
        for folder in FOLDERS
        if (path := Path(frame.filename)).is_relative_to(folder)
    ]
    return places[-1] if places else ""


PROBE_SECONDS = 5.0  # timeout for one forward pass, including the passes queued before it

SESSIONS = Gauge("glassbox_sessions", "Open sessions")
SESSION_BYTES = Gauge("glassbox_session_bytes", "Memory of all sessions")
TRAININGS_WAITING = Gauge("glassbox_trainings_waiting", "Training runs in the queue")
FIRST_TOKEN = Histogram(
    "glassbox_first_token_seconds",
    "From Generate to the first token, including waiting",
    buckets=(0.03, 0.1, 0.3, 1, 3, 10, 30),
)
ERRORS = Counter("glassbox_errors", "Errors: shown to visitors, unexpected, or while drawing", ["kind"])
REFUSED = Counter("glassbox_refused_requests", "Requests that were refused before gradio read them", ["status"])
for kind in ("sentence", "unexpected", "drawing"):
    ERRORS.labels(kind)

_log = logging.getLogger(__name__)


def count_error(kind: Literal["unexpected", "drawing"], problem: Exception) -> None:
    """Count and log an exception; with `python -X dev`, with its traceback, which may quote a visitor's text."""
    ERRORS.labels(kind).inc()
    fields = {"kind": kind, "type": type(problem).__name__, "place": place_of(problem)}
    _log.error("error", exc_info=problem if sys.flags.dev_mode else None, extra={"fields": fields})


def count_refusal(status: int, route: str) -> None:
    """Count and log a request that is rejected before gradio reads it. route: the first part of its path."""
    REFUSED.labels(status).inc()
    _log.info("request refused", extra={"fields": {"status": status, "route": route}})


def cluster_is_there() -> bool | None:
    """Return whether the cluster that runs the models is reachable, or None if there is no cluster."""
    deployed = [loaded.deployed for loaded in models_in_memory() if loaded.deployed is not None]
    return all(model.is_there for model in deployed) if deployed else None


class Models(Collector):
    """Reports the engines' counters by model; models trained by visitors are counted together."""

    def collect(self) -> Iterator[Metric]:
        listed = set(list_models())
        tokens, running, waiting = Tally[str](), Tally[str](), Tally[str]()
        for loaded in models_in_memory():
            name, engine = loaded.name if loaded.name in listed else "other", loaded.engine
            tokens[name] += engine.n_tokens
            running[name] += engine.admission.n_admitted
            waiting[name] += engine.admission.n_waiting
        families: list[tuple[CounterMetricFamily | GaugeMetricFamily, Tally[str]]] = [
            (CounterMetricFamily("glassbox_tokens", "Tokens that the model has read", labels=["model"]), tokens),
            (GaugeMetricFamily("glassbox_texts_running", "Texts being generated", labels=["model"]), running),
            (GaugeMetricFamily("glassbox_texts_waiting", "Texts in the queue", labels=["model"]), waiting),
        ]
        for family, values in families:
            for name, value in values.items():
                family.add_metric([name], value)
            yield family
        if (there := cluster_is_there()) is not None:
            yield GaugeMetricFamily("glassbox_cluster", "Whether the cluster is reachable", value=there)


REGISTRY.register(Models())


_probes: dict[int, threading.Thread] = {}  # running checks by engine
_probes_lock = threading.Lock()


def is_alive(loaded: LoadedModel) -> bool:
    """Return whether a model's engine reads one token within PROBE_SECONDS and still admits texts."""
    engine = loaded.engine

    def read() -> None:
        engine.read([0], loaded.model.new_cache(max_length=1))

    if loaded.deployed is not None:  # the cluster itself checks its replicas
        return not engine.admission.closed
    with _probes_lock:
        thread = _probes.get(id(engine))
        if thread is None or not thread.is_alive():
            thread = threading.Thread(target=read, name=f"probe of {loaded.name}", daemon=True)
            _probes[id(engine)] = thread
            thread.start()
    thread.join(PROBE_SECONDS)
    return not thread.is_alive() and not engine.admission.closed


def _metrics(request: Request) -> Response:
    return Response(generate_latest(REGISTRY), headers={"Content-Type": CONTENT_TYPE_LATEST})


def _health(request: Request) -> Response:
    """Return status 200 if a model is loaded and every engine runs, otherwise 503."""
    engines = {loaded.name: is_alive(loaded) for loaded in models_in_memory() if loaded.name in list_models()}
    healthy = bool(engines) and all(engines.values())
    there = cluster_is_there()
    cluster = {} if there is None else {"cluster": there}  # not counted as unhealthy, as this process keeps the texts
    return JSONResponse({"healthy": healthy, "engines": engines, **cluster}, 200 if healthy else 503)


ROUTES = [Route("/metrics", _metrics), Route("/healthz", _health)]
