"""The Compare tab: two continuations side by side, each with its own settings, or the tree of a beam search."""

from __future__ import annotations

from functools import partial
from typing import Any, get_args

import gradio as gr

from components.cards.card import Card, add_cards
from components.events import Events
from components.frame import model_choices
from components.i18n import t
from components.limits import MAX_CHARACTERS
from components.parts import (
    Action,
    Part,
    button,
    caption,
    case,
    choice,
    column,
    columns,
    question,
    row,
    section,
    select,
    slider,
    text_box,
    title_row,
    valueless,
)
from components.state.jobs import stop
from components.state.settings import LIMITS
from components.state.snapshot import Snapshot
from components.tabs.compare import state
from components.tabs.compare.handlers import beam_search
from components.tabs.compare.handlers import columns as handlers
from components.tabs.compare.state import COLUMN_SETTINGS, PRESETS, SIDES, BeamState, CompareState, RunState
from components.tabs.compare.views import VIEWS
from components.tabs.compare.views.beam_search import picked
from components.widgets.beams import beams
from components.widgets.chart import chart
from components.widgets.sentence import sentence
from components.widgets.table import table
from components.widgets.tokens import tokens

NAME = "compare"


def build_compare(events: Events, tab: gr.Tab) -> None:
    """Build and wire the tab. Each part runs an example the first time it is opened."""
    card = Card(
        "compare",
        _prompt(),
        case("compare-open", _part, {"sides": _side_by_side(), "beams": _beam_search()}),
        classes="gb-compare",
    )
    add_cards(events, NAME, [card], VIEWS)
    events.on(tab.select, handlers.open_tab, queue="model")


def _part(s: Snapshot) -> state.Part:
    return s.state(CompareState).part


def _prompt() -> Part:
    """Build the prompt box shared by both parts, and the switch between the parts."""
    part = choice(
        "compare-part",
        lambda s: [(t(f"compare.{each}"), each) for each in get_args(state.Part)],
        label="compare.part",
        value=_part,
        on=beam_search.open_part,
        queue="model",
    )
    left = text_box(
        "compare-prompt",
        label="prompt",
        max_length=MAX_CHARACTERS,
        value=lambda s: state.prompts(s)[0],
        on=handlers.type_prompt,
    )
    right = text_box(
        "compare-right-prompt",
        label="compare.right_prompt",
        info="compare.right_prompt.info",
        max_length=MAX_CHARACTERS,
        value=lambda s: state.prompts(s)[1],
        on=handlers.type_right_prompt,
        show=lambda s: _part(s) == "sides",
    )
    return section(
        title_row(question("compare.question"), part),
        caption("compare.says"),
        row(left, right, classes="gb-compare-prompts"),
    )


def _side_by_side() -> Part:
    """Build the two columns and their differences."""
    presets = [
        button(f"compare-{name}", f"compare.preset.{name}", partial(handlers.run_preset, name), queue="model")
        for name in PRESETS
    ]
    length = slider(
        "compare-length",
        1,
        handlers.MAX_LENGTH,
        1,
        label="length",
        info="length.info",
        value=lambda s: s.state(CompareState).length,
        on=handlers.set_length,
    )
    run = _run_buttons("compare-generate", "compare.generate", handlers.generate, "compare-stop", CompareState)
    return column(
        section(
            row(caption("compare.preset"), *presets, classes="gb-compare-presets"),
            row(length, run, classes="gb-compare-run"),
            sentence("compare-notice", kind="notice"),
        ),
        row(*(_column(side) for side in range(len(SIDES))), classes="gb-compare-columns"),
        section(
            question("compare.parting.question"),
            sentence("compare-parting", kind="lead"),
            question("compare.divergence.question"),
            chart("compare-divergence", clickable=True, on=handlers.select_bar),
            question("compare.bars.question"),
            columns(*map(_bars, SIDES)),
        ),
    )


def _bars(side: state.Side) -> Part:
    """Build the chart of one side's predictions."""
    bars = chart(f"compare-{side}-bars")
    return column(caption(f"compare.{side}"), bars, classes="gb-compare-side")


def _column(side: int) -> Part:
    """Build one side's settings and text."""
    name = f"compare-{SIDES[side]}"

    def value(setting: str) -> Any:
        return lambda s: getattr(s.state(CompareState).columns[side], setting)

    def set_value(setting: str) -> Any:
        return partial(handlers.set_value, side, setting)

    model = select(
        f"{name}-model",
        lambda s: model_choices(s.own_models),
        label=f"compare.{SIDES[side]}",
        value=lambda s: value("model")(s) or s.model,
        on=set_value("model"),
    )
    sliders = [
        slider(
            f"{name}-{setting.replace('_', '-')}",
            LIMITS[setting].low,
            LIMITS[setting].high,
            LIMITS[setting].step,
            label=setting,
            value=value(setting),
            on=set_value(setting),
        )
        for setting in COLUMN_SETTINGS
    ]
    seed = text_box(
        f"{name}-seed",
        label="seed",
        placeholder="seed.placeholder",
        max_length=18,
        value=value("seed"),
        on=set_value("seed"),
        on_enter=Action(valueless(handlers.generate), "model"),
    )
    return section(
        model,
        row(*sliders, seed, classes="gb-compare-settings"),
        tokens(f"{name}-strip", on=partial(handlers.select_token, side)),
        sentence(f"{name}-status", kind="status"),
        classes="gb-compare-column",
        grow=1,
    )


def _beam_setting(name: str, s: Snapshot) -> Any:
    return getattr(s.state(BeamState), name)


def _beam_search() -> Part:
    """Build the tree of a beam search and its finished texts."""
    steps = {"width": 1, "penalty": 0.1, "length": 1}
    sliders = [
        slider(
            f"beams-{name}",
            *beam_search.RANGES[name],
            step,
            label=f"beams.{name}",
            info=f"beams.{name}.info",
            value=partial(_beam_setting, name),
            on=partial(beam_search.set_value, name),
        )
        for name, step in steps.items()
    ]
    run = _run_buttons("beams-search", "beams.search", beam_search.search, "beams-stop", BeamState)
    adopt = button("beams-adopt", "beams.adopt", beam_search.adopt, enabled=_can_adopt)
    return column(
        section(
            question("beams.question"),
            caption("beams.lead"),
            row(*sliders, run, classes="gb-compare-run"),
            sentence("beams-notice", kind="notice"),
            beams("beams-tree", on=beam_search.choose),
            sentence("beams-says", kind="lead"),
            sentence("beams-status", kind="status"),
            row(
                sentence("beams-chosen", kind="caption"),
                adopt,
                classes="gb-compare-chosen",
            ),
        ),
        section(question("beams.table.question"), table("beams-table")),
    )


def _run_buttons(name: str, label: str, start: Any, stop_name: str, run: type[RunState]) -> Part:
    """Build the Start and Stop buttons. A stopped run still shows its last results before it ends."""
    return row(
        button(name, label, start, queue="model", enabled=lambda s: not s.state(run).busy, primary=True),
        button(stop_name, "stop", partial(stop, run), enabled=lambda s: s.state(run).busy),
        classes="gb-buttons gb-short",
    )


def _can_adopt(s: Snapshot) -> bool:
    found = s.state(BeamState)
    return not found.busy and picked(found) is not None
