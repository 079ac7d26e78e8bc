"""Where models come from: a name that is known here, a path, or a repository of the hub."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from gpt.errors import GPTError
from gpt.models import hub
from gpt.models.checkpoints import Checkpoint, open_checkpoint
from gpt.models.loading import LoadedModel, Precision, best_device, build, check_precision

DEFAULT_MODEL = "stories"
BUNDLED = Path(__file__).parent.parent / "assets" / "stories"
MODELS = {
    "stories": "Small stories in simple English; comes with the app",
    "untrained": "The same shape and vocabulary with random weights: before any learning",
    "distilgpt2": "82 million parameters, taught by GPT-2: half its layers",
    "gpt2": "GPT-2 small: 124 million parameters",
    "gpt2-medium": "GPT-2 medium: 355 million parameters",
    "gpt2-large": "GPT-2 large: 774 million parameters",
    "gpt2-xl": "GPT-2 XL: 1,558 million parameters",
}


@dataclass(frozen=True)
class Source:
    """Where a model comes from. place: a path, or a repository of the hub.

    listed: whether everybody may choose it. folder: holds the files of an upload.
    """

    place: Path | str
    n_head: int | None = None
    untrained: bool = False
    listed: bool = True
    folder: TemporaryDirectory[str] | None = None

    def open(self, progress: hub.Progress | None = None) -> Checkpoint:
        path = self.place if isinstance(self.place, Path) else hub.download(self.place, progress)
        return open_checkpoint(path, n_head=self.n_head)


def find_source(name_or_path: str | Path, n_head: int | None = None) -> Source:
    """A name of `list_models`, else a path, else a repository of the hub. Raises ValueError if it is none."""
    name = str(name_or_path)
    if name in (DEFAULT_MODEL, "untrained"):
        return Source(BUNDLED, n_head, untrained=name == "untrained")
    if name not in MODELS and (path := _existing(name)):
        return Source(path, n_head)
    if name not in MODELS and not re.fullmatch(r"[\w-][\w.-]*/[\w-][\w.-]*", name):
        raise GPTError("model.unknown_source", name=name, models=", ".join(MODELS))
    return Source(name, n_head)


def _existing(name: str) -> Path | None:
    """The path of that name, if there is one."""
    try:
        path = Path(name).expanduser()
        return path if path.exists() else None
    except (OSError, RuntimeError, ValueError):  # far too long, of a user whom nobody knows, with a zero byte
        return None


def usable(device: str | torch.device) -> torch.device:
    """A device that this computer has. Raises ValueError for any other."""
    try:
        found = torch.device(device)
        torch.empty(1, device=found).item()  # which has numbers: meta has none
    except (AssertionError, NotImplementedError, RuntimeError, TypeError):
        raise GPTError("device.unknown", device=str(device)) from None
    return found


def load_model(
    name_or_path: str | Path,
    *,
    device: str | torch.device | None = None,
    precision: Precision = "fp32",
    n_head: int | None = None,
    progress: hub.Progress | None = None,
) -> LoadedModel:
    """A model of its own, shared with nobody: a name of `list_models`, a path, or a repository of the hub.

    device: None takes CUDA, then MPS, then the CPU. n_head: for checkpoints that do not say it.
    progress: called with the bytes that are here and those there will be, while it downloads.
    Raises ValueError, with a sentence for a person, for what cannot be loaded.
    """
    check_precision(precision)
    source = find_source(name_or_path, n_head)
    chosen = best_device() if device is None else usable(device)
    return build(str(name_or_path), source.open(progress), chosen, precision, untrained=source.untrained)
