"""The machine: the flow, one picture of the whole model, and all heads at a glance."""

from __future__ import annotations

import gradio as gr

from components.i18n import Language, Words, say
from components.inside import views as inside_views
from components.inside.overview import overview
from components.inside.part import Part, Scene, Values
from components.widgets.flow import flow
from components.widgets.heads import heads
from components.widgets.sentence import sentence


def build_machine(words: Words) -> Part:
    """Lay the part out."""
    with words.build(gr.Tab, {"label": "inside.machine"}, id="inside-machine") as tab:
        with gr.Column(elem_classes="gb-card"):
            words.build(sentence, {"value": "inside.question"}, kind="question")
            words.build(sentence, {"value": "inside.lead"}, kind="caption")
            picture = words.build(flow, {"labels": flow_labels}, elem_id="flow")
        with gr.Column(elem_classes="gb-card"):
            words.build(sentence, {"value": "inside.heads.question"}, kind="question")
            grid = words.build(heads, {"labels": heads_labels}, elem_id="heads")

    def show(scene: Scene) -> Values:
        language = scene.language
        grown = overview(scene.record, scene.look, language, scene.kept)
        return {
            picture: gr.update(
                value=inside_views.flow(scene.record, scene.look, language), labels=flow_labels(language)
            ),
            grid: gr.update(value=grown, labels=heads_labels(language)),
        }

    return Part("machine", tab, (picture, grid), show, clickable=(picture, grid))


_FLOW = (
    *("name", "empty", "keys", "scale", "layer", "head", "stream"),
    *("before", "after", "pair", "later", "full", "stack"),
)
_SHORT = (
    "embedding",
    "tok",
    "pos",
    "pre",
    "q",
    "k",
    "weights",
    "v",
    "z",
    "att",
    "mid",
    "ff",
    "out",
    "post",
    "fin",
    "next",
)


def flow_labels(language: Language) -> dict[str, str]:
    """The fixed words of the flow; those with {...} are filled in by the browser."""
    fixed = {key: say(f"flow.{key}", language) for key in _FLOW}
    return fixed | {key: say(f"flow.short.{key}", language) for key in _SHORT}


def heads_labels(language: Language) -> dict[str, str]:
    """The fixed words of the overview."""
    return {key: say(f"heads.{key}", language) for key in ("name", "title", "share", "axis", "keys")}
