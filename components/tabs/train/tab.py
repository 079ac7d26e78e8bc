"""The Train tab and the recorded run's tab, which show the same pictures.

The Train tab trains a tiny GPT live on a task or a text, and shows how the loss scales with size, data and compute.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

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
    Part,
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
)
from components.render import Control
from components.state.session import Session
from components.state.snapshot import Snapshot
from components.tabs.train import choices, handlers
from components.tabs.train.analysis import analysis
from components.tabs.train.scaling import SCALING_VIEWS, scaling_card
from components.tabs.train.shown import OWN, RECORDED, Film, progress_of
from components.tabs.train.state import Machine, TrainState
from components.tabs.train.views import LEARNED_VIEWS, VIEWS
from components.widgets.chart import chart
from components.widgets.flow import flow
from components.widgets.heads import heads
from components.widgets.player import player
from components.widgets.sentence import sentence
from components.widgets.table import table
from gpt.training.run_queue import RunQueue
from gpt.training.text_dataset import MAX_TEXT_BYTES

NAME, LEARNED = "train", "learned"
TICK_SECONDS = 0.7  # interval between updates of a run
SETTINGS = Settings(
    TrainState,
    {name: one_of(*values) for name, values in choices.SHAPE.items()}
    | {"steps": within(*choices.STEPS), "seconds": within(*choices.SECONDS)},
)


def build_train(
    localizer: Localizer, events: Events, machine: Machine, write: Callable[[Session], Iterator[None]]
) -> None:
    """Build and wire the tab.

    `machine` runs the forward pass shown in the picture of the model. `write` continues the prompt with a trained
    model.
    """
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
            shown = _shown(OWN)
        loss = _loss(OWN, machine)
    film, scaling = _film(OWN, machine), scaling_card()
    events.on(file.upload, handlers.take_file, [file])
    add_cards(
        events, NAME, [task, code, run, shown, loss, film, scaling], (*VIEWS, *SCALING_VIEWS), analysis(OWN, machine)
    )
    events.renderer.add(NAME, controls=[Control(texts, lambda s: {"visible": _is_text(s)})])


def build_learned(events: Events, machine: Machine) -> None:
    """Build and wire the recorded run's tab."""
    copying = button("learned-copying", "learned.copying", partial(handlers.show_copying, machine))
    with gr.Row(elem_classes="gb-cards gb-train"):
        shown, loss = _shown(RECORDED, copying), _loss(RECORDED, machine)
    add_cards(events, LEARNED, [shown, loss, _film(RECORDED, machine)], LEARNED_VIEWS, analysis(RECORDED, machine))


def _task() -> Card:
    """Build the choice of a task or a text."""
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
    """Build the controls for the model's configuration and recipe, and the buttons that control a run."""
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
        return t("train.continue" if _is(s, "paused") else "train.pause")

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
        timer("train-timer", TICK_SECONDS, partial(handlers.pass_over_example, OWN, machine), active=_goes_on),
        classes="",
    )


def _shown(film: Film, *more: Part) -> Card:
    """Build the card that names the training run shown in the pictures."""
    name = film.name
    about = sentence(f"{name}-film", kind="lead")
    title = question("train.film.question" if film is OWN else "learned.question")
    return Card(
        f"{name}-shown",
        section(title, about, *more, name=f"{name}-whose", show=partial(_is_shown, film)),
        classes="",
    )


def _loss(film: Film, machine: Machine) -> Card:
    """Build the learning curve."""
    name = film.name
    on = partial(handlers.choose_step, film, machine)
    curve = chart(f"{name}-curve", clickable=True, on=on)
    parts = section(question("train.curve.question"), curve, name=f"{name}-loss", show=partial(_is_shown, film))
    return Card(f"{name}-loss", parts, classes="")


def _film(film: Film, machine: Machine) -> Card:
    """Build the player, which stays in view, and the pictures of the step that it shows."""
    name = film.name
    step = player(f"{name}-player", on_input=partial(handlers.show_moment, film, machine))
    grid = heads(f"{name}-heads", on=partial(handlers.choose_head, film))
    parts = column(
        row(step, classes="gb-card gb-train-player"),
        row(
            section(
                question("train.samples.question"),
                sentence(f"{name}-samples-says", kind="caption"),
                table(f"{name}-samples"),
                sentence(f"{name}-sample", kind="lead"),
                grow=1,
            ),
            section(
                question("train.attention.question"),
                columns(column(grid), column(chart(f"{name}-heatmap"))),
                grow=2,
            ),
            classes="gb-train-pictures",
        ),
        section(
            question("train.machine.question"),
            lead("train.machine.lead"),
            flow(f"{name}-flow", on=partial(handlers.select_in_machine, film)),
        ),
        classes="gb-train-film",
    )
    return Card(f"{name}-results", case(f"{name}-pictures", partial(_is_shown, film), {True: parts}), classes="")


def _named(prefix: str, values: tuple[str, ...]) -> Live:
    """Return choices labelled with `<prefix>.<value>` from the catalogue."""
    return lambda s: [(t(f"{prefix}.{value}"), value) for value in values]


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


def _is_shown(film: Film, s: Snapshot) -> bool:
    return film.shown(s) is not None
