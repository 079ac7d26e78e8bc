"""The machine: the flow, one picture of the whole model or of its skeleton, and all heads at a glance."""

from __future__ import annotations

import gradio as gr

from components.i18n import Language, t
from components.localized import Words
from components.state.selection import Selection
from components.tabs.inside import views as inside_views
from components.tabs.inside.overview import closer, overview
from components.tabs.inside.part import Part, Scene, Values
from components.tabs.inside.skeleton import skeleton_flow
from components.tabs.inside.views import shown_head
from components.widgets.flow import flow
from components.widgets.heads import heads
from components.widgets.sentence import sentence

MODELS = ("whole", "skeleton")


def build_machine(words: Words) -> Part:
    """Lay the part out."""
    with words.build(gr.Tab, {"label": "inside.machine"}, id="inside-machine") as tab:
        with gr.Column(elem_classes="gb-card"):
            with gr.Row(elem_classes="gb-card-head"):
                words.build(sentence, {"value": "inside.question"}, kind="question")
                model = words.build(
                    gr.Radio,
                    {"label": "bare.shown", "choices": _models},
                    value=MODELS[0],
                    elem_id="flow-model",
                    elem_classes="gb-segments",
                    container=False,
                )
            lead = sentence(kind="caption", elem_id="flow-lead")
            picture = words.build(flow, {"labels": flow_labels}, elem_id="flow")
        with gr.Column(elem_classes="gb-card"):
            words.build(sentence, {"value": "inside.heads.question"}, kind="question")
            whose = sentence(kind="caption", elem_id="heads-whose")
            grid = words.build(heads, {"labels": heads_labels}, elem_id="heads")

    def show(scene: Scene) -> Values:
        language, bare = scene.language, shows_skeleton(scene, model)
        grown = overview(scene.record, scene.look, language, scene.kept)
        drawn = (skeleton_flow if bare else inside_views.flow)(scene.record, scene.look, language)
        return {
            model: gr.skip() if scene.controls[model] == MODELS[bare] else MODELS[bare],
            lead: t("bare.lead" if bare else "inside.lead", language),
            picture: gr.update(value=drawn, labels=flow_labels(language)),
            whose: t("bare.heads", language) if bare else "",
            grid: gr.update(value=grown, labels=heads_labels(language)),
        }

    def answer(kept: Values, look: Selection) -> Values:
        return gr.update(near=closer(kept, look.layer, shown_head(look)))

    pictures = (lead, picture, whose, grid)
    return Part("machine", tab, pictures, show, (model,), clickable=(picture, grid), answers={grid: answer})


def shows_skeleton(scene: Scene, switch: gr.Radio) -> bool:
    """Whether the skeleton is in the picture's place: as was chosen last, for the model that it was chosen for."""
    name = scene.record.document.loaded.name
    if scene.moved is switch:
        scene.kept["bare"] = name if scene.controls[switch] == MODELS[1] else None
    return scene.kept.get("bare") == name


def _models(language: Language) -> list[tuple[str, str]]:
    return [(t(f"bare.{model}", language), model) for model in MODELS]


_FLOW = (
    *("name", "keys", "scale", "layer", "head", "stream"),
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
    fixed = {key: t(f"flow.{key}", language) for key in _FLOW}
    return fixed | {key: t(f"flow.short.{key}", language) for key in _SHORT}


def heads_labels(language: Language) -> dict[str, str]:
    """The fixed words of the overview."""
    return {key: t(f"heads.{key}", language) for key in ("name", "title", "share", "axis", "keys")}
