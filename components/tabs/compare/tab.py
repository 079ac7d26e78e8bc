"""The Compare tab: two continuations side by side, each with its own settings, or the tree of a beam search."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gradio as gr

from components.events import Events
from components.i18n import t
from components.kit import caption, card, case, column, question, row, section, title_row
from components.limits import MAX_CHARACTERS
from components.parts import choice, text_box
from components.state.session import Session
from components.tabs.compare.beams import Beams, beam_search, search
from components.tabs.compare.columns import (
    Compare,
    examples,
    generate,
    prompts,
    side_by_side,
    tab,
    type_prompt,
    type_right_prompt,
)

PARTS = {"sides": side_by_side, "beams": beam_search}


def open_part(session: Session, part: object) -> Iterator[None]:
    """Open a part of the tab. The beam search runs an example the first time it is opened."""
    if part not in PARTS:
        return
    session.change(Compare, part=part)
    if part == "beams" and not session.state(Beams).begun:
        yield from search(session)


def open_tab(session: Session) -> Iterator[None]:
    """Run an example the first time the tab is opened."""
    state = session.state(Compare)
    if state.pair is None and state.job is None:
        yield from generate(session)


def open_name(s: Any) -> str:
    return str(s[Compare].part)


def _shows_sides(s: Any) -> bool:
    return open_name(s) == "sides"


tab.cards(
    card(
        "compare",
        section(
            title_row(
                question("compare.question"),
                choice(
                    "compare-part",
                    choices=lambda s: [(t(f"compare.{each}"), each) for each in PARTS],
                    label="compare.part",
                    value=open_name,
                    on=open_part,
                    queue="model",
                ),
            ),
            caption("compare.says"),
            column(examples(), grow=0, min_width=0, name="compare-examples", show=_shows_sides),
            row(
                text_box(
                    "compare-prompt",
                    label="prompt",
                    max_length=MAX_CHARACTERS,
                    value=lambda s: prompts(s)[0],
                    on=type_prompt,
                ),
                text_box(
                    "compare-right-prompt",
                    label="compare.right_prompt",
                    info="compare.right_prompt.info",
                    max_length=MAX_CHARACTERS,
                    value=lambda s: prompts(s)[1],
                    on=type_right_prompt,
                    show=_shows_sides,
                ),
                classes="gb-compare-prompts",
            ),
        ),
        case("compare-open", open_name, {name: make() for name, make in PARTS.items()}),
        classes="gb-compare",
    )
)


def build_compare(events: Events, opened: gr.Tab) -> None:
    tab.build(events)
    events.on(opened.select, open_tab, queue="model")
