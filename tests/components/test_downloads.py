"""A file is offered once, under a secret address, and served as long as its session keeps it."""

from __future__ import annotations

import gc
from pathlib import Path

from starlette.applications import Starlette
from starlette.testclient import TestClient

from components.downloads import ROUTE, SIGNAL, offer
from components.state.session import Session


def test_a_file_is_offered_once_and_served_until_its_session_goes(tmp_path: Path) -> None:
    client, session, path = TestClient(Starlette(routes=[ROUTE])), Session(None), tmp_path / "a.bin"
    path.write_bytes(b"abc")
    steps = offer(session, path)
    next(steps)
    told = SIGNAL.draw(session.snapshot())
    assert [*steps] == []
    assert told["name"] == "a.bin"
    assert SIGNAL.draw(session.snapshot()) is None  # a page that is loaded anew does not save it again
    assert str(tmp_path) not in told["url"]
    answer = client.get(told["url"])
    assert answer.content == b"abc"
    assert 'filename="a.bin"' in answer.headers["content-disposition"]
    assert client.get(f"{told['url']}x").status_code == 404
    path.unlink()
    assert client.get(told["url"]).status_code == 404
    path.write_bytes(b"abc")
    del session, steps
    gc.collect()
    assert client.get(told["url"]).status_code == 404
