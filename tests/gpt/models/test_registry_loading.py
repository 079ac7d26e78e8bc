"""Shared models load once each, in a separate thread, and again after a failure."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gpt.models import sources
from gpt.models.checkpoints import Checkpoint, open_checkpoint
from tests.gpt.models.registries import registry_for


class Gate:
    """Replaces open_checkpoint. Loads of one path wait for `may_load`; `opened` lists the paths of all loads."""

    def __init__(self, closed: Path) -> None:
        self.closed, self.opened = closed, []
        self.began, self.may_load = threading.Event(), threading.Event()

    def __call__(self, path: Path, *hints: object, **options: object) -> Checkpoint:
        self.opened.append(path)
        if path == self.closed:
            self.began.set()
            assert self.may_load.wait(10)
        return open_checkpoint(path, *hints, **options)


@pytest.fixture
def gate(folders: list[Path], monkeypatch: pytest.MonkeyPatch) -> Gate:
    """Make loads of the first folder wait."""
    gate = Gate(folders[0])
    monkeypatch.setattr(sources, "open_checkpoint", gate)
    return gate


def test_concurrent_requests_wait_for_one_load(folders: list[Path], gate: Gate) -> None:
    registry, names = registry_for(folders, 4)
    with ThreadPoolExecutor(8) as threads:
        asked = [threads.submit(registry.get, names[0]) for _ in range(8)]
        gate.may_load.set()
        assert len({id(each.result()) for each in asked}) == 1
    assert gate.opened == [folders[0]]


def test_one_model_does_not_wait_for_another(folders: list[Path], gate: Gate) -> None:
    registry, names = registry_for(folders, 4)
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(registry.get, names[0])
        assert registry.get(names[1]).name == names[1]
        assert not waiting.done()
        gate.may_load.set()


def test_failure_is_raised_in_all_waiting_callers_and_the_next_request_loads_again(
    folders: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    registry, names = registry_for(folders, 4)
    kept = registry.get(names[1])
    may_fail = threading.Event()

    def broken(path: Path, *_: object, **options: object) -> object:
        assert may_fail.wait(10)
        raise ValueError("the disk is broken")

    with monkeypatch.context() as patch, ThreadPoolExecutor(3) as threads:
        patch.setattr(sources, "open_checkpoint", broken)
        asked = [threads.submit(registry.get, names[0]) for _ in range(3)]
        may_fail.set()
        assert [str(each.exception(10)) for each in asked] == ["the disk is broken"] * 3
    assert registry.get(names[1]) is kept
    assert registry.get(names[0]).name == names[0]


def test_caller_that_stops_waiting_does_not_stop_the_load(
    folders: list[Path], gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry, _ = registry_for(folders, 4)

    monkeypatch.setattr(sources.hub, "download", lambda name, progress: progress(1, 2) or folders[0])
    registry.add("someone/model")
    with pytest.raises(ZeroDivisionError):
        registry.get("someone/model", lambda done, total: 1 // 0)
    gate.may_load.set()
    assert registry.get("someone/model").name == "someone/model"
    assert gate.opened == [folders[0]]


def test_a_source_that_changes_while_it_loads_is_loaded_again(folders: list[Path], gate: Gate) -> None:
    registry, _ = registry_for(folders, 4)
    name = registry.add(folders[0], name="mine")
    with ThreadPoolExecutor(1) as threads:
        before = threads.submit(registry.get, name)
        assert gate.began.wait(10)
        registry.add(folders[1], name="mine")
        now = registry.get(name)
        gate.may_load.set()
        assert before.result(10) is not now
    assert gate.opened == folders[:2]
    assert registry.get(name) is now


def test_a_load_that_cannot_begin_is_tried_again(folders: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    registry, (name, *_) = registry_for(folders, 4)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", lambda self: (_ for _ in ()).throw(RuntimeError("no more threads")))
        with pytest.raises(RuntimeError, match="no more threads"):
            registry.get(name)
    assert registry.get(name).name == name
