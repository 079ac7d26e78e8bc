"""The tab Write: builds and wires it."""

from __future__ import annotations

from functools import partial
from typing import Any, get_args

import gradio as gr

from components.cards.card import Card, add_cards
from components.events import Events, clamped_js
from components.frame import Frame
from components.i18n import t
from components.localized import Localizer
from components.parts import (
    Action,
    Handler,
    Part,
    button,
    choice,
    column,
    columns,
    fold,
    pick_list,
    question,
    row,
    section,
    select,
    text_box,
    title_row,
)
from components.share.handlers import answer_files
from components.share.menu import files_menu
from components.state.selection import Shading
from components.state.session import Session
from components.state.snapshot import Snapshot
from components.tabs.playground.controls import Controls, build_controls
from components.tabs.playground.handlers import chat, editing, generation, reason, selection, typing
from components.tabs.playground.state import PlaygroundState, Unit, tail_length
from components.tabs.playground.upload import build_upload
from components.tabs.playground.views import SHARED_VIEWS, VIEWS
from components.tabs.playground.views.pipeline import followed, to_follow
from components.text_views import AVERAGE, head_choices
from components.widgets.chart import chart
from components.widgets.choices import choices
from components.widgets.composer import composer, typed_js
from components.widgets.draw import draw
from components.widgets.predictions import predictions
from components.widgets.sentence import sentence
from components.widgets.table import table
from components.widgets.tokens import tokens
from components.widgets.tree import tree
from components.widgets.widget import placed

NAME = "playground"
TYPED = typed_js("prompt")


def build_playground(
    localizer: Localizer,
    events: Events,
    frame: Frame,
    session: Session,
    open_film: Handler,
    *,
    uploads: bool = False,
) -> None:
    """Build and wire the tab. session: the initial session. open_film: opens the film of the model. uploads: whether to
    add the panel for uploaded checkpoints."""
    with gr.Column(elem_classes="gb-playground"):
        with gr.Column(elem_classes="gb-card gb-prompt"):
            prompt = placed(composer("prompt", view="box"))
            next_token = _next(open_film)
            controls = build_controls(localizer, session)
        text = Card("text", row(_attention(), _text(), classes="gb-cards gb-live"), _pipeline(), classes="")
        opened = [build_upload(localizer, events)] if uploads else []
    events.renderer.add("", SHARED_VIEWS)
    events.renderer.add(NAME, controls=controls.updates())
    for _ in reason.measure(session):  # what every visitor begins with
        pass
    wired = add_cards(events, NAME, [next_token, controls.examples, text], VIEWS, reason.ANALYSIS)
    _wire(prompt, controls, events, frame, [*opened, wired["model"]])


def _next(open_film: Handler) -> Card:
    """The status, and what comes next and why."""
    return Card(
        "next",
        row(
            sentence("status", kind="status"),
            sentence("prompt-count", kind="caption"),
            classes="gb-status-line",
        ),
        sentence("notice", kind="notice"),
        row(button("use-tail", _tail, generation.written(generation.prepare_tail), queue="model", show=_is_too_long)),
        columns(
            column(predictions("bars", on=editing.choose, queue="model"), grow=3),
            column(
                question("reason.question"),
                sentence("reason", kind="lead"),
                sentence("spoken", kind="spoken"),
                button("open-film", "film.open", open_film),
                grow=2,
                min_width=240,
            ),
            classes="gb-next gb-live",
        ),
        classes="",
    )


def _attention() -> Part:
    """The attention heatmap."""
    layer = select(
        "layer",
        lambda s: [(str(layer), layer) for layer in range(0 if s.text is None else s.text.config.n_layer)],
        label="attention.layer",
        value=lambda s: s.selection.layer,
        on=selection.choose_layer,
        beside=True,
    )
    head = select(
        "head",
        lambda s: head_choices(0 if s.text is None else s.text.config.n_head, s.language),
        label="attention.head",
        value=lambda s: AVERAGE if s.selection.head is None else s.selection.head,
        on=selection.choose_head,
        beside=True,
    )
    return section(
        title_row(question("attention.question"), layer, head),
        chart("heatmap", clickable=True, on=selection.select_row),
        grow=1,
    )


def _text() -> Part:
    """The text token by token: its strip, the edit controls, how a token was drawn, and the branches."""
    shading = choice(
        "shading",
        lambda s: [(t(f"strip.shading.{kind}", s.language), kind) for kind in get_args(Shading)],
        label="strip.shading",
        value=lambda s: s.selection.shading,
        on=selection.choose_shading,
    )
    box = text_box(
        "box",
        max_length=editing.MAX_TYPED_CHARS,
        label="box",
        placeholder="box.placeholder",
        info="box.info",
        value=lambda s: s.query,
        on=editing.search,
        on_enter=Action(editing.type_text, "model"),
    )
    return section(
        question("strip.question"),
        sentence("dropped", kind="caption"),
        tokens("strip", on=selection.select_token),
        row(sentence("hint", kind="caption"), shading, classes="gb-strip-tools"),
        draw("draw"),
        row(
            button("undo", "undo", editing.undo, queue="model", enabled=lambda s: s.can_undo),
            button("redo", "redo", editing.redo, queue="model", enabled=lambda s: s.can_redo and not s.generating),
            button("back", "back", editing.go_back, queue="model", enabled=_is_earlier),
            button("go_on", "go_on", generation.written(generation.prepare_here), queue="model", enabled=_can_go_on),
            button("clear", "clear", generation.clear),
            classes="gb-small",
        ),
        box,
        choices("hits", on=editing.choose, queue="model"),
        tree("tree", on=editing.switch_branch, queue="model"),
        fold("ids", "prompt.ids", tokens("prompt-strip", ids=True, selectable=False)),
        files_menu(answer_files),
        grow=1,
        classes="gb-text",
    )


def _pipeline() -> Part:
    """The sampling pipeline, stage by stage; collapsed, and computed while it is open."""
    follow = pick_list(
        "pipeline-follow", to_follow, most=1, label="pipeline.follow", value=followed, on=selection.follow_picked
    )
    unit = choice(
        "pipeline-unit",
        lambda s: [(t(f"pipeline.{unit}", s.language), unit) for unit in get_args(Unit)],
        label="pipeline.unit",
        value=lambda s: s.state(PlaygroundState).unit,
        on=selection.choose_unit,
    )
    return fold(
        "pipeline",
        "pipeline",
        sentence("pipeline-lead", kind="caption"),
        columns(
            column(
                table("pipeline-stages"),
                follow,
                table("pipeline-token"),
                min_width=300,
            ),
            column(
                unit,
                chart("pipeline-lines", clickable=True, on=selection.follow_line),
                min_width=300,
            ),
        ),
        chart("pipeline-bars", on=editing.choose, queue="model"),
        on=selection.unfold_pipeline,
    )


def _wire(prompt: gr.HTML, controls: Controls, events: Events, frame: Frame, writing: list[Any]) -> None:
    """Wire the text and gradio's controls. writing: the other events that may generate."""
    on = events.on
    latest: dict[str, Any] = {"trigger_mode": "always_last"}
    run: dict[str, Any] = {"queue": "model"}
    carried = [frame.saved]  # in its place the text of the box is sent
    on(prompt.input, typing.type_text, carried, js=f"() => [({TYPED})()]", **latest, **run)
    on(prompt.select, selection.select_token, [prompt], **latest)
    on(frame.strip.select, selection.select_token, [frame.strip])
    on(controls.chat.input, chat.switch_chat, [controls.chat], **run)
    on(controls.preset.input, selection.choose_preset, [controls.preset])
    settings = list(controls.settings.values())
    names, clamped = tuple(controls.settings), clamped_js(settings)
    on([each.input for each in settings], partial(selection.set_values, names), settings, js=clamped, **latest)

    def writes(button: gr.Button, handler: Handler) -> Any:
        """A button that writes: the text and the settings are sent along, as their own events may be on the way."""
        js = f"(_, ...settings) => [({TYPED})(), ...({clamped})(...settings)]"
        return on(button.click, partial(selection.set_and, names, handler), [*carried, *settings], js=js, **run)

    writes(controls.step, generation.step)
    on(controls.full_speed.click, generation.full_speed)
    writing += [
        writes(controls.generate, generation.written(generation.prepare)),
        writes(controls.again, generation.written(generation.prepare_again)),
        on(frame.model.input, generation.written(generation.pick_model), [frame.model], **run),
    ]
    on([controls.stop.click, frame.stop.click], generation.stop, cancels=writing)


def _tail(s: Snapshot) -> str:
    """The label of the button that cuts a text that is too long."""
    n = 0 if s.loaded is None else tail_length(s.loaded.model.config.block_size)
    return t("prompt.use_tail", s.language, n=n)


def _is_too_long(s: Snapshot) -> bool:
    return s.state(PlaygroundState).too_long > 0 and s.loaded is not None


def _is_earlier(s: Snapshot) -> bool:
    return s.text is not None and s.text.framed(s.selection) < len(s.text.ids) - 1


def _can_go_on(s: Snapshot) -> bool:
    return s.text is not None and not s.generating
