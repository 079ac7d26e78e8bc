"""The Build tab."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from components.cards.card import Card, add_cards
from components.events import Events
from components.panels.panel import of_state
from components.parts import button, caption, code_text, column, columns, lead, question, row, run_buttons
from components.state.jobs import stop
from components.tabs.course import handlers
from components.tabs.course.state import BuildState
from components.tabs.course.views import VIEWS
from components.widgets.chart import chart
from components.widgets.sentence import sentence
from components.widgets.table import table
from gpt.course.learner import BROKEN

NAME = "build"
FOLDER = Path("my-gpt")
COMMANDS = f"python -m gpt.course start {FOLDER}\npython -m gpt.course watch {FOLDER}"


def build_course(events: Events, course: Path | None) -> None:
    """Build and wire the tab.

    `course` is the folder with the learner's program. It is None on pages that other people can open, because the
    program would run on this machine.
    """
    commands = code_text("build-commands", "build.commands", lambda s: COMMANDS)
    if course is None:
        card = Card("build", question("build.question"), lead("build.lead"), lead("build.elsewhere"), commands)
        add_cards(events, NAME, [card], [])
        return
    check = Card(
        "build",
        question("build.question"),
        lead("build.lead"),
        caption("build.file", folder=course),
        run_buttons(
            "build",
            "build.check",
            partial(handlers.check, course),
            partial(stop, BuildState),
            of_state(BuildState, "busy"),
            queue="experiment",
            primary=True,
        ),
        caption("build.check.says"),
        sentence("build-status", kind="status"),
        sentence("build-notice", kind="notice"),
        columns(
            column(table("build-path", words_from=1), min_width=260),
            column(
                sentence("build-test", kind="question"),
                sentence("build-problem"),
                sentence("build-hint"),
                columns(
                    column(chart("build-expected"), min_width=240),
                    column(chart("build-received"), min_width=240),
                ),
                sentence("build-printed", kind="caption"),
                grow=2,
            ),
        ),
        row(
            button(
                "build-open",
                "build.open",
                partial(handlers.open_mine, course),
                queue="experiment",
                enabled=lambda s: s.state(BuildState).is_gpt and not s.state(BuildState).busy,
            )
        ),
        caption("build.open.says"),
        commands,
    )
    broken = Card(
        "build-broken",
        question("build.broken.question"),
        lead("build.broken.says"),
        row(
            *(
                button(
                    f"build-{name}",
                    f"build.broken.{name}",
                    partial(handlers.open_example, name),
                    queue="experiment",
                    enabled=lambda s: not s.state(BuildState).busy,
                )
                for name in BROKEN
            ),
            classes="gb-small",
        ),
    )
    add_cards(events, NAME, [check, broken], VIEWS)
