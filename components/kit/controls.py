"""Controls for settings: name, value, limits and handler follow from the setting. A label is a catalogue key."""

from __future__ import annotations

from typing import Any

from components import parts
from components.kit.settings import Setting
from components.parts import Live, Part
from components.state.session import Session


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
    """Return a checkbox for a setting that is True or False."""
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


def _layers(s: Any) -> list[tuple[str, int]]:
    return [(str(layer), layer) for layer in range(1 if s.text is None else s.text.config.n_layer)]


def _options(of: Setting, label: str | Live, options: dict[str, Any]) -> dict[str, Any]:
    return {"label": label, "value": of.value, "on": of.set, **options}
