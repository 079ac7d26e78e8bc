"""Generation with the unedited and the edited model, token by token."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from components.errors import PageError
from components.state.admission import Admission, admitted
from components.state.jobs import Job, started
from components.state.selection import NEWEST
from components.state.session import Session
from components.state.throughput import min_update_interval
from components.state.token_statistics import TokenStatisticsCache
from components.tabs.change.effect import read_document, turned_in
from components.tabs.change.state import ChangeState, WrittenPair, WrittenText, prompt_to_try
from components.text_views import document_lines
from gpt import Generation
from gpt.documents.comparison import paired_steps

UPDATE_SECONDS = 0.02  # minimum time between page updates


def generate_both(session: Session) -> Iterator[None]:
    """Generate both texts from the prompt, with Write's settings and the same seed.

    Both share one slot in the admission queue.
    """
    with session.lock.reading():
        s = session.snapshot()
        if s.text is None:
            raise PageError("error.no_text")
        document, prompt, held = s.text.document, prompt_to_try(s), ""
        if not prompt:
            prompt, held = s.text.ids[: document.n_prompt], document.held_after(document.n_prompt - 1)
    loaded, settings, turned = s.text.loaded, session.settings, turned_in(document)
    pair = WrittenPair(s.text.version, settings.sampling_with_seed(), settings.length, session.edits)
    pair.edits.check(loaded.model.config)
    with started(session, ChangeState, "writing") as job:
        yield
        with admitted(session, loaded) as waiting:
            for _ in waiting:
                yield
                if job.stopped.is_set():
                    return
            both = replace(pair.edits, steering=(*turned.steering, *pair.edits.steering))
            original = _Generator(Generation(loaded, prompt, held=held, edits=turned))
            writers = original, _Generator(Generation(loaded, prompt, held=held, edits=both))
            yield from _generate(session, job, pair, writers, settings.pace, waiting)


@dataclass(frozen=True)
class _Generator:
    document: Generation
    statistics: TokenStatisticsCache = field(default_factory=TokenStatisticsCache)

    @property
    def text(self) -> WrittenText:
        lines = document_lines(self.document, self.statistics)
        return WrittenText(str(self.document.key), tuple(self.document.ids), lines)


def _generate(
    session: Session,
    job: Job,
    pair: WrittenPair,
    writers: tuple[_Generator, _Generator],
    pace: float,
    waiting: Admission,
) -> Iterator[None]:
    documents = writers[0].document, writers[1].document
    for document in documents:
        document.read()

    def show(shown: WrittenPair) -> WrittenPair:
        shown = replace(shown, original=writers[0].text, edited=writers[1].text)
        session.change(ChangeState, written=shown)
        return shown

    try:
        show(pair)
        yield
        began, last = time.perf_counter(), 0.0
        for count, steps in enumerate(paired_steps(*documents, pair.params, pair.params, pair.length), start=1):
            for writer, step in zip(writers, steps, strict=True):
                if step is not None:
                    writer.statistics.add(writer.document, step)
            now = time.perf_counter()
            if now - last >= max(min_update_interval(documents[0].loaded), 0.0 if pace else UPDATE_SECONDS):
                last = now
                show(pair)
                yield
            if pace:
                waiting.rest()
                job.stopped.wait(max(0.0, began + count / pace - time.perf_counter()))
            for _ in waiting.after_token():
                if job.stopped.is_set():
                    break
            if job.stopped.is_set():
                return
    finally:
        documents[0].read()
        read = read_document(documents[0], ("written", documents[0].key), own=True)
        at = show(replace(pair, read=read)).divergence_index
        session.change(ChangeState, position=NEWEST if at is None else at - 1)
