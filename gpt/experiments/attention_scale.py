"""The loss of a text under each scale of attention scores that a checkpoint may have been trained with."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gpt.experiments.text_loss import score_text
from gpt.models.checkpoints import SCALES
from gpt.models.registry import folder_of
from gpt.models.sources import load_model
from gpt.tokenizer import prompt_ids


def losses_by_scale(files: Sequence[str | Path], text: str, **hints: Any) -> dict[str, float]:
    """Return the mean loss of a text in nats per token for each of SCALES: the lower one is that of the training.

    Args:
        files: The weights and the files beside them.
        text: A text of the kind that the model was trained on.
        hints: Other facts about the checkpoint, as for `gpt.load_model`.

    Raises:
        ValueError: The text has fewer than two tokens, or the files cannot be read.
    """
    losses = {}
    with folder_of(files) as folder:
        for scale in SCALES:
            loaded = load_model(folder, device="cpu", attn_scale=scale, **hints)  # type: ignore[arg-type]
            losses[scale] = score_text(loaded, prompt_ids(loaded.tokenizer, text)).score.loss
    return losses
