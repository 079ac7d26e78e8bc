"""The event handlers of the Train tab: start, control, browse steps, open the model."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from components.downloads import offer
from components.errors import PageError
from components.state.session import Session
from components.state.snapshot import Message
from components.tabs.train import choices
from components.tabs.train.components import TrainState
from gpt.training.live_run import LiveRun
from gpt.training.recipe import LIVE_RECIPES
from gpt.training.run_queue import QueueFull, RunQueue

MAX_MODELS = 4  # opened models of a visitor; one more replaces the oldest


def choose_task(session: Session, kind: object) -> None:
    """Choose a task, with its default settings."""
    if kind not in choices.KINDS:
        return
    recipe = LIVE_RECIPES[str(kind)]
    shape = {name: getattr(recipe, name) for name in choices.SHAPE}
    session.change(TrainState, task=kind, steps=recipe.steps, rate=recipe.learning_rate, notice=None, **shape)


def set_value(name: str, session: Session, value: object) -> None:
    """Set a setting; it is checked when the run starts."""
    session.change(TrainState, **{name: value})


def type_text(session: Session, text: str) -> None:
    """A typed text replaces an uploaded one."""
    session.change(TrainState, text=text, uploaded=None)


def take_file(session: Session, path: str | None) -> None:
    """Read an uploaded file."""
    if not path:
        return
    try:
        session.change(TrainState, uploaded=choices.read_text_file(path), text="", notice=None)
    except ValueError as problem:
        session.change(TrainState, uploaded=None, notice=problem)


def take_code(session: Session) -> None:
    """Use the built-in text."""
    session.change(TrainState, uploaded=choices.own_code(), text="", notice=None)


def start(queue: RunQueue, session: Session, text: str, rate: object) -> None:
    """Start a run or queue it; errors are shown."""
    state = session.change(TrainState, rate=rate, notice=None)
    if text:
        state = session.change(TrainState, text=text)
    try:
        if state.busy:
            raise PageError("train.error.busy")
        run = _new_run(state, session.language)
        try:
            queue.submit(run)
        except QueueFull:
            raise PageError("train.error.full") from None
    except ValueError as problem:
        session.change(TrainState, notice=problem)
        return
    session.resources.callback(run.close)
    if state.run is not None and state.run not in state.opened:
        state.run.close()
    session.change(TrainState, run=run, queue=queue, factor=1.0, step=None, layer=None, head=None)


def _new_run(state: TrainState, language: str) -> LiveRun:
    dataset = choices.dataset_for(state.task, state.text or (state.uploaded.text if state.uploaded else ""), language)
    values = {name: getattr(state, name) for name in (*choices.SHAPE, "steps", "rate")}
    recipe = choices.checked_recipe(state.task, values, language)
    seconds = choices.checked_number("seconds", state.seconds, *choices.SECONDS, language)
    return LiveRun(dataset, recipe, time_limit_seconds=seconds)


def pause(session: Session) -> None:
    """Pause or resume."""
    run = session.state(TrainState).run
    if run is not None:
        (run.resume if run.state == "paused" else run.pause)()


def cancel(session: Session) -> None:
    run = session.state(TrainState).run
    if run is not None:
        run.cancel()


def download(session: Session) -> Iterator[None]:
    """Offer the trained model for download."""
    run = session.state(TrainState).run
    if run is not None and run.state == "finished":
        yield from offer(session, run.archive())


def change_rate(session: Session, factor: object) -> None:
    """Change the learning-rate multiplier, from the next step on."""
    run = session.state(TrainState).run
    if run is not None and factor in choices.FACTORS:
        run.set_rate_factor(float(factor))  # type: ignore[arg-type]
        session.change(TrainState, factor=factor)


def follow(session: Session) -> None:
    """Update the views of an active run."""


def show_step(session: Session, step: object) -> None:
    """Show the step of the scrubber; at its maximum, the newest."""
    progress = session.state(TrainState).progress()
    if progress is None or not progress.evaluations or not _is_number(step):
        return
    session.change(TrainState, step=None if step >= progress.evaluations[-1].step else int(step))  # type: ignore[operator, call-overload]


def choose_step(session: Session, sent: dict[str, Any]) -> None:
    """Show the step clicked in the curve."""
    progress, step = session.state(TrainState).progress(), sent.get("x")
    if progress is not None and _is_number(step) and 0 <= step <= progress.steps:  # type: ignore[operator]
        show_step(session, step)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def choose_head(session: Session, sent: dict[str, Any]) -> None:
    """Enlarge the clicked head."""
    layer, head = sent.get("layer"), sent.get("head")
    if type(layer) is int and type(head) is int and layer >= 0 and head >= 0:
        session.change(TrainState, layer=layer, head=head)


def open_model(session: Session) -> None:
    """Add the model to this visitor's list, choose it, and set a prompt."""
    state = session.state(TrainState)
    if state.run is None:
        raise PageError("train.gone")
    name = state.run.register()
    others = [run for run in state.opened if run is not state.run]
    replaceable = [run for run in others if run.registered_name != session.model]
    closed = replaceable[: max(0, len(others) + 1 - MAX_MODELS)]
    kept = (*(run for run in others if run not in closed), state.run)
    for run in closed:
        run.close()
    session.own_models = tuple(str(run.registered_name) for run in kept)
    session.model, session.tab = name, "playground"
    session.set_typed(state.run.dataset.start, is_current=False)
    session.change(TrainState, opened=kept, notice=Message("train.opened"))
