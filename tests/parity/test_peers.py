"""The code of docs/peers.md finds the same in this library, TransformerLens and nnsight, and ours is the shortest."""

from __future__ import annotations

from typing import Any

import pytest
from torch.testing import assert_close

from benchmarks.peers import SET_UP, runner, tasks

pytestmark = pytest.mark.peers


@pytest.fixture(scope="module")
def names() -> dict[str, Any]:
    pytest.importorskip("transformer_lens")
    pytest.importorskip("nnsight")
    names: dict[str, Any] = {}
    for code in tasks()[SET_UP]:
        runner(code, names)()
    return names


@pytest.mark.parametrize("title", [title for title in tasks() if title != SET_UP])
def test_each_library_finds_the_same(title: str, names: dict[str, Any]) -> None:
    codes = tasks()[title]
    ours, *others = (len(code.splitlines()) for code in codes)
    assert ours <= min(others)
    found, *theirs = (runner(code, names)() for code in codes)
    for each in theirs:
        assert_close(each.detach(), found.detach(), atol=1e-4, rtol=1e-4)
