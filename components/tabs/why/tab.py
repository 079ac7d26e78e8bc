"""The Why tab: one prediction of the document, and what it comes from: tokens, layers, parts, heads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import gradio as gr

from components import legacy
from components.i18n import LANGUAGES, Language, t
from components.legacy import LOOKING, RUNNING, Playground
from components.localized import Words
from components.tabs.why import answers as why_answers
from components.tabs.why import clicks as why_clicks
from components.tabs.why import views as why_views
from components.tabs.why.answers import Memory, Values
from components.tabs.why.reading import METHODS
from components.widgets.chart import chart
from components.widgets.sentence import sentence
from components.widgets.tokens import tokens
from gpt.analysis.lens import LENS_POINTS

TICK_SECONDS = 0.5  # between two looks for a text that has changed, while the tab is open
ROLES = ("previous_token", "first_token", "same_token", "induction")


@dataclass(frozen=True)
class Why:
    """The components of the tab, and the Playground, whose session it shares."""

    playground: Playground
    memory: gr.State
    timer: gr.Timer
    lead: gr.HTML
    token: gr.Dropdown
    status: gr.HTML
    strip: gr.HTML
    method: gr.Radio
    method_says: gr.HTML
    influence: gr.HTML
    trouble: gr.HTML
    stage: gr.Radio
    lens: gr.HTML
    cell: gr.HTML
    path_question: gr.HTML
    path: gr.HTML
    order: gr.Radio
    against: gr.Dropdown
    parts: gr.HTML
    heads: gr.HTML
    role: gr.Radio
    sample: gr.Radio
    role_says: gr.HTML
    roles: gr.HTML
    head: gr.HTML

    def inputs(self) -> set[Any]:
        """Everything that a handler reads."""
        own = (self.memory, self.token, self.method, self.stage, self.order, self.against, self.role, self.sample)
        return {*own, *self.playground.inputs()}

    def of(self, *cards: str) -> list[Any]:
        """The components of those cards, with the line that says what is being done."""
        names = dict.fromkeys(name for card in cards for name in why_answers.CARDS[card].outputs)
        return [self.status, *(getattr(self, name) for name in names)]


def build_why(words: Words, tabs: gr.Tabs, tab: gr.Tab, playground: Playground) -> None:
    """Lay the tab out and wire it; it is about the document of the Playground and computes while it is open."""
    parts: dict[str, Any] = {"playground": playground}
    with gr.Column(elem_classes="gb-card gb-why-lead"):
        with gr.Row(elem_classes="gb-card-head"):
            words.build(sentence, {"value": "why.question"}, kind="question")
            parts["token"] = _dropdown(words, "token")
        parts["lead"] = sentence(kind="lead", elem_id="why-lead")
        parts["status"] = sentence(kind="status", elem_id="why-status")
    parts |= _text(words) | _lens(words) | _parts(words) | _roles(words)
    parts["memory"] = gr.State(Memory())
    parts["timer"] = gr.Timer(TICK_SECONDS, active=False)
    ui = Why(**{field.name: parts[field.name] for field in fields(Why)})
    _wire(ui, tabs, tab)


def _text(words: Words) -> dict[str, Any]:
    with gr.Column(elem_classes="gb-card"):
        with gr.Row(elem_classes="gb-card-head"):
            words.build(sentence, {"value": "why.text.question"}, kind="question")
            method = _switch(words, "method", METHODS)
        says = sentence(kind="caption", elem_id="why-method-says")
        trouble = sentence(kind="notice", elem_id="why-trouble")
        with gr.Row(elem_classes="gb-columns"):
            with gr.Column(min_width=320, scale=3):
                strip = words.build(tokens, {"labels": why_views.strip_words}, elem_id="why-strip")
            with gr.Column(min_width=280, scale=2):
                influence = chart(elem_id="why-influence")
    return {"method": method, "method_says": says, "trouble": trouble, "strip": strip, "influence": influence}


def _lens(words: Words) -> dict[str, Any]:
    with gr.Column(elem_classes="gb-card"):
        with gr.Row(elem_classes="gb-card-head"):
            words.build(sentence, {"value": "why.lens.question"}, kind="question")
            stage = _switch(words, "stage", LENS_POINTS, value="resid_post")
        words.build(sentence, {"value": "why.lens.says"}, kind="caption")
        lens = chart(elem_id="why-lens", clickable=True)
    with gr.Row(elem_classes="gb-cards gb-why-cards"):
        with gr.Column(elem_classes="gb-card", min_width=300):
            words.build(sentence, {"value": "why.cell.question"}, kind="question")
            cell = chart(elem_id="why-cell")
        with gr.Column(elem_classes="gb-card", min_width=300):
            question = sentence(kind="question", elem_id="why-path-question")
            path = chart(elem_id="why-path")
    return {"stage": stage, "lens": lens, "cell": cell, "path_question": question, "path": path}


def _parts(words: Words) -> dict[str, Any]:
    with gr.Column(elem_classes="gb-card"):
        with gr.Row(elem_classes="gb-card-head"):
            words.build(sentence, {"value": "why.parts.question"}, kind="question")
            against = _dropdown(words, "against")
            order = _switch(words, "order", ("size", "layer"))
        words.build(sentence, {"value": "why.parts.says"}, kind="caption")
        with gr.Row(elem_classes="gb-columns"):
            with gr.Column(min_width=300):
                bars = chart(elem_id="why-parts", clickable=True)
            with gr.Column(min_width=300):
                heads = chart(elem_id="why-heads", clickable=True)
    return {"against": against, "order": order, "parts": bars, "heads": heads}


def _roles(words: Words) -> dict[str, Any]:
    with gr.Row(elem_classes="gb-cards gb-why-cards"):
        with gr.Column(elem_classes="gb-card", min_width=300):
            words.build(sentence, {"value": "why.roles.question"}, kind="question")
            with gr.Row(elem_classes="gb-why-switches"):
                role = _switch(words, "role", ROLES)
                sample = _switch(words, "sample", ("text", "noise"))
            says = sentence(kind="caption", elem_id="why-role-says")
            roles = chart(elem_id="why-roles", clickable=True)
        with gr.Column(elem_classes="gb-card", min_width=300):
            words.build(sentence, {"value": "why.head.question"}, kind="question")
            words.build(sentence, {"value": "why.head.says"}, kind="caption")
            head = chart(elem_id="why-head")
    return {"role": role, "sample": sample, "role_says": says, "roles": roles, "head": head}


def _switch(words: Words, name: str, values: tuple[str, ...], value: str | None = None) -> gr.Radio:
    """A few choices side by side, the first unless told."""

    def choices(language: Language) -> list[tuple[str, str]]:
        return [(t(f"why.{name}.{each}", language), each) for each in values]

    return words.build(
        gr.Radio,
        {"label": f"why.{name}", "choices": choices},
        value=value or values[0],
        elem_id=f"why-{name}",
        elem_classes="gb-segments",
        container=False,
    )


def _dropdown(words: Words, name: str) -> gr.Dropdown:
    """A choice of tokens, filled in when the tab opens; what is sent while a text grows may be an old choice."""
    return words.build(
        gr.Dropdown,
        {"label": f"why.{name}"},
        choices=[],
        value=None,
        allow_custom_value=True,
        elem_id=f"why-{name}",
        elem_classes="gb-why-token",
        min_width=72,
    )


def _wire(ui: Why, tabs: gr.Tabs, tab: gr.Tab) -> None:
    every = tuple(why_answers.CARDS)
    run = {"trigger_mode": "always_last", **RUNNING}

    def answers(cards: tuple[str, ...], **options: Any) -> dict[str, Any]:
        fn = partial(why_answers.answer, ui, cards=cards, **options)
        return {"fn": fn, "inputs": ui.inputs(), "outputs": ui.of(*cards), **run}

    tab.select(**answers(every, fresh=True))
    tabs.select(_only_while_open, None, ui.timer, **LOOKING)
    ui.timer.tick(**answers(every, fresh=True, only_changed=True))
    ui.playground.frame.language.change(**answers(every, only_opened=True))

    ui.token.input(**answers(("question", "text", "lens", "parts")))
    for control, card in (
        (ui.method, "text"),
        (ui.stage, "lens"),
        (ui.order, "parts"),
        (ui.against, "parts"),
        (ui.role, "roles"),
        (ui.sample, "roles"),
    ):
        control.input(**answers((card,)))

    about_position, about_head = ("question", "text", "lens", "parts", "head"), ("parts", "roles", "head")
    for widget, choose, cards in (
        (ui.strip, why_clicks.choose_token, about_position),
        (ui.lens, why_clicks.choose_cell, about_position),
        (ui.parts, why_clicks.choose_bar, about_head),
        (ui.heads, why_clicks.choose_head, about_head),
        (ui.roles, why_clicks.choose_head, about_head),
    ):
        fresh = cards is about_position
        fn = _with_event(partial(why_answers.answer, ui, cards=cards, fresh=fresh), partial(choose, ui))
        chosen = widget.select(fn, ui.inputs(), ui.of(*cards), **run)
        agree = partial(legacy.agree, ui)
        chosen.then(agree, ui.inputs(), legacy.shared(ui.playground), trigger_mode="always_last", **LOOKING)


def _only_while_open(event: gr.SelectData) -> gr.Timer:
    """The timer runs while this tab is the one that is open."""
    return gr.Timer(active=event.value in {t("tab.why", language) for language in LANGUAGES})


def _with_event(
    answer: Callable[[Values], Iterator[Values]], choose: Callable[[Values, Values], None]
) -> Callable[..., Iterator[Values]]:
    """A handler that first selects what was clicked; what the browser sent may be anything."""

    def handle(values: Values, event: gr.EventData) -> Iterator[Values]:
        choose(values, event._data if isinstance(event._data, dict) else {})
        yield from answer(values)

    return handle
