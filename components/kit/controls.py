"""Controls for settings: name, value, limits and handler follow from the setting. A label is a catalogue key."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from components import parts
from components.kit.settings import Setting
from components.parts import Live, Part
from components.state.jobs import run_results, stop
from components.state.session import Session
from components.state.snapshot import Snapshot


def slider(of: Any, label: str | Live, **options: Any) -> Part:
    """Return a slider with a number field for a setting with limits. Takes the options of `parts.slider`."""
    return parts.slider(of.id, of.low, of.high, of.step, **_options(of, label, options))


def choice(of: Any, label: str | Live, **options: Any) -> Part:
    """Return the setting's choices side by side. Takes the options of `parts.choice`."""
    return parts.choice(of.id, of.options, **_options(of, label, options))


def select(of: Any, label: str | Live, **options: Any) -> Part:
    """Return a drop-down list of the setting's choices. Takes the options of `parts.select`."""
    return parts.select(of.id, of.options, **_options(of, label, options))


def check_box(of: Any, label: str | Live, **options: Any) -> Part:
    return parts.check_box(of.id, **_options(of, label, options))


def text_box(of: Any, label: str | Live, **options: Any) -> Part:
    """Return a text box for a setting that is a text. Takes the options of `parts.text_box`."""
    return parts.text_box(of.id, max_length=of.most, **_options(of, label, options))


def layer_select(name: str, **options: Any) -> Part:
    """Return the drop-down list for the layer that is selected on all tabs. Takes the options of `parts.select`."""
    given: dict[str, Any] = {"label": "attention.layer", "value": lambda s: s.selection.layer, "on": select_layer}
    return parts.select(name, _layers, **given | options)


def select_layer(session: Session, layer: object) -> None:
    """Select a layer on all tabs, if it exists. layer: from the browser, unchecked."""
    session.select(layer=layer)


def position_slider(name: str, label: str, **options: Any) -> Part:
    """Return a slider for the token that is selected on all tabs. Takes the options of `parts.slider`.

    label: a catalogue key; `<label>.info` is the sentence below the slider.
    """
    given: dict[str, Any] = {"label": label, "info": f"{label}.info", "on": select_position}
    given |= {"low": 0, "high": _last_position, "step": 1, "value": lambda s: max(0, s.position or 0)}
    return parts.slider(name, **given | options)


def select_position(session: Session, position: object) -> None:
    """Select a token on all tabs, if it exists. position: from the browser, unchecked."""
    session.select(position=position)


def experiment_buttons(
    name: str, label: str, state: type, results: Callable[[Snapshot], Iterator[Any]], *, small: bool = True
) -> Part:
    """Return the buttons that start and stop an experiment (see `run_results`). Only one runs at a time on the server.

    state: has the fields `job`, `latest` and `notice`. label: catalogue key of the Start button.
    """
    start, end = partial(run_results, state, results, small=small), partial(stop, state)
    return parts.run_buttons(name, label, start, end, lambda s: s[state].job is not None, queue="experiment")


def _last_position(s: Any) -> int:
    return 1 if s.text is None else max(1, s.text.n_read - 1)


def _layers(s: Any) -> list[tuple[str, int]]:
    return [(str(layer), layer) for layer in range(1 if s.text is None else s.text.config.n_layer)]


def _options(of: Setting, label: str | Live, options: dict[str, Any]) -> dict[str, Any]:
    return {"label": label, "value": of.value, "on": of.set, **options}
