"""Embeddings: the tokens nearest to the selected one, and the similarity of position embeddings."""

from __future__ import annotations

import numpy as np

from components.figures.bars import signed_bars
from components.figures.maps import similarity_heatmap
from components.i18n import t
from components.labels import decimal, quoted, shortened, token_text, visible
from components.state.snapshot import Snapshot
from components.tabs.inside.views.scene import Data, Scene, part_view
from components.widgets.chart import chart_data
from gpt import GPT, LoadedModel
from gpt.analysis.embeddings import nearest_tokens, position_similarity
from gpt.inference.threads import threads_for

MAX_NEAREST = 12
MAX_POSITIONS = 64  # positions shown in the chart
NOTHING = chart_data(None, "")


def nearest(s: Snapshot, scene: Scene) -> Data:
    """List the tokens whose embeddings have the highest cosine similarity to the selected token's."""
    return nearest_chart(scene.document.loaded, scene.recording.ids[scene.position])


def nearest_chart(loaded: LoadedModel, token_id: int) -> Data:
    model, tokenizer = loaded.model, loaded.tokenizer
    with threads_for(model.wte.weight.numel()):
        found = nearest_tokens(model, token_id, MAX_NEAREST)
    ids, cosines = found.token.tolist(), found.cosine.float().cpu().numpy()
    if not ids:  # the vocabulary has only one token
        return NOTHING
    labels = [token_text(tokenizer, nearest_id) for nearest_id in ids]
    figure = signed_bars(
        [shortened(label, 14) for label in labels],
        cosines,
        [decimal(value) for value in cosines],
        title=t("embeddings.cosine"),
        full=1.0,
    )
    named = {"token": visible(token_text(tokenizer, token_id)), "nearest": quoted(tokenizer, ids[0])}
    text = t("embeddings.says", **named, cosine=decimal(cosines[0]))
    return chart_data(figure, text, t("embeddings.note"))


def positions(s: Snapshot, scene: Scene) -> Data:
    """Plot the similarity of the learned position embeddings, or nothing if the model has none."""
    model = scene.document.loaded.model
    return NOTHING if model.wpe is None else positions_chart(model)


def positions_chart(model: GPT) -> Data:
    with threads_for(model.config.block_size**2 * model.config.n_embd):
        cosines = position_similarity(model).float().cpu().numpy()
    n = len(cosines)
    shown = np.unique(np.linspace(0, n - 1, min(n, MAX_POSITIONS)).round().astype(int))
    figure = similarity_heatmap(
        cosines[np.ix_(shown, shown)],
        shown,
        title=t("places.position"),
        value=t("embeddings.cosine"),
    )
    near, far = (float(np.diagonal(cosines, k).mean()) if k < n else 1.0 for k in (1, n // 2))
    text = t("places.says", near=decimal(near, 2), far=decimal(far, 2))
    return chart_data(figure, text, t("places.note", shown=len(shown), all=n))


def no_positions(s: Snapshot, scene: Scene) -> Data:
    """Explain why there is no chart of position embeddings."""
    return {"text": t("places.rotary") if scene.document.loaded.model.wpe is None else ""}


VIEWS = (
    part_view("nearest-tokens", "embeddings", nearest, NOTHING),
    part_view("position-similarity", "embeddings", positions, NOTHING),
    part_view("no-positions", "embeddings", no_positions, {"text": ""}),
)
