"""Sources of models: a known name, a path, or a repository of the Hugging Face hub."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from gpt.background import Progress
from gpt.errors import GPTError
from gpt.models import hub
from gpt.models.checkpoints import Checkpoint, open_checkpoint
from gpt.models.loading import LoadedModel, Precision, best_device, build, check_precision

DEFAULT_MODEL = "stories"
BUNDLED = Path(__file__).parent.parent / "assets" / "stories"
UNTRAINED = "untrained"  # the configuration and the vocabulary of the bundled model, with random weights
MODELS = (DEFAULT_MODEL, UNTRAINED, "distilgpt2", "gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl")


@dataclass(frozen=True)
class Source:
    """The source of a model. location: a path, or a repository of the hub.

    listed: whether `list_models` shows it. folder: holds the files of an upload.
    """

    location: Path | str
    n_head: int | None = None
    untrained: bool = False
    listed: bool = True
    folder: TemporaryDirectory[str] | None = None

    def open(self, progress: Progress | None = None) -> Checkpoint:
        path = self.location if isinstance(self.location, Path) else hub.download(self.location, progress)
        return open_checkpoint(path, n_head=self.n_head)


def find_source(name_or_path: str | Path, n_head: int | None = None) -> Source:
    """The source of a name of MODELS, else of a path, else of a repository of the hub. Raises ValueError otherwise."""
    name = str(name_or_path)
    if name in (DEFAULT_MODEL, UNTRAINED):
        return Source(BUNDLED, n_head, untrained=name == UNTRAINED)
    if name in MODELS:
        return Source(name, n_head)
    if path := _existing(name):
        return Source(path, n_head)
    if not re.fullmatch(r"[\w-][\w.-]*/[\w-][\w.-]*", name):
        raise GPTError("model.unknown_source", name=name, models=", ".join(MODELS))
    return Source(name, n_head)


def _existing(name: str) -> Path | None:
    """The path of that name, if there is one."""
    try:
        path = Path(name).expanduser()
        return path if path.exists() else None
    except (OSError, RuntimeError, ValueError):  # too long, unknown user, zero byte
        return None


def available_device(device: str | torch.device) -> torch.device:
    """The device. Raises ValueError if this computer does not have it, and for "meta"."""
    try:
        found = torch.device(device)
        torch.empty(1, device=found).item()
    except (AssertionError, NotImplementedError, RuntimeError, TypeError):
        raise GPTError("device.unknown", device=str(device)) from None
    return found


def load_model(
    name_or_path: str | Path,
    *,
    device: str | torch.device | None = None,
    precision: Precision = "fp32",
    n_head: int | None = None,
    progress: Progress | None = None,
) -> LoadedModel:
    """Load a model that is not shared: a name of `list_models`, a path, or a repository of the hub.

    device: None is CUDA if there is one, else MPS, else the CPU. n_head: for checkpoints that do not state it.
    progress: called while it downloads, with the bytes downloaded and their total.
    Raises ValueError if it cannot be loaded.
    """
    check_precision(precision)
    source = find_source(name_or_path, n_head)
    chosen = best_device() if device is None else available_device(device)
    return build(str(name_or_path), source.open(progress), chosen, precision, untrained=source.untrained)
