"""Handling of requests by nginx and HAProxy, in front of two servers that echo what they receive."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest

from tests.deploy.balancers import NAMES, balancer

pytestmark = pytest.mark.balancer
N_VISITORS = 16  # with this many, the chance that one server gets all of them is 1 in 30,000


class Echo(BaseHTTPRequestHandler):
    """Answers with the request's headers and the server's port. `/slow` pauses in the middle of its answer."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if self.path.endswith("/slow"):
            self.answer_slowly()
            return
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        body = json.dumps({"port": self.server.server_port, "method": self.command, "headers": headers}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_HEAD = do_GET

    def answer_slowly(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.write(b"7\r\nfirst\n\n\r\n")
        self.server.go_on.wait(timeout=60)
        self.wfile.write(b"6\r\nlast\n\n\r\n0\r\n\r\n")

    def log_message(self, *args: object) -> None:
        pass


class EchoServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Echo)
        self.go_on, self.connections = threading.Event(), []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def close(self) -> None:
        """Stop and close open connections, like the end of a process."""
        self.go_on.set()
        self.shutdown()
        self.server_close()
        for connection in self.connections:
            with suppress(OSError):  # already closed
                connection.shutdown(socket.SHUT_RDWR)

    def process_request(self, request: socket.socket, client_address: object) -> None:
        self.connections.append(request)
        super().process_request(request, client_address)

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore closed connections, which are the balancer's to handle."""


@pytest.fixture
def servers() -> Iterator[list[EchoServer]]:
    running = [EchoServer(), EchoServer()]
    yield running
    for server in running:
        server.close()


@pytest.fixture(params=NAMES)
def url(request: pytest.FixtureRequest, servers: list[EchoServer], tmp_path: Path) -> Iterator[str]:
    with balancer(request.param, [server.server_port for server in servers], tmp_path) as address:
        yield address


def port(client: httpx.Client, path: str, **options: object) -> int:
    """Return the port of the server that answers a request."""
    answer = client.request(options.pop("method", "GET"), path, **options)
    assert answer.status_code == 200
    return int(answer.json()["port"])


def test_a_browser_stays_with_the_server_of_its_first_page_and_browsers_are_spread(url):
    ports = []
    for _ in range(N_VISITORS):
        with httpx.Client(base_url=url) as visitor:
            page = visitor.get("/")
            assert "httponly" in page.headers["Set-Cookie"].lower()
            ports.append(page.json()["port"])
            assert {port(visitor, path) for path in ("/gradio_api/queue/data", "/glassbox/page.js", "/")} == {ports[-1]}
            assert port(visitor, "/gradio_api/queue/join", method="POST", json={}) == ports[-1]
            assert [*visitor.cookies] == ["glassbox"]
    assert len(set(ports)) == 2


def test_a_program_without_cookies_stays_with_one_server(url):
    assert len({port(httpx, f"{url}/gradio_api/call/generate") for _ in range(N_VISITORS)}) == 1


def test_visitors_of_a_server_that_is_gone_go_to_the_other_one_without_an_error_and_the_others_stay(url, servers):
    visitors = [httpx.Client(base_url=url) for _ in range(N_VISITORS)]
    before = [port(visitor, "/") for visitor in visitors]
    gone, stays = servers
    gone.close()
    after = [port(visitor, "/gradio_api/queue/join", method="POST", json={}) for visitor in visitors]
    assert {*after} == {stays.server_port}
    assert {*before} == {gone.server_port, stays.server_port}
    assert port(httpx, f"{url}/gradio_api/call/generate") == stays.server_port


def test_visitors_can_claim_neither_another_address_nor_another_host(url):
    claimed = {"X-Forwarded-For": "203.0.113.7", "X-Forwarded-Host": "elsewhere.example", "X-Forwarded-Proto": "https"}
    headers = httpx.get(url, headers=claimed).json()["headers"]
    assert headers["x-forwarded-for"] == "127.0.0.1"
    assert headers["x-forwarded-host"] == headers["host"] == url.removeprefix("http://")
    assert headers["x-forwarded-proto"] == "http"


def test_events_are_passed_on_as_they_come(url, servers):
    with httpx.stream("GET", f"{url}/gradio_api/queue/data/slow", timeout=60) as stream:
        parts = stream.iter_raw()
        assert next(parts) == b"first\n\n"  # the server waits until this has arrived
        for server in servers:
            server.go_on.set()
        assert b"".join(parts) == b"last\n\n"


def test_metrics_are_not_for_visitors(url):
    assert httpx.get(f"{url}/metrics").status_code == 404


def test_a_body_that_the_app_takes_is_passed_on(url):
    assert port(httpx, f"{url}/gradio_api/upload", method="POST", content=b"x" * 16_000_000)
