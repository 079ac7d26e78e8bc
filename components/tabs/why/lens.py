"""The logit lens: each layer's predictions around the position, and the paths of tokens through the layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from components import kit
from components.errors import PageError
from components.figures.bars import signed_bars
from components.figures.lines import path_lines
from components.figures.maps import lens_heatmap
from components.i18n import t
from components.labels import percent, quoted, token_text
from components.parts import Part, pick_list
from components.state.session import Session
from components.tabs.why.explained import Chosen, Explained, about, latest, short, tab, tokens
from components.text_views import found_tokens, picked, still_known
from components.widgets.chart import Drawing
from gpt.analysis.lens import LENS_POINTS, Lens, LensPoint, lens_top_tokens, logit_lens

MAX_WATCHED = 5


@tab.computed
@about
def lens(s: Any, e: Explained) -> Lens:
    with torch.inference_mode():
        found = logit_lens(e.model, e.trace)
        if e.prediction.held:
            here = logit_lens(e.model, e.trace, positions=[e.column], only=e.possible)
            for name in ("token", "probability", "entropy"):
                getattr(found, name)[..., e.column] = getattr(here, name)[..., 0]
    return found


def lens_row(s: Any, e: Explained) -> int:
    n_layer = e.model.config.n_layer
    return s[Chosen].row if 0 <= s[Chosen].row < n_layer else n_layer - 1


def stage_name(stage: LensPoint, layer: int) -> str:
    return t(f"why.stage.{stage}.of", layer=layer)


@about
def lens_map(s: Any, e: Explained) -> Drawing:
    found, stage, layer = s[lens], s[Chosen].stage, lens_row(s, e)
    at = LENS_POINTS.index(stage)
    best, p, entropy = (values[:, at].tolist() for values in (found.token, found.probability, found.entropy))
    here = [quoted(e.tokenizer, i) for i in e.ids[e.first : e.end]]
    following = e.text.ids[e.first + 1 : e.end + 1]

    def tip(layer: int, place: int) -> str:
        values = {"best": quoted(e.tokenizer, best[layer][place]), "p": percent(p[layer][place])}
        bits = f"{entropy[layer][place]:.1f}"
        return t("why.lens.tip", where=stage_name(stage, layer), here=here[place], entropy=bits, **values)

    figure = lens_heatmap(
        np.array(p),
        [[token_text(e.tokenizer, i) for i in line] for line in best],
        [token_text(e.tokenizer, i) for i in e.ids[e.first : e.end]],
        [*(token_text(e.tokenizer, i) for i in following), *[""] * (e.end - e.first - len(following))],
        column=e.column,
        row=layer,
        tips=[[tip(i, place) for place in range(e.end - e.first)] for i in range(len(best))],
    )
    sentence = _leads(e, here[e.column], [line[e.column] for line in best], int(found.token[-1, -1, e.column]))
    if e.first > 0 or e.end < len(e.ids):
        sentence += t("why.lens.window", start=e.first, end=e.end - 1, n=f"{len(e.ids):,}")
    return figure, sentence


def _leads(e: Explained, here: str, best: Sequence[int], final: int) -> str:
    """Name the layer after which the final top token stays in the lead."""
    since = len(best)
    while since and best[since - 1] == final:
        since -= 1
    key = {len(best): "why.lens.after", len(best) - 1: "why.lens.late"}.get(since, "why.lens.early")
    return t(key, here=here, best=quoted(e.tokenizer, final), layer=since)


def choose_cell(session: Session, sent: dict[str, Any]) -> None:
    place, layer, e = sent.get("x"), sent.get("y"), latest(session)
    if e is not None and type(place) is int and type(layer) is int:
        session.change(Chosen, row=layer)
        session.select(position=e.first + place)


@tab.computed
@about
def top_tokens(s: Any, e: Explained) -> tuple[torch.Tensor, torch.Tensor]:
    return lens_top_tokens(e.model, e.trace, lens_row(s, e), s[Chosen].stage, e.column, only=e.possible)


@about
def cell(s: Any, e: Explained) -> Drawing:
    top, probabilities = s[top_tokens]
    ids, p = top.tolist(), probabilities.float().cpu().numpy()
    shares = [percent(float(value)) for value in p]
    marked = ids.index(e.prediction.token) if e.prediction.token in ids else None
    figure = signed_bars([short(e.tokenizer, i) for i in ids], p, shares, marked=marked)
    here = quoted(e.tokenizer, e.ids[e.prediction.position])
    where = stage_name(s[Chosen].stage, lens_row(s, e))
    return figure, t("why.cell.says", where=where, here=here, best=quoted(e.tokenizer, ids[0]), p=shares[0])


@tab.computed
@about
def token_paths(s: Any, e: Explained) -> tuple[list[int], np.ndarray, np.ndarray]:
    """Follow the token to explain, which comes first, and the watched tokens through the layers.

    Returns their ids, and their probability and rank (1 = best), (N, 2 n_layer): after attention and after the
    feed-forward part of each layer.
    """
    chosen = list(dict.fromkeys((e.prediction.token, *still_known(e.text, s[Chosen].watched))))
    found = logit_lens(e.model, e.trace, positions=[e.column] * len(chosen), chosen=chosen, only=e.possible)
    assert found.chosen_probability is not None
    assert found.chosen_rank is not None
    p, rank = (values.flatten(0, 1).T.cpu().numpy() for values in (found.chosen_probability, found.chosen_rank))
    return chosen, p, rank


@about
def path(s: Any, e: Explained) -> Drawing:
    ids, probability, rank = s[token_paths]
    stages = [stage_name(stage, layer) for layer in range(rank.shape[1] // 2) for stage in LENS_POINTS]
    figure = path_lines(probability, rank, stages, [token_text(e.tokenizer, i) for i in ids])
    names = [quoted(e.tokenizer, i) for i in ids]
    sentence, *more = (_path_sentence(*each, stages) for each in zip(names, probability, rank, strict=True))
    return figure, sentence, " ".join(more)


def _path_sentence(token: str, p: np.ndarray, rank: np.ndarray, stages: Sequence[str]) -> str:
    ends = {"first": f"{rank[0]:,}", "last": f"{rank[-1]:,}", "p": percent(float(p[-1]))}
    best = np.flatnonzero(rank == 1)
    where = t("why.path.best", where=stages[best[0]]) if len(best) else ""
    return t("why.path.says", token=token, **ends) + where


def watch(session: Session, wanted: object) -> None:
    """Watch tokens through the layers. wanted: ids, and strings that stand for their first hits; unchecked."""
    text = session.snapshot().text
    if text is None or text.n_read == 0 or not isinstance(wanted, list):
        return
    ids: dict[int, None] = {}
    unknown: PageError | None = None
    for each in wanted[:MAX_WATCHED]:
        try:
            found = found_tokens(text, session.selection, each, 1)[0] if isinstance(each, str) and each else each
        except PageError as problem:
            unknown = problem
            continue
        if type(found) is int and 0 <= found < text.config.vocab_size:
            ids[found] = None
    session.change(Chosen, watched=picked(text, ids))
    if unknown is not None:
        raise unknown


def watched(s: Any) -> list[int]:
    return [] if kit.no_text(s) else still_known(s.text, s[Chosen].watched)


def to_watch(s: Any) -> list[tuple[str, int]]:
    best = tokens(s)
    known = {i for _, i in best}
    return [*best, *((short(s.text.tokenizer, i), i) for i in watched(s) if i not in known)]


def lens_sections() -> tuple[Part, Part]:
    path_title = about(lambda s, e: t("why.path.question", token=e.token_name))
    cells = kit.section(
        kit.title_row(kit.question("why.lens.question"), kit.choice(Chosen.stage, "why.stage")),
        kit.caption("why.lens.says"),
        kit.picture("why-lens", lens_map, clickable=True, on=choose_cell),
    )
    entries = pick_list(
        "why-watch", "why.watch", info="why.watch.info", choices=to_watch, most=MAX_WATCHED, value=watched, on=watch
    )
    title = kit.says("why-path-question", path_title, kind="question")
    paths = kit.section(title, entries, kit.picture("why-path", path), grow=1)
    top = kit.section(kit.question("why.cell.question"), kit.picture("why-cell", cell), grow=1)
    return cells, kit.row(top, paths, classes="gb-cards gb-why-cards")
