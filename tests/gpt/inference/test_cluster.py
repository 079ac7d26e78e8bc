"""The client of a cluster, with an HTTP server that answers like the application."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from gpt.inference.cluster import MODEL_HEADER, Cluster, ConnectionLost

SPEC = {"name_or_path": "stories", "precision": "fp32", "n_head": 4}


class Application(BaseHTTPRequestHandler):
    """Answers with the lines in the request, and then keeps silent or closes the connection."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/-/healthz" else 404)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(asked["status"])
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for line in [*asked["lines"], self.headers[MODEL_HEADER]][: asked["n"]]:
            data = f"{line}\n".encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            self.wfile.flush()
        if asked["silent"]:
            while self.rfile.read(1):
                pass
            self.server.left.set()  # type: ignore[attr-defined]
        self.close_connection = True

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[ThreadingHTTPServer]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Application)
    server.left = threading.Event()  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def request(*lines: object, n: int = 99, status: int = 200, silent: bool = False) -> dict[str, Any]:
    return {"lines": [json.dumps(line) for line in lines], "n": n, "status": status, "silent": silent}


@pytest.fixture
def cluster(server: ThreadingHTTPServer) -> Cluster:
    return Cluster(f"http://127.0.0.1:{server.server_port}")


def received(stream: Any) -> list[Any]:
    return [reply for reply in stream if reply is not None]


def test_replies_arrive_in_order_up_to_the_end_and_the_model_is_named(cluster: Cluster) -> None:
    assert received(cluster.stream(SPEC, request({"a": 1}, {"a": 2}, {"end": True}, n=3))) == [{"a": 1}, {"a": 2}]
    model_id = next(reply for reply in cluster.stream(SPEC, request()) if reply is not None)
    assert model_id == SPEC


def test_an_error_of_the_replica_is_raised_here_with_its_key_and_values(cluster: Cluster) -> None:
    error = ["context.full", "the context of {n} tokens is full", {"n": 64}]
    with pytest.raises(ValueError, match="the context of 64 tokens is full") as raised:
        received(cluster.stream(SPEC, request({"error": error})))
    assert raised.value.key == "context.full"  # type: ignore[attr-defined]


@pytest.mark.parametrize(("status", "answered"), [(200, True), (500, True), (404, False)])
def test_a_stream_without_an_end_is_lost(cluster: Cluster, status: int, answered: bool) -> None:
    with pytest.raises(ConnectionLost) as lost:
        received(cluster.stream(SPEC, request({"a": 1}, n=1, status=status)))
    assert lost.value.answered == answered


def test_a_silent_stream_gives_none_until_it_is_closed(cluster: Cluster, server: Any) -> None:
    stream = cluster.stream(SPEC, request(silent=True, n=0))
    assert next(stream) is None
    stream.close()
    assert server.left.wait(30)


def test_a_silent_stream_is_lost_when_the_cluster_does_not_answer_any_more(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = cluster.stream(SPEC, request(silent=True, n=0))
    assert next(stream) is None
    monkeypatch.setattr(Cluster, "is_there", False)
    with pytest.raises(ConnectionLost):
        received(stream)
    with pytest.raises(ConnectionLost):
        received(cluster.stream(SPEC, request()))
