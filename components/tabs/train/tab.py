"""The Train tab: trains a tiny GPT live on a task or a text, and shows how the loss scales."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import gradio as gr

from components import kit
from components.cards.card import Card, add_cards
from components.downloads import offer
from components.errors import PageError
from components.events import Events
from components.i18n import t
from components.labels import decimal
from components.limits import MAX_TRAINED_MODELS
from components.monitoring import TRAININGS_WAITING
from components.parts import number_box
from components.state.session import Session
from components.state.snapshot import Message, Snapshot
from components.tabs.train import choices, film
from components.tabs.train.choices import UploadedText
from components.tabs.train.scaling import scaling_card
from gpt.training.data import MAX_TEXT_BYTES
from gpt.training.live_run import LiveRun, RunQueue
from gpt.training.recipe import LIVE_RECIPES
from gpt.training.snapshots import RunProgress

TICK_SECONDS = 0.7  # interval between updates of a run

_RECIPE = LIVE_RECIPES[choices.KINDS[0]]

tab = kit.Tab("train")


def numbers(values: tuple[float, ...]) -> dict[float, str]:
    return {value: f"{value:g}" for value in values}


@tab.state
class Train(film.FilmState):
    """The choices, the newest run, and earlier runs whose models are listed. rate: as typed; None if no number."""

    task: str = kit.setting(choices.KINDS[0], lambda s: {kind: t(f"train.task.{kind}") for kind in choices.KINDS})
    text: str = kit.setting("", most=MAX_TEXT_BYTES)
    uploaded: UploadedText | None = None
    n_layer: int = kit.setting(_RECIPE.n_layer, numbers(choices.SHAPE["n_layer"]))
    n_head: int = kit.setting(_RECIPE.n_head, numbers(choices.SHAPE["n_head"]))
    n_embd: int = kit.setting(_RECIPE.n_embd, numbers(choices.SHAPE["n_embd"]))
    dropout: float = kit.setting(_RECIPE.dropout, numbers(choices.SHAPE["dropout"]))
    steps: int = kit.setting(_RECIPE.steps, low=choices.STEPS[0], high=choices.STEPS[1], step=50)
    rate: float | None = _RECIPE.learning_rate
    seconds: int = kit.setting(choices.SECONDS[1], low=choices.SECONDS[0], high=choices.SECONDS[1], step=10)
    factor: float = kit.setting(1.0, numbers(choices.FACTORS))
    run: LiveRun | None = None
    queue: RunQueue | None = None
    opened: tuple[LiveRun, ...] = ()
    notice: Message | Exception | None = None

    @property
    def n_bytes(self) -> int:
        """Memory used by the newest run's evaluations, in bytes. Evaluations from earlier runs are freed."""
        return 0 if self.run is None else sum(each.n_bytes for each in self.run.progress.evaluations)

    @property
    def busy(self) -> bool:
        """Whether a run is active and must not be interrupted."""
        return self.run is not None and not self.run.progress.ended


def progress_of(s: Any) -> RunProgress | None:
    """Return the progress of the visitor's newest run; the same for everything drawn in one update."""
    if isinstance(s, Snapshot):
        return s.cached(_progress)
    return s.watch(progress_of)  # a run advances without the session, so its progress is what counts as read


def _progress(s: Any) -> RunProgress | None:
    run, queue = s.state(Train).run, s.state(Train).queue
    return None if run is None or queue is None else replace(run.progress, queue_position=queue.position(run))


def _find(s: Snapshot) -> film.Shown | None:
    state, progress = s.state(Train), progress_of(s)
    return None if state.run is None or progress is None else film.shown_at(state, state.run, progress)


OWN = film.Film("train", Train, _find)


def choose_task(session: Session, kind: object) -> None:
    Train.task.set(session, kind)  # type: ignore[attr-defined]
    recipe = LIVE_RECIPES[str(kind)]
    shape = {name: getattr(recipe, name) for name in choices.SHAPE}
    session.change(Train, steps=recipe.steps, rate=recipe.learning_rate, notice=None, **shape)


def set_rate(session: Session, rate: object) -> None:
    """Set the learning rate, which is validated when the run starts."""
    session.change(Train, rate=rate if film.is_number(rate) else None)


def type_text(session: Session, text: object) -> None:
    if isinstance(text, str):
        session.change(Train, text=text, uploaded=None)


def take_file(session: Session, path: str | None) -> None:
    """Read the chosen file; gradio deletes it later. path: None once it is removed."""
    if not path:
        session.change(Train, uploaded=None)
        return
    try:
        session.change(Train, uploaded=choices.read_text_file(path), text="", notice=None)
    except ValueError as problem:
        session.change(Train, uploaded=None, notice=problem)


def take_code(session: Session) -> None:
    session.change(Train, uploaded=choices.own_code(), text="", notice=None)


def start(queue: RunQueue, session: Session) -> None:
    state = session.change(Train, notice=None)
    try:
        if state.busy:
            raise PageError("train.error.busy")
        run = _new_run(state)
        queue.submit(run, session.address)
    except ValueError as problem:
        session.change(Train, notice=problem)
        return
    session.resources.callback(run.close)
    if state.run in state.opened:
        state.run.drop_evaluations()
    elif state.run is not None:
        state.run.close()
    session.change(Train, run=run, queue=queue, factor=1.0, step=None, layer=None, head=None, position=None)


def _new_run(state: Train) -> LiveRun:
    text = state.text or (state.uploaded.text if state.uploaded else "")
    shape = {name: getattr(state, name) for name in (*choices.SHAPE, "steps")}
    recipe = choices.checked_recipe(state.task, shape, state.rate)
    return LiveRun(choices.dataset_for(state.task, text), recipe, time_limit_seconds=state.seconds)


def pause(session: Session) -> None:
    run = session.state(Train).run
    if run is not None:
        (run.resume if run.state == "paused" else run.pause)()


def cancel(session: Session) -> None:
    run = session.state(Train).run
    if run is not None:
        run.cancel()


def download(session: Session) -> Iterator[None]:
    run = session.state(Train).run
    if run is not None and run.state == "finished":
        yield from offer(session, run.write_archive)


def change_rate(session: Session, factor: object) -> None:
    Train.factor.set(session, factor)  # type: ignore[attr-defined]
    state = session.state(Train)
    if state.run is not None:
        state.run.rate_factor = state.factor


def open_model(write: Callable[[Session], Iterator[None]], session: Session) -> Iterator[None]:
    """Add the model to this visitor's list, choose it, set a prompt, and let `write` continue the prompt."""
    state = session.state(Train)
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
    session.change(Train, opened=kept, notice=Message("train.opened"))
    yield from write(session)


def status(s: Any) -> str:
    run, progress = s[Train].run, progress_of(s)
    if run is None or progress is None:
        return t("train.idle")
    state, early = progress.state, progress.state == "finished" and progress.step < progress.steps
    key = "early" if early else {"diverged": "infinite", "crashed": "broke"}.get(state, state)
    training = progress.seconds - progress.paused_seconds
    return t(
        f"train.{key}",
        place=progress.queue_position,
        step=f"{progress.step:,}",
        steps=f"{progress.steps:,}",
        seconds=f"{progress.seconds:.0f}",
        limit=f"{run.time_limit_seconds:g}",
        rate=decimal(progress.step / training if training > 0 else 0, 1),
        parameters=f"{run.n_parameters:,}",
        lr=f"{progress.rates[-1]:.2g}" if progress.rates else "0",
    )


def source(s: Any) -> str:
    uploaded = s[Train].uploaded
    if uploaded is None or not is_text(s):
        return ""
    name, n, different = uploaded.name or t("train.example.name"), len(uploaded.text), len(set(uploaded.text))
    return t("train.source", name=name, n=f"{n:,}", different=f"{different:,}")


def is_text(s: Any) -> bool:
    return bool(s[Train].task == choices.TEXT)


def goes_on(s: Any) -> bool:
    progress = progress_of(s)
    return progress is not None and not progress.ended


def has_begun(s: Any) -> bool:
    return goes_on(s) and not is_in(s, "waiting")


def is_in(s: Any, state: str) -> bool:
    progress = progress_of(s)
    return progress is not None and progress.state == state


def task_card() -> Callable[[], Card]:
    return kit.card(
        "train-what",
        kit.question("train.question"),
        kit.lead("train.lead"),
        kit.choice(Train.task, "train.task", on=choose_task),
        kit.says("train-about", lambda s: choices.about(s[Train].task), kind="caption"),
        kit.text_box(Train.text, "prompt.text", placeholder="train.text.placeholder", on=type_text, show=is_text),
        classes="",
    )


def run_card(queue: RunQueue, write: Callable[[Session], Iterator[None]]) -> Callable[[], Card]:
    shape = [kit.choice(getattr(Train, name), f"train.{name}", labelled=True) for name in choices.SHAPE]
    limits = [
        kit.slider(getattr(Train, name), f"train.{name}", info=f"train.{name}.info") for name in ("steps", "seconds")
    ]
    rate = partial(number_box, "train-rate", "train.rate", info="train.rate.info", whole=False)

    def finished(s: Any) -> bool:
        return is_in(s, "finished")

    return kit.card(
        "train-run",
        kit.says("train-source", source, kind="caption"),
        kit.fold(
            "train-settings",
            "train.settings",
            kit.column(kit.row(*shape), kit.row(*limits, rate(value=lambda s: s[Train].rate, on=set_rate))),
        ),
        kit.row(
            kit.button(
                "train-start",
                "train.start",
                partial(start, queue),
                enabled=lambda s: not goes_on(s),
                primary=True,
                answer="train-loss",
            ),
            kit.button(
                "train-pause",
                lambda s: t("train.continue" if is_in(s, "paused") else "film.pause"),
                pause,
                enabled=has_begun,
            ),
            kit.button("train-cancel", "train.cancel", cancel, enabled=goes_on),
            kit.button("train-open", "train.open", partial(open_model, write), queue="model", show=finished),
            kit.button("train-download", "train.download", download, queue="model", show=finished),
            classes="gb-buttons gb-short",
        ),
        kit.choice(Train.factor, "train.factor", labelled=True, on=change_rate, show=has_begun),
        kit.says("train-notice", lambda s: s[Train].notice, kind="notice"),
        kit.says("train-status", status, kind="status"),
        kit.timer("train-timer", TICK_SECONDS, lambda session: None, active=goes_on),
        classes="",
    )


def build_train(events: Events, machine: film.Machine, write: Callable[[Session], Iterator[None]]) -> None:
    """write: continues the prompt with a trained model."""
    queue = RunQueue()
    TRAININGS_WAITING.set_function(lambda: len(queue.waiting()))
    with gr.Column(elem_classes="gb-cards gb-train"):
        with gr.Column(min_width=0):
            with gr.Column(elem_classes="gb-card"):
                task = task_card()()
                with gr.Column(visible=False, elem_classes="gb-train-own") as texts:
                    file = gr.File(label=t("train.upload"), height=144, elem_id="train-file")
                    code = Card("train-own", kit.row(kit.button("train-code", "train.example", take_code)), classes="")
                run = run_card(queue, write)()
            whose = kit.section(
                kit.question("train.film.question"), kit.lead("train.film.own"), name="train-whose", show=OWN.is_shown
            )
            shown = Card("train-shown", whose, classes="")
        loss = film.curve_card(OWN, progress_of)()
    events.on(file.change, take_file, [file])
    results = film.player_card(OWN)(), film.film_card(OWN, machine)(), scaling_card()()
    add_cards(events, {tab.name: [task, code, run, shown, loss, *results]})
    events.show(texts, lambda s: {"visible": is_text(s)})
    events.show(file, lambda s: {"label": t("train.upload")})
