"""Generation: prepare, generate token by token, stop, take a single step, clear; its settings and its status."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from components.i18n import t
from components.state.admission import admitted, measured
from components.state.adoption import load_with_progress, remark
from components.state.example import encodable_text, fitting_text
from components.state.hidden import show_all
from components.state.knowledge import fitting_model, is_known_to
from components.state.session import Session
from components.state.settings import LIMITS, clamped, sampling_values
from components.state.snapshot import Message, Throughput
from components.state.text import NEWEST
from components.state.typed_text import name_spans, rest_ids, shown_tokens
from components.tabs.playground.box import READY, changed, model_of, take_text
from components.text_views import count_sentence
from components.widgets.widget import Said
from gpt import Generation, LoadedModel, SamplingParams, get_model, list_models
from gpt.documents.generation import stream
from gpt.models.sources import POEMS, STORIES, corpus_of
from gpt.tokenizer import is_chat, plain_text

Begin = Callable[[LoadedModel], Generation | None]


def go_on(session: Session) -> Iterator[None]:
    """Continue the text in the box from its end."""
    yield from write(session, partial(_text_of_box, session))


def go_on_here(session: Session) -> Iterator[None]:
    """Continue after the selected token. The tokens after it remain as a branch."""
    yield from write(session, lambda loaded: _beginning(session.document, session.selection.position + 1))


def write_again(session: Session) -> Iterator[None]:
    """Continue the prompt. The tokens after it remain as a branch."""
    yield from write(session, lambda loaded: _beginning(_text_of_box(session, loaded)))


def _beginning(document: Generation | None, n: int | None = None) -> Generation | None:
    """Return the document after ending its text after n tokens, by default those to generate from, if it has more."""
    n = _n_given(document) if n is None and document is not None else n
    if document is not None and n and n < len(document.ids):
        document.go_back(n - 1)
    return document


def write_prompt(session: Session, text: str | None = None) -> Iterator[None]:
    """Continue a new document with this prompt, by default the text in the box."""
    yield from write(session, lambda loaded: _new(session, loaded, session.next_prompt if text is None else text))


def write_example(text: str, session: Session) -> Iterator[None]:
    """Continue the part of an example that the model can encode."""
    yield from write(session, lambda loaded: _new(session, loaded, encodable_text(loaded, text)))


def write_tail(session: Session) -> Iterator[None]:
    """Continue the end of an overlong prompt, half a context long."""
    loaded = get_model(session.model)
    ids = loaded.tokenizer.encode(session.next_prompt)
    tail = loaded.tokenizer.decode(ids[-tail_length(loaded) :])
    yield from write_prompt(session, tail.lstrip("\ufffd"))


def tail_length(loaded: LoadedModel) -> int:
    return max(1, loaded.model.config.block_size // 2)


def pick_model(session: Session, name: str) -> Iterator[None]:
    """Continue the text with another model, unless it is the one in use or being loaded."""
    if name == session.picking or (session.document is not None and name == session.document.loaded.name):
        return
    session.picking = session.model = name
    try:
        yield from write(session, lambda loaded: _new(session, loaded, fitting_text(loaded, session.next_prompt)))
    finally:
        if session.picking == name:
            session.picking = ""


def write_fitting(session: Session) -> Iterator[None]:
    """Continue the text with the first listed model that fits it."""
    name = fitting_model(list_models(), session.next_prompt)
    if name is not None:
        yield from pick_model(session, name)


def write(session: Session, begin: Begin) -> Iterator[None]:
    """Load the chosen model, and continue the document that `begin` returns, if any.

    If the model cannot be loaded or cannot read the text, or the run is cancelled, the model in use is chosen again.
    """
    turn, began = session.lock.begin(), time.perf_counter()
    chosen, is_usable, document = session.model, False, None
    _reset(session)
    session.progress = Message("status.reading")
    try:
        yield
        params = session.settings.sampling_with_seed()
        loaded = yield from load_with_progress(session, chosen)
        with session.lock.settling(turn) as has_turn:
            if has_turn:
                document = _begin(session, loaded, begin)
        is_usable = True
        if document is not None:
            yield from _generate(session, document, params, turn, began)
    except ValueError as problem:
        session.notice = problem
    finally:
        session.progress = None
        used = session.loaded if session.document is None else session.document.loaded
        if not is_usable and used is not None and session.model == chosen:
            session.model = used.name
        session.lock.end(turn)
        finish(session)


def _begin(session: Session, loaded: LoadedModel, begin: Begin) -> Generation | None:
    """Return the document to continue, or None after saying why there is none."""
    document = begin(loaded)
    if document is not None:
        session.selection = replace(session.selection, position=NEWEST)
        session.redo_stack.clear()
        if document.full:
            session.push_undo()
    elif not session.too_long:
        session.notice = Message("error.no_text")
    return document


def _generate(
    session: Session, document: Generation, params: SamplingParams, turn: int, began: float
) -> Iterator[None]:
    """Continue the document once it is admitted. Updates the page after each token, or less often under load."""
    slides = document.full
    with admitted(session, document.loaded) as waiting:
        for _ in waiting:
            yield
            if session.lock.turn != turn:
                return
        with session.lock.writing(turn) as has_turn:
            if not has_turn:
                return
            document.read()
            session.throughput = Throughput(params.seed)
        yield
        steps = stream(document, params, session.settings.length, slides=slides)
        yield from waiting.stream(turn, steps, params.seed, began, lambda: session.settings.pace, shorten=slides)


def stop(session: Session) -> None:
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
    """Continue the text in the box by one token."""
    params, loaded = session.settings.sampling_with_seed(), get_model(session.model)
    with admitted(session, loaded) as waiting:
        yield from waiting
        with session.lock.changing():
            _reset(session)
            document = _begin(session, loaded, partial(_text_of_box, session))
            if document is None:
                return
            if document.full:
                document = session.document = document.without_first()
            steps = document.steps(params, 1)
            for made in measured(steps, params.seed, time.perf_counter(), session):
                document.read()
                session.finish_reason = None if made.finish_reason == "max_new_tokens" else made.finish_reason


def switch_special(session: Session, on: object) -> Iterator[None]:
    """Choose whether names of control tokens in typed text become control tokens, and read the text again.

    If the prompt has such a name, it becomes a new document; otherwise, only text typed at the end is read again.
    """

    def read_again(loaded: LoadedModel) -> None:
        document = session.document
        if document is None or name_spans(loaded.tokenizer, session.prompt):
            take_text(session, loaded, session.prompt, fresh=True)
            return
        n = len(document.ids)
        kept = next((i + 1 for i in range(n - 1, -1, -1) if document.origin(i).kind != "typed"), 0)
        if 0 < kept < n:
            text = "".join(shown_tokens(document.tokenizer, document.ids, names=True)[kept:])
            ids = rest_ids(document.tokenizer, document.ids[:kept], text, special=session.special)
            document.retype(ids, kept, document.held)
            session.set_typed(None)

    session.special = on is True
    if session.document is not None:
        yield from changed(session, read_again)


def clear(session: Session) -> None:
    """Empty the text. The model predicts from nothing only if the vocabulary has a start-of-text token."""
    loaded = model_of(session)
    with session.lock.changing():
        has_branches = session.document is not None and len(session.document.tree) > len(session.document.ids)
        take_text(session, loaded, "", fresh=has_branches)
        if session.document is not None:
            session.document.read()


def _reset(session: Session) -> None:
    session.finish_reason = session.throughput = session.notice = None
    show_all(session)
    session.last_action = READY
    session.too_long = 0


def _text_of_box(session: Session, loaded: LoadedModel) -> Generation | None:
    """Return the document with the text in the box. Returns and raises the same as `_new`."""
    document = session.document
    if document is not None and document.loaded is loaded and session.next_prompt == session.prompt:
        session.notice = remark(session)
        return document
    return _new(session, loaded, session.next_prompt)


def _new(session: Session, loaded: LoadedModel, text: str) -> Generation | None:
    """Return a new document with this prompt, or None if it exceeds the context or is empty without a start token.

    Raises ValueError if the text has characters outside the vocabulary.
    """
    return session.document if take_text(session, loaded, text, fresh=True) else None


def _n_given(document: Generation) -> int:
    """Return the number of tokens to generate from: the prompt or, in a chat, all tokens up to the last typed one."""
    n_prompt, n = document.n_prompt, len(document.ids)
    if not is_chat(document.tokenizer, document.ids):
        return n_prompt
    return next((i + 1 for i in range(n - 1, n_prompt - 1, -1) if document.origin(i).kind == "typed"), n_prompt)


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
    if s.too_long and s.loaded is not None:
        return count_sentence(s.too_long, s.loaded.model.config.block_size)
    return s.notice


def knows(s: Any) -> str:
    """Point out that the model was not trained on texts like this one."""
    if s.loaded is None or is_known_to(s.loaded.name, s.next_prompt):
        return ""
    corpus = corpus_of(s.loaded.name)
    return t(f"knows.{'stories' if corpus == STORIES else 'poems' if corpus == POEMS else 'english'}")


def literal(s: Any) -> str:
    """Point out that the name of a control token in the text is read as characters, unless the text is a chat."""
    if s.special or s.written is None or s.is_chat:
        return ""
    tokenizer = s.written.tokenizer
    text = plain_text(tokenizer, s.written.ids) if s.unwritten is None else s.unwritten
    name = next((text[start:end] for start, end in name_spans(tokenizer, text)), None)
    return "" if name is None else t("special.literal", name=name)


def offered_model(s: Any) -> str | None:
    """Return a listed model that was trained on texts like this one, if the current model was not."""
    return fitting_model(list_models(), s.next_prompt) if s.cached(knows) else None


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
