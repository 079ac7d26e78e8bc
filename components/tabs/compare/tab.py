"""The Compare tab: two continuations side by side, each with its own settings, or the tree of a beam search."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import gradio as gr

from components import kit
from components.events import Events
from components.state.session import Session
from components.tabs.compare import beams, columns
from components.tabs.compare.columns import Compare, prompts, tab


def open_part(session: Session, part: object) -> Iterator[None]:
    """Open a part of the tab. The beam search runs an example the first time it is opened."""
    Compare.part.set(session, part)  # type: ignore[attr-defined]
    if part == "beams" and not session.state(beams.Beams).begun:
        yield from beams.search(session)


def open_tab(session: Session) -> Iterator[None]:
    """Run an example the first time the tab is opened."""
    state = session.state(Compare)
    if state.pair is None and state.job is None:
        yield from columns.generate(session)


def shows_sides(s: Any) -> bool:
    return bool(s[Compare].part == "sides")


parts = {"sides": columns.side_by_side(), "beams": beams.beam_search()}
tab.cards(
    kit.card(
        "compare",
        kit.section(
            kit.title_row(
                kit.question("compare.question"),
                kit.choice(Compare.part, "compare.part", on=open_part, queue="model"),
            ),
            kit.caption("compare.says"),
            kit.column(columns.examples(), grow=0, min_width=0, name="compare-examples", show=shows_sides),
            kit.row(
                kit.text_box(
                    Compare.prompt,
                    "prompt",
                    value=lambda s: prompts(s)[0],
                    on=partial(columns.type_prompt, "prompt"),
                ),
                kit.text_box(
                    Compare.right_prompt,
                    "compare.right_prompt",
                    info="compare.right_prompt.info",
                    value=lambda s: prompts(s)[1],
                    on=partial(columns.type_prompt, "right_prompt"),
                    show=shows_sides,
                ),
                classes="gb-compare-prompts",
            ),
        ),
        kit.case("compare-open", lambda s: s[Compare].part, parts),
        classes="gb-compare",
    )
)


def build_compare(events: Events, opened: gr.Tab) -> None:
    tab.build(events)
    events.on(opened.select, open_tab, queue="model")
