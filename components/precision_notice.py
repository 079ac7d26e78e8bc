"""The notice about a model: quantised weights, the error in reduced precision, and an unreadable vocabulary."""

from __future__ import annotations

from typing import Any

from components.errors import localize_error
from components.i18n import t
from components.labels import percent
from components.state.reads import Computed
from gpt import LoadedModel
from gpt.models.checkpoints.gguf import bits_of
from gpt.models.registry import PrecisionError, precision_error


@Computed
def measured(s: Any) -> PrecisionError | ValueError | None:
    """Compare the model in use with its float32 copy."""
    return error_of(s.loaded)


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


def notice(s: Any) -> str:
    """Return the bits of quantised weights, the error in reduced precision, and why the vocabulary cannot be read."""
    if s.loaded is None:
        return ""
    problem = getattr(s.loaded.tokenizer, "problem", None)
    unread = "" if problem is None else t("vocabulary.unread", reason=localize_error(problem))
    kind, precision = s.loaded.stored_as, s.loaded.weight_format
    stored = t("weights.quantised", bits=bits_of(kind), kind=kind, precision=precision) if bits_of(kind) < 16 else ""
    error = None if s.loaded.precision == "fp32" else s.ready(measured)
    return " ".join(filter(None, (unread, stored, precision_sentence(s.loaded, error))))
