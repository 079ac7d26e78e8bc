"""Models on disk: read checkpoints in many layouts, and write them in our own format, Hugging Face's or GGUF."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from gpt.models.checkpoints.checkpoint import Checkpoint, main_file, open_checkpoint
from gpt.models.checkpoints.files import WeightsUnknown
from gpt.models.checkpoints.hugging_face_tokenizer import GENERATION_CONFIG, write_json
from gpt.models.checkpoints.layouts import (
    INFER,
    LAYOUT_FILE,
    SCALES,
    AttnScale,
    HeadsUnknown,
    Hints,
    NamesInferred,
    NamesUnknown,
    ScaleUnknown,
)
from gpt.models.checkpoints.untrusted import read_json
from gpt.models.checkpoints.writing import Kind, save_gguf, save_hugging_face, save_model

__all__ = [
    "INFER",
    "LAYOUT_FILE",
    "SCALES",
    "AttnScale",
    "Checkpoint",
    "HeadsUnknown",
    "Hints",
    "NamesInferred",
    "NamesUnknown",
    "ScaleUnknown",
    "WeightsUnknown",
    "convert",
    "main_file",
    "open_checkpoint",
    "save_gguf",
    "save_hugging_face",
    "save_model",
]


def convert(
    source: Path,
    target: Path,
    *,
    to: Literal["ours", "hf", "gguf"] = "ours",
    kind: Kind = "F16",
    hints: Hints | None = None,
    **given: Any,
) -> str:
    """Convert a checkpoint to our format, Hugging Face's or GGUF, and return its original layout.

    Keeps the stored data type, except in GGUF, where `kind` is the type of the matrices. target: A folder or, for GGUF,
    also a file. hints, or its fields as arguments: see `open_checkpoint`.
    """
    checkpoint = open_checkpoint(source, hints, **given)
    model, tokenizer, dtype = checkpoint.build(), checkpoint.tokenizer, checkpoint.dtype
    if to == "ours":
        save_model(target, model, tokenizer, dtype=dtype)
    elif to == "hf":
        save_hugging_face(model, target, tokenizer, dtype=dtype)
        keep_generation_config(checkpoint.folder, target)
    else:
        path = target if target.suffix == ".gguf" else target / "model.gguf"
        save_gguf(model, path, tokenizer, kind=kind, layout=checkpoint.layout)
    return checkpoint.layout


def keep_generation_config(source: Path | None, target: Path) -> None:
    """Add what the source's generation_config.json suggests, such as a temperature, to the target's."""
    if source is not None and (source / GENERATION_CONFIG).is_file():
        written = target / GENERATION_CONFIG
        own = read_json(written, dict) if written.is_file() else {}
        write_json(written, {**read_json(source / GENERATION_CONFIG, dict), **own})
