"""Event handlers and analysis for the Activations tab."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from components.labels import ACTIVATIONS
from components.panels.activation_curves import SPAN
from components.render import Analysis
from components.state.session import Session
from components.state.settings import checked_number
from components.state.snapshot import Snapshot
from components.state.text import Text
from components.tabs.activations.state import ActivationsState, Histogram, Swap
from gpt import Edits
from gpt.config import Activation
from gpt.experiments.activations import pre_activations
from gpt.inference.threads import threads_for

BINS = 60


def set_x(session: Session, x: object) -> None:
    """Set the point at which the functions are evaluated."""
    session.change(ActivationsState, x=float(checked_number("x", x, -SPAN, SPAN)))


def choose_layer(session: Session, layer: object) -> None:
    """Select the histogram's layer, which is shared by all tabs."""
    session.select(layer=layer)


def choose_activation(session: Session, activation: object) -> None:
    """Choose the replacement activation function."""
    if isinstance(activation, str) and activation in ACTIVATIONS:
        session.change(ActivationsState, activation=activation)


def wanted(s: Snapshot) -> Any:
    """Return a key for the missing results, or None if nothing is missing or text is being generated."""
    if s.text is None or s.text.n_read == 0 or s.generating:
        return None
    state = s.state(ActivationsState)
    missing: list[Any] = []
    if not histogram_is_current(state, s):
        missing.append(("histogram", s.selection.layer))
    if not swap_is_current(state, s.text, s.position):
        missing.append(("swap", s.position, state.activation))
    return (s.text, *missing) if missing else None


def histogram_is_current(state: ActivationsState, s: Snapshot) -> bool:
    found = state.histogram
    return found is not None and (found.text, found.layer) == (s.text, s.selection.layer)


def swap_is_current(state: ActivationsState, text: Text, position: int | None) -> bool:
    found = state.swap
    wanted = (text, position, state.activation)
    return found is not None and (found.text, found.position, found.activation) == wanted


def analyse(session: Session) -> Iterator[None]:
    """Compute the missing results one by one."""
    with session.lock.reading():
        s = session.snapshot()
    text, state = s.text, s.state(ActivationsState)
    if text is None or text.n_read == 0:
        return
    if not histogram_is_current(state, s):
        with threads_for(0):
            histogram = count_pre_activations(text, s.selection.layer)
        session.change(ActivationsState, histogram=histogram)
        yield
    position = text.at(s.selection)
    if not swap_is_current(state, text, position):
        with threads_for(0):
            swap = swap_activation(text, position, state.activation)
        session.change(ActivationsState, swap=swap)
        yield


def count_pre_activations(text: Text, layer: int) -> Histogram:
    """Compute a histogram of one layer's pre-activations at all positions that the model has read."""
    ids = list(text.ids[: text.n_read])
    values = pre_activations(text.loaded.model, ids, layer).float().cpu().numpy().ravel()
    counts, edges = np.histogram(values, bins=BINS, range=(-SPAN, SPAN))
    return Histogram(
        text,
        layer,
        shares=counts / len(values),
        edges=edges,
        n=len(values),
        negative=float((values < 0).mean()),
        outside=float(1 - counts.sum() / len(values)),
        mean=float(values.mean()),
        std=float(values.std()),
    )


@torch.inference_mode()
def swap_activation(text: Text, position: int, activation: Activation) -> Swap:
    """Predict the token after a position with the model's own activation function and with a replacement."""
    model = text.loaded.model
    idx = torch.tensor([text.ids[: position + 1]], device=model.device)
    both = (model(idx, edits=edits)[0, -1] for edits in (None, Edits(activation=activation)))
    before, after = (text.document.possible(position, logits) for logits in both)
    return Swap(text, position, activation, before, after)


ANALYSIS = Analysis(wanted, analyse)
