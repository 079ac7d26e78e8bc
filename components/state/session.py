"""What one browser tab has open. Handlers change a Session; views are drawn from a Snapshot of it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from components.i18n import Language
from components.state.document_lock import DocumentLock
from components.state.selection import Selection
from components.state.settings import Settings
from components.state.snapshot import LastAction, Message, Snapshot
from components.state.text import Text
from components.state.throughput import Throughput
from components.state.token_statistics import TokenStatisticsCache
from gpt import Edits, FinishReason, Generation, SamplingParams
from gpt.documents.token_tree import History

S = TypeVar("S")
MAX_ARCHIVED_DOCUMENTS = 8  # texts that another took the place of, for undo


@dataclass(frozen=True)
class ArchivedDocument:
    """A text that another one took the place of. prompt: what it started from; file: the document, as JSON."""

    prompt: str
    file: str
    history: History


@dataclass(frozen=True)
class PendingGeneration:
    """A text that one event has made ready and the next one writes.

    length: new tokens, at most. pace: tokens a second, 0 for full speed. began: by time.perf_counter().
    """

    document: Generation
    params: SamplingParams
    length: int
    pace: float
    turn: int
    began: float


class Session:
    """The document, the selection and the settings of one visitor, and the state of each tab.

    prompt: the text that the document started from; typed: what stands in the prompt box.
    model: the one that is picked; loaded: the one that is there already, another one while that one comes.
    query: what is searched for in the vocabulary.
    edits: what the Change tab does to the model, for a text of its own.
    edits_on: the prompt that they are tried on, where it is not the document's.
    progress: what is being waited for. notice: what a person should know, or what went wrong.
    undo_stack, redo_stack: texts that another took the place of, the newest last.
    resources: what is freed when the session is closed.

    The state of a tab is a frozen dataclass of its own, see `state` and `change`. Whoever changes the document holds
    `lock`; everything else is replaced as a whole and may be read at any time.
    """

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
        self.id, self.language, self.tab, self.tab_clicked = id, language, "playground", 0.0
        self.document, self.prompt, self.typed = document, prompt, prompt
        self.loaded = None if document is None else document.loaded
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
        self.query = ""
        self.edits = edits or Edits()
        self.edits_on: tuple[int, ...] = ()
        self.token_statistics, self.lock = TokenStatisticsCache(), DocumentLock()
        self.undo_stack: list[ArchivedDocument] = []
        self.redo_stack: list[ArchivedDocument] = []
        self.resources = ExitStack()
        self.sent: dict[str, Any] = {}  # what the browser was given, see `components.render`
        self.frame_number, self.missed_frame = 0, False
        self.render_lock, self.analysing = threading.Lock(), threading.Lock()
        self._states: dict[type, object] = {}
        self._states_lock = threading.Lock()

    def state(self, cls: type[S]) -> S:
        """The state of one tab or panel, by its dataclass; its defaults at first."""
        with self._states_lock:
            return self._states.setdefault(cls, cls())  # type: ignore[return-value]

    def change(self, cls: type[S], **changes: Any) -> S:
        """Replace fields of the state of one tab or panel; the new state."""
        with self._states_lock:
            changed = replace(self._states.get(cls) or cls(), **changes)  # type: ignore[type-var]
            self._states[cls] = changed
            return changed  # type: ignore[return-value]

    def snapshot(self) -> Snapshot:
        """The session as it is now; for whoever holds `lock.reading()`."""
        document = self.document
        with self._states_lock:
            states = dict(self._states)
        return Snapshot(
            id=self.id,
            language=self.language,
            tab=self.tab,
            model=self.model,
            own_models=self.own_models,
            text=None if document is None else Text.of(document),
            prompt=self.prompt,
            typed=self.typed,
            settings=self.settings,
            selection=self.selection,
            generating=self.lock.streaming,
            can_undo=self.can_undo,
            can_redo=self.can_redo,
            throughput=self.throughput,
            finish_reason=self.finish_reason,
            last_action=self.last_action,
            progress=self.progress,
            notice=self.notice,
            query=self.query,
            edits=self.edits,
            edits_on=self.edits_on,
            loaded=self.loaded,
            token_statistics=self.token_statistics,
            states=states,
        )

    def select(self, *, position: object = None, layer: object = None, head: object = None) -> bool:
        """Select what exists in the text and its model; False, and nothing changed, where one of them does not."""
        document = self.document
        if document is None:
            return False
        config = document.loaded.model.config
        limits = {"position": len(document.ids), "layer": config.n_layer, "head": config.n_head}
        chosen = {"position": position, "layer": layer, "head": head}
        chosen = {name: value for name, value in chosen.items() if value is not None}
        if not all(type(value) is int and 0 <= value < limits[name] for name, value in chosen.items()):
            return False
        self.selection = replace(self.selection, **chosen)
        return True

    @property
    def busy(self) -> bool:
        """Whether something runs that must not be cut off: a text that is written, or work that a tab has begun."""
        return self.lock.streaming or any(getattr(state, "busy", False) for state in list(self._states.values()))

    @property
    def n_bytes(self) -> int:
        """Bytes of the document and of what the tabs keep, as far as they say it."""
        held = [getattr(state, "n_bytes", 0) for state in list(self._states.values())]
        return sum(held) + (0 if self.document is None else getattr(self.document, "n_bytes", 0))

    @property
    def can_undo(self) -> bool:
        """Whether there is something to take back, in this text or by going back to the one before."""
        return bool(self.undo_stack) or (self.document is not None and self.document.can_undo)

    @property
    def can_redo(self) -> bool:
        """Whether something was taken back last."""
        return bool(self.redo_stack) or (self.document is not None and self.document.can_redo)

    def set_throughput(self, throughput: Throughput) -> None:
        self.throughput = throughput

    def drop_pending(self) -> None:
        """Forget the generation that was made ready: it will not be written."""
        pending, self.pending = self.pending, None
        if pending is not None:
            self.lock.end(pending.turn)

    @contextmanager
    def changing(self) -> Iterator[None]:
        """For a change of the document by hand, as `DocumentLock.changing`."""
        self.drop_pending()
        with self.lock.changing():
            yield

    def push_undo(self) -> None:
        """Archive the document before another takes its place."""
        self.redo_stack.clear()
        if self.document is not None:
            self.undo_stack = [*self.undo_stack, self.archived_document()][-MAX_ARCHIVED_DOCUMENTS:]

    def archived_document(self) -> ArchivedDocument:
        """The document as it is archived."""
        return ArchivedDocument(self.prompt, self.document.to_json(), self.document.history)

    def close(self) -> None:
        """Stop what is being written and free everything that the session holds."""
        self.drop_pending()
        self.lock.take()
        self.resources.close()
        self.document, self.loaded, self._states, self.sent = None, None, {}, {}

    def copy(self) -> Session:
        """What another visitor starts with: the same text and selection, and the states of the tabs."""
        document = None if self.document is None else self.document.copy()
        if document is not None:
            document.key = self.document.key
        session = Session(document, self.prompt, self.selection)
        session._states = dict(self._states)
        return session
