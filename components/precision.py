"""What the precision of the shown model costs, said on the page wherever the numbers are not exact."""

from __future__ import annotations

import gradio as gr

from components.errors import localize_error
from components.i18n import Language, t
from components.labels import percent
from components.widgets.sentence import sentence
from gpt import LoadedModel, get_model
from gpt.models.precision_error import precision_error


def build_precision(loaded: LoadedModel) -> gr.HTML | None:
    """One line for a page whose models are in a reduced precision; None for an exact one."""
    if loaded.precision == "fp32":
        return None
    return sentence(told(loaded, "en"), kind="caption", elem_id="precision")


def note(model: str, language: Language) -> str:
    """The line for a model of the picker; nothing while it cannot be loaded, which is said elsewhere."""
    try:
        return told(get_model(model), language)
    except ValueError:
        return ""


def told(loaded: LoadedModel, language: Language) -> str:
    """Error of a model compared with float32, in words; empty for a model in float32."""
    if loaded.precision == "fp32":
        return ""
    try:
        error = precision_error(loaded)
    except ValueError as problem:
        return t("precision.unknown", language, precision=loaded.precision, problem=localize_error(problem, language))
    numbers = {"kl": f"{error.kl:.2g}", "logit": f"{error.logit:.2g}", "top_1": percent(error.top_1)}
    return t("precision", language, precision=loaded.precision, **numbers)
