"""Next-token probabilities and attention at the selected token."""

from __future__ import annotations

from typing import Any

from components.render import View
from components.state.snapshot import Snapshot
from components.text_views import attention_heatmap, next_token_bars
from components.widgets.chart import chart_data


def bars(s: Snapshot) -> dict[str, Any]:
    """The most probable next tokens after the selected one, before and after the sampling settings."""
    if s.text is None or s.text.n_read == 0:
        return chart_data(None, "")
    return next_token_bars(s.text.document, s.text.at(s.selection), s.settings.sampling(), s.language)


def heatmap(s: Snapshot) -> dict[str, Any]:
    """The attention weights of the selected head."""
    if s.text is None or s.text.n_read == 0:
        return chart_data(None, "")
    return attention_heatmap(s.text, s.selection, s.language)


VIEWS = (
    View("bars", lambda s: (s.text, s.selection.position, s.settings.sampling(), s.language), bars),
    View("heatmap", lambda s: (s.text, s.selection, s.language), heatmap),
)
