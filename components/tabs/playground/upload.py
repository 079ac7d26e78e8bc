"""The panel for uploading checkpoints, for single-user apps only."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import gradio as gr

from components.cards.card import Card
from components.errors import PageError, Question, localize_error
from components.events import Events
from components.i18n import t
from components.kit import Panel, button, caption, choice, fold, row, says, select, setting, text_box
from components.labels import ACTIVATIONS
from components.parts import Part
from components.state.session import Session
from components.tabs.playground.generation import write_prompt
from components.widgets.simple import table
from components.widgets.widget import Said
from gpt import LoadedModel, add_upload, get_model
from gpt.config import Activation
from gpt.models.checkpoints import layouts
from gpt.models.checkpoints.checkpoint import READERS
from gpt.models.checkpoints.families import FAMILIES
from gpt.models.checkpoints.files import WeightsUnknown
from gpt.models.checkpoints.other_formats import ADAPTER_FORMAT
from gpt.models.checkpoints.vocabularies import Characters, Words
from gpt.tokenizer import PlainIds
from gpt.training.evaluation import losses_by_scale

FORMATS = ", ".join([*ADAPTER_FORMAT, *(name for reader in READERS for name in reader.formats)])
TITLES = ", ".join(family.title.removeprefix("Hugging Face ") for family in FAMILIES.values())
MAX_NAMES_CHARS = 20_000
MAX_TRIAL_CHARS = 5_000
VOCABULARIES = {Characters: "upload.characters", Words: "upload.words", PlainIds: "upload.ids"}


panel = Panel("upload")


def _scales(s: Any) -> dict[str, str]:
    """Return the possible scales of the attention scores, each with its loss on a typed text if it is known."""
    labels = {scale: t(f"upload.scale.{scale}", width=width) for scale, width in s[Upload].widths}
    for scale, loss in s[Upload].losses:
        labels[scale] = t("upload.scale.loss", scale=labels[scale], loss=f"{loss:.3f}")
    return labels


@panel.state
class Upload:
    """The files, the questions about them, each before its answer, and the outcome of the last attempt."""

    files: tuple[str, ...] = ()
    models: tuple[str, ...] = ()  # the models in the file, if it contains several
    weights: str | None = setting(None, lambda s: s[Upload].models)
    numbers: tuple[int, ...] = ()  # possible numbers of heads, if the files do not specify one
    heads: int | None = setting(None, lambda s: s[Upload].numbers)
    usual: Activation | None = None  # the default activation function, if the files do not specify one
    activation: Activation | None = setting(None, ACTIVATIONS)
    widths: tuple[tuple[str, int], ...] = ()  # the model's and a head's, either of which may scale the scores
    scale: layouts.AttnScale | None = setting(None, _scales)
    trial: str = setting("", most=MAX_TRIAL_CHARS)  # a text on which to compare the scales
    losses: tuple[tuple[str, float], ...] = ()  # the loss on it under each scale
    asks_names: bool = False  # whether to show `layout` to be confirmed or corrected
    layout: str = setting("", most=MAX_NAMES_CHARS)  # inferred names in the format of a layout file, "?" where unknown
    message: Exception | None = None
    opened: LoadedModel | None = None


def build_upload(events: Events) -> tuple[Card, Card]:
    """Build the collapsed panel, wire its files, and return its cards. tabs.css hides what is collapsed."""
    with gr.Column(elem_classes="gb-card", elem_id="upload"):
        title = Card(
            "upload",
            fold("upload-open-close", "upload", caption("upload.says", formats=FORMATS, families=TITLES)),
            classes="",
        )
        files = gr.File(label=t("upload.files"), file_count="multiple", elem_id="upload-files", height=144)
        events.show(files, lambda s: {"label": t("upload.files")})
        questions = Card("upload-questions", *_questions(), classes="")
    events.on(files.change, choose_files, [files])
    return title, questions


def _questions() -> tuple[Part, ...]:
    def asks(field: str) -> dict[str, Any]:
        return {"show": lambda s: bool(getattr(s[Upload], field))}

    return (
        row(
            select(Upload.weights, "upload.weights", **asks("models")),
            select(Upload.heads, "upload.heads", info="upload.heads.info", **asks("numbers")),
            select(Upload.activation, "change.activation", info="upload.activation.info", **asks("usual")),
        ),
        text_box(
            Upload.trial, "upload.trial", info="upload.trial.info", on=try_scales, queue="model", **asks("widths")
        ),
        choice(Upload.scale, "upload.scale", info="upload.heads.info", labelled=True, **asks("widths")),
        row(button("upload-open", "upload.open", open_upload, queue="model"), classes="gb-buttons"),
        says("upload-message", message, kind="notice"),
        table("upload-names", draw=names_table, words_from=1),
        text_box(Upload.layout, "upload.layout", info="upload.layout.info", **asks("asks_names")),
    )


def choose_files(session: Session, files: Sequence[str] | None, **outcome: Any) -> None:
    """Replace the files. Questions and answers belong to other files. outcome: other fields of `Upload`."""
    session.change(Upload, **vars(Upload()) | {"files": tuple(files or ())} | outcome)


def open_upload(session: Session) -> Iterator[None]:
    """Add the model in the files to the list, asking for anything that they do not specify, and continue the text."""
    state = session.state(Upload)
    if not state.files:
        raise PageError("upload.none")
    hints: dict[str, Any] = {"n_head": state.heads, "activation": state.activation, "weights": state.weights}

    def ask(key: str, values: Mapping[str, Any], **fields: Any) -> None:
        session.change(Upload, message=Question(key, **values), **fields)

    try:
        with _files(state, state.layout if state.asks_names else "") as files:
            name = add_upload(files, **hints, attn_scale=state.scale)
    except WeightsUnknown as unclear:
        ask("upload.ask_weights", unclear.values, models=tuple(unclear.choices))
    except layouts.ScaleUnknown as unclear:
        ask("upload.ask_scale", unclear.values, widths=tuple(unclear.values.items()))
    except layouts.NamesUnknown as unclear:
        ask("upload.unknown", unclear.values, layout=unclear.values["draft"], asks_names=True)
    except (layouts.HeadsUnknown, layouts.NamesInferred) as unclear:
        numbers = tuple(unclear.choices)
        ask("upload.ask", {}, numbers=numbers, usual=unclear.activation, activation=unclear.activation)
        if isinstance(unclear, layouts.NamesInferred):
            ask("upload.confirm", {}, layout=unclear.values["layout"], asks_names=True)
    except ValueError as problem:
        session.change(Upload, message=problem)
        raise
    else:
        session.model, session.loaded = name, get_model(name)
        choose_files(session, state.files, opened=session.loaded)
        yield from write_prompt(session)


def try_scales(session: Session, text: str) -> Iterator[None]:
    session.change(Upload, trial=text[:MAX_TRIAL_CHARS])
    yield
    state, losses = session.state(Upload), {}
    if not state.widths or not state.files or len(state.trial) < 2:
        return
    try:
        with _files(state, state.layout) as files:
            losses = losses_by_scale(files, state.trial)
    except ValueError as problem:
        session.change(Upload, losses=(), message=problem)
    else:
        best: Any = min(losses, key=losses.__getitem__)
        found = Question("upload.tried", width=dict(state.widths)[best])
        session.change(Upload, losses=tuple(losses.items()), message=found, scale=best)


@contextmanager
def _files(state: Upload, names: str) -> Iterator[list[str]]:
    """Return the files, with the layout file replaced by one with these names unless there are none."""
    if not names.strip():
        yield [*state.files]
        return
    with TemporaryDirectory(prefix="glassbox-") as folder:
        path = Path(folder) / layouts.LAYOUT_FILE
        path.write_text(names[:MAX_NAMES_CHARS], encoding="utf-8")
        yield [*(file for file in state.files if Path(file).name != layouts.LAYOUT_FILE), str(path)]


def message(s: Any) -> Said:
    said, opened = s[Upload].message, s[Upload].opened
    return opened_sentence(opened) if said is None and opened is not None else said


def names_table(s: Any) -> dict[str, Any]:
    head = [t(f"upload.names.{column}") for column in ("role", "ours", "theirs")]
    try:
        found = json.loads(s[Upload].layout)
        return {"rows": [head, *([role_words(ours, found), ours, theirs] for ours, theirs in found["names"].items())]}
    except (ValueError, LookupError, AttributeError, TypeError):  # while it is being corrected
        return {"rows": []}


def role_words(ours: str, layout: dict[str, Any]) -> str:
    """Describe the role of one of this app's weight names. For a fused matrix, list its parts in order."""
    role = re.sub(r"\.(weight|bias)$", "", ours)
    name = role.removeprefix("h.{n}.")
    parts = [f"attn.{letter}" for letter in layout.get("qkv_order", "qkv")] if name == "attn.c_attn" else [name]
    words = t("list.comma").join(t(f"upload.role.{part}") for part in parts)
    turned = role in layout.get("transposed", ()) and not ours.endswith(".bias")
    return t("upload.role.transposed", role=words) if turned else words


def opened_sentence(loaded: LoadedModel) -> str:
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
