"""A GPT that learns while somebody watches: in a thread of its own, to be paused, hurried, called off and kept."""

from __future__ import annotations

import math
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, Protocol

import numpy as np
import torch

from gpt.background import lower_priority
from gpt.errors import GPTError
from gpt.model import GPT
from gpt.models.checkpoints import save_model
from gpt.models.loading import LoadedModel
from gpt.models.registry import add_upload
from gpt.tokenizer import Vocabulary
from gpt.trace import Trace
from gpt.training.learner import Batch, Learner
from gpt.training.recipe import Recipe
from gpt.training.tasks import Sample

State = Literal["waiting", "training", "paused", "finished", "cancelled", "failed"]
OVER = ("finished", "cancelled", "failed")
LARGEST = {"n_layer": 4, "n_head": 8, "n_embd": 128, "block_size": 128, "batch_size": 64, "steps": 5000}
LOOKS = 40  # evaluations of a run, besides the one before the first step
TIME_LIMIT = 300.0  # seconds


class Material(Protocol):
    """What there is to learn: `gpt.training.tasks.TaskMaterial`, `gpt.training.own_text.TextMaterial`.

    held_back: what is never trained on. watched: ids of one held-back example, whose attention is looked at.
    accuracy is None where nothing is right or wrong.
    """

    name: str
    vocabulary: Vocabulary
    block_size: int
    held_back: Batch
    watched: list[int]

    def batch(self, step: int, size: int) -> Batch: ...

    def accuracy(self, model: GPT) -> float | None: ...

    def samples(self, loaded: LoadedModel) -> tuple[Sample, ...]: ...


@dataclass(frozen=True)
class LossPoint:
    """One update: the loss before it, in nats, and the learning rate it was made with."""

    step: int
    loss: float
    rate: float


@dataclass(frozen=True)
class Look:
    """How good the model is after so many updates, on what it has never seen.

    attn_weights: (n_layer, n_head, T, T) float16, of the material's watched example.
    """

    step: int
    val_loss: float
    accuracy: float | None
    samples: tuple[Sample, ...]
    attn_weights: np.ndarray


@dataclass(frozen=True)
class Progress:
    """A run at one moment. seconds: since it began to train, pauses included. problem: why it ended before its last step.

    paused: seconds of the pauses that are over.
    factor: what the learning rates of the recipe are multiplied by. place: 1 for the next to begin, 0 once it has.
    """

    state: State
    step: int
    steps: int
    seconds: float
    paused: float
    factor: float
    losses: tuple[LossPoint, ...]
    looks: tuple[Look, ...]
    problem: GPTError | None = None
    place: int = 0

    @property
    def over(self) -> bool:
        """Nothing will change any more."""
        return self.state in OVER


class LiveRun:
    """One training in the background. All methods can be called from any thread.

    recipe: its block_size is taken from the material. time_limit: seconds from the start, pauses included, after
    which the run ends with what it has learned. Raises ValueError for a recipe that is too large to be watched.
    """

    def __init__(self, material: Material, recipe: Recipe, *, time_limit: float = TIME_LIMIT) -> None:
        self.material, self.time_limit = material, time_limit
        self.recipe = replace(recipe, block_size=material.block_size)
        for name, most in LARGEST.items():
            if (value := getattr(self.recipe, name)) > most:
                raise GPTError("training.too_large_to_watch", name=name, limit=most, value=value)
        self.learner = Learner(self.recipe, material.vocabulary.n_vocab)
        self._changed = threading.Condition()  # guards everything below
        self._state: State = "waiting"
        self._problem: GPTError | None = None
        self._factor = 1.0
        self._losses: list[LossPoint] = []
        self._looks: list[Look] = []
        self._begun = self._ended = math.inf
        self._paused = 0.0

    def start(self, on_end: Callable[[], None] = lambda: None) -> bool:
        """Begin; on_end is called from the run's thread when it is over. False if it has begun or ended before."""
        with self._changed:
            if self._state != "waiting":
                return False
            thread = threading.Thread(target=self._run, args=(on_end,), name="live training", daemon=True)
            thread.start()  # it waits for what is changed here
            self._state, self._begun = "training", time.monotonic()
        return True

    def pause(self) -> None:
        """Stop after the update at hand, until `go_on`."""
        self._switch("training", "paused")

    def go_on(self) -> None:
        """End a pause."""
        self._switch("paused", "training")

    def change_rate(self, factor: float) -> None:
        """Multiply the learning rates of the recipe from the next update on. Raises ValueError outside of 0 to 100."""
        if not 0 <= factor <= 100:
            raise GPTError("training.rate_factor", factor=factor)
        with self._changed:
            self._factor = factor

    def cancel(self) -> None:
        """Call the run off, after the update at hand; it leaves no model."""
        self._end("cancelled")

    def wait(self, timeout: float | None = None) -> bool:
        """Until the run is over, or so many seconds; True if it is over."""
        with self._changed:
            return self._changed.wait_for(lambda: self._state in OVER, timeout)

    @property
    def state(self) -> State:
        """What the run is doing."""
        with self._changed:
            return self._state

    @property
    def progress(self) -> Progress:
        """The run at this moment; nothing in it changes later."""
        with self._changed:
            now = min(time.monotonic(), self._ended)
            return Progress(
                state=self._state,
                step=len(self._losses),
                steps=self.recipe.steps,
                seconds=max(0.0, now - self._begun),
                paused=self._paused,
                factor=self._factor,
                losses=tuple(self._losses),
                looks=tuple(self._looks),
                problem=self._problem,
            )

    @property
    def loaded(self) -> LoadedModel:
        """The model that was learned. Raises ValueError unless the run has finished."""
        if self.state != "finished":
            raise GPTError("training.not_finished", state=self.state)
        return self._as_loaded()

    def save(self, folder: Path | str) -> None:
        """Write the model in our own format, with its vocabulary, in full precision. Raises as `loaded` does."""
        loaded = self.loaded
        save_model(folder, loaded.model, loaded.tokenizer, dtype=torch.float32)

    def open(self) -> str:
        """Let `get_model` know the model by a name that is not in anybody's list; returns the name.

        `gpt.models.registry.remove_model` forgets it. Raises as `loaded` does.
        """
        with TemporaryDirectory() as folder:
            self.save(folder)
            name = f"{self.material.name}-{secrets.token_hex(4)}"
            return add_upload(list(Path(folder).iterdir()), name=name, listed=False)

    def _run(self, on_end: Callable[[], None]) -> None:
        try:
            lower_priority()
            self._learn()
        except GPTError as error:  # the numbers ran away
            self._end("failed", error)
        finally:
            self._end("failed", GPTError("training.broke_off"))
            on_end()

    def _learn(self) -> None:
        learner, steps = self.learner, self.recipe.steps
        every = max(1, steps // LOOKS)
        self._look()
        while learner.step < steps and self._may_go_on():
            with self._changed:
                factor = self._factor
            rate = learner.rate(factor)
            loss = learner.update(self.material.batch(learner.step, self.recipe.batch_size), factor)
            with self._changed:
                self._losses.append(LossPoint(learner.step, loss, rate))
            if learner.step % every == 0 and learner.step < steps:
                self._look()
        if self.state not in OVER:
            self._look()
            left = steps - learner.step
            problem = GPTError("training.time_limit", seconds=self.time_limit, left=left) if left else None
            self._end("finished", problem)

    def _may_go_on(self) -> bool:
        """Wait as long as there is a pause; False when the run was called off or its time is over."""
        deadline = self._begun + self.time_limit
        with self._changed:
            began = time.monotonic()
            self._changed.wait_for(lambda: self._state != "paused", max(0.0, deadline - began))
            self._paused += time.monotonic() - began
            return self._state == "training" and time.monotonic() < deadline

    def _look(self) -> None:
        """Measure the model on what it has not seen."""
        learner, material = self.learner, self.material
        trace = Trace()
        with torch.inference_mode():
            learner.model.hidden_states(torch.tensor([material.watched]), trace=trace)
        weights = torch.stack([layer.attn_weights[0] for layer in trace.layers])  # (n_layer, n_head, T, T)
        look = Look(
            step=learner.step,
            val_loss=learner.loss(material.held_back),
            accuracy=material.accuracy(learner.model),
            samples=material.samples(self._as_loaded()),
            attn_weights=weights.half().numpy(),
        )
        with self._changed:
            self._looks.append(look)

    def _as_loaded(self) -> LoadedModel:
        name = f"{self.material.name}, trained here"
        return LoadedModel(
            name, self.learner.model, self.material.vocabulary, torch.device("cpu"), "fp32", "trained here"
        )

    def _switch(self, before: State, after: State) -> None:
        with self._changed:
            if self._state == before:
                self._state = after
                self._changed.notify_all()

    def _end(self, state: State, problem: GPTError | None = None) -> None:
        """The first end counts."""
        with self._changed:
            if self._state not in OVER:
                self._state, self._problem, self._ended = state, problem, time.monotonic()
                self._changed.notify_all()
