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
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZIP_DEFLATED, ZipFile

import torch

from gpt.background import lower_priority
from gpt.errors import GPTError
from gpt.model import GPT
from gpt.models.checkpoints.writing import save_model
from gpt.models.loading import LoadedModel
from gpt.models.registry import add_upload, remove_model
from gpt.training.recipe import Recipe
from gpt.training.snapshots import (
    ENDED,
    Evaluation,
    LossPoint,
    RunProgress,
    State,
    attention_on,
    pack_weights,
    snapshot_steps,
    unpack_model,
)
from gpt.training.tasks import Dataset
from gpt.training.trainer import Trainer

N_EVALUATIONS = 32  # per run, each with a snapshot of the weights
MAX_SNAPSHOT_BYTES = 16_000_000  # limit for all snapshots of a run; larger models get fewer evaluations
TIME_LIMIT_SECONDS = 300.0
MAX_WAITING, MAX_WAITING_OF_OWNER = 16, 8


class LiveRun:
    """A training run in its own thread. All methods can be called from any thread.

    recipe: settings for the run. The dataset's block_size overrides the recipe's. time_limit_seconds: time from the
    start, including pauses, after which the run finishes early. registered_name: see `register`.
    """

    def __init__(self, dataset: Dataset, recipe: Recipe, *, time_limit_seconds: float = TIME_LIMIT_SECONDS) -> None:
        self.dataset, self.time_limit_seconds = dataset, time_limit_seconds
        self.recipe = replace(recipe, block_size=dataset.block_size)
        self._model: GPT | None = self.recipe.new_model(dataset.vocabulary.n_vocab).eval()
        self.config = self._model.config
        self.n_parameters = self._model.n_parameters
        self._thread: threading.Thread | None = None
        self._changed = threading.Condition()  # guards the attributes below
        self._state: State = "waiting"
        self._rate_factor = 1.0
        self._losses: list[LossPoint] = []
        self._evaluations: list[Evaluation] = []
        self._started = self._ended = math.inf
        self._paused_seconds = 0.0
        self._files_lock = threading.Lock()  # guards the attribute below; acquired before `_changed`
        self.registered_name: str | None = None

    def start(self, on_end: Callable[[], None] = lambda: None) -> bool:
        """Start training. Returns False if the run has already started or ended.

        on_end: called in the run's thread when it ends."""
        with self._changed:
            if self._state != "waiting" or self._model is None:
                return False
            arguments = (self._model, on_end)
            self._thread = threading.Thread(target=self._run, args=arguments, name="live training", daemon=True)
            self._state, self._started = "training", time.monotonic()
            self._thread.start()
        return True

    def pause(self) -> None:
        """Pause after the current update, until `resume` is called."""
        self._change_state("training", "paused")

    def resume(self) -> None:
        self._change_state("paused", "training")

    def set_rate_factor(self, factor: float) -> None:
        with self._changed:
            self._rate_factor = factor

    def cancel(self) -> None:
        """End the run after the current update. A cancelled run has no model."""
        self._end("cancelled")

    def close(self) -> None:
        """Cancel the run, wait for its thread to end, and free the model and its name in the registry.

        Can be called repeatedly and in any state, but not from the run's own thread. The run is "cancelled" afterwards.
        """
        self.cancel()
        if self._thread is not None:
            self._thread.join()
        with self._files_lock:
            with self._changed:
                self._state, self._model = "cancelled", None
                self._losses.clear()
                self._evaluations.clear()
            if self.registered_name is not None:
                remove_model(self.registered_name)
            self.registered_name = None

    def drop_evaluations(self) -> None:
        """Discard all evaluations and their snapshots, but keep the model."""
        with self._changed:
            self._evaluations.clear()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait at most `timeout` seconds for the run to end. Returns whether it has ended."""
        with self._changed:
            return self._changed.wait_for(lambda: self._state in ENDED, timeout)

    @property
    def state(self) -> State:
        with self._changed:
            return self._state

    @property
    def progress(self) -> RunProgress:
        with self._changed:
            now = min(time.monotonic(), self._ended)
            return RunProgress(
                state=self._state,
                step=len(self._losses),
                steps=self.recipe.steps,
                seconds=max(0.0, now - self._started),
                paused_seconds=self._paused_seconds,
                rate_factor=self._rate_factor,
                losses=tuple(self._losses),
                evaluations=tuple(self._evaluations),
            )

    @property
    def loaded(self) -> LoadedModel:
        """The trained model. Raises ValueError unless the run has finished and has not been closed."""
        with self._changed:
            if self._state != "finished" or self._model is None:
                raise GPTError("training.not_finished", state=self._state)
            return self._as_loaded(self._model)

    def save(self, folder: Path | str) -> None:
        """Write the model and its vocabulary in our own format, in float32. Raises the same errors as `loaded`."""
        loaded = self.loaded
        save_model(folder, loaded.model, loaded.tokenizer, dtype=torch.float32)

    def write_archive(self, folder: Path) -> Path:
        """Write the files of `save` to a zip archive and return its path. Raises the same errors as `loaded`."""
        path = folder / f"{self.dataset.name}.zip"
        with TemporaryDirectory(dir=folder) as files:
            self.save(files)
            with ZipFile(path, "w", ZIP_DEFLATED) as archive:
                for file in sorted(Path(files).iterdir()):
                    archive.write(file, file.name)
        return path

    def register(self) -> str:
        """Register the model without listing it, and return its name. Raises the same errors as `loaded`.

        The model stays registered until `close` is called."""
        with self._files_lock, TemporaryDirectory() as folder:
            if self.registered_name is None:
                self.save(folder)
                name = f"{self.dataset.name}-{secrets.token_hex(4)}"
                self.registered_name = add_upload(list(Path(folder).iterdir()), name=name, listed=False)
            return self.registered_name

    def _run(self, model: GPT, on_end: Callable[[], None]) -> None:
        try:
            lower_priority()
            self._train(Trainer(model, self.recipe))
        except GPTError:  # the loss is not finite
            self._end("diverged")
        finally:
            self._end("crashed")
            on_end()

    def _train(self, trainer: Trainer) -> None:
        steps = self.recipe.steps
        moments = snapshot_steps(steps, max(2, min(N_EVALUATIONS, MAX_SNAPSHOT_BYTES // self.n_parameters)))
        self._evaluate(trainer)
        while trainer.step < steps and self._may_continue():
            with self._changed:
                factor = self._rate_factor
            rate = trainer.learning_rate(factor)
            loss = trainer.update(self.dataset.batch(trainer.step, self.recipe.batch_size), factor)
            with self._changed:
                self._losses.append(LossPoint(trainer.step, loss, rate))
            if trainer.step in moments and trainer.step < steps:
                self._evaluate(trainer)
        if self.state not in ENDED:
            self._evaluate(trainer)
            self._end("finished")

    def _may_continue(self) -> bool:
        """Wait while the run is paused. Returns False if the run was cancelled or has reached its time limit."""
        deadline = self._started + self.time_limit_seconds
        with self._changed:
            began = time.monotonic()
            self._changed.wait_for(lambda: self._state != "paused", max(0.0, deadline - began))
            self._paused_seconds += time.monotonic() - began
            return self._state == "training" and time.monotonic() < deadline

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
        with self._changed:
            self._evaluations.append(evaluation)

    def loaded_at(self, evaluation: Evaluation) -> LoadedModel:
        return self._as_loaded(unpack_model(self.config, evaluation.weights))

    def _as_loaded(self, model: GPT) -> LoadedModel:
        name = f"{self.dataset.name}, trained here"
        return LoadedModel(name, model, self.dataset.vocabulary, torch.device("cpu"), "fp32", "trained here")

    def _change_state(self, before: State, after: State) -> None:
        with self._changed:
            if self._state == before:
                self._state = after
                self._changed.notify_all()

    def _end(self, state: State) -> None:
        with self._changed:
            if self._state not in ENDED:
                self._state, self._ended = state, time.monotonic()
                self._changed.notify_all()


class RunQueue:
    """Starts queued runs in the order of their submission.

    max_running: maximum number of runs that train at the same time, including paused ones; defaults to half the number
    of cores.
    """

    def __init__(self, max_running: int | None = None) -> None:
        self.max_running = max_running or max(1, (os.cpu_count() or 1) // 2)
        self._lock = threading.Lock()
        self._waiting: dict[LiveRun, str] = {}  # {run: owner}
        self._running: set[LiveRun] = set()
        atexit.register(self.close)  # a daemon thread that uses torch while Python exits can abort the process

    def submit(self, run: LiveRun, owner: str = "") -> None:
        """Start a run or add it to the queue. owner: identifies the owner, such as a client's address.

        Raises ValueError if too many runs are waiting, either in total or for this owner.
        """
        with self._lock:
            self._start_next()
            if len(self._waiting) >= MAX_WAITING:
                raise GPTError("training.queue_full", n=MAX_WAITING)
            if [*self._waiting.values()].count(owner) >= MAX_WAITING_OF_OWNER:
                raise GPTError("training.queue_full_of_owner", n=MAX_WAITING_OF_OWNER)
            self._waiting[run] = owner
            self._start_next()

    @property
    def n_waiting(self) -> int:
        with self._lock:
            self._start_next()
            return len(self._waiting)

    def position(self, run: LiveRun) -> int:
        """Return a run's position in the queue: 1 for the next run to start, 0 for a run that is not queued."""
        with self._lock:
            self._start_next()
            return [*self._waiting].index(run) + 1 if run in self._waiting else 0

    def close(self) -> None:
        with self._lock:
            runs = [*self._waiting, *self._running]  # close waiting runs first; otherwise they would start
        for run in runs:
            run.close()

    def _start_next(self) -> None:
        self._waiting = {run: owner for run, owner in self._waiting.items() if run.state == "waiting"}
        while self._waiting and len(self._running) < self.max_running:
            run = next(iter(self._waiting))
            del self._waiting[run]
            if run.start(partial(self._ended, run)):
                self._running.add(run)

    def _ended(self, run: LiveRun) -> None:
        with self._lock:
            self._running.discard(run)
            self._start_next()
