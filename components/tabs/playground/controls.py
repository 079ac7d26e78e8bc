"""Gradio's controls of the tab Write: the buttons, and the settings of sampling."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import gradio as gr

from components.cards.card import Card
from components.i18n import Language, t
from components.limits import MAX_LENGTH
from components.localized import Localizer
from components.parts import Part, button, row
from components.render import Control
from components.state.session import Session
from components.state.settings import LIMITS, PACES, Limit, Settings
from components.state.snapshot import Snapshot
from components.tabs.playground.handlers import generation
from components.tabs.playground.handlers.selection import preset_of
from components.tabs.playground.state import EXAMPLES, PRESETS


@dataclass(frozen=True)
class Controls:
    """settings: the sliders, the seed and the pace, by name."""

    generate: gr.Button
    stop: gr.Button
    full_speed: gr.Button
    step: gr.Button
    again: gr.Button
    chat: gr.Checkbox
    examples: Card
    preset: gr.Radio
    settings: dict[str, gr.Slider | gr.Textbox | gr.Dropdown]

    def updates(self) -> list[Control]:
        """What the server changes in them."""

        def enabled(button: gr.Button, test: Any) -> Control:
            return Control(button, test, lambda s: {"interactive": test(s)})

        def value(component: Any, name: str) -> Control:
            return Control(
                component, lambda s: getattr(s.settings, name), lambda s: {"value": getattr(s.settings, name)}
            )

        def rests(s: Snapshot) -> bool:
            return not s.generating

        return [
            *(enabled(button, rests) for button in (self.generate, self.step, self.again)),
            enabled(self.stop, lambda s: s.generating),
            enabled(self.full_speed, lambda s: s.generating and s.settings.pace > 0),
            *(value(component, name) for name, component in self.settings.items()),
            Control(self.preset, lambda s: preset_of(s.settings), lambda s: {"value": preset_of(s.settings)}),
            Control(self.chat, _has_chat, lambda s: {"visible": _has_chat(s)}),
            Control(self.chat, lambda s: s.chat, lambda s: {"value": s.chat}),
        ]


def build_controls(localizer: Localizer, session: Session) -> Controls:
    """The buttons, the temperature, and what folds: the other settings and the examples."""
    with gr.Row(elem_classes="gb-buttons"):
        with gr.Row(elem_classes="gb-run"):
            run = {name: _button(localizer, name) for name in ("generate", "stop", "full_speed")}
        more = {name: _button(localizer, name) for name in ("step", "again")}
        chat = localizer.build(
            gr.Checkbox,
            {"label": "chat"},
            value=session.is_chat,
            visible=session.loaded is not None and session.loaded.tokenizer.is_chat,
            container=False,
            min_width=0,
            elem_id="chat",
        )
        settings: dict[str, gr.Slider | gr.Textbox | gr.Dropdown] = {}
        settings["temperature"] = _slider(localizer, "temperature", LIMITS["temperature"])
        with localizer.build(gr.Accordion, {"label": "examples"}, open=False, elem_classes="gb-fold gb-examples"):
            examples = Card("examples", row(*map(_example, EXAMPLES), classes="gb-small"), classes="")
        with localizer.build(gr.Accordion, {"label": "settings"}, open=False, elem_classes="gb-fold gb-settings"):
            preset = localizer.build(
                gr.Radio,
                {"label": "preset", "choices": _preset_choices},
                value="balanced",
                elem_id="preset",
                elem_classes="gb-segments",
                container=False,
            )
            limits = {**LIMITS, "length": Limit(1, MAX_LENGTH, 1, Settings.length, None, "")}
            settings |= {
                name: _slider(localizer, name, limit) for name, limit in limits.items() if name not in settings
            }
            with gr.Row():
                settings["seed"] = localizer.build(
                    gr.Textbox,
                    {"label": "seed", "placeholder": "seed.placeholder"},
                    max_length=18,
                    elem_id="seed",
                    min_width=110,
                )
                settings["pace"] = localizer.build(
                    gr.Dropdown,
                    {"label": "pace", "choices": _pace_choices},
                    value=Settings.pace,
                    elem_id="pace",
                    min_width=110,
                )
    return Controls(**run, **more, chat=chat, examples=examples, preset=preset, settings=settings)


def _button(localizer: Localizer, name: str) -> gr.Button:
    return localizer.build(
        gr.Button,
        {"value": name},
        variant="primary" if name in ("generate", "stop") else "secondary",
        size="md",
        elem_id=name.replace("_", "-"),
        min_width=0,
        interactive=name not in ("stop", "full_speed"),
    )


def _example(key: str) -> Part:
    write = generation.written(partial(generation.prepare_example, EXAMPLES[key]))
    return button(key.replace(".", "-"), key, write, queue="model")


def _slider(localizer: Localizer, name: str, limit: Limit) -> gr.Slider:
    return localizer.build(
        gr.Slider,
        {"label": name, "info": f"{name}.info"},
        minimum=limit.low,
        maximum=limit.high,
        step=limit.step,
        value=limit.default,
        elem_id=name.replace("_", "-"),
    )


def _preset_choices(language: Language) -> list[tuple[str, str]]:
    return [(t(f"preset.{name}", language), name) for name in PRESETS]


def _pace_choices(language: Language) -> list[tuple[str, int]]:
    return [(str(pace) if pace else t("pace.full", language), pace) for pace in PACES]


def _has_chat(s: Snapshot) -> bool:
    return s.loaded is not None and s.loaded.tokenizer.is_chat
