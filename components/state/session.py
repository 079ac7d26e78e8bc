"""One browser tab's state. Handlers change a Session; views are drawn from a Snapshot of it."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from dataclasses import dataclass, fields, replace
from itertools import accumulate
from typing import Any, TypeVar

from components.limits import MAX_ARCHIVED_BYTES
from components.state.document_lock import DocumentLock
from components.state.snapshot import Shown, Snapshot
from components.state.text import HiddenWords, Selection, Text, Version
from components.state.typed_text import TypedText, shown_text
from gpt import Generation
from gpt.documents.document import History
from gpt.tokenizer import is_chat

S = TypeVar("S")
# Fields of a snapshot that are copied as they are.
COPIED = {each.name for each in fields(Snapshot)} - {
    *("text", "written", "hidden", "generating", "states", "handled", "_cache"),
}


@dataclass(frozen=True)
class ArchivedDocument:
    prompt: str
    text: str  # in the box
    model: str
    file: str  # the document as JSON
    history: History
    unwritten: str | None = None  # a text in the box that was replaced without becoming the document

    def restored(self) -> Generation:
        """Return the document with its history but without activations."""
        document = Generation.from_json(self.file)
        document.history = self.history.copy()
        return document


class Session(Shown):
    """One visitor's document, selection and settings, and the state of each tab.

    chat: whether the next text in the box is a chat message. edited: time of the last key press in the box, in ms on
    the browser's clock. inner_tabs: id of the inner tab that was left last, by enclosing tab. undo_stack, redo_stack:
    replaced documents, newest last. resources: closed with the session. address: "" if unknown.

    Each tab's state is a frozen dataclass (see `state` and `change`). The document changes only under `lock`; every
    other attribute is replaced as a whole and may be read at any time.
    """

    def __init__(
        self, document: Generation | None, prompt: str = "", selection: Selection | None = None, **values: Any
    ) -> None:
        super().__init__(prompt=prompt, selection=selection or Selection(), **values)
        if document is not None:
            self.loaded, self.model = document.loaded, document.loaded.name
        self.document = document
        self.chat, self.edited, self.address, self.picking = False, 0.0, "", ""
        self.inner_tabs: dict[str, str] = {}
        self._typed: TypedText | None = None
        self._edits_on: tuple[tuple[int, ...], Version | None] = (), None
        self.hidden = HiddenWords()
        self._visible: tuple[Version, frozenset[int], Text] | None = None
        self._visible_lock = threading.Lock()
        self.lock = DocumentLock()
        self.undo_stack: list[ArchivedDocument] = []
        self.redo_stack: list[ArchivedDocument] = []
        self.resources = ExitStack()
        self.sent: dict[Any, Any] = {}  # records of what the browser has received (see `components.render`)
        self.frame_number = 0
        self.handled: dict[tuple[str, str], int] = {}  # see is_new and mark_ended
        self.seen_frame: int | None = None  # the last frame that the browser received, if it missed a later one
        self.render_lock, self.analysing = threading.Lock(), threading.Lock()
        self.jobs = set[threading.Event]()  # running jobs (see `components.state.jobs`), by what stops them
        self._states: dict[Any, object] = {}  # by class, and the latest result by `Computed`
        self._states_lock = threading.Lock()

    def state(self, cls: type[S]) -> S:
        with self._states_lock:
            return self._states.setdefault(cls, cls())  # type: ignore[return-value]

    def change(self, cls: type[S], **changes: Any) -> S:
        with self._states_lock:
            before: Any = self._states.get(cls) or cls()
            changed: Any = replace(before, **changes)
            self._states[cls] = changed
            return changed

    def keep(self, key: object, result: object) -> None:
        """Store the latest result of something computed (see `components.state.reads`)."""
        with self._states_lock:
            self._states[key] = result

    def chosen(self) -> list[object]:
        """Return the current states of the tabs and panels."""
        with self._states_lock:
            return [state for state in self._states.values() if hasattr(state, "read_by_field")]

    def is_new(self, card: str, queue: str, number: int) -> bool:
        """Return whether a card's action is newer than all handled ones, and mark it as handled."""
        with self._states_lock:
            if number <= self.handled.get((card, queue), 0):
                return False
            self.handled[card, queue] = number
            return True

    def mark_ended(self, card: str, name: str, number: int) -> None:
        """Record the number of the newest action of this name that has ended, for the card's controls."""
        with self._states_lock:
            self.handled[card, name] = number

    def snapshot(self) -> Snapshot:
        """Return an immutable copy. Hold `lock.reading()` while reading more of its text."""
        with self.lock.reading():
            written, hidden, text = self._texts()
            with self._states_lock:
                states, handled = dict(self._states), dict(self.handled)
            return Snapshot(
                text=text,
                written=written,
                hidden=hidden,
                generating=self.lock.streaming,
                states=states,
                handled=handled,
                **{name: getattr(self, name) for name in COPIED},
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

    def select(self, **values: object) -> bool:
        """Set the selection's `position`, `layer` or `head`. Return False, changing nothing, if one does not exist.

        position: in the text as the model reads it, without hidden words. A value of None is left out.
        """
        chosen: dict[str, Any] = {name: value for name, value in values.items() if value is not None}
        with self.lock.reading():
            _, _, text = self._texts()
        if text is None:
            return False
        limits = {"position": len(text.ids), "layer": text.config.n_layer, "head": text.config.n_head}
        if not all(type(value) is int and 0 <= value < limits[name] for name, value in chosen.items()):
            return False
        if "position" in chosen:
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
        document = self.document
        return bool(self.undo_stack) or (document is not None and (document.can_undo or self.unwritten is not None))

    @property
    def can_redo(self) -> bool:
        return bool(self.redo_stack) or (self.document is not None and self.document.can_redo)

    @property
    def version(self) -> Version | None:
        return None if self.document is None else (self.document.key, self.document.path[-1])

    @property
    def edits_on(self) -> tuple[int, ...]:
        """Token ids of a prompt for the edits; empty if they apply to the document's text, or once that has changed."""
        ids, version = self._edits_on
        return ids if version == self.version else ()

    @edits_on.setter
    def edits_on(self, ids: tuple[int, ...]) -> None:
        self._edits_on = ids, self.version

    @property
    def is_chat(self) -> bool:
        """Return whether the document is a chat or, if there is none, whether the next one will be."""
        return self.chat if self.document is None else is_chat(self.document.tokenizer, self.document.prompt_ids)

    @property
    def typed(self) -> TypedText | None:
        """The last text from the box, or None once the document has changed in another way."""
        typed = self._typed
        return typed if typed is not None and typed.version == self.version else None

    @property
    def unwritten(self) -> str | None:
        """The text in the box if it did not become the document, or else None."""
        typed = self.typed
        return None if typed is None or typed.is_current else typed.text

    @property
    def next_prompt(self) -> str:
        """The text in the box if it did not become the document, or else the document's prompt."""
        unwritten = self.unwritten
        return self.prompt if unwritten is None else unwritten

    def set_typed(self, text: str | None, *, is_current: bool = True, **more: Any) -> None:
        """Record the text in the box. None makes the box show the document. is_current, more: see `TypedText`."""
        self._typed = None if text is None else TypedText(text, self.version, is_current, **more)
        self.answered = self.edited

    def push_undo(self, unwritten: str | None = None) -> None:
        """Archive the document to be restored by undo. The oldest are dropped beyond MAX_ARCHIVED_BYTES together."""
        self.redo_stack.clear()
        if self.document is not None:
            stack = [*self.undo_stack, self.archived(self.document, unwritten)]
            sizes = accumulate(len(each.file) for each in reversed(stack))
            self.undo_stack = stack[-max(1, sum(size <= MAX_ARCHIVED_BYTES for size in sizes)) :]

    def archived(self, document: Generation, unwritten: str | None = None) -> ArchivedDocument:
        text, name = shown_text(document), document.loaded.name
        return ArchivedDocument(self.prompt, text, name, document.to_json(), document.history.copy(), unwritten)

    def close(self) -> None:
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
