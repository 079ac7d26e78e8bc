"""The frame around the tabs: title, model, language, theme."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import gradio as gr

from components.i18n import LANGUAGES, has_text, spoken, t
from components.localized import Localizer
from components.render import Control
from components.share.menu import link_menu
from components.widgets.frame import frame_widget
from components.widgets.sentence import sentence
from components.widgets.tokens import tokens
from components.widgets.widget import placed
from gpt import Generation, list_models
from gpt.models.registry import memory_of_listed, title
from gpt.models.sources import HUB_MODELS

# An arch from one word to another, as over the text.
_ARCH = '<svg viewBox="0 0 32 24" aria-hidden="true"><path d="M3 21C3 -3 29 -3 29 21"/></svg>'
TITLE = f"<h1>{_ARCH}<span>Glassbox GPT</span></h1>"

# Gradio marks the dark theme with a class on the body. The browser stores the choice.
_TOGGLE_THEME = """() => {
  const dark = document.body.classList.toggle("dark");
  glassbox.keep("theme", dark ? "dark" : "light");
}"""

_KEEP_LANGUAGE = "(language) => { glassbox.keep('lang', language); }"
_KEEP_NUMBERS = "(on) => { glassbox.keep('numbers', on ? 'on' : ''); }"


@dataclass(frozen=True)
class Frame:
    """Components shared by all tabs.

    client: the browser tab's id. saved: the session saved by the page. updates: receives the frames from
    `components.render`. strip: the text, shown in every tab without a larger view of it. stop: its Stop button.
    """

    client: gr.Textbox
    saved: gr.Textbox
    updates: gr.HTML
    model: gr.Dropdown
    switch: gr.Radio
    theme: gr.Button
    numbers: gr.Checkbox
    link: gr.HTML
    strip: gr.HTML
    stop: gr.Button

    def controls(self) -> list[Control]:
        """Return the controls that the server updates: Numbers switch, language, model and Stop button."""
        return [
            Control(self.numbers, lambda s: {"value": s.numbers}),
            Control(self.switch, lambda s: {"value": s.language}),
            Control(
                self.model,
                lambda s: {"label": t("model"), "choices": model_choices(s.own_models)},
            ),
            Control(self.model, lambda s: {"value": s.model}),
            Control(self.stop, lambda s: {"interactive": s.generating}),
        ]


def build_frame(localizer: Localizer, example: Generation) -> Frame:
    """Build the frame.

    The first row contains the title and purpose, model picker, language switch, link menu and theme button; the second
    shows the text.
    """
    client = gr.Textbox(visible="hidden", elem_id="client")
    saved = gr.Textbox(visible="hidden", elem_id="saved")
    updates = frame_widget()
    localizer.sentence("skip", kind="skip")
    with gr.Row(elem_classes="gb-frame"):
        with gr.Column(elem_classes="gb-title", min_width=200):
            gr.HTML(TITLE, padding=False)
            placed(sentence("precision", kind="caption"))
        model = gr.Dropdown(
            label=t("model"),
            choices=model_choices(),
            value=example.loaded.name,
            allow_custom_value=True,
            elem_id="model",
            container=False,
        )
        switch = localizer.build(
            gr.Radio,
            {"label": "language"},
            choices=[(name, language) for language, name in LANGUAGES.items()],
            value="en",
            elem_id="language",
            elem_classes="gb-segments",
            container=False,
        )
        with localizer.build(gr.Accordion, {"label": "page.more"}, open=False, elem_classes="gb-fold", elem_id="more"):
            numbers = localizer.build(gr.Checkbox, {"label": "numbers", "info": "numbers.info"}, elem_id="numbers")
            link = link_menu()
            theme = localizer.build(gr.Button, {"value": "theme"}, elem_id="theme", size="sm", min_width=0)
    with gr.Row(elem_classes="gb-dock"):
        strip = placed(tokens("dock", view="strip", one_line=True))
        placed(sentence("in-force", kind="caption"))
        placed(sentence("selected", kind="caption"))
        stop = localizer.build(gr.Button, {"value": "stop"}, size="sm", min_width=0, interactive=False)
    theme.click(None, js=_TOGGLE_THEME)
    switch.input(None, switch, None, js=_KEEP_LANGUAGE)
    numbers.input(None, numbers, None, js=_KEEP_NUMBERS)
    return Frame(client, saved, updates, model, switch, theme, numbers, link, strip, stop)


def short_name(model: str) -> str:
    """Return a model's name for use inside a sentence, without its description."""
    title_text = _listed_name(model) or _own_name(model) or title(model)
    return title_text.partition(" · ")[0]


def model_choices(own: Sequence[str] = ()) -> list[tuple[str, str]]:
    """Return (label, name) for each model, with the visitor's own models last."""
    listed = [(_listed_name(name) or title(name), name) for name in list_models()]
    named = [_own_name(name) or name for name in own]
    numbered = [
        f"{label} ({named[: i + 1].count(label)})" if named.count(label) > 1 else label for i, label in enumerate(named)
    ]
    return [*listed, *zip(numbered, own, strict=True)]


def _listed_name(model: str) -> str:
    """Return a known model's name with its size and, for a hub model, the memory needed."""
    if has_text(key := f"model.{model}"):
        return t(key)
    known, n_bytes = HUB_MODELS.get(model), memory_of_listed(model)
    if known is None or n_bytes is None:
        return ""
    values = {"title": known.title, "parameters": _n_parameters(known.n_parameters)}
    return t("model.from_hub", **values, memory=f"{n_bytes / 1e9:.1f} GB")


def _n_parameters(value: int) -> str:
    """Abbreviate a count of at least a million: "124M", "1.42B"; in Chinese "1.24 亿", "3582 万"."""
    if spoken() == "zh":
        return f"{value / 1e8:.2f} 亿" if value >= 1e8 else f"{value / 1e4:.0f} 万"
    return f"{value / 1e9:.2f}B" if value >= 1e9 else f"{value / 1e6:.0f}M"


def _own_name(model: str) -> str:
    """Return the name of a model trained on the page, derived from its task; "" for any other model."""
    key = f"train.task.{model.rpartition('-')[0]}"
    return t("train.model.name", task=t(key)) if has_text(key) else ""
