"""The pace of a text, and its turns."""

from types import SimpleNamespace
from typing import Any

from components.state import admission
from components.state.admission import Admission
from components.state.session import Session
from gpt.inference.admission import TURN_TOKENS, AdmissionQueue


def test_a_text_releases_its_openmp_threads_before_an_update_a_pause_and_the_turn_of_another(monkeypatch: Any) -> None:
    released: list[None] = []
    monkeypatch.setattr(admission, "release_threads", lambda: released.append(None))
    queue = AdmissionQueue(1)
    loaded: Any = SimpleNamespace(engine=SimpleNamespace(admission=queue))
    with queue.enter() as place, queue.enter():
        assert list(place) == []
        waiting = Admission(Session(None), place, loaded)
        updates = [
            is_due for _, is_due in waiting.paced(iter(range(99)), lambda _: queue.n_ahead(place) <= 0, lambda: 0)
        ]
    assert len(updates) == TURN_TOKENS
    assert len(released) == sum(updates) + 1

    released.clear()
    with queue.enter() as place:
        waiting = Admission(Session(None), place, loaded)
        updates = [is_due for _, is_due in waiting.paced(iter(range(2)), lambda _: True, lambda: 1)]
    assert len(released) == sum(updates) + 2
