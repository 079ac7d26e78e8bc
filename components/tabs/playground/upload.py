"""Opening a checkpoint of one's own: files in, one more model in the list. Only where the app runs for its owner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gradio as gr

from components.api import error
from components.errors import localize_error
from components.frame import Frame, model_choices
from components.i18n import Language, t
from components.localized import Words
from components.widgets.sentence import sentence
from gpt import LoadedModel, add_upload, get_model
from gpt.models.checkpoints.layouts import HeadsUnknown
from gpt.models.checkpoints.vocabularies import Characters, PlainIds

VOCABULARIES = {Characters: "upload.characters", PlainIds: "upload.ids"}


@dataclass(frozen=True)
class Upload:
    """The components of the panel."""

    files: gr.File
    n_head: gr.Dropdown
    open: gr.Button
    message: gr.HTML


def build_upload(words: Words) -> Upload:
    """A folded panel under the frame."""
    with words.build(gr.Accordion, {"label": "upload"}, open=False, elem_classes="gb-card", elem_id="upload"):
        words.build(sentence, {"value": "upload.says"}, kind="caption")
        with gr.Row():
            files = words.build(
                gr.File, {"label": "upload.files"}, file_count="multiple", elem_id="upload-files", height=120
            )
            n_head = words.build(
                gr.Dropdown,
                {"label": "upload.heads", "info": "upload.heads.info"},
                choices=[],
                value=None,
                visible=False,
                elem_id="upload-heads",
            )
        button = words.build(gr.Button, {"value": "upload.open"}, size="md", elem_id="upload-open")
        message = sentence(kind="notice", elem_id="upload-message")
    return Upload(files, n_head, button, message)


def open_upload(
    ui: Upload, frame: Frame, files: list[str] | None, n_head: int | None, language: Language, own: list[str]
) -> Any:
    """Add the model in the files to the list and choose it; ask for its heads where the files do not say them."""
    if not files:
        raise error(t("upload.none", language))
    try:
        name = add_upload(files, n_head)
    except HeadsUnknown as unknown:
        yield {
            ui.n_head: gr.update(visible=True, choices=unknown.choices),
            ui.message: t("upload.ask", language),
        }
        raise error(unknown, language) from None
    except ValueError as problem:
        yield {ui.message: localize_error(problem, language)}
        raise error(problem, language) from None
    yield {
        ui.n_head: gr.update(visible=False, value=None),
        ui.message: opened_sentence(get_model(name), language),
        frame.model: gr.update(choices=model_choices(language, own), value=name),
    }


def opened_sentence(loaded: LoadedModel, language: Language) -> str:
    """What was recognised: the layout and the shape."""
    config = loaded.model.config
    return t(
        "upload.opened",
        language,
        layout=loaded.layout,
        layers=config.n_layer,
        heads=config.n_head,
        width=config.n_embd,
        context=config.block_size,
        vocabulary=f"{config.vocab_size:,}",
        kind=t(VOCABULARIES.get(type(loaded.tokenizer), "upload.tokens"), language),
    )
