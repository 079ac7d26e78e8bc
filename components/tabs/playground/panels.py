"""The cards of the Playground: what stands where, before anything has happened."""

from __future__ import annotations

from typing import Any, get_args

import gradio as gr

from components.i18n import Language, t
from components.localized import Words
from components.share.menu import files_menu
from components.state.session import EXAMPLE_PROMPT, Session, given
from components.state.settings import LIMITS, sampling_params
from components.tabs.playground import looking, steer_views, views
from components.tabs.playground.pipeline import build_presets
from components.widgets.chart import chart
from components.widgets.choices import choices
from components.widgets.draw import draw
from components.widgets.sentence import sentence
from components.widgets.tokens import tokens
from components.widgets.tree import tree
from gpt import Generation

EXAMPLES = {
    "example.story": EXAMPLE_PROMPT,
    "example.dialogue": 'Tom saw a big dog in the park. "Hello, dog!" Tom said. The dog',
    "example.who": "Lily and Tom went to the zoo. Tom was scared of the lion, so Lily held his",
    "example.repeat": "The cat sat. The dog ran. The cat sat. The dog ran. The cat",
    "example.surprise": "The stock market fell by 3% because the central bank",
}
PACES = (5, 20, 50, 0)
DEFAULT_LENGTH = 100
LONGEST = 1024  # whatever the model: gradio refuses what the browser sends between a new limit and its arrival there


def prompt(words: Words, document: Generation) -> dict[str, Any]:
    """What a person types, and the buttons."""
    ids = document.ids[: document.n_prompt]
    with gr.Column(elem_classes="gb-card gb-prompt"):
        prompt = words.build(
            gr.Textbox,
            {"label": "prompt", "placeholder": "prompt.placeholder"},
            value=given(document),
            lines=3,
            max_lines=8,
            elem_id="prompt",
        )
        strip = tokens(
            views.prompt_strip(document.loaded.tokenizer, ids),
            elem_id="prompt-strip",
            ids=True,
            selectable=False,
        )
        count = sentence(
            views.count_sentence(len(ids), document.loaded.model.config.block_size, "en"),
            kind="caption",
            elem_id="prompt-count",
        )
        with gr.Row(elem_classes="gb-buttons"):
            generate = words.build(
                gr.Button, {"value": "generate"}, variant="primary", size="md", elem_id="generate", min_width=0
            )
            step = words.build(gr.Button, {"value": "step"}, size="md", elem_id="step", min_width=0)
            stop = words.build(gr.Button, {"value": "stop"}, size="md", elem_id="stop", interactive=False, min_width=0)
            clear = words.build(gr.Button, {"value": "clear"}, size="md", elem_id="clear", min_width=0)
        words.build(sentence, {"value": "examples"}, kind="caption")
        with gr.Row(elem_classes="gb-examples"):
            examples = tuple(
                words.build(gr.Button, {"value": key}, size="sm", min_width=0, elem_id=key.replace(".", "-"))
                for key in EXAMPLES
            )
    return {
        "prompt": prompt,
        "prompt_strip": strip,
        "prompt_count": count,
        "generate": generate,
        "step": step,
        "stop": stop,
        "clear": clear,
        "examples": examples,
    }


def settings(words: Words, document: Generation) -> dict[str, Any]:
    """How tokens are drawn, and how many."""
    parts: dict[str, Any] = {}
    with words.build(gr.Accordion, {"label": "settings"}, open=True, elem_classes="gb-card gb-settings"):
        parts["preset"] = build_presets(words)
        for name, limit in LIMITS.items():
            parts[name] = words.build(
                gr.Slider,
                {"label": name, "info": f"{name}.info"},
                minimum=limit.low,
                maximum=limit.high,
                step=limit.step,
                value=limit.default,
                elem_id=name.replace("_", "-"),
            )
        parts["length"] = words.build(
            gr.Slider,
            {"label": "length", "info": "length.info"},
            minimum=1,
            maximum=LONGEST,
            step=1,
            value=DEFAULT_LENGTH,
            elem_id="length",
        )
        with gr.Row():
            parts["seed"] = words.build(
                gr.Textbox,
                {"label": "seed", "placeholder": "seed.placeholder"},
                max_length=18,
                elem_id="seed",
                min_width=110,
            )
            parts["pace"] = words.build(
                gr.Dropdown,
                {"label": "pace", "choices": _pace_choices},
                value=50,
                elem_id="pace",
                min_width=110,
            )
    return parts


def _pace_choices(language: Language) -> list[tuple[str, int]]:
    return [(str(pace) if pace else t("pace.full", language), pace) for pace in PACES]


def text(words: Words, session: Session) -> dict[str, Any]:
    """The text itself, what is said of it, and what can be done to it."""
    document = session.document
    with gr.Column(elem_classes="gb-card gb-text"):
        status = words.build(sentence, {"value": "status.example"}, kind="status", elem_id="status")
        notice = sentence(kind="notice", elem_id="notice")
        use_tail = gr.Button(visible=False, size="sm", elem_id="use-tail")
        strip = words.build(
            tokens, {"labels": _strip_words}, value=views.strip(document, session.known), elem_id="strip"
        )
        with gr.Row(elem_classes="gb-steer"):
            steer = {name: _small_button(words, name) for name in ("undo", "redo", "back", "go_on")}
        with gr.Row(elem_classes="gb-strip-tools"):
            hint = words.build(sentence, {"value": "strip.hint.probability"}, kind="caption", elem_id="hint")
            shading = words.build(
                gr.Radio,
                {"label": "strip.shading", "choices": _shading_choices},
                value="probability",
                elem_id="shading",
                elem_classes="gb-segments",
                container=False,
            )
        drawn = draw(steer_views.draw(document, session.look, "en"), elem_id="draw")
        branches = tree(elem_id="tree")
        files = files_menu(words)
    return steer | {
        "draw": drawn,
        "tree": branches,
        "files": files,
        "status": status,
        "notice": notice,
        "use_tail": use_tail,
        "strip": strip,
        "hint": hint,
        "shading": shading,
    }


def _strip_words(language: Language) -> dict[str, str]:
    """The words of the strip: its name for screen readers, its tooltip, its buttons, its lines."""
    more = ("curve", "entropy", "surprise", "unit", "here", "totals")
    named = views.strip_words(language, t("strip.empty", language))
    return named | {key: t(f"strip.{key}", language) for key in more}


def _shading_choices(language: Language) -> list[tuple[str, str]]:
    return [(t(f"strip.shading.{kind}", language), kind) for kind in get_args(views.Shading)]


def _small_button(words: Words, name: str) -> gr.Button:
    able = name == "go_on"
    return words.build(gr.Button, {"value": name}, size="sm", elem_id=name, min_width=0, interactive=able)


def bars(words: Words, session: Session) -> dict[str, Any]:
    """What comes next, and whatever else a person wants there."""
    params = sampling_params(temperature=LIMITS["temperature"].default)
    words.build(sentence, {"value": "bars.question"}, kind="question")
    words.build(sentence, {"value": "bars.choose"}, kind="caption")
    picture = chart(views.bars(session.document, session.look, params, "en"), elem_id="bars")
    box = words.build(
        gr.Textbox,
        {"label": "box", "placeholder": "box.placeholder", "info": "box.info"},
        max_length=2000,
        elem_id="box",
    )
    return {"bars": picture, "box": box, "hits": choices(elem_id="hits")}


def attention(words: Words, session: Session) -> dict[str, Any]:
    """Where it looked. The pickers take any value: that of a model that was here before may still be on its way."""
    look, config = session.look, session.document.loaded.model.config
    with gr.Row(elem_classes="gb-card-head"):
        words.build(sentence, {"value": "attention.question"}, kind="question")
        layer = words.build(
            gr.Dropdown,
            {"label": "attention.layer"},
            choices=list(range(config.n_layer)),
            value=look.layer,
            allow_custom_value=True,
            elem_id="layer",
            min_width=72,
        )
        head = words.build(
            gr.Dropdown,
            {"label": "attention.head"},
            choices=looking.head_choices(config.n_head, "en"),
            value=look.head,
            allow_custom_value=True,
            elem_id="head",
            min_width=120,
        )
    heatmap = chart(views.heatmap(session.document, look, "en"), elem_id="heatmap", clickable=True)
    return {"layer": layer, "head": head, "heatmap": heatmap}
