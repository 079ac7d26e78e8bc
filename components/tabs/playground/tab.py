"""The Write tab."""

from __future__ import annotations

from functools import partial
from itertools import starmap
from typing import Any, get_args

import gradio as gr

from components.cards.card import Card, add_cards
from components.concepts import turn
from components.events import Carried, Events, clamped_js
from components.frame import Frame, short_name
from components.i18n import t
from components.localized import Localizer
from components.parts import (
    Action,
    Handler,
    Part,
    button,
    caption,
    case,
    check_box,
    choice,
    column,
    columns,
    fold,
    pick_list,
    question,
    row,
    select,
    text_box,
    title_row,
)
from components.share.handlers import answer_files
from components.share.menu import files_menu
from components.state.example import EXAMPLES, language_of_model
from components.state.hidden import HiddenState
from components.state.selection import Shading
from components.state.session import Session
from components.state.snapshot import Snapshot
from components.tabs.playground.controls import Controls, build_controls, build_run
from components.tabs.playground.handlers import chat, editing, generation, hiding, knowledge, reason, selection, typing
from components.tabs.playground.state import PlaygroundState, Unit, tail_length
from components.tabs.playground.upload import build_upload
from components.tabs.playground.views import SHARED_VIEWS, VIEWS
from components.tabs.playground.views.pipeline import followed, to_follow
from components.tabs.playground.views.prediction import asked, can_hide, hide_label
from components.tabs.playground.views.text import named, offered_model
from components.text_views import AVERAGE, head_choices
from components.widgets.chart import chart
from components.widgets.choices import choices
from components.widgets.composer import composer, typed_js
from components.widgets.draw import draw
from components.widgets.predictions import predictions
from components.widgets.sentence import says, sentence
from components.widgets.steer import steer
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
    """Build and wire the tab.

    Args:
        session: The initial session.
        open_film: Handler that opens the film.
        uploads: Whether to add the panel for uploading checkpoints.
    """
    with gr.Column(elem_classes="gb-playground"):
        with gr.Column(elem_classes="gb-card gb-prompt"):
            hero = Card("hero", says("hero-question", asked), classes="")
            prompt = placed(composer("prompt", view="box", leads=True))
            next_token = _next()
            with gr.Row(elem_classes="gb-buttons"):
                run = build_run(localizer, session)
                write_own = button("write-own", "hero.write", _write_own)
                start = Card("start", row(_film(open_film), write_own, classes="gb-start"), classes="")
        with gr.Row(elem_classes="gb-cards"):
            attention = Card("attention", *_attention(), classes="gb-card gb-live")
            with gr.Column(elem_classes="gb-card gb-draw-card", min_width=300):
                localizer.sentence("pipeline", kind="question")
                controls = build_controls(localizer, run)
                pipeline = Card("pipeline", _pipeline(), classes="gb-live")
            text = Card("text", *_text(), classes="gb-card gb-text")
        opened = [build_upload(localizer, events)] if uploads else []
    events.renderer.add("", SHARED_VIEWS)
    events.renderer.add(NAME, controls=controls.updates())
    settings = list(controls.settings.values())
    set_values = partial(selection.set_values, tuple(controls.settings))
    carried = Carried(settings, set_values, clamped_js(settings))
    cards = [hero, next_token, start, attention, pipeline, text]
    wired = add_cards(events, NAME, cards, VIEWS, reason.ANALYSIS, _with_text(carried, frame))
    _wire(prompt, controls, carried, events, frame, [*opened, wired["model"]])


def _with_text(settings: Carried, frame: Frame) -> Carried:
    """Make events also send the text in the box, because the box's own event may not have arrived."""

    def take(session: Session, box: str, *values: object) -> None:
        typing.take_typed(session, box)
        settings.take(session, *values)

    js = f"(_, ...values) => [({TYPED})(), ...({settings.js})(...values)]"
    return Carried([frame.saved, *settings.components], take, js)


def _next() -> Card:
    """Build the card with the next token and its reason and, on request, the prediction without attention."""
    fitting = generation.written(knowledge.prepare_fitting)
    why = column(
        question("reason.question"),
        sentence("reason", kind="lead"),
        name="next-why",
        show=lambda s: not s.state(HiddenState).attention_off,
        min_width=240,
    )
    off = column(
        predictions("bars-off", selectable=False),
        sentence("goes-on-off", kind="lead", view="goes-on", field="off"),
        name="next-off",
        show=lambda s: s.state(HiddenState).attention_off,
    )
    switches = row(
        button("hide-main", hide_label, hiding.hide_main, enabled=can_hide),
        button("attention-off", _attention_label, hiding.switch_attention),
        classes="gb-small",
    )
    return Card(
        "next",
        sentence("status", kind="status"),
        sentence("notice", kind="notice"),
        row(
            sentence("knows", kind="notice"),
            button("use-model", _offer, fitting, queue="model", show=lambda s: offered_model(s) is not None),
        ),
        row(
            sentence("literal", kind="caption"),
            check_box(
                "special",
                label="special",
                value=lambda s: s.special,
                on=generation.switch_special,
                queue="model",
                show=lambda s: s.special or s.cached(named) is not None,
            ),
        ),
        row(button("use-tail", _tail, generation.written(generation.prepare_tail), queue="model", show=_is_too_long)),
        columns(
            column(
                predictions("bars", on=editing.choose, queue="model"),
                sentence("goes-on", kind="lead"),
                grow=3,
            ),
            column(
                why, off, switches, steer("concepts", on=turn), sentence("spoken", kind="spoken"), grow=2, min_width=240
            ),
            classes="gb-next gb-live",
        ),
        classes="",
    )


def _write_own(session: Session) -> None:
    """Do nothing: the browser selects the text, see hero.js."""


def _offer(s: Snapshot) -> str:
    """Return the label of the button that switches to a model that fits the text."""
    name = offered_model(s)
    return "" if name is None else t("knows.switch", model=short_name(name))


def _attention_label(s: Snapshot) -> str:
    return t("attention.on" if s.state(HiddenState).attention_off else "attention.off")


def _examples() -> Part:
    rows = {
        language: row(caption("examples"), *starmap(_example, prompts.items()), classes="gb-small")
        for language, prompts in EXAMPLES.items()
    }
    return case("examples", lambda s: language_of_model(s.model), rows)


def _example(key: str, prompt: str) -> Part:
    write = generation.written(partial(generation.prepare_example, prompt))
    return button(key.replace(".", "-"), key, write, queue="model")


def _film(open_film: Handler) -> Part:
    return button("open-film", "film.open", open_film)


def _attention() -> tuple[Part, ...]:
    """Build the attention heatmap."""
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
        lambda s: head_choices(0 if s.text is None else s.text.config.n_head),
        label="attention.head",
        value=lambda s: AVERAGE if s.selection.head is None else s.selection.head,
        on=selection.choose_head,
        beside=True,
    )
    return (
        title_row(question("attention.question"), layer, head),
        chart("heatmap", clickable=True, on=selection.select_row),
    )


def _text() -> tuple[Part, ...]:
    """Build the branches, the undo buttons and a collapsed section with the token strip and manual edits."""
    shading = choice(
        "shading",
        lambda s: [(t(f"strip.shading.{kind}"), kind) for kind in get_args(Shading)],
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
    again = generation.written(generation.prepare_again_here)
    return (
        question("branches.question"),
        _examples(),
        sentence("dropped", kind="caption"),
        row(
            button("undo", "undo", editing.undo, queue="model", enabled=lambda s: s.can_undo),
            button("redo", "redo", editing.redo, queue="model", enabled=lambda s: s.can_redo and not s.generating),
            button("again", "again", again, queue="model", enabled=_can_go_on),
            button("clear", "clear", generation.clear, queue="model"),
            classes="gb-small",
        ),
        tree("tree", on=editing.switch_branch, queue="model", classes=("gb-live",)),
        files_menu(answer_files),
        fold(
            "token-by-token",
            "strip.question",
            tokens("strip", curve=True, empty="page", on=selection.select_token),
            row(sentence("hint", kind="caption"), shading, classes="gb-strip-tools"),
            draw("draw"),
            row(
                button("back", "back", editing.go_back, queue="model", enabled=_is_earlier),
                button(
                    "go_on", "go_on", generation.written(generation.prepare_here), queue="model", enabled=_can_go_on
                ),
                classes="gb-small",
            ),
            box,
            choices("hits", on=editing.choose, queue="model"),
            sentence("prompt-count", kind="caption"),
            tokens("prompt-strip", ids=True, selectable=False),
            classes="gb-live",
        ),
    )


def _pipeline() -> Part:
    """Build the sampling pipeline, stage by stage. It is collapsed at first and computed only while open."""
    follow = pick_list(
        "pipeline-follow", to_follow, most=1, label="pipeline.follow", value=followed, on=selection.follow_picked
    )
    unit = choice(
        "pipeline-unit",
        lambda s: [(t(f"pipeline.{unit}"), unit) for unit in get_args(Unit)],
        label="pipeline.unit",
        value=lambda s: s.state(PlaygroundState).unit,
        on=selection.choose_unit,
    )
    return fold(
        "pipeline",
        "pipeline.more",
        sentence("pipeline-lead", kind="caption"),
        unit,
        chart("pipeline-lines", clickable=True, on=selection.follow_line),
        follow,
        table("pipeline-stages"),
        table("pipeline-token"),
        chart("pipeline-bars", on=editing.choose, queue="model"),
        on=selection.unfold_pipeline,
    )


def _wire(
    prompt: gr.HTML, controls: Controls, settings: Carried, events: Events, frame: Frame, writing: list[Any]
) -> None:
    """Wire the text and the Gradio controls. `writing` contains the other events that may start generation."""
    on = events.on
    latest: dict[str, Any] = {"trigger_mode": "always_last"}
    run: dict[str, Any] = {"queue": "model"}
    text = [frame.saved]  # the browser sends the text in the box instead
    typed = f"(_, ...others) => [({TYPED})(), ...others]"
    on(prompt.input, typing.type_text, text, js=typed, **latest, **run)
    on(prompt.select, selection.select_in_box, [prompt], **latest)
    on(prompt.submit, hiding.hide_words, [prompt], **latest)
    on(prompt.undo, editing.retrace, [*text, prompt], js=typed, **run)
    on(frame.strip.select, selection.select_token, [frame.strip])
    on(controls.run.chat.input, chat.switch_chat, [controls.run.chat], **run)
    on(controls.preset.input, selection.choose_preset, [controls.preset])
    on([each.input for each in settings.components], settings.take, settings.components, js=settings.js, **latest)

    def writes(trigger: Any, handler: Handler, sent: list[Any], js: str = "(...sent) => sent") -> Any:
        """Wire an event that starts generation. Like cards' events, it also sends the settings."""
        return on(trigger, **settings.added(handler, sent, js), **run)

    writes(controls.run.step.click, generation.step, text, typed)
    on(controls.run.full_speed.click, generation.full_speed)
    writing += [
        writes(controls.run.generate.click, generation.written(generation.prepare), text, typed),
        writes(frame.model.input, generation.written(generation.pick_model), [frame.model]),
    ]
    on([controls.run.stop.click, frame.stop.click], generation.stop, cancels=writing)


def _tail(s: Snapshot) -> str:
    """Return the label of the button that truncates an overlong text."""
    n = 0 if s.loaded is None else tail_length(s.loaded.model.config.block_size)
    return t("prompt.use_tail", n=n)


def _is_too_long(s: Snapshot) -> bool:
    return s.state(PlaygroundState).too_long > 0 and s.loaded is not None


def _is_earlier(s: Snapshot) -> bool:
    return s.written is not None and s.written.framed(s.selection) < len(s.written.ids) - 1


def _can_go_on(s: Snapshot) -> bool:
    return s.text is not None and not s.generating
