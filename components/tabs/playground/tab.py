"""The Playground tab: builds and wires it."""

from __future__ import annotations

from dataclasses import fields
from functools import partial
from typing import Any

import gradio as gr

from components.events import Events, clamp_js
from components.frame import Frame
from components.i18n import t
from components.limits import MAX_LENGTH
from components.localized import Localizer
from components.render import Control
from components.state.session import Session
from components.state.settings import LIMITS
from components.state.snapshot import Snapshot
from components.tabs.playground import layout
from components.tabs.playground.components import EXAMPLES, PlaygroundComponents, PlaygroundState, tail_length
from components.tabs.playground.handlers import chat, editing, generation, reason, selection, typing
from components.tabs.playground.upload import build_upload, wire_upload
from components.tabs.playground.views import SHARED_VIEWS, VIEWS
from components.tabs.playground.views.pipeline import follow_picker, pipeline_inputs
from components.text_views import AVERAGE, head_choices
from components.widgets.composer import typed_js

NAME = "playground"
TYPED = typed_js("prompt")


def build_playground(
    localizer: Localizer, events: Events, frame: Frame, session: Session, *, uploads: bool = False
) -> PlaygroundComponents:
    """Build and wire the tab. session: the initial session. uploads: whether to add the panel for uploaded
    checkpoints."""
    parts: dict[str, Any] = {}
    with gr.Column(elem_classes="gb-playground"):
        parts |= layout.prompt(localizer, session)
        with gr.Row(elem_classes="gb-cards gb-live"):
            with gr.Column(elem_classes="gb-card", min_width=300):
                parts |= layout.attention(localizer, session)
            with gr.Column(elem_classes="gb-card gb-text", min_width=300):
                parts |= layout.text(localizer)
        parts |= layout.pipeline(localizer)
        upload = build_upload(localizer) if uploads else None
    ui = PlaygroundComponents(**{field.name: parts[field.name] for field in fields(PlaygroundComponents)})
    events.renderer.add("", SHARED_VIEWS)
    events.renderer.add(NAME, VIEWS, reason.ANALYSIS, controls=_controls(ui))
    for _ in reason.measure(session):  # what every visitor begins with
        pass
    begun = _wire(ui, events, frame)
    if upload is not None:
        begun.append(wire_upload(upload, events))
    _wire_writing(ui, events, begun, frame)
    return ui


def _controls(ui: PlaygroundComponents) -> list[Control]:
    """Components that the server changes."""

    def enabled(button: gr.Button, test: Any) -> Control:
        return Control(button, test, lambda s: {"interactive": test(s)})

    def value(component: Any, name: str) -> Control:
        return Control(component, lambda s: getattr(s.settings, name), lambda s: {"value": getattr(s.settings, name)})

    return [
        enabled(ui.generate, lambda s: not s.generating),
        enabled(ui.step, lambda s: not s.generating),
        enabled(ui.again, lambda s: not s.generating),
        enabled(ui.stop, lambda s: s.generating),
        enabled(ui.full_speed, lambda s: s.generating and s.settings.pace > 0),
        enabled(ui.undo, lambda s: s.can_undo),
        enabled(ui.redo, lambda s: s.can_redo and not s.generating),
        enabled(ui.back, _is_earlier),
        enabled(ui.go_on, lambda s: s.text is not None and not s.generating),
        *(value(slider, name) for name, slider in ui.sampling.items()),
        *(value(getattr(ui, name), name) for name in ("length", "seed", "pace")),
        Control(
            ui.preset, lambda s: selection.preset_of(s.settings), lambda s: {"value": selection.preset_of(s.settings)}
        ),
        Control(ui.chat, _has_chat, lambda s: {"visible": _has_chat(s)}),
        Control(ui.chat, lambda s: s.chat, lambda s: {"value": s.chat}),
        Control(ui.box, lambda s: s.query, lambda s: {"value": s.query}),
        Control(ui.shading, lambda s: s.selection.shading, lambda s: {"value": s.selection.shading}),
        Control(ui.use_tail, _tail_inputs, _tail_button),
        Control(ui.layer, _layers, lambda s: {"choices": list(range(_layers(s)))}),
        Control(ui.layer, lambda s: s.selection.layer, lambda s: {"value": s.selection.layer}),
        Control(ui.head, lambda s: (_heads(s), s.language), lambda s: {"choices": head_choices(_heads(s), s.language)}),
        Control(ui.head, lambda s: s.selection.head, lambda s: {"value": _head_value(s)}),
        Control(ui.follow, pipeline_inputs, follow_picker),
    ]


def _is_earlier(s: Snapshot) -> bool:
    return s.text is not None and s.text.framed(s.selection) < len(s.text.ids) - 1


def _has_chat(s: Snapshot) -> bool:
    return s.loaded is not None and s.loaded.tokenizer.is_chat


def _tail_inputs(s: Snapshot) -> Any:
    return s.state(PlaygroundState).too_long > 0, s.loaded, s.language


def _tail_button(s: Snapshot) -> dict[str, Any]:
    if not s.state(PlaygroundState).too_long or s.loaded is None:
        return {"visible": False}
    n = tail_length(s.loaded.model.config.block_size)
    return {"visible": True, "value": t("prompt.use_tail", s.language, n=n)}


def _layers(s: Snapshot) -> int:
    return 0 if s.text is None else s.text.config.n_layer


def _heads(s: Snapshot) -> int:
    return 0 if s.text is None else s.text.config.n_head


def _head_value(s: Snapshot) -> int:
    return AVERAGE if s.selection.head is None else s.selection.head


def _wire(ui: PlaygroundComponents, events: Events, frame: Frame) -> list[Any]:
    """Wire all events except generation; returns those that prepare one."""
    on = events.on
    latest = {"trigger_mode": "always_last"}
    run = {"queue": "model"}
    carried = [frame.saved]  # in its place the text of the box is sent
    on(ui.prompt.input, typing.type_text, carried, js=f"() => [({TYPED})()]", **latest, **run)
    on(ui.chat.input, chat.switch_chat, [ui.chat], **run)
    on(ui.prompt.select, selection.select_token, [ui.prompt], **latest)
    for name, slider in {**ui.sampling, "length": ui.length}.items():
        low, high = (LIMITS[name].low, LIMITS[name].high) if name in LIMITS else (1, MAX_LENGTH)
        on(slider.input, partial(_set, name), [slider], js=clamp_js(low, high), **latest)
    for name in ("seed", "pace"):
        on(getattr(ui, name).input, partial(_set, name), [getattr(ui, name)], **latest)
    on(ui.preset.input, selection.choose_preset, [ui.preset])

    for strip in (ui.strip, frame.strip):
        on(strip.select, selection.select_token, [strip])
    on(ui.heatmap.select, selection.select_row, [ui.heatmap])
    on(ui.layer.input, selection.choose_layer, [ui.layer], **latest)
    on(ui.head.input, selection.choose_head, [ui.head], **latest)
    on(ui.shading.input, selection.choose_shading, [ui.shading], **latest)

    for widget in (ui.bars, ui.chart_bars, ui.hits):
        on(widget.select, editing.choose, [widget], **run)
    on(ui.tree.select, editing.switch_branch, [ui.tree], **run)
    on(ui.box.submit, editing.type_text, [ui.box], sets=[ui.box], **run)
    on(ui.box.input, editing.search, [ui.box], **latest)

    on(ui.pipeline.expand, selection.unfold_pipeline)
    on(ui.pipeline.collapse, selection.fold_pipeline)
    on(ui.unit.input, selection.choose_unit, [ui.unit], **latest)
    on(ui.follow.input, selection.follow_token, [ui.follow], sets=[ui.follow], **latest)
    on(ui.lines.select, selection.follow_line, [ui.lines])

    typed = {"inputs": [*carried, ui.seed], "js": f"(_, seed) => [({TYPED})(), seed]", **run}
    on(ui.step.click, generation.step, **typed)
    on(ui.full_speed.click, generation.full_speed)
    begun = [on(ui.generate.click, generation.prepare, **typed), on(ui.again.click, generation.prepare_again, **typed)]
    for button, key in zip(ui.examples, EXAMPLES, strict=True):
        filled = on(button.click, partial(_fill, key))
        begun.append(on(filled.then, generation.prepare_prompt, **run))
    shortened = on(ui.use_tail.click, generation.use_tail)
    begun.append(on(shortened.then, generation.prepare_prompt, **run))
    begun.append(on(frame.model.input, generation.pick_model, [frame.model], **run))
    begun.append(on(ui.go_on.click, generation.prepare_here, **run))
    return begun


def _wire_writing(ui: PlaygroundComponents, events: Events, begun: list[Any], frame: Frame) -> None:
    """Let generation follow each event of `begun`; the stop events end both."""
    written = [follow(events, event) for event in begun]
    stopped = [*begun, *written]
    events.on([ui.stop.click, frame.stop.click], generation.stop, cancels=stopped)
    events.on(ui.clear.click, generation.clear, cancels=stopped)
    for button, handler in ((ui.undo, editing.undo), (ui.redo, editing.redo), (ui.back, editing.go_back)):
        events.on(button.click, handler, queue="model", cancels=stopped)


def follow(events: Events, begun: Any) -> Any:
    """Let generation follow the event `begun`; returns its event."""
    # A new text may be ready before the previous stream has noticed that it lost its turn: do not drop the event.
    written = events.on(begun.success, generation.generate, queue="model")
    for ended in (begun.failure, written.then, written.failure):
        events.on(ended, generation.finish)
    return written


def _set(name: str, session: Session, value: object) -> None:
    selection.set_value(session, name, value)


def _fill(key: str, session: Session) -> None:
    generation.fill_prompt(session, EXAMPLES[key])
