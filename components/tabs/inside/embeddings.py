"""The embeddings: which tokens start out alike, and how alike the positions are."""

from __future__ import annotations

import gradio as gr
import numpy as np

from components.i18n import Language, t
from components.labels import decimal, quoted, token_text, visible
from components.localized import Words
from components.tabs.inside.part import Part, Scene, Values
from components.tabs.inside.stream_figures import closeness_bars, similarity_heatmap
from components.widgets.chart import chart, chart_value
from components.widgets.sentence import sentence
from gpt import GPT
from gpt.analysis.embeddings import nearest_tokens, position_similarity

NEAREST = 12
PLACES = 64  # positions of the picture, at most


def build_embeddings(words: Words) -> Part:
    """Lay the part out."""
    with (
        words.build(gr.Tab, {"label": "inside.embeddings"}, id="inside-embeddings") as tab,
        gr.Row(elem_classes="gb-cards"),
    ):
        with gr.Column(elem_classes="gb-card", min_width=300):
            words.build(sentence, {"value": "embeddings.question"}, kind="question")
            tokens = chart(elem_id="nearest-tokens")
        with gr.Column(elem_classes="gb-card", min_width=300):
            words.build(sentence, {"value": "places.question"}, kind="question")
            places = chart(elem_id="position-similarity")
            none = sentence(kind="caption", elem_id="no-positions")

    def show(scene: Scene) -> Values:
        model = scene.record.document.loaded.model
        return {
            tokens: nearest_value(scene),
            places: "" if model.wpe is None else positions_value(model, scene.language),
            none: t("places.rotary", scene.language) if model.wpe is None else "",
        }

    return Part("embeddings", tab, (tokens, places, none), show)


def nearest_value(scene: Scene) -> str:
    """The tokens whose embeddings point most nearly the way of the selected token's."""
    document, language = scene.record.document, scene.language
    tokenizer, token = document.loaded.tokenizer, document.ids[scene.position]
    found = nearest_tokens(document.loaded.model, token, NEAREST)
    ids, cosines = found.token.tolist(), found.cosine.float().cpu().numpy()
    if not ids:  # a vocabulary of one token
        return ""
    labels = [token_text(tokenizer, token_id) for token_id in ids]
    figure = closeness_bars(labels, cosines, title=t("embeddings.cosine", language))
    told = {"token": visible(token_text(tokenizer, token)), "nearest": quoted(tokenizer, ids[0])}
    says = t("embeddings.says", language, **told, cosine=decimal(cosines[0]))
    return chart_value(figure, says, t("embeddings.note", language))


def positions_value(model: GPT, language: Language) -> str:
    """How alike the learned vectors of the positions are."""
    cosines = position_similarity(model).float().cpu().numpy()
    n = len(cosines)
    places = np.unique(np.linspace(0, n - 1, min(n, PLACES)).round().astype(int))
    figure = similarity_heatmap(
        cosines[np.ix_(places, places)],
        places,
        title=t("places.position", language),
        value=t("embeddings.cosine", language),
    )
    near, far = (float(np.diagonal(cosines, k).mean()) if k < n else 1.0 for k in (1, n // 2))
    says = t("places.says", language, near=decimal(near, 2), far=decimal(far, 2))
    return chart_value(figure, says, t("places.note", language, shown=len(places), all=n))
