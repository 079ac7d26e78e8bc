"""The Why tab: builds and wires it."""

from __future__ import annotations

from dataclasses import fields
from functools import partial
from typing import Any, get_args

import gradio as gr

from components.events import Events
from components.i18n import Language, t
from components.localized import Localizer
from components.render import Control
from components.state.snapshot import Snapshot
from components.tabs.why import analysis, handlers
from components.tabs.why.components import Order, Role, Sample, WhyComponents, WhyState
from components.tabs.why.predictions import METHODS
from components.tabs.why.views import VIEWS
from components.tabs.why.views.tokens import short, token_choices
from components.widgets.chart import chart
from components.widgets.ribbons import ribbons
from components.widgets.sentence import sentence
from components.widgets.tokens import tokens
from components.widgets.widget import placed
from gpt.analysis.lens import LENS_POINTS

NAME = "why"


def build_why(localizer: Localizer, events: Events) -> None:
    """Build and wire the tab; it computes while it is open and nothing is being generated."""
    parts: dict[str, Any] = {}
    with gr.Column(elem_classes="gb-card gb-why-lead"):
        with gr.Row(elem_classes="gb-card-head"):
            localizer.sentence("why.question", kind="question")
            parts["token"] = _dropdown(localizer, "token")
        placed(sentence(kind="lead", elem_id="why-because", view="why-because"))
        parts["flow"] = placed(ribbons(elem_id="why-flow", view="why-flow"))
        placed(sentence(kind="caption", elem_id="why-lead", view="why-lead"))
        placed(sentence(kind="status", elem_id="why-status", view="why-status"))
    with localizer.build(gr.Accordion, {"label": "why.evidence"}, open=False, elem_id="why-evidence"):
        parts |= _text(localizer) | _lens(localizer) | _parts(localizer) | _roles(localizer)
    ui = WhyComponents(**{field.name: parts[field.name] for field in fields(WhyComponents)})
    controls = [
        Control(ui.token, lambda s: (s.state(WhyState).shown, s.language), _token_picker),
        Control(ui.against, lambda s: (s.state(WhyState).shown, s.language), _against_picker),
        Control(ui.watch, lambda s: (*_place(s), s.language), _watch_picker),
    ]
    events.renderer.add(NAME, VIEWS, analysis.ANALYSIS, controls=controls)
    _wire(ui, events)


def _token_picker(s: Snapshot) -> dict[str, Any]:
    shown = s.state(WhyState).shown
    if shown is None:
        return {"choices": [], "value": None}
    return {"choices": token_choices(shown.traced, shown.prediction), "value": shown.prediction.token}


def _against_picker(s: Snapshot) -> dict[str, Any]:
    shown = s.state(WhyState).shown
    if shown is None:
        return {"choices": [], "value": None}
    others = [each for each in token_choices(shown.traced, shown.prediction) if each[1] != shown.prediction.token]
    none = (t("why.against.none", s.language), handlers.NOTHING)
    return {"choices": [none, *others], "value": handlers.NOTHING if shown.against is None else shown.against}


def _place(s: Snapshot) -> tuple[Any, ...]:
    shown = s.state(WhyState).shown
    return () if shown is None else (shown.traced, shown.prediction)


def _watch_picker(s: Snapshot) -> dict[str, Any]:
    shown, watched = s.state(WhyState).shown, s.state(WhyState).watched
    if shown is None:
        return {"choices": [], "value": []}
    tokenizer = shown.traced.loaded.tokenizer
    entries = watched.of(tokenizer).entries
    best = token_choices(shown.traced, shown.prediction)
    known = {each for _, each in best}
    others = [(short(tokenizer, i), i) for i in entries if isinstance(i, int) and i not in known]
    return {"choices": [*best, *others], "value": list(entries)}


def _text(localizer: Localizer) -> dict[str, Any]:
    with gr.Column(elem_classes="gb-card"):
        with gr.Row(elem_classes="gb-card-head"):
            localizer.sentence("why.text.question", kind="question")
            method = _switch(localizer, "method", METHODS)
        placed(sentence(kind="caption", elem_id="why-method-says", view="why-method-says"))
        placed(sentence(kind="notice", elem_id="why-trouble", view="why-trouble"))
        with gr.Row(elem_classes="gb-columns"):
            with gr.Column(min_width=320, scale=3):
                strip = placed(tokens(elem_id="why-strip", view="why-strip"))
            with gr.Column(min_width=280, scale=2):
                placed(chart(elem_id="why-influence", view="why-influence"))
    return {"method": method, "strip": strip}


def _lens(localizer: Localizer) -> dict[str, Any]:
    with gr.Column(elem_classes="gb-card"):
        with gr.Row(elem_classes="gb-card-head"):
            localizer.sentence("why.lens.question", kind="question")
            stage = _switch(localizer, "stage", LENS_POINTS, value="resid_post")
        localizer.sentence("why.lens.says", kind="caption")
        lens = placed(chart(elem_id="why-lens", clickable=True, view="why-lens"))
    with gr.Row(elem_classes="gb-cards gb-why-cards"):
        with gr.Column(elem_classes="gb-card", min_width=300):
            localizer.sentence("why.cell.question", kind="question")
            placed(chart(elem_id="why-cell", view="why-cell"))
        with gr.Column(elem_classes="gb-card", min_width=300):
            placed(sentence(kind="question", elem_id="why-path-question", view="why-path-question"))
            watch = localizer.build(
                gr.Dropdown,
                {"label": "why.watch", "info": "why.watch.info"},
                choices=[],
                multiselect=True,
                max_choices=handlers.MAX_WATCHED,
                allow_custom_value=True,
                elem_id="why-watch",
            )
            placed(chart(elem_id="why-path", view="why-path"))
    return {"stage": stage, "lens": lens, "watch": watch}


def _parts(localizer: Localizer) -> dict[str, Any]:
    with gr.Column(elem_classes="gb-card"):
        with gr.Row(elem_classes="gb-card-head"):
            localizer.sentence("why.parts.question", kind="question")
            against = _dropdown(localizer, "against")
            order = _switch(localizer, "order", get_args(Order))
        localizer.sentence("why.parts.says", kind="caption")
        with gr.Row(elem_classes="gb-columns"):
            with gr.Column(min_width=300):
                bars = placed(chart(elem_id="why-parts", clickable=True, view="why-parts"))
            with gr.Column(min_width=300):
                heads = placed(chart(elem_id="why-heads", clickable=True, view="why-heads"))
    return {"against": against, "order": order, "parts": bars, "heads": heads}


def _roles(localizer: Localizer) -> dict[str, Any]:
    with gr.Row(elem_classes="gb-cards gb-why-cards"):
        with gr.Column(elem_classes="gb-card", min_width=300):
            localizer.sentence("why.roles.question", kind="question")
            with gr.Row(elem_classes="gb-why-switches"):
                role = _switch(localizer, "role", get_args(Role))
                sample = _switch(localizer, "sample", get_args(Sample))
            placed(sentence(kind="caption", elem_id="why-role-says", view="why-role-says"))
            roles = placed(chart(elem_id="why-roles", clickable=True, view="why-roles"))
        with gr.Column(elem_classes="gb-card", min_width=300):
            localizer.sentence("why.head.question", kind="question")
            localizer.sentence("why.head.says", kind="caption")
            placed(chart(elem_id="why-head", view="why-head"))
    return {"role": role, "sample": sample, "roles": roles}


def _switch(localizer: Localizer, name: str, values: tuple[str, ...], value: str | None = None) -> gr.Radio:
    """A radio with a few choices; the default is the first."""

    def choices(language: Language) -> list[tuple[str, str]]:
        return [(t(f"why.{name}.{each}", language), each) for each in values]

    return localizer.build(
        gr.Radio,
        {"label": f"why.{name}", "choices": choices},
        value=value or values[0],
        elem_id=f"why-{name}",
        elem_classes="gb-segments",
        container=False,
    )


def _dropdown(localizer: Localizer, name: str) -> gr.Dropdown:
    """A dropdown of tokens, filled when the tab opens. An event may carry an outdated choice while the text grows."""
    return localizer.build(
        gr.Dropdown,
        {"label": f"why.{name}"},
        choices=[],
        value=None,
        allow_custom_value=True,
        elem_id=f"why-{name}",
        elem_classes="gb-why-token",
        min_width=72,
    )


def _wire(ui: WhyComponents, events: Events) -> None:
    latest: Any = {"trigger_mode": "always_last"}
    for name, values in handlers.CHOICES.items():
        control = getattr(ui, name)
        events.on(control.input, partial(handlers.choose, name, values), [control], **latest)
    events.on(ui.token.input, handlers.choose_token, [ui.token], **latest)
    events.on(ui.watch.change, handlers.watch, [ui.watch], **latest)
    events.on(ui.against.input, handlers.choose_against, [ui.against], **latest)
    events.on(ui.flow.select, handlers.switch, [ui.flow], queue="model", trigger_mode="multiple")
    for widget, handler in (
        (ui.strip, handlers.choose_position),
        (ui.lens, handlers.choose_cell),
        (ui.parts, handlers.choose_bar),
        (ui.heads, handlers.choose_head),
        (ui.roles, handlers.choose_head),
    ):
        events.on(widget.select, handler, [widget])
