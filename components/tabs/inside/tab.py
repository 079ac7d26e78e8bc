"""The Inside tab: four parts that share one selection, each a row of cards."""

from __future__ import annotations

from collections.abc import Callable

import gradio as gr

from components.cards.card import Card, add_cards
from components.events import Events
from components.limits import MAX_VISITOR_BYTES
from components.localized import Localizer
from components.parts import button, caption, question, row, section, title_row
from components.render import Control
from components.state.snapshot import Snapshot
from components.tabs.inside import handlers
from components.tabs.inside.analysis import analysis
from components.tabs.inside.state import InsideState, Part
from components.tabs.inside.views import VIEWS
from components.widgets.chart import chart
from components.widgets.flow import flow
from components.widgets.heads import heads
from components.widgets.layers import layers
from components.widgets.sentence import sentence
from components.widgets.stages import stages
from components.widgets.table import table
from components.widgets.tokens import tokens

NAME = "inside"


def build_inside(localizer: Localizer, events: Events, visitor_memory: int = MAX_VISITOR_BYTES) -> None:
    """Build and wire the tab.

    `visitor_memory` limits each visitor's recording, in bytes. If a text exceeds it, only the beginning is shown.
    """
    cards = [_notice()]
    with gr.Tabs(elem_id="inside-parts") as parts:
        for name, build in PARTS.items():
            with localizer.build(gr.Tab, {"label": f"inside.{name}"}, id=_tab_id(name)):
                cards.append(build())
    cards.append(_trace_file())
    add_cards(events, NAME, cards, VIEWS, analysis(visitor_memory))
    opened = Control(parts, lambda s: {"selected": _tab_id(_state(s).part)})
    events.renderer.add(NAME, controls=[opened])
    events.on(parts.select, handlers.open_part, payload=True)


def _notice() -> Card:
    """Build the notice about a missing or truncated text."""
    return Card("inside-film", sentence("inside-notice", kind="notice"), classes="")


def _machine() -> Card:
    """Build the flow diagram, in which the film plays, and the overview of all heads."""
    return Card(
        "inside-machine",
        section(
            title_row(question("inside.question"), button("follow", "film.open", handlers.open_film)),
            sentence("flow-lead", kind="lead"),
            sentence("flow-family", kind="caption"),
            flow("flow", on=handlers.select_in_flow, on_input=handlers.write_next, input_queue="model"),
        ),
        section(
            question("inside.heads.question"),
            heads("heads", hint="tabs", on=handlers.select, on_input=handlers.magnify_head),
        ),
        classes="",
    )


def _one_head() -> Card:
    """Build the stages of one head."""
    return Card(
        "inside-head",
        section(question("stages.question"), caption("stages.lead"), stages("stages", on=handlers.select_pair)),
        classes="",
    )


def _stream() -> Card:
    """Build the charts of the residual stream and the neurons."""
    norms = chart("stream-norms", clickable=True, on=handlers.select_layer)
    shares = chart("stream-shares", clickable=True, on=handlers.select_layer)
    return Card(
        "inside-stream",
        section(
            title_row(
                question("stream.tokens.question"),
                layers("stream-layer", on=handlers.select),
            ),
            sentence("stream-tokens-says", kind="caption"),
            tokens("stream-tokens", shade="length", on=handlers.select_token),
        ),
        row(
            section(question("stream.question"), norms, grow=1),
            section(question("stream.shares.question"), shares, grow=1),
            classes="gb-cards",
        ),
        section(
            question("neurons.question"),
            chart("neurons"),
            table("neurons-table", words_from=4),
        ),
        classes="",
    )


def _embeddings() -> Card:
    """Build the charts of token and position embeddings."""
    return Card(
        "inside-embeddings",
        row(
            section(question("embeddings.question"), chart("nearest-tokens"), grow=1),
            section(
                question("places.question"),
                chart("position-similarity"),
                sentence("no-positions", kind="caption"),
                grow=1,
            ),
            classes="gb-cards",
        ),
        classes="",
    )


def _trace_file() -> Card:
    """Build the button that saves all activations."""
    return Card(
        "inside-trace",
        row(
            button("trace-save", "trace.save", handlers.save_trace, queue="model"),
            sentence("trace-said", kind="caption"),
        ),
        classes="",
    )


PARTS: dict[Part, Callable[[], Card]] = {
    "machine": _machine,
    "one_head": _one_head,
    "stream": _stream,
    "embeddings": _embeddings,
}


def _state(s: Snapshot) -> InsideState:
    return s.state(InsideState)


def _tab_id(part: Part) -> str:
    return f"inside-{part.replace('_', '-')}"
