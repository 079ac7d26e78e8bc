"""The Change tab: parts of the model switched off, scaled or replaced, and what becomes of the text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import gradio as gr

from components import legacy
from components.i18n import LANGUAGES, t
from components.legacy import LOOKING, RUNNING, Playground
from components.localized import Words
from components.tabs.change import answers as change_answers
from components.tabs.change import panels as change_panels
from components.tabs.change import patching as change_patching
from components.tabs.change import writing as change_writing
from components.tabs.change.experiments import EXPERIMENTS
from components.tabs.change.memory import Memory
from components.widgets.chart import chart
from components.widgets.sentence import sentence

Values = dict[Any, Any]
TICK_SECONDS = 0.5  # between two looks for a text that has changed, while the tab is open


@dataclass(frozen=True)
class Change:
    """The components of the tab, and the Playground, whose session it shares."""

    playground: Playground
    memory: gr.State
    timer: gr.Timer
    reset: gr.Button
    lead: gr.HTML
    notice: gr.HTML
    status: gr.HTML
    switches: gr.HTML
    activation: gr.Radio
    positions: gr.Checkbox
    experiments: tuple[gr.Button, ...]
    costliest: gr.Button
    costs_stop: gr.Button
    both: gr.Button
    stop: gr.Button
    own: gr.HTML
    original: gr.HTML
    edited: gr.HTML
    parted: gr.HTML
    code: gr.Textbox
    bars: gr.HTML
    divergence: gr.HTML
    examples: tuple[gr.Button, ...]
    clean: gr.Textbox
    corrupted: gr.Textbox
    answer: gr.Dropdown
    other: gr.Dropdown
    name: gr.Radio
    measure: gr.Button
    patch_stop: gr.Button
    patch_status: gr.HTML
    trouble: gr.HTML
    map: gr.HTML
    cell: gr.HTML
    keep: gr.Button

    def inputs(self) -> set[Any]:
        """Everything that a handler reads."""
        patching = (self.clean, self.corrupted, self.answer, self.other, self.name)
        return {self.memory, self.activation, self.positions, *patching, *self.playground.inputs()}

    def shown(self) -> list[Any]:
        """Everything about the text and the edits."""
        controls = (self.lead, self.notice, self.status, self.switches, self.activation, self.positions)
        texts = (self.own, self.original, self.edited, self.parted, self.code, self.bars, self.divergence)
        return [*controls, *texts, self.clean, self.corrupted]

    def swept(self) -> list[Any]:
        """Everything about the patching."""
        return [
            self.answer,
            self.other,
            self.patch_stop,
            self.patch_status,
            self.trouble,
            self.map,
            self.cell,
            self.keep,
        ]


def build_change(words: Words, tabs: gr.Tabs, tab: gr.Tab, playground: Playground) -> None:
    """Lay the tab out and wire it; it is about the text of the Playground and computes while it is open."""
    parts: dict[str, Any] = {"playground": playground}
    parts |= change_panels.controls(words) | change_panels.texts(words)
    with gr.Row(elem_classes="gb-cards gb-change-cards"):
        for name, clickable in (("bars", False), ("divergence", True)):
            with gr.Column(elem_classes="gb-card", min_width=300):
                words.build(sentence, {"value": f"change.{name}.question"}, kind="question")
                parts[name] = chart(elem_id=f"change-{name}", clickable=clickable)
    parts |= change_panels.patching_card(words)
    parts["memory"] = gr.State(Memory())
    parts["timer"] = gr.Timer(TICK_SECONDS, active=False)
    ui = Change(**{field.name: parts[field.name] for field in fields(Change)})
    _wire(ui, tabs, tab)


def _wire(ui: Change, tabs: gr.Tabs, tab: gr.Tab) -> None:
    everything, shown, swept = ui.inputs(), ui.shown(), ui.swept()
    run = {"trigger_mode": "always_last", **RUNNING}

    def on(event: Any, fn: Callable[..., Any], outputs: list[Any], **options: Any) -> Any:
        return event(partial(fn, ui), everything, outputs, **{**run, **options})

    answers, patching, writing = change_answers, change_patching, change_writing
    on(tab.select, answers.follow, shown)
    tabs.select(_only_while_open, None, ui.timer, **LOOKING)
    ui.timer.tick(partial(answers.follow, ui, only_changed=True), everything, shown, **run)
    follow_language = partial(answers.follow, ui, only_opened=True)
    ui.playground.frame.language.change(follow_language, everything, shown, **run)
    on(ui.playground.frame.language.change, patching.retell, swept)

    ui.switches.select(_with_event(ui, answers.switch), everything, shown, **run)
    on(ui.activation.input, answers.choose_activation, shown)
    on(ui.positions.input, answers.drop_positions, shown)
    on(ui.reset.click, answers.reset, shown)
    for button, name in zip(ui.experiments, EXPERIMENTS, strict=True):
        on(button.click, partial(_named, answers.experiment, name), shown)
    costs = on(ui.costliest.click, answers.costliest, [*shown, ui.costs_stop], trigger_mode="once")
    _stoppable(ui, costs, ui.costs_stop, answers.measured, [ui.costs_stop, ui.status])

    for widget, select in ((ui.original, answers.select_token), (ui.divergence, answers.select_bar)):
        chosen = widget.select(_with_event(ui, select), everything, shown, **run)
        agree, shared = partial(_agree, ui), legacy.shared(ui.playground)
        chosen.then(agree, everything, shared, **{**LOOKING, "trigger_mode": "always_last"})

    buttons = [ui.both, ui.stop]
    both = on(ui.both.click, writing.write, [*shown, *buttons], trigger_mode="once")
    _stoppable(ui, both, ui.stop, writing.finish, [*shown, *buttons])

    sweeps = [on(ui.measure.click, patching.sweep, swept, trigger_mode="once")]
    sweeps += [on(event, patching.sweep, swept) for event in (ui.name.input, ui.answer.input, ui.other.input)]
    for button, name in zip(ui.examples, change_patching.EXAMPLES, strict=True):
        filled = button.click(partial(_example, name), None, [ui.clean, ui.corrupted], **LOOKING)
        sweeps.append(on(filled.then, patching.sweep, swept, trigger_mode="once"))
    _stoppable(ui, sweeps, ui.patch_stop, patching.swept, [ui.patch_stop, ui.patch_status])
    ui.map.select(_with_event(ui, patching.choose_cell), everything, swept, **run)
    on(ui.keep.click, patching.keep, shown)


def _stoppable(ui: Change, events: Any, stop: gr.Button, finish: Callable[..., Values], outputs: list[Any]) -> None:
    """`stop` ends the events; however they end, `finish` follows."""
    events = events if isinstance(events, list) else [events]
    for event in events:
        for ended in (event.then, event.failure):
            ended(partial(finish, ui), ui.inputs(), outputs, **RUNNING)
    stop.click(None, None, None, cancels=events, api_visibility="private")


def _example(name: str) -> tuple[str, str]:
    return change_patching.EXAMPLES[name]


def _named(function: Callable[..., Values], name: str, ui: Change, values: Values) -> Values:
    return function(ui, values, name)


def _agree(ui: Change, values: Values) -> Values:
    """Let the Playground show what was selected here, unless this is another text."""
    return gr.skip() if values[ui.memory].own else legacy.agree(ui, values)


def _only_while_open(event: gr.SelectData) -> gr.Timer:
    """The timer runs while this tab is the one that is open."""
    return gr.Timer(active=event.value in {t("tab.change", language) for language in LANGUAGES})


def _with_event(ui: Change, function: Callable[..., Values]) -> Callable[..., Values]:
    """A handler that also gets what the browser sent with the event: a dict of anything."""

    def handle(values: Values, event: gr.EventData) -> Values:
        return function(ui, values, event._data if isinstance(event._data, dict) else {})

    return handle
