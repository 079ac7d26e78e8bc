"""The notice about a model: its error in reduced precision, and why its vocabulary cannot be read."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import gradio as gr

from components.errors import localize_error
from components.events import Events
from components.i18n import t
from components.labels import percent
from components.render import View
from components.state.session import Session
from components.state.snapshot import Snapshot
from gpt import LoadedModel, get_model
from gpt.errors import GPTError
from gpt.models.precision_error import PrecisionError, precision_error


@dataclass(frozen=True)
class PrecisionState:
    """The measured model and its error relative to float32, or the reason it could not be measured."""

    loaded: LoadedModel | None = None
    error: PrecisionError | ValueError | None = None


def wire_precision(events: Events, model: gr.Dropdown) -> None:
    """Measure each model when it is chosen."""
    loaded = events.on(model.change, load, [model], queue="model", trigger_mode="always_last")
    events.on(loaded.success, measure, [model], queue="experiment")


def load(session: Session, model: object) -> None:
    """Load the chosen model, so that no experiment waits for it. Loading errors are reported elsewhere."""
    with suppress(ValueError):
        get_model(str(model))


def measure(session: Session, model: object) -> None:
    """Compare the chosen model with its float32 copy. Loading errors are reported elsewhere."""
    try:
        loaded = get_model(str(model))
    except ValueError:
        session.change(PrecisionState, loaded=None, error=None)
    else:
        session.change(PrecisionState, loaded=loaded, error=error_of(loaded))


def error_of(loaded: LoadedModel) -> PrecisionError | ValueError | None:
    """Return the measured error or the reason it cannot be measured, or None for a float32 model."""
    if loaded.precision == "fp32":
        return None
    try:
        return precision_error(loaded)
    except ValueError as problem:
        return problem


def precision_sentence(loaded: LoadedModel, error: PrecisionError | ValueError | None) -> str:
    """Return a sentence about the error; "" for a float32 model."""
    if error is None:
        return ""
    precision = loaded.weight_format
    if isinstance(error, ValueError):
        return t("precision.unknown", precision=precision, problem=localize_error(error))
    numbers = {"kl": f"{error.kl:.2g}", "logit": f"{error.logit:.2g}", "top_1": percent(error.top_1)}
    return t("precision", precision=precision, **numbers)


def _unread(s: Snapshot) -> GPTError | None:
    """Return why the vocabulary of the model in use cannot be read, or None."""
    return None if s.loaded is None else getattr(s.loaded.tokenizer, "problem", None)


def _draw(s: Snapshot) -> dict[str, str]:
    state, problem = s.state(PrecisionState), _unread(s)
    text = "" if state.loaded is None else precision_sentence(state.loaded, state.error)
    if problem is not None:
        unread = t("vocabulary.unread", reason=localize_error(problem))
        text = f"{unread} {text}"
    return {"text": text}


VIEW = View("precision", _draw)
