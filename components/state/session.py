"""What one visitor has open: the document and what is selected in it. Never shared with another visitor."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from components.state.document_lock import Turns
from components.state.settings import LIMITS, sampling_params
from components.state.token_statistics import Known
from components.tabs.playground.views import Deed, Look, Meter, sharpest_head
from gpt import Edits, FinishReason, Generation, LoadedModel, SamplingParams
from gpt.documents.branches import History

EXAMPLE_PROMPT = "Once upon a time, there was a little girl named Lily. She"
EXAMPLE_LENGTH = 40
EXAMPLE_SEED = 10
KEPT = 8  # texts that made room for another, and can be had back
FEW = 3  # tokens, where nothing of a text can be spelled


@dataclass(frozen=True)
class Left:
    """A text that made room for another one. prompt: what it started from; file: the document, as JSON."""

    prompt: str
    file: str
    history: History


@dataclass(frozen=True)
class Begun:
    """A text that one event has made ready and the next one writes.

    length: new tokens, at most. pace: tokens a second, 0 for full speed. when: by time.perf_counter().
    """

    document: Generation
    params: SamplingParams
    length: int
    pace: float
    turn: int
    when: float


class Session:
    """Mutable on purpose: a running stream sees a new selection at its next token.

    prompt: the text that the document started from. begun: what waits to be written. meter: of the last run. deed:
    what a person did since then. query: what is searched for in the vocabulary. edits: what the Change tab does to the
    model, for a text of its own; the document knows nothing of them. edits_on: the prompt that they are tried on, where
    it is not the document's. picking: the model that was picked and is on its way. earlier, later: texts that another
    took the place of, the newest last. Whoever changes the document holds a turn.

    No dataclass: gradio copies all that one holds which stands in a gr.State, at every start and for every visitor.
    """

    def __init__(
        self,
        document: Generation | None,
        prompt: str = EXAMPLE_PROMPT,
        look: Look | None = None,
        edits: Edits | None = None,
    ) -> None:
        self.document, self.prompt, self.look = document, prompt, look or Look()
        self.begun: Begun | None = None
        self.picking = ""
        self.meter: Meter | None = None
        self.finish_reason: FinishReason | None = None
        self.deed: Deed | None = None
        self.query = ""
        self.edits = edits or Edits()
        self.edits_on: tuple[int, ...] = ()
        self.known, self.turns = Known(), Turns()
        self.earlier: list[Left] = []
        self.later: list[Left] = []

    @property
    def can_undo(self) -> bool:
        """Whether there is something to take back, in this text or by going back to the one before."""
        return bool(self.earlier) or (self.document is not None and self.document.can_undo)

    @property
    def can_redo(self) -> bool:
        """Whether something was taken back last."""
        return bool(self.later) or (self.document is not None and self.document.can_redo)

    def drop(self) -> None:
        """What was made ready will not be written."""
        begun, self.begun = self.begun, None
        if begun is not None:
            self.turns.end(begun.turn)

    @contextmanager
    def changing(self) -> Iterator[None]:
        """For a change by hand, as `Turns.changing`."""
        self.drop()
        with self.turns.changing():
            yield

    def leave(self) -> None:
        """Before another document takes the place of this one: keep it, so that it can be had back."""
        self.later.clear()
        if self.document is not None:
            self.earlier = [*self.earlier, self.left()][-KEPT:]

    def left(self) -> Left:
        """The document as it is kept."""
        return Left(self.prompt, self.document.to_json(), self.document.history)


def opening(document: Generation) -> Session:
    """The session that every visitor starts with: the example, seen through a head that shows something."""
    layer, head = sharpest_head(document)
    session = Session(document, given(document), look=Look(layer=layer, head=head))
    session.known.of(document)
    return session


def given(document: Generation) -> str:
    """The text that the document started from."""
    return document.loaded.tokenizer.decode(document.ids[: document.n_prompt])


def spelled(loaded: LoadedModel, text: str) -> str:
    """A text that the model's vocabulary can spell: this one, or those of its words; else a few of its tokens."""
    tokenizer = loaded.tokenizer

    def known(part: str) -> bool:
        try:
            return bool(tokenizer.encode(part))
        except ValueError:
            return False

    if known(text) or (not text and tokenizer.eot_id is not None):
        return text
    words = " ".join(word for word in text.split() if known(word))
    return words if known(words) else tokenizer.decode([i % tokenizer.n_vocab for i in range(FEW)])


def first_prompt(loaded: LoadedModel, text: str = EXAMPLE_PROMPT, *, most: int | None = None) -> str:
    """An example as far as this model can spell it and has room for it, and for no more than `most` tokens."""
    prompt, block_size = spelled(loaded, text), loaded.model.config.block_size
    room = block_size if most is None else min(block_size, most)
    ids = loaded.tokenizer.encode(prompt)
    return prompt if len(ids) <= room else loaded.tokenizer.decode(ids[: max(1, room // 2)])


def text_state(document: Generation | None) -> tuple[int, int, int]:
    """Differs where another text is shown, or the model has read more of it; (0, 0, 0) for none."""
    if document is None:
        return 0, 0, 0
    n = document.n_read
    return document.key, n, document.path[n - 1] if n else -1


def example(loaded: LoadedModel) -> Generation:
    """A finished text, made once at start-up, so that nobody meets an empty page. Never changed afterwards."""
    document = Generation(loaded, first_prompt(loaded))
    params = sampling_params(temperature=LIMITS["temperature"].default, seed=EXAMPLE_SEED)
    for _ in document.steps(params, EXAMPLE_LENGTH):
        pass
    document.read()
    document.history = History(document.path[-1])  # no visitor did anything yet
    return document
