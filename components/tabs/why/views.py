"""What the Why tab shows of a prediction: values for its widgets, no components."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from components import legacy
from components import text_views as views
from components.i18n import Language, t
from components.labels import decimals, percent, quoted, signed, token_text, visible
from components.tabs.why import figures as why_figures
from components.tabs.why.reading import Influence, Method, Prediction, Reading, longest_gradient
from components.widgets.chart import chart_value
from components.widgets.tokens import header, shade_value
from gpt import Generation, Tokenizer
from gpt.analysis.lens import LENS_POINTS, Lens, LensPoint, TopTokens

LONGEST = 12  # characters of a token in a name
BARS = 10  # tokens of the text that are named


def short(tokenizer: Tokenizer, token_id: int) -> str:
    """A token as a name: its spaces visible, cut where it is long."""
    text = visible(token_text(tokenizer, token_id))
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def lead(document: Generation, asked: Prediction, language: Language) -> str:
    """What the model made of the token that is asked about."""
    tokenizer = document.loaded.tokenizer
    said = t(
        "why.lead",
        language,
        here=quoted(tokenizer, document.ids[asked.position]),
        position=asked.position,
        token=quoted(tokenizer, asked.token),
        p=percent(asked.probability),
        rank=f"{asked.rank:,}",
        total=f"{document.loaded.model.config.vocab_size:,}",
    )
    if asked.follows:
        said += t("why.lead.follows", language)
    if asked.rank > 1:
        best = quoted(tokenizer, asked.best[0])
        said += t("why.lead.best", language, best=best, p=percent(asked.probabilities[0]))
    return said


def choices(document: Generation, asked: Prediction) -> list[tuple[str, int]]:
    """(token and probability, id) of the best tokens, of the one that follows, and of the one asked about."""
    tokenizer, position = document.loaded.tokenizer, asked.position
    known = dict(zip(asked.best, asked.probabilities, strict=True))
    others = [asked.token, *document.ids[position + 1 : position + 2]]
    named = [(f"{short(tokenizer, i)}  {percent(p)}", i) for i, p in known.items()]
    return [*named, *((short(tokenizer, i), i) for i in dict.fromkeys(others) if i not in known)]


def strip(document: Generation) -> str:
    """The text as chips; its tint is the influence, so no probabilities are needed."""
    ids = list(document.ids)  # the document may be growing
    lines = legacy.token_lines(document.loaded.tokenizer, ids, [(None, None)] * len(ids), document.n_prompt)
    return header(doc=str(document.key)) + lines


def strip_words(language: Language) -> dict[str, str]:
    """The words of the strip, which is shaded by influence."""
    return views.strip_words(language, t("strip.empty", language)) | {"attention": t("why.influence", language)}


def method_says(document: Generation, asked: Prediction, method: Method, language: Language) -> str:
    """What the tint means."""
    return t(f"why.method.{method}.says", language, token=quoted(document.loaded.tokenizer, asked.token))


def shade(influence: Influence | None) -> str:
    """Each token's share of the influence, whichever way it goes."""
    if influence is None:
        return shade_value(np.zeros(1))
    size = np.abs(influence.values)
    return shade_value(np.concatenate([np.zeros(influence.first), size / max(size.sum(), 1e-12)]))


def influence_bars(reading: Reading, asked: Prediction, influence: Influence, language: Language) -> str:
    """The tokens with the most influence, for and against, the largest first."""
    tokenizer, values = reading.loaded.tokenizer, influence.values
    order, digits = np.argsort(-np.abs(values), kind="stable")[:BARS], decimals(values)
    figure = why_figures.part_bars(
        [f"{short(tokenizer, reading.ids[influence.first + i])} {influence.first + i}" for i in order],
        values[order],
        [signed(values[i], digits) for i in order],
    )

    def name(i: int) -> str:
        value = t("why.nats", language, value=signed(values[i], digits))
        return f"{quoted(tokenizer, reading.ids[influence.first + i])} ({value})"

    upward, downward = int(values.argmax()), int(values.argmin())
    said, token = "", quoted(tokenizer, asked.token)
    if round(float(values[upward]), digits) > 0:
        said += t("why.influence.says", language, token=token, most=name(upward))
    if round(float(values[downward]), digits) < 0:
        said += t("why.influence.against", language, token=token, least=name(downward))
    if influence.first:
        said += t("why.influence.window", language, n=len(values))
    return chart_value(figure, said)


def no_influence(reading: Reading, asked: Prediction, method: Method, language: Language) -> str:
    """Why there is nothing to show."""
    if method == "left_out":
        return t("why.influence.one", language)
    limit = longest_gradient(reading.model.config)
    return t("why.influence.long", language, limit=f"{limit:,}", n=f"{asked.position + 1:,}")


def lens_map(reading: Reading, asked: Prediction, lens: Lens, stage: LensPoint, layer: int, language: Language) -> str:
    """What each layer would predict around the position."""
    tokenizer, row = reading.loaded.tokenizer, LENS_POINTS.index(stage)
    tokens, p, entropy = (values[:, row].tolist() for values in (lens.token, lens.probability, lens.entropy))
    first, end, column = reading.first, reading.end, asked.position - reading.first
    here = [quoted(tokenizer, i) for i in reading.ids[first:end]]
    following = reading.document.ids[first + 1 : end + 1]

    def tip(layer: int, place: int) -> str:
        where = stage_name(stage, layer, language)
        best, share = quoted(tokenizer, tokens[layer][place]), percent(p[layer][place])
        bits = f"{entropy[layer][place]:.1f}"
        return t("why.lens.tip", language, where=where, here=here[place], best=best, p=share, entropy=bits)

    figure = why_figures.lens_heatmap(
        np.array(p),
        [[token_text(tokenizer, i) for i in line] for line in tokens],
        [token_text(tokenizer, i) for i in reading.ids[first:end]],
        [*(token_text(tokenizer, i) for i in following), *[""] * (end - first - len(following))],
        column=column,
        row=layer,
        tips=[[tip(i, place) for place in range(end - first)] for i in range(len(tokens))],
        layer_title=t("attention.layer", language),
        value_title=t("why.lens.scale", language),
    )
    final = int(lens.token[-1, -1, column])
    said = _leads(here[column], [line[column] for line in tokens], final, tokenizer, language)
    if first > 0 or end < len(reading.ids):
        said += t("why.lens.window", language, start=first, end=end - 1, n=f"{len(reading.ids):,}")
    return chart_value(figure, said)


def _leads(here: str, best: Sequence[int], final: int, tokenizer: Tokenizer, language: Language) -> str:
    """From which layer on the token that is the best in the end is the best of each layer."""
    since = len(best)
    while since and best[since - 1] == final:
        since -= 1
    key = {len(best): "why.lens.after", len(best) - 1: "why.lens.late"}.get(since, "why.lens.early")
    return t(key, language, here=here, best=quoted(tokenizer, final), layer=since)


def stage_name(stage: LensPoint, layer: int, language: Language) -> str:
    """A row of the lens inside a sentence."""
    return t(f"why.stage.{stage}.of", language, layer=layer)


def cell_bars(
    reading: Reading, asked: Prediction, top: TopTokens, stage: LensPoint, layer: int, language: Language
) -> str:
    """The most likely tokens of one cell of the lens."""
    tokenizer, ids, p = reading.loaded.tokenizer, top.token.tolist(), top.probability.float().cpu().numpy()
    figure = why_figures.part_bars(
        [short(tokenizer, i) for i in ids],
        p,
        [percent(float(value)) for value in p],
        marked=ids.index(asked.token) if asked.token in ids else None,
    )
    said = t(
        "why.cell.says",
        language,
        where=stage_name(stage, layer, language),
        here=quoted(tokenizer, reading.ids[asked.position]),
        best=quoted(tokenizer, ids[0]),
        p=percent(float(p[0])),
    )
    return chart_value(figure, said)


def path_question(document: Generation, asked: Prediction, language: Language) -> str:
    """The title of the lines."""
    return t("why.path.question", language, token=quoted(document.loaded.tokenizer, asked.token))


def path(reading: Reading, asked: Prediction, lens: Lens, language: Language) -> str:
    """The token that is asked about, from stage to stage."""
    column = asked.position - reading.first
    p = lens.chosen_probability[:, :, column].flatten().float().cpu().numpy()  # (2 n_layer,)
    rank = lens.chosen_rank[:, :, column].flatten().cpu().numpy()
    stages = [stage_name(stage, layer, language) for layer in range(len(p) // 2) for stage in LENS_POINTS]
    figure = why_figures.path_lines(
        p,
        rank,
        stages,
        layer_title=t("attention.layer", language),
        probability_title=t("strip.probability", language),
        rank_title=t("why.path.rank", language),
    )
    token, ends = quoted(reading.loaded.tokenizer, asked.token), (f"{rank[0]:,}", f"{rank[-1]:,}")
    said = t("why.path.says", language, token=token, first=ends[0], last=ends[1], p=percent(float(p[-1])))
    best = np.flatnonzero(rank == 1)
    if len(best):
        said += t("why.path.best", language, where=stages[best[0]])
    return chart_value(figure, said)
