"""The flow of the model, and the overview of all heads."""

from __future__ import annotations

import numpy as np

from components.i18n import t
from components.labels import percent
from components.render import Lines
from components.state.snapshot import Snapshot
from components.tabs.inside.beats import beat_named
from components.tabs.inside.head_overview import HeadOverview
from components.tabs.inside.state import FLOW_ROWS, InsideState
from components.tabs.inside.views.family import family_sentence
from components.tabs.inside.views.film import film
from components.tabs.inside.views.flow import flow, prediction_sentence, window
from components.tabs.inside.views.scene import Data, Scene, part_view
from components.widgets.heads import closer_data, heads_data


def flow_lead(s: Snapshot, scene: Scene) -> Data:
    """State the prediction in one line."""
    return {"text": prediction_sentence(scene)}


def family(s: Snapshot, scene: Scene) -> Data:
    """Describe how the model differs from GPT-2."""
    return {"text": family_sentence(scene)}


def flow_of_model(s: Snapshot, scene: Scene) -> Data:
    """Return the flow of the model, and the number of rows to offer for a long text."""
    state, length = s.state(InsideState), scene.recording.length
    rows = window(length, scene.position, state.flow_rows)
    offered = next(n for n in FLOW_ROWS if n != state.flow_rows) if length > FLOW_ROWS[0] else None
    beat = None if s.film is None else beat_named(s.film)
    shown = {"offered_rows": offered, "film": film(s, scene, rows), "beat": beat, "played": state.film_played}
    return flow(scene, rows) | shown


def heads(s: Snapshot, scene: Scene) -> Data:
    """Return the overview, and the head under the pointer at a higher resolution."""
    state, overview = s.state(InsideState), s.state(InsideState).overview
    if overview is None or not overview.ids or not overview.is_beginning(scene.recording):
        return {}
    n = len(overview.ids)
    text = _overview_sentence(overview, scene)
    content = {"layer": scene.layer, "head": scene.head, "tokens": n, "text": text}
    data = heads_data(overview.rows, overview.shares, content)
    closer = None
    if state.closer is not None:
        closer = closer_data(scene.recording.head(*state.closer).weights[:n, :n], *state.closer)
    return data | {"rows": Lines(data["rows"]), "closer": closer}


def _overview_sentence(overview: HeadOverview, scene: Scene) -> str:
    """State the number of heads and the strongest previous-token head."""
    config, shares = scene.config, overview.shares[:, :, 1]
    layer, head = (int(i) for i in np.unravel_index(shares.argmax(), shares.shape))
    text = t(
        "heads.says",
        n=config.n_layer * config.n_head,
        tokens=len(overview.ids),
        layer=layer,
        head=head,
        share=percent(shares[layer, head]),
    )
    if not overview.is_complete(scene.recording):
        text += t("heads.more", total=f"{scene.recording.length:,}")
    return text


_NO_HEADS = {"n_layer": 0, "n_head": 0, "side": 0, "rows": [], "shares": "", "closer": None, "text": ""}
VIEWS = (
    part_view("flow-lead", "machine", flow_lead, {"text": ""}),
    part_view("flow-family", "machine", family, {"text": ""}),
    part_view("flow", "machine", flow_of_model, {"tokens": None, "text": ""}),
    part_view("heads", "machine", heads, _NO_HEADS),
)
