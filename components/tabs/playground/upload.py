"""Opening an uploaded checkpoint and adding it to the models. Only for an app with a single user."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import gradio as gr

from components.errors import PageError, localize_error
from components.events import Events
from components.i18n import Language, t
from components.localized import Localizer
from components.render import Control, View
from components.state.session import Session
from components.state.snapshot import Message, Snapshot
from components.tabs.playground.handlers.generation import prepare_typed
from components.widgets.sentence import sentence
from gpt import LoadedModel, add_upload, get_model
from gpt.models.checkpoints.layouts import HeadsUnknown
from gpt.models.checkpoints.vocabularies import Characters, PlainIds

VOCABULARIES = {Characters: "upload.characters", PlainIds: "upload.ids"}


@dataclass(frozen=True)
class UploadState:
    """heads: possible numbers of heads if the files do not specify it. opened: the loaded model."""

    heads: tuple[int, ...] = ()
    message: Message | Exception | None = None
    opened: LoadedModel | None = None


@dataclass(frozen=True)
class Upload:
    """The components of the panel."""

    files: gr.File
    n_head: gr.Dropdown
    open: gr.Button


def build_upload(localizer: Localizer) -> Upload:
    """Build the collapsed panel."""
    with localizer.build(gr.Accordion, {"label": "upload"}, open=False, elem_classes="gb-card", elem_id="upload"):
        localizer.sentence("upload.says", kind="caption")
        with gr.Row():
            files = localizer.build(
                gr.File, {"label": "upload.files"}, file_count="multiple", elem_id="upload-files", height=120
            )
            n_head = localizer.build(
                gr.Dropdown,
                {"label": "upload.heads", "info": "upload.heads.info"},
                choices=[],
                value=None,
                allow_custom_value=True,
                visible=False,
                elem_id="upload-heads",
            )
        button = localizer.build(gr.Button, {"value": "upload.open"}, size="md", elem_id="upload-open")
        sentence(kind="notice", elem_id="upload-message", view="upload-message")
    return Upload(files, n_head, button)


def wire_upload(ui: Upload, events: Events) -> Any:
    """Wire the panel; returns the event that opens the files and prepares a text with their model."""
    heads = Control(ui.n_head, lambda s: s.state(UploadState).heads, _head_picker)
    events.renderer.add("playground", VIEWS, controls=[heads])
    opened = events.on(ui.open.click, open_upload, [ui.files, ui.n_head], sets=[ui.n_head], queue="model")
    return events.on(opened.success, prepare_typed, queue="model")


def open_upload(session: Session, files: list[str] | None, n_head: int | None) -> Iterator[None]:
    """Add the model in the files to the list and choose it; ask for the number of heads if the files do not specify
    it."""
    if not files:
        raise PageError("upload.none")
    try:
        name = add_upload(files, n_head)
    except HeadsUnknown as unknown:
        session.change(UploadState, heads=tuple(unknown.choices), message=Message("upload.ask"))
        yield
        raise
    except ValueError as problem:
        session.change(UploadState, message=problem)
        yield
        raise
    session.model, session.loaded = name, get_model(name)
    session.change(UploadState, heads=(), message=None, opened=session.loaded)


def message(s: Snapshot) -> dict[str, Any]:
    """The recognised layout, the missing information, or the error."""
    state = s.state(UploadState)
    if isinstance(state.message, Message):
        return {"text": t(state.message.key, s.language, **state.message.values)}
    if state.message is not None:
        return {"text": localize_error(state.message, s.language)}
    return {"text": "" if state.opened is None else opened_sentence(state.opened, s.language)}


def _head_picker(s: Snapshot) -> dict[str, Any]:
    heads = s.state(UploadState).heads
    return {"visible": bool(heads), "choices": list(heads), "value": None}


VIEWS = (View("upload-message", lambda s: (s.state(UploadState), s.language), message),)


def opened_sentence(loaded: LoadedModel, language: Language) -> str:
    """The recognised layout and configuration."""
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
