"""Event handlers for the Train tab: start, control, browse steps, open the model."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeGuard

from components.downloads import offer
from components.errors import PageError
from components.limits import MAX_TRAINED_MODELS
from components.state.session import Session
from components.state.snapshot import Message
from components.tabs.train import choices
from components.tabs.train.shown import RECORDED, Film
from components.tabs.train.state import Machine, ShownPass, TrainState
from gpt.training.live_run import LiveRun
from gpt.training.recipe import LIVE_RECIPES
from gpt.training.recorded_run import RecordedRun
from gpt.training.run_queue import RunQueue

# None selects the newest step and the default head and position.
NOTHING_PINNED: dict[str, Any] = dict.fromkeys(("step", "layer", "head", "position", "shown_pass"))


def choose_task(session: Session, kind: object) -> None:
    """Choose a task, with its default settings."""
    if kind not in choices.KINDS:
        return
    recipe = LIVE_RECIPES[str(kind)]
    shape = {name: getattr(recipe, name) for name in choices.SHAPE}
    session.change(TrainState, task=kind, steps=recipe.steps, rate=recipe.learning_rate, notice=None, **shape)


def set_rate(session: Session, rate: object) -> None:
    """Set the learning rate, which is validated when the run starts."""
    session.change(TrainState, rate=rate if _is_number(rate) else None)


def type_text(session: Session, text: object) -> None:
    """Set the typed text, which replaces an uploaded one."""
    if isinstance(text, str):
        session.change(TrainState, text=text, uploaded=None)


def take_file(session: Session, path: str | None) -> None:
    """Read an uploaded file and delete it."""
    if not path:
        return
    try:
        session.change(TrainState, uploaded=choices.read_text_file(path), text="", notice=None)
    except ValueError as problem:
        session.change(TrainState, uploaded=None, notice=problem)
    Path(path).unlink(missing_ok=True)


def take_code(session: Session) -> None:
    """Choose the built-in text for training."""
    session.change(TrainState, uploaded=choices.own_code(), text="", notice=None)


def start(queue: RunQueue, session: Session) -> None:
    """Start a run or add it to the queue. Errors are shown on the page."""
    state = session.change(TrainState, notice=None)
    try:
        if state.busy:
            raise PageError("train.error.busy")
        run = _new_run(state)
        queue.submit(run, session.address)
    except ValueError as problem:
        session.change(TrainState, notice=problem)
        return
    session.resources.callback(run.close)
    if state.run in state.opened:
        state.run.drop_evaluations()
    elif state.run is not None:
        state.run.close()
    session.change(TrainState, run=run, queue=queue, factor=1.0, **NOTHING_PINNED)


def _new_run(state: TrainState) -> LiveRun:
    text = state.text or (state.uploaded.text if state.uploaded else "")
    shape = {name: getattr(state, name) for name in (*choices.SHAPE, "steps")}
    recipe = choices.checked_recipe(state.task, shape, state.rate)
    return LiveRun(choices.dataset_for(state.task, text), recipe, time_limit_seconds=state.seconds)


def pause(session: Session) -> None:
    """Pause or resume the run."""
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
        yield from offer(session, run.write_archive)


def change_rate(session: Session, factor: object) -> None:
    """Change the learning-rate multiplier, starting with the next step."""
    run = session.state(TrainState).run
    if run is not None and factor in choices.FACTORS:
        run.set_rate_factor(float(factor))
        session.change(TrainState, factor=factor)


def show_moment(film: Film, machine: Machine, session: Session, sent: dict[str, Any]) -> None:
    """Show the evaluation at an index. Choosing the last one makes the display follow new evaluations."""
    moment, shown = sent.get("moment"), film.shown(session.snapshot())
    if shown is None or type(moment) is not int or moment < 0:
        return
    evaluations = shown.progress.evaluations
    film.change(session, step=None if moment >= len(evaluations) - 1 else evaluations[moment].step)
    pass_over_example(film, machine, session)


def choose_step(film: Film, machine: Machine, session: Session, sent: dict[str, Any]) -> None:
    """Show the step that was clicked in the curve."""
    step, shown = sent.get("x"), film.shown(session.snapshot())
    if shown is None or not _is_number(step) or not 0 <= step <= shown.progress.steps:
        return
    is_newest = step >= shown.progress.evaluations[-1].step
    film.change(session, step=None if is_newest else int(step))
    pass_over_example(film, machine, session)


def pass_over_example(film: Film, machine: Machine, session: Session) -> None:
    """Run the displayed step's model on the example, unless this has already been done."""
    shown, state = film.shown(session.snapshot()), film.of(session.snapshot())
    if shown is None or state.is_passed(shown.run, shown.evaluation.step):
        return
    made = machine(shown.run.loaded_at(shown.evaluation), shown.run.dataset.example)
    film.change(session, shown_pass=ShownPass(shown.run, shown.evaluation.step, made))


def show_copying(machine: Machine, session: Session) -> None:
    """Show the recorded run at the step where the displayed head begins to copy."""
    shown = RECORDED.shown(session.snapshot())
    if shown is None or not isinstance(shown.run, RecordedRun):
        return
    appeared = shown.run.appearance(shown.layer, shown.head)
    if appeared is not None:
        RECORDED.change(session, step=appeared[1])
        pass_over_example(RECORDED, machine, session)


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def choose_head(film: Film, session: Session, sent: dict[str, Any]) -> None:
    """Pin the clicked head."""
    layer, head = sent.get("layer"), sent.get("head")
    if type(layer) is int and type(head) is int and layer >= 0 and head >= 0:
        film.change(session, layer=layer, head=head)


def select_in_machine(film: Film, session: Session, sent: dict[str, Any]) -> None:
    """Pin the clicked token, layer or head."""
    shown = film.shown(session.snapshot())
    if shown is None:
        return
    config, n = shown.run.config, len(shown.run.dataset.example)
    limits = {"layer": config.n_layer, "head": config.n_head, "position": n}
    chosen = {name: at for name, limit in limits.items() if type(at := sent.get(name)) is int and 0 <= at < limit}
    if chosen:
        film.change(session, **{"layer": shown.layer, "head": shown.head} | chosen)


def open_model(write: Callable[[Session], Iterator[None]], session: Session) -> Iterator[None]:
    """Add the model to this visitor's list, choose it, set a prompt, and let `write` continue the prompt."""
    state = session.state(TrainState)
    if state.run is None:
        raise PageError("train.gone")
    name = state.run.register()
    others = [run for run in state.opened if run is not state.run]
    replaceable = [run for run in others if run.registered_name != session.model]
    closed = replaceable[: max(0, len(others) + 1 - MAX_TRAINED_MODELS)]
    kept = (*(run for run in others if run not in closed), state.run)
    for run in closed:
        run.close()
    session.own_models = tuple(str(run.registered_name) for run in kept)
    session.model, session.tab = name, "playground"
    session.set_typed(state.run.dataset.start, is_current=False)
    session.change(TrainState, opened=kept, notice=Message("train.opened"))
    yield from write(session)
