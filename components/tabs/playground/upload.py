"""The panel for uploading checkpoints, for single-user apps only."""

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
from components.i18n import t
from components.labels import ACTIVATIONS
from components.localized import Localizer
from components.render import Control, View
from components.state.session import Session
from components.state.snapshot import Snapshot
from components.tabs.playground.handlers.generation import prepare_prompt, written
from components.widgets.sentence import sentence
from components.widgets.table import table
from components.widgets.widget import placed
from gpt import LoadedModel, add_upload, get_model
from gpt.config import Activation
from gpt.experiments.text_loss import losses_by_scale
from gpt.models.checkpoints import (
    LAYOUT_FILE,
    SCALES,
    AttnScale,
    HeadsUnknown,
    NamesInferred,
    NamesUnknown,
    ScaleUnknown,
    WeightsUnknown,
)
from gpt.models.checkpoints.token_table import Characters, Words
from gpt.models.checkpoints.vocabularies import PlainIds

MAX_NAMES_CHARS = 20_000
MAX_TRIAL_CHARS = 5_000
NOTHING_ASKED: dict[str, Any] = {
    "models": (),
    "heads": (),
    "activation": None,
    "widths": (),
    "losses": (),
    "layout": "",
}
VOCABULARIES = {Characters: "upload.characters", Words: "upload.words", PlainIds: "upload.ids"}


@dataclass(frozen=True)
class UploadState:
    """State of the upload panel: the files, the questions about them, and the outcome of the last attempt.

    Attributes:
        models: The models in the file, if it contains several.
        heads: Possible numbers of heads, if the files do not specify one.
        activation: The default activation function, if the files do not specify one.
        widths: The model's and a head's width, either of which may scale the attention scores.
        losses: Loss on a typed text under each scale, to find out which scale is right.
        layout: The inferred names, in the format of a layout file. The visitor confirms or corrects them, and replaces
            each "?".
        opened: The loaded model.
    """

    files: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    heads: tuple[int, ...] = ()
    activation: Activation | None = None
    widths: tuple[tuple[str, int], ...] = ()
    losses: tuple[tuple[str, float], ...] = ()
    layout: str = ""
    message: Exception | None = None
    opened: LoadedModel | None = None


@dataclass(frozen=True)
class Upload:
    """The panel's components."""

    files: gr.File
    weights: gr.Dropdown
    n_head: gr.Dropdown
    activation: gr.Dropdown
    scale: gr.Radio
    trial: gr.Textbox
    names: gr.Textbox
    open: gr.Button


def build_upload(localizer: Localizer, events: Events) -> Any:
    """Build and wire the collapsed panel, and return the event that generates with the opened model."""
    with localizer.build(gr.Accordion, {"label": "upload"}, open=False, elem_classes="gb-card", elem_id="upload"):
        localizer.sentence("upload.says", kind="caption")
        with gr.Row():
            files = localizer.build(
                gr.File, {"label": "upload.files"}, file_count="multiple", elem_id="upload-files", height=120
            )
            weights = localizer.build(
                gr.Dropdown,
                {"label": "upload.weights"},
                choices=[],
                value=None,
                allow_custom_value=True,  # gradio refuses values outside the choices that a component was built with
                visible=False,
                elem_id="upload-weights",
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
        trial = localizer.build(
            gr.Textbox,
            {"label": "upload.trial", "info": "upload.trial.info"},
            lines=2,
            max_length=MAX_TRIAL_CHARS,
            visible=False,
            elem_id="upload-trial",
        )
        scale = localizer.build(
            gr.Radio,
            {"label": "upload.scale", "info": "upload.scale.info"},
            choices=list(SCALES),
            value=None,
            visible=False,
            elem_id="upload-scale",
        )
        button = localizer.build(gr.Button, {"value": "upload.open"}, size="md", elem_id="upload-open")
        placed(sentence("upload-message", kind="notice"))
        placed(table("upload-names", words_from=1))
        names = localizer.build(
            gr.Textbox,
            {"label": "upload.layout", "info": "upload.layout.info"},
            lines=8,
            max_lines=24,
            max_length=MAX_NAMES_CHARS,
            visible=False,
            elem_id="upload-layout",
        )
    return _wire(Upload(files, weights, n_head, activation, scale, trial, names, button), events)


def _wire(ui: Upload, events: Events) -> Any:
    weights = Control(ui.weights, _weights_picker)
    heads = Control(ui.n_head, _head_picker)
    activation = Control(ui.activation, _activation_picker)
    names = Control(ui.names, _names_box)
    scale = Control(ui.scale, _scale_picker)
    trial = Control(ui.trial, _trial_box)
    events.renderer.add("playground", VIEWS, controls=[weights, heads, activation, names, scale, trial])
    asked = [ui.n_head, ui.activation, ui.names, ui.scale, ui.weights]
    opened = events.on(ui.open.click, open_upload, [ui.files, *asked], sets=asked, queue="model")
    events.on(ui.trial.input, try_scales, [ui.trial], sets=[ui.scale], queue="model", trigger_mode="always_last")
    return events.on(opened.success, written(prepare_prompt), queue="model")


def open_upload(
    session: Session,
    files: list[str] | None,
    n_head: int | None,
    activation: Activation | None,
    names: str = "",
    scale: AttnScale | None = None,
    weights: str | None = None,
) -> Iterator[None]:
    """Add the model in the files to the list and choose it, asking for anything that the files do not specify.

    `names` is the content of a layout file: the names inferred from these files, as confirmed or corrected.
    """
    if not files:
        raise PageError("upload.none")
    if session.state(UploadState).files != tuple(files):  # the questions and choices belong to other files
        session.change(UploadState, **NOTHING_ASKED)
        n_head, activation, names, scale, weights = None, None, "", None, None
    session.change(UploadState, files=tuple(files))
    hints: dict[str, Any] = {"n_head": n_head, "activation": activation or None, "weights": weights or None}
    try:
        with TemporaryDirectory(prefix="glassbox-") as folder:
            given = _with_names(files, names, Path(folder)) if session.state(UploadState).layout else files
            name = add_upload(given, **hints, attn_scale=scale or None)
    except WeightsUnknown as unclear:
        question = Question("upload.ask_weights", file=unclear.values["file"])
        session.change(UploadState, models=tuple(unclear.choices), message=question)
        yield
        raise question from None
    except ScaleUnknown as unclear:
        question = Question("upload.ask_scale", **unclear.widths)
        state = session.state(UploadState)
        confirmed = names if state.layout else ""
        session.change(UploadState, widths=tuple(unclear.widths.items()), message=question, layout=confirmed)
        yield
        raise question from None
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
    session.change(UploadState, **NOTHING_ASKED, files=(), message=None, opened=session.loaded)


def try_scales(session: Session, text: str) -> Iterator[None]:
    """Measure the loss on a typed text under each scale for the attention scores."""
    state, losses = session.state(UploadState), {}
    if not state.widths or not state.files or len(text) < 2:
        return
    try:
        with TemporaryDirectory(prefix="glassbox-") as folder:
            given = _with_names(list(state.files), state.layout, Path(folder))
            losses = losses_by_scale(given, text[:MAX_TRIAL_CHARS])
    except ValueError as problem:
        session.change(UploadState, losses=(), message=problem)
    else:
        best = min(losses, key=losses.__getitem__)
        found = Question("upload.tried", width=dict(state.widths)[best])
        session.change(UploadState, losses=tuple(losses.items()), message=found)
    yield


def _with_names(files: list[str], names: str, folder: Path) -> list[str]:
    """Return the files with their layout file replaced by one with these names, or unchanged if there are no names."""
    if not names.strip():
        return files
    path = folder / LAYOUT_FILE
    path.write_text(names[:MAX_NAMES_CHARS], encoding="utf-8")
    return [*(file for file in files if Path(file).name != LAYOUT_FILE), str(path)]


def message(s: Snapshot) -> dict[str, Any]:
    """Show the recognised layout, the missing information, or the error."""
    state = s.state(UploadState)
    if state.message is not None:
        return {"text": localize_error(state.message)}
    return {"text": "" if state.opened is None else opened_sentence(state.opened)}


def _weights_picker(s: Snapshot) -> dict[str, Any]:
    models = s.state(UploadState).models
    return {"visible": bool(models), "choices": list(models), "value": None}


def _head_picker(s: Snapshot) -> dict[str, Any]:
    heads = s.state(UploadState).heads
    return {"visible": bool(heads), "choices": list(heads), "value": None}


def _activation_picker(s: Snapshot) -> dict[str, Any]:
    activation = s.state(UploadState).activation
    return {"visible": activation is not None, "value": activation}


def _scale_picker(s: Snapshot) -> dict[str, Any]:
    state = s.state(UploadState)
    losses = dict(state.losses)
    choices = []
    for scale, width in state.widths:
        label = t(f"upload.scale.{scale}", width=width)
        loss = f"{losses[scale]:.3f}" if scale in losses else ""
        choices.append((t("upload.scale.loss", scale=label, loss=loss) if loss else label, scale))
    return {"visible": bool(choices), "choices": choices, "value": min(losses, key=losses.__getitem__, default=None)}


def _trial_box(s: Snapshot) -> dict[str, Any]:
    return {"visible": bool(s.state(UploadState).widths), "value": ""}


def _names_box(s: Snapshot) -> dict[str, Any]:
    layout = s.state(UploadState).layout
    return {"visible": bool(layout), "value": layout}


def names_table(s: Snapshot) -> dict[str, Any]:
    """List the inferred names: role, name in this app, name in the files."""
    layout = s.state(UploadState).layout
    if not layout:
        return {"rows": []}
    head = [t(f"upload.names.{column}") for column in ("role", "ours", "theirs")]
    found = json.loads(layout)
    rows = [[role_words(ours, found), ours, theirs] for ours, theirs in found["names"].items()]
    return {"rows": [head, *rows]}


def role_words(ours: str, layout: dict[str, Any]) -> str:
    """Describe the role of one of this app's weight names. For a fused matrix, list its parts in order."""
    role = re.sub(r"\.(weight|bias)$", "", ours)
    name = role.removeprefix("h.{n}.")
    parts = [f"attn.{letter}" for letter in layout.get("qkv_order", "qkv")] if name == "attn.c_attn" else [name]
    words = t("upload.role.and").join(t(f"upload.role.{part}") for part in parts)
    turned = role in layout.get("transposed", ()) and not ours.endswith(".bias")
    return t("upload.role.transposed", role=words) if turned else words


VIEWS = (
    View("upload-message", message),
    View("upload-names", names_table),
)


def opened_sentence(loaded: LoadedModel) -> str:
    """State the recognised layout and configuration."""
    config, problem = loaded.model.config, getattr(loaded.tokenizer, "problem", None)
    kind = t(VOCABULARIES.get(type(loaded.tokenizer), "upload.tokens"))
    return t(
        "upload.opened",
        layout=loaded.layout,
        layers=config.n_layer,
        heads=config.n_head,
        width=config.n_embd,
        context=config.block_size,
        vocabulary=f"{config.vocab_size:,}",
        kind=kind if problem is None else t("upload.unread", reason=localize_error(problem)),
    )
