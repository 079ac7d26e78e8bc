"""Views for the two columns: both texts, their first difference, and the divergence of the predictions."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from components.figures.bars import divergence_bars
from components.frame import short_name
from components.i18n import is_exact, t
from components.labels import percent, placed, quoted, seed_of, token_text
from components.next_tokens import next_tokens
from components.render import Draw, Lines, View
from components.state.snapshot import Snapshot
from components.tabs.compare.pair import Pair
from components.tabs.compare.state import SIDES, CompareState, RunState, Side
from components.text_views import document_lines
from components.text_views import strip_labels as token_words
from components.widgets.chart import chart_data
from components.widgets.sentence import sentence_data
from gpt.analysis.predictions import kl_divergence
from gpt.documents.comparison import Divergence

MAX_BARS = 10


def column_labels(side: Side) -> dict[str, str]:
    """Return the labels of one column's token strip."""
    named = token_words(t("compare.empty"))
    return named | {"name": f"{t(f'compare.{side}')}: {named['name']}"}


def status_sentence(pair: Pair, side: int) -> str:
    """State a column's model, number of tokens and seed, and why generation ended."""
    document, reason = pair.documents[side], pair.finish_reasons[side]
    caption = t(
        "compare.status",
        model=short_name(document.loaded.name),
        n=len(document.ids) - document.n_prompt,
    ) + seed_of(pair.params[side].seed)
    limit = document.loaded.model.config.block_size
    return caption if reason is None else f"{caption} · {t('finish.' + reason, limit=limit)}"


def divergence_sentence(pair: Pair) -> str:
    """Describe the first difference between the texts, and its cause."""
    names = [short_name(document.loaded.name) for document in pair.documents]
    if not pair.comparison.same_vocabulary:
        return t("compare.vocabularies", left=names[0], right=names[1])
    if not pair.comparison.comparable:
        return t("compare.prompts")
    at = pair.comparison.divergence_index
    if at is None:
        lengths = {len(document.ids) for document in pair.documents}
        return t("compare.same" if len(lengths) == 1 else "compare.ended")
    left = pair.documents[0]
    tokenizer = left.loaded.tokenizer
    values = {"here": placed(quoted(tokenizer, left.ids[at - 1]), at - 1)}
    for side, (name, document) in enumerate(zip(SIDES, pair.documents, strict=True)):
        token_id, final = document.ids[at], pair.stages(side, at - 1).final
        values |= {name: quoted(tokenizer, token_id), f"{name}_p": percent(float(final[token_id]))}
    caption = t("compare.parts", **values)
    draws = [document.draw(at) for document in pair.documents]
    if not is_exact() or None in draws or any(params.temperature == 0 for params in pair.params):
        return caption
    if draws[0] == draws[1]:
        return caption + t("compare.parts.draw.same", draw=f"{draws[0]:.3f}")
    return caption + t("compare.parts.draw", left=f"{draws[0]:.3f}", right=f"{draws[1]:.3f}")


def _prompts_sentence(pair: Pair) -> str:
    """Describe how far the predictions after the selected positions diverge, for texts with different prompts."""
    places = [(document, pair.at(side)) for side, document in enumerate(pair.documents)]
    p, q = (document.logits(position).cpu().double().log_softmax(dim=0) for document, position in places)
    left, right = (quoted(document.loaded.tokenizer, document.ids[position]) for document, position in places)
    return t("compare.divergence.prompts", left=left, right=right, bits=bits(kl_divergence(p, q).item()))


def divergence_chart(pair: Pair) -> dict[str, Any]:
    """Plot the divergence at each position up to which the texts agree, or explain why this is impossible."""
    found = pair.comparison.divergences
    if not pair.comparison.same_vocabulary:
        return chart_data(None, t("compare.divergence.vocabularies"))
    if not pair.comparison.comparable:
        return chart_data(None, _prompts_sentence(pair))
    if not found:
        return chart_data(None, "")
    left = pair.documents[0]
    tokenizer = left.loaded.tokenizer
    position = pair.position
    figure = divergence_bars(
        {
            t("compare.divergence.raw"): np.array([each.raw for each in found]),
            t("compare.divergence.final"): np.array([each.final for each in found]),
        },
        [token_text(tokenizer, left.ids[each.position]) for each in found],
        selected=position if position is not None and position < len(found) else None,
        bits_title=t("compare.divergence.axis"),
    )
    return chart_data(figure, _divergence_says(pair), t("compare.divergence.note"))


def _divergence_says(pair: Pair) -> str:
    found = pair.comparison.divergences
    if not any(each.raw or each.final for each in found):
        return t("compare.divergence.none", n=len(found))
    most: Divergence = max(found, key=lambda each: (each.final, each.raw))
    caption = t(
        "compare.divergence.says",
        n=len(found),
        raw=bits(sum(each.raw for each in found) / len(found)),
        final=bits(sum(each.final for each in found) / len(found)),
        most=bits(most.final),
        token=placed(quoted(pair.documents[0].loaded.tokenizer, pair.documents[0].ids[most.position]), most.position),
    )
    return caption + (t("compare.divergence.infinite") if math.isinf(most.final) else "")


def bits(value: float) -> str:
    """Format a divergence for a sentence."""
    if value == 0 or math.isinf(value):
        return "0" if value == 0 else "∞"
    return f"{value:.2f}" if value >= 0.01 else "< 0.01"


def bars_chart(pair: Pair, side: int) -> dict[str, Any]:
    """Plot the most probable next tokens at one column's selected position, before and after applying its settings.

    Both columns have the same scale.
    """
    document, position = pair.documents[side], pair.at(side)
    tokenizer = document.loaded.tokenizer
    both = [next_tokens(pair.documents[i], pair.at(i), pair.stages(i, pair.at(i)), MAX_BARS) for i in range(len(SIDES))]
    figure = both[side].figure(end=max(each.end for each in both))
    ids, chosen, _, raw, final = both[side]
    caption = t(
        "compare.bars.says",
        side=t(f"compare.bars.{SIDES[side]}"),
        token=placed(quoted(tokenizer, document.ids[position]), position),
        best=quoted(tokenizer, int(ids[0])),
        before=percent(float(raw[0])),
        after=percent(float(final[0])),
    )
    if chosen is not None:
        p = percent(float(final[ids == chosen][0]))
        caption += t("compare.bars.chosen", chosen=quoted(tokenizer, chosen), p=p)
    apart = pair.comparison.divergence_index
    note = t("compare.bars.apart") if apart is not None and position >= apart else ""
    return chart_data(figure, caption, note)


def strip(side: int, s: Snapshot) -> dict[str, Any]:
    """Show the text of one column."""
    pair, labels = s.state(CompareState).pair, column_labels(SIDES[side])
    if pair is None:
        return {"lines": Lines(), "doc": "", "selected": -1, "parted": -1, "labels": labels}
    document, index = pair.documents[side], pair.comparison.divergence_index
    selected = -1 if s.state(CompareState).busy or not document.n_read else pair.at(side)
    return {
        "lines": document_lines(document, pair.statistics[side]) if document.n_read else Lines(),
        "doc": str(document.key),
        "selected": selected,
        "parted": -1 if index is None else index,
        "labels": labels,
    }


def status(side: int, s: Snapshot) -> dict[str, Any]:
    pair = s.state(CompareState).pair
    return {"text": "" if pair is None else status_sentence(pair, side)}


def bars(side: int, s: Snapshot) -> dict[str, Any]:
    pair = shown_pair(s)
    return chart_data(None, "") if pair is None else bars_chart(pair, side)


def first_difference(s: Snapshot) -> dict[str, Any]:
    """Show the progress of the comparison, or the first difference between the texts."""
    state, pair = s.state(CompareState), shown_pair(s)
    if s.progress is not None:
        return sentence_data(s.progress)
    if state.measured is not None:
        n, total = state.measured
        return {"text": t("compare.measuring", n=n, total=total)}
    return {"text": "" if pair is None else divergence_sentence(pair)}


def divergence(s: Snapshot) -> dict[str, Any]:
    pair = shown_pair(s)
    return chart_data(None, "") if pair is None else divergence_chart(pair)


def shown_pair(s: Snapshot) -> Pair | None:
    """Return the pair once both models have read their prompts."""
    pair = s.state(CompareState).pair
    return pair if pair is not None and all(document.n_read for document in pair.documents) else None


def run_notice(run: type[RunState], s: Snapshot) -> dict[str, Any]:
    """Show a run's notice or error."""
    return sentence_data(s.state(run).notice)


def _view(name: str, draw: Draw) -> View:
    """Return a view that is drawn only while this part is open."""
    return View(name, draw, shown=lambda s: s.state(CompareState).part == "sides")


VIEWS = (
    *(_view(f"compare-{name}-strip", partial(strip, side)) for side, name in enumerate(SIDES)),
    *(_view(f"compare-{name}-status", partial(status, side)) for side, name in enumerate(SIDES)),
    *(_view(f"compare-{name}-bars", partial(bars, side)) for side, name in enumerate(SIDES)),
    _view("compare-parting", first_difference),
    _view("compare-divergence", divergence),
    _view("compare-notice", partial(run_notice, CompareState)),
)
