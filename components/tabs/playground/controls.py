"""The Gradio components in the Write tab: the buttons and the sampling settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gradio as gr

from components.i18n import t
from components.limits import MAX_LENGTH
from components.localized import Localizer
from components.render import Control
from components.state.session import Session
from components.state.settings import LIMITS, PACES, Limit, Settings
from components.state.snapshot import Snapshot
from components.tabs.playground.handlers.selection import preset_of
from components.tabs.playground.state import PRESETS


@dataclass(frozen=True)
class Run:
    """The generation buttons, the chat switch and the temperature slider."""

    generate: gr.Button
    stop: gr.Button
    full_speed: gr.Button
    step: gr.Button
    chat: gr.Checkbox
    temperature: gr.Slider


@dataclass(frozen=True)
class Controls:
    """All controls. `settings` contains the sliders, the seed and the pace, keyed by name."""

    run: Run
    preset: gr.Radio
    settings: dict[str, gr.Slider | gr.Textbox | gr.Dropdown]

    def updates(self) -> list[Control]:
        """Return the component properties that the server updates."""

        def enabled(button: gr.Button, test: Any) -> Control:
            return Control(button, lambda s: {"interactive": test(s)})

        def value(component: Any, name: str) -> Control:
            return Control(component, lambda s: {"value": getattr(s.settings, name)})

        def rests(s: Snapshot) -> bool:
            return not s.generating

        run = self.run
        return [
            *(enabled(button, rests) for button in (run.generate, run.step)),
            enabled(run.stop, lambda s: s.generating),
            enabled(run.full_speed, lambda s: s.generating and s.settings.pace > 0),
            *(value(component, name) for name, component in self.settings.items()),
            Control(self.preset, lambda s: {"value": preset_of(s.settings)}),
            Control(run.chat, lambda s: {"visible": _has_chat(s)}),
            Control(run.chat, lambda s: {"value": s.chat}),
        ]


def build_run(localizer: Localizer, session: Session) -> Run:
    """Build the generation buttons, the chat switch and the temperature slider."""
    with gr.Row(elem_classes="gb-run"):
        buttons = {name: _button(localizer, name) for name in ("generate", "stop", "full_speed")}
    step = _button(localizer, "step")
    chat = localizer.build(
        gr.Checkbox,
        {"label": "chat"},
        value=session.is_chat,
        visible=session.loaded is not None and session.loaded.tokenizer.is_chat,
        container=False,
        min_width=0,
        elem_id="chat",
    )
    temperature = _slider(localizer, "temperature", LIMITS["temperature"])
    return Run(**buttons, step=step, chat=chat, temperature=temperature)


def build_controls(localizer: Localizer, run: Run) -> Controls:
    """Build the other sampling settings."""
    settings: dict[str, gr.Slider | gr.Textbox | gr.Dropdown] = {"temperature": run.temperature}
    preset = localizer.build(
        gr.Radio,
        {"label": "preset", "choices": _preset_choices},
        value="balanced",
        elem_id="preset",
        elem_classes="gb-segments",
        container=False,
    )
    with gr.Column(elem_classes="gb-settings"):
        limits = {**LIMITS, "length": Limit(1, MAX_LENGTH, 1, Settings.length, None, "")}
        settings |= {name: _slider(localizer, name, limit) for name, limit in limits.items() if name not in settings}
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
    return Controls(run, preset, settings)


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


def _preset_choices() -> list[tuple[str, str]]:
    return [(t(f"preset.{name}"), name) for name in PRESETS]


def _pace_choices() -> list[tuple[str, int]]:
    return [(str(pace) if pace else t("pace.full"), pace) for pace in PACES]


def _has_chat(s: Snapshot) -> bool:
    return s.loaded is not None and s.loaded.tokenizer.is_chat
