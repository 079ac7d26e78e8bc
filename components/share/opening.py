"""Opening a link: restoring its settings, regenerating its text and setting the selection."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from components.concepts import steer
from components.errors import message_of
from components.i18n import speaking, t
from components.limits import MAX_LENGTH
from components.share.address import Places, show_place
from components.share.link import VIEW, decode, replay
from components.share.sequence import SequenceState, open_sequence
from components.state.admission import admitted
from components.state.adoption import load_with_progress
from components.state.example import first_prompt, shown_prompt
from components.state.hidden import hide_again
from components.state.session import Session
from components.state.settings import LIMITS, Settings, sampling_params, sampling_values
from components.state.snapshot import Message, Throughput
from components.state.text import NEWEST
from gpt import DEFAULT_MODEL, Edits, Generation, LoadedModel, encode_prompt, list_models, with_seed
from gpt.documents.edit_text import parse_edits
from gpt.documents.generation import stream


@dataclass
class LinkRequest:
    """A link's content.

    parameters: the valid values; unusable values are removed. refused: names of the unusable parameters. problem: an
    error about them, if any.
    """

    parameters: dict[str, Any]
    refused: list[str] = field(default_factory=list)
    problem: Exception | None = None

    def refuse(self, *names: str) -> None:
        """Remove invalid link parameters and report them."""
        self.refused += [name for name in names if self.parameters.pop(name, None) is not None]

    def note(self, session: Session) -> None:
        """Show which parameters were rejected, and why."""
        with speaking(session.language, exact=session.numbers):  # the link may have just chosen another language
            sentences = [t("share.refused", names=", ".join(self.refused))] if self.refused else []
            if self.problem is not None:
                sentences.append(message_of(self.problem))
        if sentences:
            session.notice = Message("share.note", {"note": " ".join(sentences)})


def open_link(session: Session, query: str, places: Places) -> Iterator[None]:
    """Apply the query in the page's address; an empty query changes nothing.

    A query that only names a sequence opens one of its stops.
    """
    link = LinkRequest(*decode(query))
    parameters = link.parameters
    if "class" in parameters:
        _open_sequence(session, link)
    session.language = parameters.get("lang", session.language)
    if parameters.keys() - VIEW:
        yield from _generate(session, link)
    elif parameters.keys() & {"edits", "edits_on"} and session.document is not None:
        edits, session.edits_on = _edits(link, session.document.loaded)
        session.edits = replace(edits, steering=())
        steer(session, edits.steering)
    if parameters.keys() & {*LIMITS, "shading"} - {"temperature"}:
        session.more_controls = True
    link.refuse(*show_place(session, parameters, places))
    if parameters.get("attention") != "off":
        link.refuse("attention")
    if parameters.keys() - VIEW or parameters.keys() & {"hidden", "attention"}:
        hide_again(session, parameters)
    link.note(session)


def open_stop(session: Session, at: int, places: Places) -> Iterator[None]:
    """Show a stop in the open sequence. A stop without a text keeps the previous stop's text."""
    state = session.state(SequenceState)
    if not 0 <= at < len(state.stops):
        return
    session.change(SequenceState, at=at)
    _leave_stop(session)
    session.selection = replace(places.openings[session.language].selection, position=NEWEST)
    yield from open_link(session, state.stops[at].query, places)


def _leave_stop(session: Session) -> None:
    """Return to the Write tab and clear the film and the edits, because a stop shows only what its address names."""
    session.film, session.tab, session.notice = None, "playground", None
    session.edits, session.edits_on = Edits(), ()
    hide_again(session, {})


def _open_sequence(session: Session, link: LinkRequest) -> None:
    """Open a link's sequence, and take the place from its stop if the link names nothing else."""
    try:
        stop = open_sequence(session, link.parameters["class"], link.parameters.get("stop", 1) - 1)
    except ValueError as problem:
        link.problem = problem
        link.refuse("class", "stop")
        return
    if link.parameters.keys() <= {"class", "stop", "lang"}:
        _leave_stop(session)
        link.parameters.update(decode(stop.query)[0])


def _generate(session: Session, link: LinkRequest) -> Generator[None, None, None]:
    parameters = link.parameters
    values = {name: parameters.get(name, limit.default) for name, limit in LIMITS.items()}
    params = sampling_params(**values, seed=parameters.get("seed"))
    loaded = yield from _model(session, link)
    prompt, ids = _prompt(loaded, link)
    edits, edits_on = _edits(link, loaded)
    document = Generation(loaded, ids, edits=Edits(steering=edits.steering) if edits.steering else None)
    length = min(parameters.get("length", session.settings.length), MAX_LENGTH)
    typed_seed = str(params.seed) if "seed" in parameters else ""
    params = with_seed(params)
    session.settings = Settings(**sampling_values(params), length=length, seed=typed_seed, pace=session.settings.pace)
    turn = session.lock.begin()
    with session.lock.settling(turn):
        if session.can_undo:  # the current text was edited, so keep it for undo
            session.push_undo()
        session.document, session.prompt = document, prompt
        session.finish_reason = session.notice = None  # of the replaced text
        session.set_typed(None)
        session.model, session.loaded = loaded.name, loaded
        session.edits, session.edits_on = replace(edits, steering=()), edits_on
        session.selection = session.selection.clamped_to(loaded.model.config, position=NEWEST)
        session.throughput = Throughput(params.seed)
    session.progress = Message("status.reading")
    yield
    session.progress = None
    steps, began = stream(document, params, length), time.perf_counter()
    if "text" in parameters:
        steps = ((document, step) for step in replay(document, parameters["text"], params))
    try:
        with admitted(session, loaded) as waiting:
            yield from waiting
            yield from waiting.stream(turn, steps, params.seed, began)
    except ValueError as problem:  # unknown ids, or a full context
        link.refuse("text")
        link.problem = problem
    finally:
        session.progress = None
        session.lock.end(turn)
    with session.lock.settling():
        document.read()
        session.edits_on = edits_on
        session.finish_reason = session.finish_reason or "stopped"
        if len(document.ids) == document.n_prompt:  # the link has only a prompt, so nothing was generated
            session.throughput = session.last_action = None
    yield


def _model(session: Session, link: LinkRequest) -> Generator[None, None, LoadedModel]:
    name = link.parameters.get("model", session.model)
    if name in list_models():
        try:
            return (yield from load_with_progress(session, name))
        except ValueError as problem:
            link.problem = problem
    link.refuse("model", "text")
    if session.loaded is not None:
        return session.loaded
    return (yield from load_with_progress(session, DEFAULT_MODEL))


def _prompt(loaded: LoadedModel, link: LinkRequest) -> tuple[str, str | list[int]]:
    for name in ("prompt", "prompt_ids"):
        if name in link.parameters:
            prompt = link.parameters[name]
            try:
                document = Generation(loaded, prompt)
            except ValueError as problem:
                link.problem = problem
                link.refuse(name, "text")
            else:
                return shown_prompt(document), prompt
    return (prompt := first_prompt(loaded)), prompt


def _edits(link: LinkRequest, loaded: LoadedModel) -> tuple[Edits, tuple[int, ...]]:
    """Return the edits and their prompt; there are no edits if the model lacks the edited parts."""
    edits, ids = Edits(), link.parameters.get("edits_on", ())
    try:
        edits = parse_edits(link.parameters.get("edits", ""), loaded.model, loaded.concepts)
        edits.check(loaded.model.config)
    except ValueError:
        link.refuse("edits", "edits_on")
        return Edits(), ()
    try:
        return edits, tuple(encode_prompt(loaded, list(ids))) if ids else ()
    except ValueError:
        link.refuse("edits_on")
        return edits, ()
