"""The pipeline card: from logits to the draw, stage by stage, at the selected token; and presets of the sliders."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, get_args

import gradio as gr

from components.i18n import Language, t
from components.labels import visible
from components.localized import Words
from components.state.session import Session
from components.state.settings import LIMITS
from components.tabs.playground import looking
from components.tabs.playground import pipeline_views as views
from components.widgets.chart import chart
from components.widgets.sentence import sentence
from components.widgets.table import table
from gpt.documents.pipeline import search_vocabulary

if TYPE_CHECKING:
    from components.tabs.playground.tab import Playground

Values = dict[Any, Any]
TICK_SECONDS = 0.3  # between two looks for another token or a longer text, while the card is open
LONGEST = 80  # characters of a search
_DEFAULTS = {name: limit.default for name, limit in LIMITS.items()}
PRESETS: dict[str, dict[str, float]] = {
    "greedy": _DEFAULTS | {"temperature": 0.0},
    "careful": _DEFAULTS | {"temperature": 0.5, "top_p": 0.9},
    "balanced": _DEFAULTS,
    "wild": _DEFAULTS | {"temperature": 1.5},
}


@dataclass
class Memory:
    """What one visitor's card remembers; changed in place. followed: a token that was asked for. shown: what of."""

    open: bool = False
    followed: int | None = None
    shown: tuple[Any, ...] = ()

    def __deepcopy__(self, memo: dict[int, object]) -> Memory:
        """Another visitor starts with nothing."""
        return Memory()


@dataclass(frozen=True)
class Card:
    """The components of the card."""

    accordion: gr.Accordion
    memory: gr.State
    lead: gr.HTML
    stages: gr.HTML
    unit: gr.Radio
    lines: gr.HTML
    follow: gr.Dropdown
    token: gr.HTML
    timer: gr.Timer

    def outputs(self) -> list[Any]:
        return [self.lead, self.stages, self.lines, self.follow, self.token]


def build_presets(words: Words) -> gr.Radio:
    """Four settings of all sliders."""

    def choices(language: Language) -> list[tuple[str, str]]:
        return [(t(f"preset.{name}", language), name) for name in PRESETS]

    return words.build(
        gr.Radio,
        {"label": "preset", "choices": choices},
        value="balanced",
        elem_id="preset",
        elem_classes="gb-segments",
        container=False,
    )


def build_pipeline(words: Words) -> Card:
    """Folded away; it computes nothing until it is opened."""

    def units(language: Language) -> list[tuple[str, str]]:
        return [(t(f"pipeline.{unit}", language), unit) for unit in get_args(views.Unit)]

    with words.build(
        gr.Accordion, {"label": "pipeline"}, open=False, elem_id="pipeline", elem_classes="gb-card gb-pipeline"
    ) as accordion:
        lead = sentence(kind="caption", elem_id="pipeline-lead")
        with gr.Row(elem_classes="gb-columns"):
            with gr.Column(min_width=300):
                stages = table(elem_id="pipeline-stages")
                follow = words.build(
                    gr.Dropdown,
                    {"label": "pipeline.follow"},
                    choices=[],
                    value=None,
                    allow_custom_value=True,
                    elem_id="pipeline-follow",
                )
                token = table(elem_id="pipeline-token")
            with gr.Column(min_width=300):
                unit = words.build(
                    gr.Radio,
                    {"label": "pipeline.unit", "choices": units},
                    value="probability",
                    elem_id="pipeline-unit",
                    elem_classes="gb-segments",
                    container=False,
                )
                lines = chart(elem_id="pipeline-lines", clickable=True)
    memory, timer = gr.State(Memory()), gr.Timer(TICK_SECONDS, active=False)
    return Card(accordion, memory, lead, stages, unit, lines, follow, token, timer)


def wire_pipeline(ui: Playground, card: Card, preset: gr.Radio) -> None:
    """Every event of the card and of the presets."""
    from components.tabs.playground.tab import LOOKING

    everything = {*ui.inputs(), card.memory, card.unit, card.follow}
    outputs, latest = card.outputs(), {"trigger_mode": "always_last", **LOOKING}

    def handler(function: Callable[..., Values]) -> Callable[..., Values]:
        return partial(function, card, ui)

    card.accordion.expand(handler(unfold), everything, [*outputs, card.timer], **LOOKING)
    card.accordion.collapse(handler(fold), everything, card.timer, **LOOKING)
    card.timer.tick(handler(keep_up), everything, outputs, **LOOKING)
    sliders = [getattr(ui, name) for name in LIMITS]
    gr.on([slider.change for slider in sliders], handler(keep_up), everything, outputs, **latest)
    gr.on([card.unit.input], handler(keep_up), everything, outputs, **latest)
    card.follow.input(handler(follow), everything, outputs, **latest)
    card.lines.select(_with_event(card, ui), everything, outputs, **LOOKING)

    values = json.dumps([[settings[name] for name in LIMITS] for settings in PRESETS.values()])
    names = json.dumps(list(PRESETS))
    chosen = f"(name) => {values}[{names}.indexOf(name)]"
    found = f"(...now) => {names}[{values}.findIndex((s) => s.every((v, i) => v === now[i]))] ?? null"
    preset.input(None, preset, sliders, js=chosen, api_visibility="private")
    gr.on([slider.change for slider in sliders], None, sliders, preset, js=found, api_visibility="private")


def unfold(card: Card, ui: Playground, values: Values) -> Values:
    """Begin to follow the selection."""
    values[card.memory].open = True
    values[card.memory].shown = ()
    return keep_up(card, ui, values) | {card.timer: gr.Timer(active=True)}


def fold(card: Card, ui: Playground, values: Values) -> Values:
    """Rest."""
    values[card.memory].open = False
    return {card.timer: gr.Timer(active=False)}


def keep_up(card: Card, ui: Playground, values: Values) -> Values:
    """The card of what is selected now; nothing where it shows that already."""
    session: Session = values[ui.session]
    memory: Memory = values[card.memory]
    document, language = session.document, values[ui.frame.language]
    if document is None or document.n_read == 0:
        memory.shown = ()
        return {card.lead: t("error.no_text", language), card.stages: "", card.lines: "", card.token: ""}
    position, params, unit = session.look.at(document), looking.params_of(ui, values), values[card.unit]
    now = (document.key, position, len(document.ids), params, unit, language, memory.followed)
    if not memory.open or now == memory.shown:
        return {card.lead: gr.skip()}
    way = _way(session, memory, position, params)
    memory.shown = now
    return _drawn(card, way, unit, language) | {
        card.follow: gr.update(choices=views.choices(way), value=way.followed),
    }


def follow(card: Card, ui: Playground, values: Values) -> Values:
    """Follow the token that was picked, or the first that a search finds; what the browser sends may be anything."""
    session: Session = values[ui.session]
    document, language, wanted = session.document, values[ui.frame.language], values[card.follow]
    if document is None or document.n_read == 0:
        return {card.lead: t("error.no_text", language)}
    memory: Memory = values[card.memory]
    position, params = session.look.at(document), looking.params_of(ui, values)
    found: list[int] = []
    if isinstance(wanted, str):
        query = wanted[:LONGEST]
        hits = search_vocabulary(document.tokenizer, document.logits(position), query, limit=views.CHOICES)
        found = [hit.token_id for hit in hits]
        if not found:
            return {card.lead: t("pipeline.unknown", language, query=visible(query))}
        wanted = found[0]
    if type(wanted) is not int or not 0 <= wanted < document.loaded.model.config.vocab_size:
        return {card.lead: gr.skip()}
    memory.followed = wanted
    memory.shown = (document.key, position, len(document.ids), params, values[card.unit], language, wanted)
    way = _way(session, memory, position, params)
    return _drawn(card, way, values[card.unit], language) | {
        card.follow: gr.update(choices=views.choices(way, found), value=wanted),
    }


def _way(session: Session, memory: Memory, position: int, params: Any) -> views.Way:
    document = session.document
    wanted = memory.followed
    if wanted is None or wanted >= document.loaded.model.config.vocab_size:
        wanted = views.natural(document, position)
    return views.Way(document, position, params, wanted)


def _drawn(card: Card, way: views.Way, unit: views.Unit, language: Language) -> Values:
    return {
        card.lead: views.lead(way, language),
        card.stages: views.stage_table(way, language),
        card.lines: views.lines(way, unit, language),
        card.token: views.token_table(way, language),
    }


def _with_event(card: Card, ui: Playground) -> Callable[..., Values]:
    """A click on a line follows its token."""

    def handle(values: Values, event: gr.EventData) -> Values:
        sent = event._data if isinstance(event._data, dict) else {}
        return follow(card, ui, values | {card.follow: sent.get("customdata")})

    return handle
