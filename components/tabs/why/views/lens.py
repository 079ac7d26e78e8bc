"""The logit lens: each layer's predictions around the position, and the paths of tokens through the layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from components.figures.bars import signed_bars
from components.figures.lines import path_lines as path_figure
from components.figures.maps import lens_heatmap
from components.i18n import t
from components.labels import percent, quoted, token_text, visible
from components.render import View
from components.state.snapshot import Snapshot
from components.tabs.why.predictions import Prediction, TokenPaths, TracedText
from components.tabs.why.state import Cell, WhyState
from components.tabs.why.views.tokens import short
from components.widgets.chart import chart_data
from gpt.analysis.lens import LENS_POINTS, Lens, LensPoint
from gpt.tokenizer import Vocabulary


def lens_map(traced: TracedText, prediction: Prediction, lens: Lens, stage: LensPoint, layer: int) -> dict[str, Any]:
    """Plot a map of each layer's predictions around the position."""
    tokenizer, row = traced.loaded.tokenizer, LENS_POINTS.index(stage)
    tokens, p, entropy = (values[:, row].tolist() for values in (lens.token, lens.probability, lens.entropy))
    first, end, column = traced.first, traced.end, prediction.position - traced.first
    here = [quoted(tokenizer, i) for i in traced.ids[first:end]]
    following = traced.text.ids[first + 1 : end + 1]

    def tip(layer: int, place: int) -> str:
        where = stage_name(stage, layer)
        best, share = quoted(tokenizer, tokens[layer][place]), percent(p[layer][place])
        bits = f"{entropy[layer][place]:.1f}"
        return t("why.lens.tip", where=where, here=here[place], best=best, p=share, entropy=bits)

    figure = lens_heatmap(
        np.array(p),
        [[token_text(tokenizer, i) for i in line] for line in tokens],
        [token_text(tokenizer, i) for i in traced.ids[first:end]],
        [*(token_text(tokenizer, i) for i in following), *[""] * (end - first - len(following))],
        column=column,
        row=layer,
        tips=[[tip(i, place) for place in range(end - first)] for i in range(len(tokens))],
        layer_title=t("attention.layer"),
        value_title=t("why.lens.scale"),
    )
    final = int(lens.token[-1, -1, column])
    caption = _leads(here[column], [line[column] for line in tokens], final, tokenizer)
    if first > 0 or end < len(traced.ids):
        caption += t("why.lens.window", start=first, end=end - 1, n=f"{len(traced.ids):,}")
    return chart_data(figure, caption)


def _leads(here: str, best: Sequence[int], final: int, tokenizer: Vocabulary) -> str:
    """Name the layer after which the final top token stays in the lead."""
    since = len(best)
    while since and best[since - 1] == final:
        since -= 1
    key = {len(best): "why.lens.after", len(best) - 1: "why.lens.late"}.get(since, "why.lens.early")
    return t(key, here=here, best=quoted(tokenizer, final), layer=since)


def stage_name(stage: LensPoint, layer: int) -> str:
    """Name a row in the lens for a sentence."""
    return t(f"why.stage.{stage}.of", layer=layer)


def cell_bars(traced: TracedText, prediction: Prediction, cell: Cell) -> dict[str, Any]:
    """Plot the most likely tokens in one cell of the lens."""
    tokenizer, top = traced.loaded.tokenizer, cell.top
    ids, p = top.token.tolist(), top.probability.float().cpu().numpy()
    figure = signed_bars(
        [short(tokenizer, i) for i in ids],
        p,
        [percent(float(value)) for value in p],
        marked=ids.index(prediction.token) if prediction.token in ids else None,
    )
    caption = t(
        "why.cell.says",
        where=stage_name(cell.stage, cell.layer),
        here=quoted(tokenizer, traced.ids[prediction.position]),
        best=quoted(tokenizer, ids[0]),
        p=percent(float(p[0])),
    )
    return chart_data(figure, caption)


def path_title(traced: TracedText, prediction: Prediction) -> str:
    """Return the title of the path chart."""
    return t("why.path.question", token=quoted(traced.loaded.tokenizer, prediction.token))


def path_lines(tokenizer: Vocabulary, paths: TokenPaths, unknown: Sequence[str]) -> dict[str, Any]:
    """Plot the paths of the token to explain, which comes first, and of the watched tokens.

    `unknown` contains the typed strings that no token contains.
    """
    n_layer = paths.rank.shape[1] // 2
    stages = [stage_name(stage, layer) for layer in range(n_layer) for stage in LENS_POINTS]
    figure = path_figure(
        paths.probability,
        paths.rank,
        stages,
        [token_text(tokenizer, token) for token in paths.tokens],
        layer_title=t("attention.layer"),
        probability_title=t("pipeline.probability"),
        rank_title=t("why.path.rank"),
    )
    caption, *others = (
        _path_sentence(quoted(tokenizer, token), p, rank, stages)
        for token, p, rank in zip(paths.tokens, paths.probability, paths.rank, strict=True)
    )
    others += [t("pipeline.unknown", query=visible(text)) for text in unknown]
    return chart_data(figure, caption, " ".join(others))


def _path_sentence(token: str, p: np.ndarray, rank: np.ndarray, stages: Sequence[str]) -> str:
    ends = {"first": f"{rank[0]:,}", "last": f"{rank[-1]:,}", "p": percent(float(p[-1]))}
    best = np.flatnonzero(rank == 1)
    where = t("why.path.best", where=stages[best[0]]) if len(best) else ""
    return t("why.path.says", token=token, **ends) + where


def lens_picture(s: Snapshot) -> dict[str, Any]:
    state, shown = s.state(WhyState), s.state(WhyState).shown
    if shown is None or shown.lens is None:
        return chart_data(None, "")
    return lens_map(shown.traced, shown.prediction, shown.lens, state.stage, state.lens_row)


def cell(s: Snapshot) -> dict[str, Any]:
    shown = s.state(WhyState).shown
    if shown is None or shown.cell is None:
        return chart_data(None, "")
    return cell_bars(shown.traced, shown.prediction, shown.cell)


def path_question(s: Snapshot) -> dict[str, Any]:
    shown = s.state(WhyState).shown
    return {"text": "" if shown is None else path_title(shown.traced, shown.prediction)}


def path(s: Snapshot) -> dict[str, Any]:
    shown = s.state(WhyState).shown
    if shown is None or shown.paths is None:
        return chart_data(None, "")
    tokenizer = shown.traced.loaded.tokenizer
    return path_lines(tokenizer, shown.paths, shown.watched.of(tokenizer).unknown)


VIEWS = (
    View("why-lens", lens_picture),
    View("why-cell", cell),
    View("why-path-question", path_question),
    View("why-path", path),
)
