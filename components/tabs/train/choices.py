"""Validation of a visitor's choices: the task or the text, and the recipe. The page shows the errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

import gpt
from components.errors import PageError
from components.i18n import t
from gpt.training.data import (
    BYTES,
    MAX_TEXT_BYTES,
    TASKS,
    Dataset,
    TaskDataset,
    TextDataset,
    shakespeare_text,
    training_text,
)
from gpt.training.live_run import TIME_LIMIT_SECONDS
from gpt.training.recipe import LIVE_RECIPES, Recipe

SHAKESPEARE, TEXT = "shakespeare", "text"
KINDS = tuple(LIVE_RECIPES)
MAX_DISTINCT_CHARACTERS = 512  # with more, each byte becomes a token
SHAPE = {
    "n_layer": (1, 2, 3, 4),
    "n_head": (1, 2, 4, 8),
    "n_embd": (16, 32, 64, 128),
    "dropout": (0.0, 0.1, 0.2, 0.5),
}
STEPS = (50, 3000)  # minimum, maximum
SECONDS = (10, int(TIME_LIMIT_SECONDS))
RATES = (1e-6, 100.0)  # minimum, maximum
EXAMPLE_SEED = 3
FACTORS = (0.1, 0.3, 1.0, 3.0, 10.0)


@dataclass(frozen=True)
class UploadedText:
    """An uploaded text and its name. The name is "" for the model's own source code."""

    name: str
    text: str


def checked_recipe(kind: str, shape: Mapping[str, Any], rate: object) -> Recipe:
    """shape: n_layer, n_head, n_embd, dropout and steps. Raises ValueError if the rate is not within RATES."""
    if not isinstance(rate, (int, float)) or not RATES[0] <= rate <= RATES[1]:
        words = {"name": t("train.rate"), "low": f"{RATES[0]:g}", "high": f"{RATES[1]:g}"}
        raise PageError("train.error.number", **words)
    return replace(LIVE_RECIPES[kind], **shape).with_learning_rate(rate)


def dataset_for(kind: str, text: str) -> Dataset:
    """Create examples for a task, or batches from the text. Raises ValueError for an unusable text."""
    if kind in TASKS:
        return TaskDataset(TASKS[kind])
    if kind == SHAKESPEARE:
        return TextDataset(shakespeare_text(), block_size=LIVE_RECIPES[kind].block_size, name=SHAKESPEARE)
    check_text(text)
    return TextDataset(text, vocabulary=BYTES if len(set(text)) > MAX_DISTINCT_CHARACTERS else None)


def check_text(text: str) -> None:
    """Raise ValueError if a text is empty, too short or too long."""
    if not text.strip():
        raise PageError("train.error.empty")
    size = len(text.encode("utf-8", "replace"))
    if size > MAX_TEXT_BYTES:
        raise PageError("train.error.large", n=f"{size:,}", limit=f"{MAX_TEXT_BYTES:,}")
    least = TextDataset.min_tokens(LIVE_RECIPES[TEXT].block_size)
    if len(text) < least:
        raise PageError("train.error.short", n=f"{len(text):,}", limit=f"{least:,}")


def read_text_file(path: str | Path) -> UploadedText:
    """Read an uploaded file. Raises ValueError if it is too large or not text."""
    path = Path(path)
    if (size := path.stat().st_size) > MAX_TEXT_BYTES:
        raise PageError("train.error.large", n=f"{size:,}", limit=f"{MAX_TEXT_BYTES:,}")
    try:
        text = training_text(path.read_bytes().decode())
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise PageError("train.error.not_text", name=path.name)
    check_text(text)
    return UploadedText(path.name, text)


@lru_cache(maxsize=1)
def own_code() -> UploadedText:
    """Return the source code for the model and for generation, which is the built-in training text."""
    folder = Path(gpt.__file__).parent
    names = ("config", "model", "cache", "trace", "edits", "sampling", "generate", "tokenizer", "training/evaluation")
    return UploadedText("", "\n\n".join((folder / f"{name}.py").read_text(encoding="utf-8") for name in names))


def about(kind: str) -> str:
    if kind not in TASKS:
        return t(f"train.about.{kind}")
    example = TASKS[kind].draw(np.random.default_rng(EXAMPLE_SEED))
    return t(f"train.about.{kind}", example=example.prompt + example.answer.strip())
