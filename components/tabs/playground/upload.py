"""Opening an uploaded checkpoint and adding it to the models. Only for an app with a single user."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import gradio as gr

from components.errors import PageError, Question, localize_error
from components.events import Events
from components.i18n import Language, t
from components.labels import ACTIVATIONS
from components.localized import Localizer
from components.render import Control, View
from components.state.session import Session
from components.state.snapshot import Snapshot
from components.tabs.playground.handlers.generation import prepare_prompt
from components.widgets.sentence import sentence
from components.widgets.table import table
from gpt import LoadedModel, add_upload, get_model
from gpt.config import Activation
from gpt.models.checkpoints import LAYOUT_FILE, HeadsUnknown, NamesInferred, NamesUnknown
from gpt.models.checkpoints.vocabularies import Characters, PlainIds

MAX_NAMES_CHARS = 20_000
VOCABULARIES = {Characters: "upload.characters", PlainIds: "upload.ids"}


@dataclass(frozen=True)
class UploadState:
    """What was asked about the files of the last attempt.

    heads: possible numbers of heads if the files do not specify it. activation: the default where they do not specify
    one. layout: the names that were inferred, as the content of a layout file, to be confirmed, corrected or completed
    where some are "?". opened: the loaded model.
    """

    files: tuple[str, ...] = ()
    heads: tuple[int, ...] = ()
    activation: Activation | None = None
    layout: str = ""
    message: Exception | None = None
    opened: LoadedModel | None = None


@dataclass(frozen=True)
class Upload:
    """The components of the panel."""

    files: gr.File
    n_head: gr.Dropdown
    activation: gr.Dropdown
    names: gr.Textbox
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
            activation = localizer.build(
                gr.Dropdown,
                {"label": "upload.activation", "info": "upload.activation.info"},
                choices=[(label, name) for name, label in ACTIVATIONS.items()],
                value=None,
                visible=False,
                elem_id="upload-activation",
            )
        button = localizer.build(gr.Button, {"value": "upload.open"}, size="md", elem_id="upload-open")
        sentence(kind="notice", elem_id="upload-message", view="upload-message")
        table(elem_id="upload-names", view="upload-names", words_from=1)
        names = localizer.build(
            gr.Textbox,
            {"label": "upload.layout", "info": "upload.layout.info"},
            lines=8,
            max_lines=24,
            max_length=MAX_NAMES_CHARS,
            visible=False,
            elem_id="upload-layout",
        )
    return Upload(files, n_head, activation, names, button)


def wire_upload(ui: Upload, events: Events) -> Any:
    """Wire the panel; returns the event that opens the files and prepares a text with their model."""
    heads = Control(ui.n_head, lambda s: s.state(UploadState).heads, _head_picker)
    activation = Control(ui.activation, lambda s: s.state(UploadState).activation, _activation_picker)
    names = Control(ui.names, lambda s: s.state(UploadState).layout, _names_box)
    events.renderer.add("playground", VIEWS, controls=[heads, activation, names])
    asked = [ui.n_head, ui.activation, ui.names]
    opened = events.on(ui.open.click, open_upload, [ui.files, *asked], sets=asked, queue="model")
    return events.on(opened.success, prepare_prompt, queue="model")


def open_upload(
    session: Session, files: list[str] | None, n_head: int | None, activation: Activation | None, names: str = ""
) -> Iterator[None]:
    """Add the model in the files to the list and choose it; ask for what the files do not specify.

    names: the content of a layout file: what was inferred from these files and shown, confirmed or corrected.
    """
    if not files:
        raise PageError("upload.none")
    if session.state(UploadState).files != tuple(files):  # what was asked and chosen is about other files
        session.change(UploadState, heads=(), activation=None, layout="")
        n_head, activation, names = None, None, ""
    session.change(UploadState, files=tuple(files))
    try:
        with TemporaryDirectory(prefix="glassbox-") as folder:
            given = _with_names(files, names, Path(folder)) if session.state(UploadState).layout else files
            name = add_upload(given, n_head, activation=activation or None)
    except (HeadsUnknown, NamesInferred) as unclear:
        inferred = isinstance(unclear, NamesInferred)
        question = Question("upload.confirm" if inferred else "upload.ask")
        session.change(
            UploadState,
            heads=tuple(unclear.choices),
            activation=unclear.activation,
            message=question,
            **({"layout": unclear.values["layout"]} if inferred else {}),
        )
        yield
        raise question from None
    except NamesUnknown as problem:
        question = Question("upload.unknown", names=problem.values["names"], reason=problem.values["reason"])
        session.change(UploadState, message=question, layout=problem.values["draft"])
        yield
        raise question from None
    except ValueError as problem:
        session.change(UploadState, message=problem)
        yield
        raise
    session.model, session.loaded = name, get_model(name)
    session.change(UploadState, files=(), heads=(), activation=None, layout="", message=None, opened=session.loaded)


def _with_names(files: list[str], names: str, folder: Path) -> list[str]:
    """The files with these names in place of their layout file; the files alone if there are none."""
    if not names.strip():
        return files
    path = folder / LAYOUT_FILE
    path.write_text(names[:MAX_NAMES_CHARS], encoding="utf-8")
    return [*(file for file in files if Path(file).name != LAYOUT_FILE), str(path)]


def message(s: Snapshot) -> dict[str, Any]:
    """The recognised layout, the missing information, or the error."""
    state = s.state(UploadState)
    if state.message is not None:
        return {"text": localize_error(state.message, s.language)}
    return {"text": "" if state.opened is None else opened_sentence(state.opened, s.language)}


def _head_picker(s: Snapshot) -> dict[str, Any]:
    heads = s.state(UploadState).heads
    return {"visible": bool(heads), "choices": list(heads), "value": None}


def _activation_picker(s: Snapshot) -> dict[str, Any]:
    activation = s.state(UploadState).activation
    return {"visible": activation is not None, "value": activation}


def _names_box(s: Snapshot) -> dict[str, Any]:
    layout = s.state(UploadState).layout
    return {"visible": bool(layout), "value": layout}


def names_table(s: Snapshot) -> dict[str, Any]:
    """The inferred names: role, the name in this app, the name in the files."""
    layout = s.state(UploadState).layout
    if not layout:
        return {"rows": []}
    head = [t(f"upload.names.{column}", s.language) for column in ("role", "ours", "theirs")]
    found = json.loads(layout)
    rows = [[role_words(ours, found, s.language), ours, theirs] for ours, theirs in found["names"].items()]
    return {"rows": [head, *rows]}


def role_words(ours: str, layout: dict[str, Any], language: Language) -> str:
    """The role of one of our names; of a fused matrix its parts in their order."""
    role = re.sub(r"\.(weight|bias)$", "", ours)
    name = role.removeprefix("h.{n}.")
    parts = [f"attn.{letter}" for letter in layout.get("qkv_order", "qkv")] if name == "attn.c_attn" else [name]
    words = t("upload.role.and", language).join(t(f"upload.role.{part}", language) for part in parts)
    turned = role in layout.get("transposed", ()) and not ours.endswith(".bias")
    return t("upload.role.transposed", language, role=words) if turned else words


VIEWS = (
    View("upload-message", lambda s: (s.state(UploadState), s.language), message),
    View("upload-names", lambda s: (s.state(UploadState).layout, s.language), names_table),
)


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
