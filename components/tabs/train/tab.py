"""The Train tab: live training of a tiny GPT on a task or a text; below, scaling of the loss."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import get_args

import gradio as gr

from components.cards.card import Card, add_cards
from components.events import Events
from components.i18n import t
from components.localized import Localizer
from components.monitoring import TRAININGS_WAITING
from components.panels.panel import Settings, of_state, one_of, within
from components.parts import (
    Choices,
    Live,
    button,
    case,
    choice,
    column,
    columns,
    fold,
    lead,
    number_box,
    question,
    row,
    section,
    text_box,
    timer,
    title_row,
)
from components.render import Control
from components.state.session import Session
from components.state.snapshot import Snapshot
from components.tabs.train import choices, handlers
from components.tabs.train.analysis import analysis
from components.tabs.train.scaling import SCALING_VIEWS, scaling_card
from components.tabs.train.state import Machine, Source, TrainState
from components.tabs.train.views import VIEWS, progress_of, shown_of
from components.widgets.chart import chart
from components.widgets.flow import flow
from components.widgets.heads import heads
from components.widgets.player import player
from components.widgets.sentence import sentence
from components.widgets.table import table
from gpt.training.run_queue import RunQueue
from gpt.training.text_dataset import MAX_TEXT_BYTES

NAME = "train"
TICK_SECONDS = 0.7  # between two updates of a run
SETTINGS = Settings(
    TrainState,
    {name: one_of(*values) for name, values in choices.SHAPE.items()}
    | {"steps": within(*choices.STEPS), "seconds": within(*choices.SECONDS)},
)


def build_train(
    localizer: Localizer, events: Events, machine: Machine, write: Callable[[Session], Iterator[None]]
) -> None:
    """Build and wire the tab. machine: makes the forward pass that the whole model is drawn from. write: continues the
    prompt with a trained model."""
    queue = RunQueue()
    TRAININGS_WAITING.set_function(lambda: queue.n_waiting)
    with gr.Row(elem_classes="gb-cards gb-train"):
        with gr.Column(min_width=0):
            with gr.Column(elem_classes="gb-card"):
                task = _task()
                with gr.Row(visible=False, elem_classes="gb-train-own") as texts:
                    small = {"size": "sm", "min_width": 0, "type": "filepath", "elem_id": "train-file"}
                    file = localizer.build(gr.UploadButton, {"label": "train.upload"}, **small)
                    code = Card("train-own", row(button("train-code", "train.example", handlers.take_code)), classes="")
                run = _run(queue, machine, write)
            shown = _shown()
        loss = _loss(machine)
    film, scaling = _film(machine), scaling_card()
    events.on(file.upload, handlers.take_file, [file])
    add_cards(events, NAME, [task, code, run, shown, loss, film, scaling], (*VIEWS, *SCALING_VIEWS), analysis(machine))
    events.renderer.add(NAME, controls=[Control(texts, _is_text, lambda s: {"visible": _is_text(s)})])


def _task() -> Card:
    """The choice of a task or a text."""
    task = choice(
        "train-task",
        _named("train.task", choices.KINDS),
        label="train.task",
        value=of_state(TrainState, "task"),
        on=handlers.choose_task,
    )
    text = text_box(
        "train-text",
        max_length=MAX_TEXT_BYTES,
        label="train.text",
        placeholder="train.text.placeholder",
        value=of_state(TrainState, "text"),
        on=handlers.type_text,
        show=_is_text,
    )
    about = sentence("train-about", kind="caption")
    return Card("train-what", question("train.question"), lead("train.lead"), task, about, text, classes="")


def _run(queue: RunQueue, machine: Machine, write: Callable[[Session], Iterator[None]]) -> Card:
    """The configuration of the model and its recipe, and the buttons that control a run."""
    rate = number_box(
        "train-rate",
        whole=False,
        label="train.rate",
        info="train.rate.info",
        value=of_state(TrainState, "rate"),
        on=handlers.set_rate,
    )
    factor = choice(
        "train-factor",
        _numbers(choices.FACTORS),
        labelled=True,
        label="train.factor",
        value=of_state(TrainState, "factor"),
        on=handlers.change_rate,
        show=_has_begun,
    )

    def finished(s: Snapshot) -> bool:
        return _is(s, "finished")

    def pause(s: Snapshot) -> str:
        return t("train.continue" if _is(s, "paused") else "train.pause", s.language)

    return Card(
        "train-run",
        sentence("train-source", kind="caption"),
        fold(
            "train-settings",
            "train.settings",
            column(
                row(*(SETTINGS.choice(f"train.{name}", _numbers(values)) for name, values in choices.SHAPE.items())),
                row(
                    SETTINGS.slider("train.steps", *choices.STEPS, 50, info="train.steps.info"),
                    SETTINGS.slider("train.seconds", *choices.SECONDS, 10, info="train.seconds.info"),
                    rate,
                ),
            ),
        ),
        row(
            button(
                "train-start",
                "train.start",
                partial(handlers.start, queue),
                enabled=lambda s: not _goes_on(s),
                primary=True,
            ),
            button("train-pause", pause, handlers.pause, enabled=_has_begun),
            button("train-cancel", "train.cancel", handlers.cancel, enabled=_goes_on),
            button("train-open", "train.open", partial(handlers.open_model, write), queue="model", show=finished),
            button("train-download", "train.download", handlers.download, queue="model", show=finished),
            classes="gb-buttons gb-short",
        ),
        factor,
        sentence("train-notice", kind="notice"),
        sentence("train-status", kind="status"),
        timer("train-timer", TICK_SECONDS, partial(handlers.pass_over_example, machine), active=_goes_on),
        classes="",
    )


def _shown() -> Card:
    """Whose training the pictures are of."""
    about = sentence("train-film", kind="lead")
    return Card(
        "train-shown", section(question("train.film.question"), about, name="train-whose", show=_is_shown), classes=""
    )


def _loss(machine: Machine) -> Card:
    """The learning curve of the visitor's training, or of the recorded one."""
    source = choice(
        "train-source-of-film",
        _named("train.film.source", get_args(Source)),
        label="train.film.source",
        value=lambda s: "recorded" if s.state(TrainState).shown_run is s.state(TrainState).recorded else "own",
        on=partial(handlers.choose_source, machine),
        show=_has_both,
    )
    curve = chart("train-curve", clickable=True, on=partial(handlers.choose_step, machine))
    return Card("train-loss", title_row(question("train.curve.question"), source), curve)


def _film(machine: Machine) -> Card:
    """The player of the steps of a training, which stays in view, and the pictures that follow it."""
    step = player("train-player", on_input=partial(handlers.show_moment, machine))
    save = button("train-save", "train.film.save", handlers.save_film, queue="model")
    grid = heads("train-heads", on=handlers.choose_head)
    parts = column(
        row(step, save, classes="gb-card gb-train-player"),
        row(
            section(
                question("train.samples.question"),
                sentence("train-samples-says", kind="caption"),
                table("train-samples"),
                sentence("train-sample", kind="lead"),
                grow=1,
            ),
            section(
                question("train.attention.question"),
                columns(column(grid), column(chart("train-heatmap"))),
                grow=2,
            ),
            classes="gb-train-pictures",
        ),
        section(
            question("train.machine.question"),
            lead("train.machine.lead"),
            flow("train-flow", on=handlers.select_in_machine),
        ),
        classes="gb-train-film",
    )
    return Card("train-results", case("train-pictures", _is_shown, {True: parts}), classes="")


def _named(prefix: str, values: tuple[str, ...]) -> Live:
    """Choices with the labels `<prefix>.<value>` of the catalogue."""
    return lambda s: [(t(f"{prefix}.{value}", s.language), value) for value in values]


def _numbers(values: tuple[float, ...]) -> Choices:
    return [(f"{value:g}", value) for value in values]


def _is_text(s: Snapshot) -> bool:
    return s.state(TrainState).task == choices.TEXT


def _goes_on(s: Snapshot) -> bool:
    progress = progress_of(s)
    return progress is not None and not progress.ended


def _has_begun(s: Snapshot) -> bool:
    return _goes_on(s) and not _is(s, "waiting")


def _is(s: Snapshot, state: str) -> bool:
    progress = progress_of(s)
    return progress is not None and progress.state == state


def _is_shown(s: Snapshot) -> bool:
    return shown_of(s) is not None


def _has_both(s: Snapshot) -> bool:
    state = s.state(TrainState)
    return state.run is not None and state.recorded is not None
