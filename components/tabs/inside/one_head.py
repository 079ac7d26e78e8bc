"""One head: its stages from queries and keys to its output, and who looks at whom."""

from __future__ import annotations

import gradio as gr

from components.i18n import Language, t
from components.i18n.catalogue import CATALOGUES
from components.localized import Words
from components.tabs.inside import stages as inside_stages
from components.tabs.inside.looks import VIEWS, looks
from components.tabs.inside.part import Part, Scene, Values
from components.widgets.lines import lines
from components.widgets.sentence import sentence
from components.widgets.stages import stages


def build_one_head(words: Words) -> Part:
    """Lay the part out."""
    with words.build(gr.Tab, {"label": "inside.one_head"}, id="inside-one-head") as tab:
        pictures = _stages(words)
        view, what, text = _looks(words)

    def show(scene: Scene) -> Values:
        language, chosen = scene.language, scene.controls[view]
        chosen = chosen if chosen in VIEWS else VIEWS[0]
        # An update before the tab was ever open drops what it does not name: labels go with every value.
        return {
            pictures: gr.update(value=inside_stages.stages(scene), labels=stages_labels(language)),
            what: t(f"lines.what.{chosen}", language),
            text: gr.update(value=looks(scene, chosen), labels=lines_labels(language)),
        }

    return Part("one_head", tab, (pictures, what, text), show, controls=(view,), clickable=(pictures, text))


def _stages(words: Words) -> gr.HTML:
    with gr.Column(elem_classes="gb-card"):
        words.build(sentence, {"value": "stages.question"}, kind="question")
        words.build(sentence, {"value": "stages.lead"}, kind="caption")
        return words.build(stages, {"labels": stages_labels}, elem_id="stages")


def stages_labels(language: Language) -> dict[str, str]:
    """The fixed words of the stages; those with {...} are filled in by the browser."""
    return {key.removeprefix("stages."): t(key, language) for key in CATALOGUES["en"] if key.startswith("stages.")}


def _looks(words: Words) -> tuple[gr.Dropdown, gr.HTML, gr.HTML]:
    with gr.Column(elem_classes="gb-card"):
        with gr.Row(elem_classes="gb-card-head"):
            words.build(sentence, {"value": "lines.question"}, kind="question")
            view = words.build(
                gr.Dropdown,
                {"label": "lines.view", "choices": _view_choices},
                value=VIEWS[0],
                elem_id="lines-view",
                min_width=72,
            )
        what = sentence(kind="caption", elem_id="lines-what")
        text = words.build(lines, {"labels": lines_labels}, elem_id="lines")
    return view, what, text


def _view_choices(language: Language) -> list[tuple[str, str]]:
    return [(t(f"lines.view.{view}", language), view) for view in VIEWS]


def lines_labels(language: Language) -> dict[str, str]:
    """The fixed words of the lines."""
    names = ("name", "head", "heads", "all", "only", "least", "from", "to", "cells", "cells.one", "later", "keys")
    return {name: t(f"lines.{name}", language) for name in names}
