"""Waiting in the admission queues of models and of analyses, with a progress message; the pace of what is written."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

from components.limits import MAX_CONCURRENT_ANALYSES
from components.monitoring import FIRST_TOKEN
from components.state.session import Session
from components.state.snapshot import Message, Throughput
from gpt import Generation, LoadedModel, Step
from gpt.background import release_threads
from gpt.inference.admission import AdmissionQueue, Place

T = TypeVar("T")
S = TypeVar("S", Step, Step | None)
UPDATE_SECONDS = 0.05  # minimum time between two updates of the page by one visitor's text
UPDATE_COST_SECONDS = 0.005  # server time per update, excluding the model's share
MAX_UPDATE_SHARE = 0.5  # largest fraction of the server's time that updates may take
ANALYSES = AdmissionQueue(MAX_CONCURRENT_ANALYSES)  # the page's and the endpoints'


class Admission:
    """A session's place in the admission queues of models.

    Iterating over it waits for the texts ahead in the queue and stores their number in `session.progress`.
    """

    def __init__(self, session: Session, place: Place, *models: LoadedModel) -> None:
        self._session, self.place, self._models = session, place, models

    def __iter__(self) -> Iterator[None]:
        try:
            for before in self.place:
                self._session.progress = Message("status.waiting", {"before": before})
                yield
        finally:
            self._session.progress = None

    def paced(
        self, steps: Iterator[T], rest: Callable[[float], bool], pace: Callable[[], float]
    ) -> Iterator[tuple[T, bool]]:
        """Take steps until they end or the run is stopped, resting in between. Yields each step, and whether to update.

        A step may be None while a cluster is waited for. rest: waits for some seconds, or less if the run is stopped,
        and returns whether it goes on. pace: steps per second, asked after each step; 0 for as fast as possible.
        """
        due, updated = time.perf_counter(), -math.inf
        for step in steps:
            now, interval = time.perf_counter(), max(UPDATE_SECONDS, *map(min_update_interval, self._models))
            is_due = step is None or now - updated >= interval
            updated = now if is_due and step is not None else updated
            if is_due:
                release_threads()  # another thread may draw the next token
            yield step, is_due
            due = time.perf_counter() if step is None or not pace() else due + 1 / pace()  # waits are not caught up
            seconds = max(0.0, due - time.perf_counter())
            if seconds:
                self.place.rest()
            if not rest(seconds) or (step is not None and not all(rest(0) for _ in self.place.after_token())):
                return

    def stream(
        self,
        turn: int,
        steps: Iterator[tuple[Generation, Step | None]],
        seed: int | None,
        began: float,
        pace: Callable[[], float] = lambda: 0,
        *,
        shorten: bool = False,
    ) -> Iterator[None]:
        """Take the steps of `gpt.documents.generation.stream` while the session's stream has this turn.

        Yields whenever the page is to be updated. seed, began: as in `measured`. pace: as in `paced`. shorten: whether
        a step may drop tokens from the text.
        """
        session = self._session

        def taken() -> Iterator[Step | None]:
            for document, step in steps:
                session.progress = waiting_for_cluster(document.loaded) if step is None else None
                if step is not None:
                    session.document, session.finish_reason = document, step.finish_reason
                    session.token_statistics.add(document, step)
                    if step.finish_reason is not None:
                        document.read()  # keeps the next-token bars up to date
                yield step

        made = session.lock.steps(turn, measured(taken(), seed, began, session), shorten=shorten)
        for step, is_due in self.paced(made, partial(session.lock.rest, turn), pace):
            if is_due or (step is not None and step.finish_reason is not None):
                yield


@contextmanager
def admitted(session: Session, *models: LoadedModel) -> Iterator[Admission]:
    """Take a place in the models' queues: `with admitted(session, loaded) as waiting: yield from waiting; ...`."""
    with Place(*(loaded.engine.admission for loaded in models)) as place:
        yield Admission(session, place, *models)


def waiting_for_cluster(loaded: LoadedModel) -> Message:
    away = loaded.deployed is not None and not loaded.deployed.is_there
    return Message("status.cluster_away" if away else "status.cluster_busy")


def measured(steps: Iterator[S], seed: int | None, began: float, session: Session | None = None) -> Iterator[S]:
    """Pass on the steps of a generation, and update the throughput of the session, if there is one.

    steps: None is not a step (see `gpt.documents.generation.stream`). began: start of the request, from perf_counter().
    """
    count, seconds, first = 0, 0.0, 0.0
    for step in steps:
        if step is not None:
            first = first or time.perf_counter() - began
            if not count:
                FIRST_TOKEN.observe(first)
            count, seconds = count + 1, seconds + step.seconds
            if session is not None:
                session.throughput = Throughput(seed, count, seconds, first)
        yield step


def min_update_interval(loaded: LoadedModel) -> float:
    """Return the minimum number of seconds between two updates of one stream: 0 if there are no others."""
    admission = loaded.engine.admission  # waiting texts also count, because they may have begun: texts take turns
    return UPDATE_COST_SECONDS / MAX_UPDATE_SHARE * max(0, admission.n_admitted + admission.n_waiting - 1)
