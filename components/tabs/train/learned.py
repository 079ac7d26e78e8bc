"""The Learned tab: a recorded training run in which heads learn to copy."""

from __future__ import annotations

from typing import Any

import gradio as gr

from components import kit
from components.cards.card import add_cards
from components.events import Events
from components.i18n import t
from components.state.session import Session
from components.state.snapshot import Snapshot
from components.tabs.train.film import Film, FilmState, Machine, Shown, curve_card, film_card, player_card, shown_at
from gpt.training.snapshots import RecordedRun, bundled_recording

tab = kit.Tab("learned")


@tab.state
class Learned(FilmState):
    """What is selected in the recorded run. It begins with noise."""

    step: int | None = 0


@tab.computed
def recorded(s: Any) -> RecordedRun:
    return bundled_recording()


def _find(s: Snapshot) -> Shown | None:
    run = recorded.latest(s)
    return None if run is None else shown_at(s.state(Learned), run, run.progress)


RECORDED = Film("learned", Learned, _find, needs=(recorded,))


def about(s: Any) -> str:
    run = s[recorded]
    config = run.config
    return t(
        "train.film.recorded",
        steps=f"{run.progress.steps:,}",
        parameters=f"{run.n_parameters:,}",
        n_layer=config.n_layer,
        n_head=config.n_head,
    )


def show_copying(session: Session) -> None:
    """Show the run at the step where the displayed head begins to copy."""
    shown = RECORDED.shown(session.snapshot())
    if shown is not None and isinstance(shown.run, RecordedRun):
        appeared = shown.run.appearance(shown.layer, shown.head)
        if appeared is not None:
            RECORDED.change(session, step=appeared[1])


def build_learned(events: Events, machine: Machine) -> None:
    """Build and wire the tab. machine: runs the forward pass shown in the picture of the model."""
    copying = kit.button(
        "learned-copying", "learned.copying", show_copying, show=RECORDED.is_shown, answer="learned-player"
    )
    whose = kit.section(kit.question("learned.question"), kit.says("learned-film", about), copying)
    hero = player_card(RECORDED)()
    with gr.Column(elem_classes="gb-cards gb-train"):
        shown, loss = kit.card("learned-shown", whose, classes="")(), curve_card(RECORDED)()
    add_cards(events, {tab.name: [hero, shown, loss, film_card(RECORDED, machine)()]})
