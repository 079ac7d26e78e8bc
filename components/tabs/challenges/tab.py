"""The Challenges tab: one challenge at a time, with what it needs; builds and wires it."""

from __future__ import annotations

from functools import partial
from typing import Any

import gradio as gr

from components.events import Events
from components.render import Control
from components.tabs.challenges import handlers
from components.tabs.challenges.components import ChallengesComponents
from components.tabs.challenges.views import VIEWS, shows, visibility
from components.widgets.arcs import arcs
from components.widgets.challenge import challenge_foot, challenge_head
from components.widgets.composer import composer, typed_js
from components.widgets.heads import heads
from components.widgets.predictions import predictions
from components.widgets.sentence import sentence
from components.widgets.toggle_grid import toggle_grid
from components.widgets.widget import placed

NAME = "challenges"


def build_challenges(events: Events, placeholder: gr.Textbox) -> None:
    """Build and wire the tab. placeholder: any input, in whose place the text of the box is sent."""
    ui = _layout()
    columns = {"typing": ui.typing, "pictures": ui.pictures, "switches": ui.switches, "bars": ui.side}
    controls = [Control(column, partial(shows, part), partial(visibility, part)) for part, column in columns.items()]
    events.renderer.add(NAME, VIEWS, handlers.ANALYSIS, controls=controls)
    latest: Any = {"trigger_mode": "always_last"}
    for widget in (ui.head, ui.foot):
        events.on(widget.select, handlers.choose, [widget])
    events.on(ui.box.input, handlers.type_text, [placeholder], js=_TYPED, **latest)
    events.on(ui.text.select, handlers.pick_token, [ui.text], **latest)
    events.on(ui.heads.select, handlers.pick_head, [ui.heads], **latest)
    events.on(ui.toggles.select, handlers.toggle, [ui.toggles])
    events.on(ui.bars.select, handlers.append_token, [ui.bars])


_OPEN = "document.querySelector('#challenge-head [aria-current]')?.dataset.key"
_TYPED = f"() => [JSON.stringify({{ ...JSON.parse(({typed_js('challenge-box')})()), challenge: {_OPEN} }})]"


def _layout() -> ChallengesComponents:
    parts: dict[str, Any] = {}
    with gr.Column(elem_classes="gb-card"):
        parts["head"] = placed(challenge_head(elem_id="challenge-head", view="challenge-head"))
        placed(sentence(kind="caption", elem_id="challenge-note", view="challenge-note"))
    with gr.Column(elem_classes="gb-card gb-challenge-work"):
        parts["text"] = placed(arcs(elem_id="challenge-text", view="challenge-text"))
        with gr.Column(visible=False) as parts["typing"]:
            parts["box"] = placed(composer(elem_id="challenge-box", view="challenge-box"))
        with gr.Row(elem_classes="gb-challenge-columns"):
            with gr.Column(visible=False, min_width=300, scale=5) as parts["pictures"]:
                parts["heads"] = placed(heads(elem_id="challenge-heads", view="challenge-heads"))
            with gr.Column(visible=False, min_width=280, scale=2) as parts["switches"]:
                placed(sentence(kind="caption", view="challenge-tool"))
                parts["toggles"] = placed(toggle_grid(elem_id="challenge-toggles", view="challenge-toggles"))
            with gr.Column(visible=False, min_width=300, scale=3) as parts["side"]:
                parts["bars"] = placed(predictions(elem_id="challenge-bars", view="challenge-bars"))
            with gr.Column(min_width=300, scale=3, elem_classes="gb-challenge-side"):
                parts["foot"] = placed(challenge_foot(elem_id="challenge-foot", view="challenge-foot"))
    return ChallengesComponents(**parts)
