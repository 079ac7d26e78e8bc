"""One browser tab's state. Handlers change a Session; views are drawn from a Snapshot of it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields, replace
from itertools import accumulate
from typing import Any, TypeVar

from components.i18n import Language
from components.limits import MAX_ARCHIVED_BYTES
from components.state.document_lock import DocumentLock
from components.state.settings import Settings
from components.state.snapshot import LastAction, Message, Snapshot, Throughput
from components.state.text import HiddenWords, Selection, Text, TokenStatisticsCache
from components.state.typed_text import TypedText, shown_text, version_of
from gpt import Edits, FinishReason, Generation, SamplingParams, Step
from gpt.documents.document import History
from gpt.tokenizer import is_chat

S = TypeVar("S")
# Fields of a snapshot that are copied as they are.
COPIED = {each.name for each in fields(Snapshot) if each.init} - {
    *("text", "written", "hidden", "chat", "generating", "states", "handled", "_cache"),
}


@dataclass(frozen=True)
class ArchivedDocument:
    """A replaced document.

    prompt: its prompt. text: its text in the box. model: name of its model. file: the document as JSON. unwritten: a
    text in the box that had not become the document, and was replaced with it.
    """

    prompt: str
    text: str
    model: str
    file: str
    history: History
    unwritten: str | None = None

    def restored(self) -> Generation:
        """Return the document with its history but without activations."""
        document = Generation.from_json(self.file)
        document.history = self.history
        return document


@dataclass(frozen=True)
class PendingGeneration:
    """A generation run prepared by one event and carried out by the next.

    length: maximum number of new tokens. began: start time from time.perf_counter(). slides: whether the
    first token is dropped for each new one once the context is full.
    """

    document: Generation
    params: SamplingParams
    length: int
    turn: int
    began: float
    slides: bool = False


def newest(archived: list[ArchivedDocument]) -> list[ArchivedDocument]:
    """Return the newest documents up to MAX_ARCHIVED_BYTES together, but at least one."""
    sizes = [*accumulate(len(each.file) for each in reversed(archived))]
    return archived[-max(1, sum(size <= MAX_ARCHIVED_BYTES for size in sizes)) :]


class Session:
    """One visitor's document, selection and settings, and the state of each tab.

    prompt: the document's prompt. typed: the last text from the box.
    edited: time of the last key press in the box, in ms on the browser's clock. answered: time of the last key press
        before the current text.
    model: name of the chosen model; loaded: the model in use, which differs while the chosen one loads.
    chat: whether the next text in the box is a chat message.
    tab: id of the open tab; inner_tabs: id of the inner tab that was left last, by enclosing tab.
    film: name of the film's open beat, or None if the film is closed.
    link_opened: whether the loaded page's link has been opened. navigated: time of the newest tab click, Back
        or Forward, in ms on the browser's clock.
    query: search text for the vocabulary.
    numbers: whether the page shows all digits, and seeds, ids and speeds.
    special: whether names of control tokens in typed text become control tokens.
    hidden: the words that are hidden from the model.
    edits: the interventions made in the "Change it" tab.
    progress: a message about the task in progress. notice: a remark about the text, or an error.
    undo_stack, redo_stack: replaced documents, newest last.
    resources: closed with the session.
    address: the browser's network address, "" if unknown.

    is_mirror: always False (see `components.render.Page`).

    Each tab's state is a frozen dataclass (see `state` and `change`). The document changes only under `lock`; every
    other attribute is replaced as a whole and may be read at any time.
    """

    is_mirror = False

    def __init__(
        self,
        document: Generation | None,
        prompt: str = "",
        selection: Selection | None = None,
        edits: Edits | None = None,
        *,
        language: Language = "en",
        id: str = "",
    ) -> None:
        self.id, self.language, self.tab = id, language, "playground"
        self.inner_tabs: dict[str, str] = {}
        self.address = ""
        self.film: str | None = None
        self.link_opened, self.navigated = False, 0.0
        self.document, self.prompt = document, prompt
        self.typed: TypedText | None = None
        self.edited = self.answered = 0.0
        self.loaded = None if document is None else document.loaded
        self.chat = False
        self.model = "" if document is None else document.loaded.name
        self.own_models: tuple[str, ...] = ()
        self.settings, self.selection = Settings(), selection or Selection()
        self.pending: PendingGeneration | None = None
        self.picking = ""
        self.throughput: Throughput | None = None
        self.finish_reason: FinishReason | None = None
        self.last_action: LastAction | None = None
        self.progress: Message | None = None
        self.notice: Message | Exception | None = None
        self.query, self.numbers, self.special = "", False, False
        self.hidden = HiddenWords()
        self._visible: tuple[tuple[int, int], frozenset[int], Text] | None = None
        self._visible_lock = threading.Lock()
        self.edits = edits or Edits()
        self.edits_on = ()
        self.token_statistics, self.lock = TokenStatisticsCache(), DocumentLock()
        self.undo_stack: list[ArchivedDocument] = []
        self.redo_stack: list[ArchivedDocument] = []
        self.resources = ExitStack()
        self.sent: dict[Any, Any] = {}  # records of what the browser has received (see `components.render`)
        self.frame_number = 0
        self.handled: dict[tuple[str, str], int] = {}  # newest action by card and queue (see `cards`)
        self.seen_frame: int | None = None  # the last frame that the browser received, if it missed a later one
        self.render_lock, self.analysing = threading.Lock(), threading.Lock()
        self.jobs = set[threading.Event]()  # running jobs (see `components.state.jobs`), by what stops them
        self._states: dict[Any, object] = {}  # by class, and the latest result by `Computed`
        self._states_lock = threading.Lock()

    def state(self, cls: type[S]) -> S:
        """Return the current state of a tab or panel, given its dataclass. The initial state has the defaults."""
        with self._states_lock:
            return self._states.setdefault(cls, cls())  # type: ignore[return-value]

    def change(self, cls: type[S], **changes: Any) -> S:
        """Replace fields in the state of a tab or panel and return the new state."""
        return self.revise(cls, lambda before: changes)

    def revise(self, cls: type[S], changes: Callable[[S], Mapping[str, Any]]) -> S:
        """Like `change`, with fields computed from the current state, which no other thread changes meanwhile."""
        with self._states_lock:
            before: Any = self._states.get(cls) or cls()
            changed: Any = replace(before, **changes(before))
            self._states[cls] = changed
            return changed

    def keep(self, key: object, result: object) -> None:
        """Store the latest result of something computed (see `components.state.reads`)."""
        with self._states_lock:
            self._states[key] = result

    def chosen(self) -> list[object]:
        """Return the current states of the tabs and panels (see `components.kit`)."""
        with self._states_lock:
            return [state for state in self._states.values() if hasattr(state, "read_by_field")]

    def is_new(self, card: str, queue: str, number: int) -> bool:
        """Return whether a card's action is newer than all handled ones, and mark it as handled."""
        with self._states_lock:
            if number <= self.handled.get((card, queue), 0):
                return False
            self.handled[card, queue] = number
            return True

    def take_step(self, document: Generation, step: Step) -> None:
        """Show a step from the writing stream, and the document to which it was appended."""
        self.document, self.finish_reason = document, step.finish_reason
        self.token_statistics.add(document, step)
        if step.finish_reason is not None:
            document.read()  # keeps the next-token bars up to date

    def snapshot(self) -> Snapshot:
        """Return an immutable copy of the session. Hold `lock.reading()` while reading more of its text.

        If words are hidden, the model reads the text without them once.
        """
        with self.lock.reading():
            return self._snapshot()

    def _snapshot(self) -> Snapshot:
        written, hidden, text = self._texts()
        with self._states_lock:
            states, handled = dict(self._states), dict(self.handled)
        copied = {name: getattr(self, name) for name in COPIED}
        chat, generating = self.is_chat, self.lock.streaming
        return Snapshot(
            text=text,
            written=written,
            hidden=hidden,
            chat=chat,
            generating=generating,
            states=states,
            handled=handled,
            **copied,
        )

    def _texts(self) -> tuple[Text | None, frozenset[int], Text | None]:
        """Return the text as written, the hidden positions in it, and the text as the model reads it."""
        if self.document is None:
            return None, frozenset(), None
        written = Text.of(self.document)
        hidden = self.hidden.within(written)
        with self._visible_lock:
            if not hidden:
                self._visible = None
                return written, hidden, written
            if self._visible is None or self._visible[:2] != (written.version, hidden):
                self._visible = written.version, hidden, written.without(hidden)
            return written, hidden, self._visible[2]

    def select(self, *, position: object = None, layer: object = None, head: object = None) -> bool:
        """Set the selection. Return False, changing nothing, if the position, layer or head does not exist.

        position: in the text as the model reads it, without hidden words.
        """
        document, text = self.document, None
        if document is None:
            return False
        if self.hidden.positions:
            with self.lock.reading():
                _, _, text = self._texts()
        config, n = document.loaded.model.config, len(document.ids if text is None else text.ids)
        limits = {"position": n, "layer": config.n_layer, "head": config.n_head}
        given = {"position": position, "layer": layer, "head": head}
        chosen: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        if not all(type(value) is int and 0 <= value < limits[name] for name, value in chosen.items()):
            return False
        if "position" in chosen and text is not None:
            chosen["position"] = text.as_written(chosen["position"])
        self.selection = replace(self.selection, **chosen)
        return True

    @property
    def busy(self) -> bool:
        """Return whether a stream, a job or another task that must not be interrupted is running."""
        running = any(getattr(state, "busy", False) for state in list(self._states.values()))
        return self.lock.streaming or bool(self.jobs) or running

    @property
    def n_bytes(self) -> int:
        """Return the memory used by the document and by the states that report theirs, in bytes."""
        held = [getattr(state, "n_bytes", 0) for state in list(self._states.values())]
        visible = None if self._visible is None else self._visible[2].document
        return sum(held) + sum(getattr(document, "n_bytes", 0) for document in (self.document, visible))

    @property
    def can_undo(self) -> bool:
        """Return whether an action can be undone, in this document or by restoring an archived one."""
        document = self.document
        return bool(self.undo_stack) or (document is not None and (document.can_undo or self.unwritten is not None))

    @property
    def can_redo(self) -> bool:
        return bool(self.redo_stack) or (self.document is not None and self.document.can_redo)

    @property
    def edits_on(self) -> tuple[int, ...]:
        """Token ids of a prompt for the edits; empty if they apply to the document's text, or once that has changed."""
        ids, version = self._edits_on
        return ids if ids and version == version_of(self._text()) else ()

    @edits_on.setter
    def edits_on(self, ids: tuple[int, ...]) -> None:
        self._edits_on = ids, version_of(self._text())

    @property
    def is_chat(self) -> bool:
        """Return whether the document is a chat or, if there is none, whether the next one will be."""
        return self.chat if self.document is None else is_chat(self.document.tokenizer, self.document.prompt_ids)

    @property
    def unwritten(self) -> str | None:
        """Return the text in the box if it did not become the document, or else None."""
        typed = self.typed and self.typed.at(self._text())
        return None if typed is None or typed.is_current else typed.text

    @property
    def next_prompt(self) -> str:
        """Return the text in the box if it did not become the document, or else the document's prompt."""
        return self.prompt if self.unwritten is None else self.unwritten

    def set_typed(self, text: str | None, *, is_current: bool = True, **more: Any) -> None:
        """Record the text in the box. None makes the box show the document and discards typed text.

        is_current: whether it has become the document's text. more: further fields of `TypedText`.
        """
        version = version_of(self._text())
        self.typed = None if text is None else TypedText(text, version, is_current, **more)
        self.answered = self.edited

    def _text(self) -> Text | None:
        return None if self.document is None else Text.of(self.document)

    def set_throughput(self, throughput: Throughput) -> None:
        self.throughput = throughput

    def drop_pending(self) -> None:
        pending, self.pending = self.pending, None
        if pending is not None:
            self.lock.end(pending.turn)

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Hold the lock for an edit to the document, as in `DocumentLock.changing`, and drop the pending generation."""
        self.drop_pending()
        with self.lock.changing():
            yield

    def push_undo(self, unwritten: str | None = None) -> None:
        """Archive the document on the undo stack and clear the redo stack. unwritten: see `ArchivedDocument`."""
        self.redo_stack.clear()
        if self.document is not None:
            self.undo_stack = newest([*self.undo_stack, self.archived(self.document, unwritten)])

    def archived(self, document: Generation, unwritten: str | None = None) -> ArchivedDocument:
        """Return the session's document in archived form. unwritten: see `ArchivedDocument`."""
        text, name = shown_text(document), document.loaded.name
        return ArchivedDocument(self.prompt, text, name, document.to_json(), document.history.copy(), unwritten)

    def close(self) -> None:
        self.drop_pending()
        self.lock.take()
        self.resources.close()
        self.document, self.loaded, self._states, self.sent, self._visible = None, None, {}, {}, None

    def copy(self) -> Session:
        """Return a session for another visitor with the same text, selection and states."""
        document = None
        if self.document is not None:
            document = self.document.copy()
            document.key = self.document.key
        session = Session(document, self.prompt, self.selection)
        session._states = dict(self._states)
        return session
