"""Generation: prepare, generate token by token, stop, take a single step, clear; its settings and its status."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from components.api.arguments import checked_text
from components.concepts import kept_edits
from components.i18n import t
from components.state.admission import Admission, admitted, measured, min_update_interval, waiting_for_cluster
from components.state.adoption import load_with_progress, remark
from components.state.example import encodable_text, fitting_text
from components.state.hidden import show_all
from components.state.knowledge import fitting_model, is_known_to
from components.state.session import PendingGeneration, Session
from components.state.settings import LIMITS, clamped, sampling_values
from components.state.snapshot import Message, Throughput
from components.state.text import NEWEST
from components.state.typed_text import name_spans, rest_ids, shown_tokens
from components.tabs.playground.box import Box
from components.text_views import count_sentence
from components.widgets.widget import Said
from gpt import Generation, LoadedModel, Step, get_model, list_models
from gpt.documents.generation import stream
from gpt.models.sources import POEMS, STORIES, corpus_of
from gpt.tokenizer import hold_back, is_chat, plain_text, prompt_ids, start_ids

UPDATE_SECONDS = 0.05  # minimum time between page updates
_END = object()


def tail_length(block_size: int) -> int:
    """Return how many tokens to keep from an overlong prompt."""
    return max(1, block_size // 2)


def written(prepare: Callable[..., Iterator[None]]) -> Callable[..., Iterator[None]]:
    """Make a handler that prepares generation with `prepare` and then runs it."""

    def write(session: Session, *values: Any) -> Iterator[None]:
        try:
            yield from prepare(session, *values)
            yield from generate(session)
        finally:
            finish(session)

    return write


def prepare(session: Session) -> Iterator[None]:
    """Prepare to continue the text in the box from its end; see `generate`."""
    yield from _prepare(session, partial(_text_of_box, session))


def prepare_again(session: Session) -> Iterator[None]:
    """Prepare to continue the prompt. The tokens after it remain as a branch."""

    def begin(loaded: LoadedModel) -> Generation | None:
        document = _text_of_box(session, loaded)
        if document is not None and 0 < (n_given := _n_given(document)) < len(document.ids):
            document.go_back(n_given - 1)
        return document

    yield from _prepare(session, begin)


def prepare_here(session: Session) -> Iterator[None]:
    """Prepare to continue after the selected token. The tokens after it remain as a branch."""
    here = session.document
    if here is None:
        session.notice = Message("error.no_text")
        return

    def begin(loaded: LoadedModel) -> Generation | None:
        if session.document is not here:
            return None
        if 0 <= session.selection.position < len(here.ids) - 1:
            here.go_back(session.selection.position)
        return here

    yield from _prepare(session, begin)


def prepare_prompt(session: Session, text: str | None = None) -> Iterator[None]:
    """Start a new document with the text in the box as its prompt, and prepare to continue it.

    text: fills the box first.
    """
    replaced = None if text is None else session.unwritten
    if text is not None:
        session.set_typed(text, is_current=False)
    yield from _prepare(session, lambda loaded: _start(session, loaded, session.next_prompt, replaced))


def pick_model(session: Session, name: str) -> Iterator[None]:
    """Prepare to generate with another model, unless it is the one in use or being loaded."""
    if name == session.picking or (session.document is not None and name == session.document.loaded.name):
        return
    session.picking = session.model = name
    try:
        yield from _prepare(session, lambda loaded: _start(session, loaded, fitting_text(loaded, session.next_prompt)))
    finally:
        session.picking = ""


def prepare_example(text: str, session: Session) -> Iterator[None]:
    """Fill the box with the part of an example that the model can encode, and prepare to continue it."""
    document = session.document
    if document is not None and document.loaded.name == session.model:
        text = encodable_text(document.loaded, text)
    yield from prepare_prompt(session, text)


def _prepare(session: Session, begin: Callable[[LoadedModel], Generation | None]) -> Iterator[None]:
    """Load the model, and prepare to continue the document that `begin` returns, if any.

    If this fails or is cancelled, the model in use is chosen again.
    """
    turn, began = session.lock.begin(), time.perf_counter()
    chosen, is_usable = session.model, False
    _reset(session)
    try:
        session.progress = Message("status.reading")
        yield
        params = session.settings.sampling_with_seed()
        loaded = yield from load_with_progress(session, chosen)
        with session.lock.beginning(turn) as has_turn:
            if has_turn and (document := begin(loaded)) is not None:
                session.selection = replace(session.selection, position=NEWEST)
                session.redo_stack.clear()
                slides = document.full
                if slides:
                    session.push_undo()
                length = session.settings.length
                session.pending = PendingGeneration(document, params, length, turn, began, slides)
        is_usable = True
    except ValueError as problem:
        session.notice = problem
    finally:
        session.progress = None
        used = session.loaded if session.document is None else session.document.loaded
        if not is_usable and used is not None and session.model == chosen:
            session.model = used.name
        _end_unless_pending(session, turn)


def generate(session: Session) -> Iterator[None]:
    """Run the prepared generation once it is admitted. Updates the page after each token, or less often under load."""
    pending, session.pending = session.pending, None
    if pending is None:
        return
    try:
        with admitted(session, pending.document.loaded) as waiting:
            for _ in waiting:
                yield
                with session.lock.writing(pending.turn) as has_turn:
                    if not has_turn:
                        return
            yield from _generate_steps(session, pending, waiting)
    finally:
        session.lock.end(pending.turn)


def _generate_steps(session: Session, pending: PendingGeneration, admission: Admission) -> Iterator[None]:
    document, lock = pending.document, session.lock
    with lock.writing(pending.turn) as has_turn:
        if not has_turn:
            return
        document.read()
        session.throughput = Throughput(pending.params.seed)
    yield

    params, length = pending.params, pending.length

    def made() -> Iterator[Step | None]:
        nonlocal document
        for current, step in stream(document, params, length, slides=pending.slides):
            document = current
            yield step

    steps = measured(made(), params.seed, pending.began, session.set_throughput)

    def taken() -> Iterator[Step | None]:
        while True:
            with (lock.beginning if pending.slides else lock.writing)(pending.turn) as has_turn:
                latest: Any = next(steps, _END) if has_turn else _END
                if latest is _END:
                    return
                session.progress = waiting_for_cluster(document.loaded) if latest is None else None
                if latest is not None:
                    session.take_step(document, latest)
            yield latest

    def interval() -> float:
        return max(min_update_interval(document.loaded), UPDATE_SECONDS)

    rest = partial(lock.rest, pending.turn)
    try:
        for step, is_due in admission.paced(taken(), rest, lambda: session.settings.pace, interval):
            if is_due or (step is not None and step.finish_reason is not None):
                yield
    finally:
        session.progress = None


def stop(session: Session) -> None:
    session.drop_pending()
    session.lock.take()
    finish(session)


def finish(session: Session) -> None:
    """Finish a stream: read the last token and update the status."""
    with session.lock.settling():
        if session.lock.streaming:  # another stream has begun, or the event that stopped this one updates the page
            return
        document = session.document
        if document is None or session.throughput is None:
            return
        document.read()
        session.finish_reason = session.finish_reason or "stopped"


def full_speed(session: Session) -> None:
    session.settings = session.settings.with_value("pace", 0)


def step(session: Session) -> Iterator[None]:
    params, loaded = session.settings.sampling_with_seed(), get_model(session.model)
    with admitted(session, loaded) as waiting:
        yield from waiting
        with session.changing():
            session.notice = None
            show_all(session)
            session.change(Box, too_long=0)
            document = _text_of_box(session, loaded)
            if document is None:
                return
            session.redo_stack.clear()
            if document.full:
                session.push_undo()
                document = session.document = document.without_first()
            steps = document.steps(params, 1)
            for made in measured(steps, params.seed, time.perf_counter(), session.set_throughput):
                document.read()
                session.finish_reason = None if made.finish_reason == "max_new_tokens" else made.finish_reason
            session.selection = replace(session.selection, position=NEWEST)
            session.notice = remark(session)


def switch_special(session: Session, on: object) -> Iterator[None]:
    """Choose whether names of control tokens in typed text become control tokens, and read the text again.

    If the prompt has such a name, it becomes a new document; otherwise, only text typed at the end is read again.
    """
    session.special = on is True
    if session.document is None:
        return
    loaded = session.document.loaded
    with admitted(session, loaded) as waiting:
        yield from waiting
        with session.changing():
            document: Generation | None = session.document
            if document is None:
                return
            if name_spans(loaded.tokenizer, session.prompt):
                document = _start(session, loaded, session.prompt)
            elif 0 < (n := _n_unchanged(document)) < len(document.ids):
                text = "".join(shown_tokens(document.tokenizer, document.ids, names=True)[n:])
                ids = rest_ids(document.tokenizer, document.ids[:n], text, special=session.special)
                document.retype(ids, n, document.held)
                session.set_typed(None)
            if document is not None:
                document.read()


def _n_unchanged(document: Generation) -> int:
    """Return the number of tokens before those typed at the end."""
    n = len(document.ids)
    return next((i + 1 for i in range(n - 1, -1, -1) if document.origin(i).kind != "typed"), 0)


def clear(session: Session) -> None:
    """Start an empty document. The model predicts from it only if the vocabulary has a start-of-text token."""
    loaded = get_model(session.model) if session.document is None else session.document.loaded
    with session.changing():
        if session.document is None or not _is_empty(session.document) or session.unwritten is not None:
            session.push_undo(session.unwritten)
        session.chat = session.is_chat
        session.throughput = session.last_action = session.finish_reason = session.notice = None
        edits = kept_edits(session, loaded)
        session.prompt, session.document = "", None
        session.set_typed(None)
        if start_ids(loaded.tokenizer) and not session.chat:
            session.document = Generation(loaded, "", edits=edits)
            session.document.read()
        session.selection = replace(session.selection, position=NEWEST)
        session.change(Box, too_long=0)


def prepare_tail(session: Session) -> Iterator[None]:
    """Keep only the end of an overlong prompt, half a context long, and prepare to continue it."""
    loaded = get_model(session.model)
    ids = loaded.tokenizer.encode(session.next_prompt)
    tail = loaded.tokenizer.decode(ids[-tail_length(loaded.model.config.block_size) :])
    yield from prepare_prompt(session, tail.lstrip("\ufffd"))


def _reset(session: Session) -> None:
    """Clear the status before a new run."""
    session.finish_reason = session.throughput = session.pending = session.notice = None
    show_all(session)
    session.last_action = Message("status.ready")
    session.change(Box, too_long=0)


def _text_of_box(session: Session, loaded: LoadedModel) -> Generation | None:
    """Return the document with the text in the box, or None if it exceeds the context.

    Raises ValueError if the text has characters outside the vocabulary.
    """
    document = session.document
    if document is not None and document.loaded is loaded and session.next_prompt == session.prompt:
        session.notice = remark(session)
        return document
    return _start(session, loaded, session.next_prompt)


def _start(session: Session, loaded: LoadedModel, text: str, replaced: str | None = None) -> Generation | None:
    """Put a new document with this prompt into the session. Returns None if the prompt is too long.

    replaced: a text in the box that had not become the document, and that this prompt replaces.
    """
    prompt, chat = checked_text("prompt", text), session.is_chat and loaded.tokenizer.is_chat
    message = loaded.tokenizer.encode_message(prompt) if chat and prompt else None
    if message is None:
        n = len(prompt_ids(loaded.tokenizer, hold_back(loaded.tokenizer, prompt)[0], special=session.special))
    else:
        n = len(message)
    session.set_typed(text, is_current=False)
    if n > loaded.model.config.block_size:
        session.change(Box, too_long=n)
        return None
    given, edits = prompt if message is None else message, kept_edits(session, loaded)
    document = Generation(loaded, given, edits=edits, special=session.special)
    session.push_undo(replaced)
    session.chat = chat
    session.document, session.prompt, session.model = document, prompt, loaded.name
    session.set_typed(None)
    session.selection = session.selection.clamped_to(loaded.model.config, position=NEWEST)
    session.notice = remark(session)
    return document


def _is_empty(document: Generation) -> bool:
    """Return whether a document has no characters in any branch."""
    return len(document.tree) == len(document.prompt_ids) and not document.text


def _n_given(document: Generation) -> int:
    """Return the number of tokens to generate from: the prompt or, in a chat, all tokens up to the last typed one."""
    n_prompt, n = document.n_prompt, len(document.ids)
    if not is_chat(document.tokenizer, document.ids):
        return n_prompt
    return next((i + 1 for i in range(n - 1, n_prompt - 1, -1) if document.origin(i).kind == "typed"), n_prompt)


def _end_unless_pending(session: Session, turn: int) -> None:
    if session.pending is None or session.pending.turn != turn:
        session.lock.end(turn)


# The lines about the text


def status(s: Any) -> str:
    if s.progress is not None:
        return t(s.progress.key, **s.progress.values)
    if s.text is None:
        return ""
    if s.throughput is not None:
        rate = s.throughput.tokens_per_second
        text = t(
            "status.running.exact" if s.numbers else "status.running",
            n=s.throughput.count,
            rate="–" if rate is None else f"{rate:.0f}",
            first=f"{1000 * s.throughput.first_seconds:.0f}",
            seed=s.throughput.seed,
        )
        if s.finish_reason is None:
            return text
        return f"{text} · {t(f'finish.{s.finish_reason}', limit=s.text.config.block_size)}"
    if s.last_action is None or s.last_action.key == "status.ready":
        return "" if s.hidden else t("prompt.hint")
    return t(s.last_action.key, **s.last_action.values)


def notice(s: Any) -> Said:
    too_long = s[Box].too_long
    if too_long and s.loaded is not None:
        return count_sentence(too_long, s.loaded.model.config.block_size)
    return s.notice


def knows(s: Any) -> str:
    """Point out that the model was not trained on texts like this one."""
    if s.loaded is None or is_known_to(s.loaded.name, s.next_prompt):
        return ""
    corpus = corpus_of(s.loaded.name)
    return t(f"knows.{'stories' if corpus == STORIES else 'poems' if corpus == POEMS else 'english'}")


def literal(s: Any) -> str:
    """Point out that the name of a control token in the text is read as characters."""
    name = None if s.special else s.cached(named)
    return "" if name is None else t("special.literal", name=name)


def named(s: Any) -> str | None:
    """Return the name of a control token that the text contains as characters, unless the text is a chat."""
    if s.written is None or s.chat:
        return None
    tokenizer = s.written.tokenizer
    text = plain_text(tokenizer, s.written.ids) if s.unwritten is None else s.unwritten
    return next((text[start:end] for start, end in name_spans(tokenizer, text)), None)


def offered_model(s: Any) -> str | None:
    """Return a listed model that was trained on texts like this one, if the current model was not."""
    if s.loaded is None or is_known_to(s.loaded.name, s.next_prompt):
        return None
    return fitting_model(list_models(), s.next_prompt)


def prepare_fitting(session: Session) -> Iterator[None]:
    """Prepare to generate with the first listed model that fits the text."""
    name = fitting_model(list_models(), session.next_prompt)
    if name is not None:
        yield from pick_model(session, name)


# The settings

_DEFAULTS = {name: limit.default for name, limit in LIMITS.items()}
PRESETS: dict[str, dict[str, Any]] = {
    "greedy": _DEFAULTS | {"temperature": 0.0},
    "careful": _DEFAULTS | {"temperature": 0.5, "top_p": 0.9},
    "balanced": _DEFAULTS,
    "wild": _DEFAULTS | {"temperature": 1.5},
}


def presets(s: Any) -> dict[str, dict[str, Any]]:
    """Return the presets by name: those above, and the settings that the model's own files suggest."""
    own = None if s.loaded is None else s.loaded.suggested
    if own is None:
        return PRESETS
    return PRESETS | {"own": {name: clamped(name, value) for name, value in sampling_values(own).items()}}


def choose_preset(session: Session, name: object) -> None:
    if name in (known := presets(session)):
        session.settings = replace(session.settings, **known[name])


def preset_of(s: Any) -> str | None:
    """Return the name of the preset with the present settings, or None if no preset matches."""
    now = {name: getattr(s.settings, name) for name in LIMITS}
    return next((name for name, values in presets(s).items() if values == now), None)


def set_value(name: str, session: Session, value: object) -> None:
    session.settings = session.settings.with_value(name, value)
