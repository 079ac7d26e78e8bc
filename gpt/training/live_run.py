"""Small background training runs that can be paused, adjusted and cancelled, their records, and their queue."""

from __future__ import annotations

import atexit
import math
import os
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from shutil import make_archive
from tempfile import TemporaryDirectory
from typing import Any
from weakref import WeakSet

import torch

from gpt.background import lower_priority
from gpt.errors import GPTError, require
from gpt.model import GPT, meta_model
from gpt.models.checkpoints.writing import save_model
from gpt.models.loading import LoadedModel
from gpt.models.registry import add_loaded, remove_model
from gpt.training.data import Dataset
from gpt.training.recipe import Recipe
from gpt.training.snapshots import (
    Evaluation,
    RunProgress,
    State,
    attention_on,
    pack_weights,
    snapshot_steps,
    unpack_model,
)
from gpt.training.trainer import Trainer

N_EVALUATIONS = 32  # per run, each with a snapshot of the weights
MAX_SNAPSHOT_BYTES = 16_000_000  # limit for all snapshots of a run; larger models get fewer evaluations
TIME_LIMIT_SECONDS = 300.0
MAX_WAITING, MAX_WAITING_OF_OWNER = 16, 8


class LiveRun:
    """A training run in its own thread. All methods can be called from any thread.

    recipe: settings for the run. The dataset's block_size overrides the recipe's. time_limit_seconds: time from the
    start, including pauses, after which the run finishes early. rate_factor: multiplies the recipe's learning rates.
    registered_name: see `register`.
    """

    def __init__(self, dataset: Dataset, recipe: Recipe, *, time_limit_seconds: float = TIME_LIMIT_SECONDS) -> None:
        self.dataset, self.time_limit_seconds, self.rate_factor = dataset, time_limit_seconds, 1.0
        self.recipe = replace(recipe, block_size=dataset.block_size)
        self.config = self.recipe.model_config(dataset.vocabulary.n_vocab)
        self.n_parameters = meta_model(self.config).n_parameters
        self._thread: threading.Thread | None = None
        self._changed = threading.Condition()  # guards changes of the attributes below
        self._progress = RunProgress("waiting", self.recipe.steps)
        self._started = self._ended = math.inf
        self._model: GPT | None = None  # once it is trained
        self.registered_name: str | None = None

    def start(self, on_end: Callable[[], object] = lambda: None) -> None:
        """Start training. Does nothing if the run has already started or ended.

        on_end: called in the run's thread when it ends."""
        with self._changed:
            if self._enter("training", "waiting"):
                self._started = time.monotonic()
                self._thread = threading.Thread(target=self._run, args=[on_end], name="live training", daemon=True)
                self._thread.start()

    def pause(self) -> None:
        """Pause after the current update, until `resume` is called."""
        self._enter("paused", "training")

    def resume(self) -> None:
        self._enter("training", "paused")

    def cancel(self) -> None:
        """End the run after the current update. A cancelled run has no model."""
        self._enter("cancelled")

    def close(self) -> None:
        """Cancel the run, wait for its thread to end, and free the model and its name in the registry.

        Can be called repeatedly and in any state, but not from the run's own thread. The run is "cancelled" afterwards.
        """
        self.cancel()
        if self._thread is not None:
            self._thread.join()
        with self._changed:
            self._progress, self._model = RunProgress("cancelled", self.recipe.steps), None
            if self.registered_name is not None:
                remove_model(self.registered_name)
            self.registered_name = None

    def drop_evaluations(self) -> None:
        """Discard all evaluations and their snapshots, but keep the model."""
        self._note(evaluations=())

    def wait(self, timeout: float | None = None) -> bool:
        """Wait at most `timeout` seconds for the run to end. Returns whether it has ended."""
        with self._changed:
            return self._changed.wait_for(lambda: self._progress.ended, timeout)

    @property
    def state(self) -> State:
        return self._progress.state

    @property
    def progress(self) -> RunProgress:
        return replace(self._progress, seconds=max(0.0, min(time.monotonic(), self._ended) - self._started))

    @property
    def loaded(self) -> LoadedModel:
        """The trained model. Raises ValueError unless the run has finished and has not been closed."""
        model = self._model
        if model is None or self.state != "finished":
            raise GPTError("training.not_finished", state=self.state)
        return self._as_loaded(model)

    def save(self, folder: Path | str) -> None:
        """Write the model and its vocabulary in our own format, in float32. Raises the same errors as `loaded`."""
        save_model(folder, self.loaded.model, self.loaded.tokenizer, dtype=torch.float32)

    def write_archive(self, folder: Path) -> Path:
        """Write the files of `save` to a zip archive and return its path. Raises the same errors as `loaded`."""
        with TemporaryDirectory(dir=folder) as files:
            self.save(files)
            return Path(make_archive(str(folder / self.dataset.name), "zip", files))

    def register(self) -> str:
        """Register the model without listing it, and return its name. Raises the same errors as `loaded`.

        The model stays registered until `close` is called."""
        with self._changed:
            if self.registered_name is None:
                name = f"{self.dataset.name}-{secrets.token_hex(4)}"
                add_loaded(replace(self.loaded, name=name), listed=False)
                self.registered_name = name
            return self.registered_name

    def _run(self, on_end: Callable[[], object]) -> None:
        try:
            lower_priority()
            self._train(Trainer(self.recipe.new_model(self.dataset.vocabulary.n_vocab), self.recipe))
        except GPTError:  # the loss is not finite
            self._enter("diverged")
        finally:
            self._enter("crashed")
            on_end()

    def _train(self, trainer: Trainer) -> None:
        steps = self.recipe.steps
        moments = snapshot_steps(steps, max(2, min(N_EVALUATIONS, MAX_SNAPSHOT_BYTES // self.n_parameters)))
        self._evaluate(trainer)
        while trainer.step < steps and self._may_continue():
            factor = self.rate_factor
            rate = self.recipe.learning_rate * factor * self.recipe.lr_factor(trainer.step)
            loss = trainer.update(self.dataset.batch(trainer.step, self.recipe.batch_size), factor)
            self._note(losses=(*self._progress.losses, loss), rates=(*self._progress.rates, rate))
            if trainer.step in moments and trainer.step < steps:
                self._evaluate(trainer)
        if not self._progress.ended:
            self._evaluate(trainer)
            self._model = trainer.model.requires_grad_(False)  # before the run is seen to be finished
            self._enter("finished")

    def _may_continue(self) -> bool:
        """Wait while the run is paused. Returns False if the run was cancelled or has reached its time limit."""
        deadline = self._started + self.time_limit_seconds
        with self._changed:
            began = time.monotonic()
            self._changed.wait_for(lambda: self.state != "paused", max(0.0, deadline - began))
            self._note(paused_seconds=self._progress.paused_seconds + time.monotonic() - began)
            return self.state == "training" and time.monotonic() < deadline

    def _evaluate(self, trainer: Trainer) -> None:
        dataset = self.dataset
        evaluation = Evaluation(
            step=trainer.step,
            val_loss=trainer.loss(dataset.validation),
            accuracy=dataset.accuracy(trainer.model),
            samples=dataset.samples(self._as_loaded(trainer.model)),
            attn_weights=attention_on(trainer.model, dataset.example),
            weights=pack_weights(trainer.model),
        )
        self._note(evaluations=(*self._progress.evaluations, evaluation))

    def loaded_at(self, evaluation: Evaluation) -> LoadedModel:
        return self._as_loaded(unpack_model(self.config, evaluation.weights))

    def _as_loaded(self, model: GPT) -> LoadedModel:
        name = f"{self.dataset.name}, trained here"
        return LoadedModel(name, model, self.dataset.vocabulary, torch.device("cpu"), "fp32", "trained here")

    def _note(self, **changes: Any) -> None:
        with self._changed:
            self._progress = replace(self._progress, **changes)

    def _enter(self, state: State, only_from: State | None = None) -> bool:
        """Change the state of a run that has not ended, or only from one state. Returns whether it has changed."""
        with self._changed:
            if self._progress.ended or only_from not in (None, self.state):
                return False
            self._note(state=state)
            if self._progress.ended:
                self._ended = time.monotonic()
            self._changed.notify_all()
            return True


class RunQueue:
    """Starts queued runs in the order of their submission.

    max_running: how many runs train at the same time, including paused ones; defaults to half the number of cores.
    """

    def __init__(self, max_running: int | None = None) -> None:
        self.max_running = max_running or max(1, (os.cpu_count() or 1) // 2)
        self._lock = threading.RLock()
        self._owners: dict[LiveRun, str] = {}  # of the runs that have not ended, in the order of their submission
        self._submitted: WeakSet[LiveRun] = WeakSet()
        atexit.register(self.close)  # a daemon thread that uses torch while Python exits can abort the process

    def submit(self, run: LiveRun, owner: str = "") -> None:
        """Start a run or add it to the queue. owner: identifies the owner, such as a client's address.

        Raises ValueError if too many runs are waiting, either in total or for this owner.
        """
        with self._lock:
            waiting = self.waiting()
            n_own = [self._owners[each] for each in waiting].count(owner)
            require(len(waiting) < MAX_WAITING, "training.queue_full", n=MAX_WAITING)
            require(n_own < MAX_WAITING_OF_OWNER, "training.queue_full_of_owner", n=MAX_WAITING_OF_OWNER)
            self._owners[run] = owner
            self._submitted.add(run)
            self.waiting()

    def waiting(self) -> list[LiveRun]:
        """Start as many runs as can train, and return those that wait, in the order in which they will start."""
        with self._lock:
            self._owners = {run: owner for run, owner in self._owners.items() if not run.progress.ended}
            for run in [*self._owners][: self.max_running]:
                run.start(self.waiting)
            return [run for run in self._owners if run.state == "waiting"]

    def position(self, run: LiveRun) -> int:
        """Return a run's position in the queue: 1 for the next run to start, 0 for a run that is not queued."""
        waiting = self.waiting()
        return waiting.index(run) + 1 if run in waiting else 0

    def close(self) -> None:
        with self._lock:
            runs = sorted(self._submitted, key=lambda run: run.state != "waiting")
        for run in runs:  # close waiting runs first; otherwise they would start
            run.close()
