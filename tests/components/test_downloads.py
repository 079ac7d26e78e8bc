"""A file is offered once at a secret address, and served until it is fetched or its session ends."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path

import gradio as gr
import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from components import downloads
from components.downloads import ROUTE, VIEW, DownloadState, offer
from components.events import Events
from components.render import Renderer
from components.state.session import Session
from components.state.store import SessionStore

CLIENT = TestClient(Starlette(routes=[ROUTE]))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The temporary folder, which must be empty after each test."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    yield tmp_path
    assert not list(tmp_path.iterdir())


def write(folder: Path, name: str = "a.bin") -> Path:
    (folder / name).write_bytes(b"abc")
    return folder / name


def offered(session: Session, name: str = "a.bin") -> dict[str, str]:
    """Return what the page receives."""
    steps = offer(session, lambda folder: write(folder, name))
    next(steps)
    told = VIEW.draw(session.snapshot())["file"]
    assert [*steps] == []
    assert VIEW.draw(session.snapshot())["file"] is None  # a reloaded page does not save it again
    return told


def test_a_file_is_served_until_it_has_been_fetched(folder: Path) -> None:
    session = Session(None)
    told = offered(session)
    assert told["name"] == "a.bin"
    assert str(folder) not in told["url"]
    assert CLIENT.head(told["url"]).status_code == 200
    assert CLIENT.get(f"{told['url']}x").status_code == 404
    answer = CLIENT.get(told["url"])
    assert answer.content == b"abc"
    assert 'filename="a.bin"' in answer.headers["content-disposition"]
    assert CLIENT.get(told["url"]).status_code == 404
    assert not list(folder.iterdir())
    session.close()


def test_a_session_has_one_file_of_each_name_until_it_is_closed(folder: Path) -> None:
    session = Session(None)
    first, second, other = offered(session), offered(session), offered(session, "b.bin")
    assert [CLIENT.head(told["url"]).status_code for told in (first, second, other)] == [404, 200, 200]
    assert len(list(folder.iterdir())) == 2
    session.close()
    assert CLIENT.get(other["url"]).status_code == 404


def test_beyond_the_bytes_of_all_sessions_the_oldest_file_goes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(downloads, "MAX_FILE_BYTES", 7)
    sessions = [Session(None) for _ in range(3)]
    told = [offered(session) for session in sessions]
    assert [CLIENT.head(each["url"]).status_code for each in told] == [404, 200, 200]
    for session in sessions:
        session.close()


def test_a_full_disk_is_a_sentence_and_nothing_is_left() -> None:
    def fail(folder: Path) -> Path:
        write(folder)
        raise OSError(errno.ENOSPC, "full")

    store, session = SessionStore(), Session(None)
    store.put("0" * 32, session)
    with gr.Blocks() as page:
        events = Events(store, Renderer(), gr.HTML(), gr.HTML())
        event = events.on(gr.Button().click, lambda session: (yield from offer(session, fail)))
    with pytest.raises(gr.Error, match="The server's disk is full"):
        list(page.fns[event["id"]].fn(None, session.id))
    assert session.state(DownloadState).kept == {}
