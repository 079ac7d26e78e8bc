"""Names of models, as the page shows them."""

from __future__ import annotations

from collections.abc import Sequence

from components.i18n import has_text, spoken, t
from gpt import list_models
from gpt.models.registry import memory_of_listed, title
from gpt.models.sources import HUB_MODELS


def short_name(model: str) -> str:
    """Return a model's name for use inside a sentence, without its description."""
    named = _listed_name(model) or _own_name(model) or title(model)
    return named.partition(" · ")[0]


def model_choices(own: Sequence[str] = ()) -> list[tuple[str, str]]:
    """Return (label, name) for each model, with the visitor's own models last."""
    listed = [(_listed_name(name) or title(name), name) for name in list_models()]
    named = [_own_name(name) or name for name in own]
    numbered = [
        f"{label} ({named[: i + 1].count(label)})" if named.count(label) > 1 else label for i, label in enumerate(named)
    ]
    return [*listed, *zip(numbered, own, strict=True)]


def _listed_name(model: str) -> str:
    """Return a known model's name with its size and, for a hub model, the memory needed."""
    if has_text(key := f"model.{model}"):
        return t(key)
    known, n_bytes = HUB_MODELS.get(model), memory_of_listed(model)
    if known is None or n_bytes is None:
        return ""
    values = {"title": known.title, "parameters": _n_parameters(known.n_parameters)}
    return t("model.from_hub", **values, memory=f"{n_bytes / 1e9:.1f} GB")


def _n_parameters(value: int) -> str:
    """Abbreviate a count of at least a million: "124M", "1.42B"; in Chinese "1.24 亿", "3582 万"."""
    if spoken() == "zh":
        return f"{value / 1e8:.2f} 亿" if value >= 1e8 else f"{value / 1e4:.0f} 万"
    return f"{value / 1e9:.2f}B" if value >= 1e9 else f"{value / 1e6:.0f}M"


def _own_name(model: str) -> str:
    """Return the name of a model trained on the page, derived from its task; "" for any other model."""
    key = f"train.task.{model.rpartition('-')[0]}"
    return t("train.model.name", task=t(key)) if has_text(key) else ""
