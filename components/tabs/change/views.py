"""What the Change tab shows of an effect: values for its widgets, no components."""

from __future__ import annotations

import numpy as np

from components import legacy
from components import text_views as views
from components.figures import charts as figures
from components.i18n import Language, t
from components.labels import percent, quoted, token_text
from components.tabs.change import figures as change_figures
from components.tabs.change.effect import Effect, Text, measured_tokens
from components.tabs.change.experiments import summary
from components.tabs.change.memory import Memory, Written
from components.widgets.chart import chart_value
from components.widgets.switches import LABELS, switches_value
from components.widgets.tokens import header
from gpt import Edits
from gpt.analysis.text_statistics import text_statistics
from gpt.documents.comparison import divergence_index
from gpt.documents.edit_text import format_edits

BARS = 12
WINDOW = 128  # positions of the chart at once


def switch_labels(language: Language) -> dict[str, str]:
    """The words of the switches."""
    return {key: t(f"change.switches.{key}", language) for key in LABELS}


def strip_words(side: str, language: Language) -> dict[str, str]:
    """The words of the strip of the original or the edited text."""
    return views.strip_words(language, t("change.edited.empty", language)) | {"name": t(f"change.{side}", language)}


def switch_state(memory: Memory) -> str:
    """The switches as the edits have them."""
    edits, config = memory.edits, memory.text.config
    factors = Edits(edits.head_scale, edits.attn_scale, edits.mlp_scale)
    return switches_value(
        config.n_layer, config.n_head, format_edits(factors), memory.costs, measured_tokens(memory.text)
    )


def changed(memory: Memory, language: Language) -> str:
    """What is changed now, in words."""
    said = summary(memory.edits, memory.text.config, language)
    return t("change.now", language, changes=said) if said else t("change.nothing", language)


def strip(text: Text) -> str:
    """A text as chips, each tinted by the probability that the original gave it."""
    known = _known(text)
    lines = legacy.token_lines(text.loaded.tokenizer, text.ids, known, text.n_prompt)
    return header(doc=f"{id(text):x}") + lines


def _known(text: Text) -> list[tuple[float | None, int | None]]:
    following = text.ids[1 : text.n_read + 1]
    tokens = text_statistics(text.loaded.model, text.states[: len(following)], following).tokens
    known: list[tuple[float | None, int | None]] = [(None, None), *((t.probability, t.rank) for t in tokens)]
    return known + [(None, None)] * (len(text.ids) - len(known))


def bars(effect: Effect, position: int, language: Language) -> str:
    """The most likely next tokens before and after, with the one that changed most in the sentence."""
    tokenizer, ids = effect.text.loaded.tokenizer, effect.text.ids
    before, after = (p.numpy() for p in effect.probabilities(position))
    order = np.argsort(-np.maximum(before, after), kind="stable")[:BARS]
    chosen = ids[position + 1] if position + 1 < len(ids) else None
    if chosen is not None and chosen not in order:
        order[-1] = chosen
    figure = figures.next_token_bars(
        [token_text(tokenizer, int(i)) for i in order],
        before[order],
        after[order],
        chosen=None if chosen is None else int(np.flatnonzero(order == chosen)[0]),
        before_name=t("change.bars.before", language),
        after_name=t("change.bars.after", language),
        chosen_name=t("change.bars.chosen", language),
    )
    here = quoted(tokenizer, ids[position])
    said = summary(effect.edits, effect.text.config, language)
    if not said:
        best = int(before.argmax())
        plain = t("change.bars.same", language, token=here, best=quoted(tokenizer, best), p=percent(before[best]))
        return chart_value(figure, plain)
    most = int(np.abs(after - before).argmax())
    sentence = t(
        "change.bars.says",
        language,
        changes=said,
        token=here,
        most=quoted(tokenizer, most),
        before=percent(before[most]),
        after=percent(after[most]),
        bits=_bits(effect.bits[position]),
    )
    best, now = int(before.argmax()), int(after.argmax())
    if best != now:
        sentence += t("change.bars.best", language, old=quoted(tokenizer, best), new=quoted(tokenizer, now))
    return chart_value(figure, sentence)


def divergence(effect: Effect, position: int, language: Language) -> str:
    """How far the predictions lie apart at each position; a long text by the part around the selected one."""
    tokenizer, n = effect.text.loaded.tokenizer, effect.text.n_read
    if not summary(effect.edits, effect.text.config, language):
        return chart_value(None, t("change.divergence.nothing", language))
    first, end = window(n, position)
    labels = [token_text(tokenizer, i) for i in effect.text.ids[first:end]]
    figure = change_figures.divergence_bars(
        effect.bits[first:end],
        labels,
        selected=position - first,
        first=first,
        bits_title=t("change.bits", language),
    )
    if effect.bits.max() <= 0:
        return chart_value(figure, t("change.divergence.none", language))
    most = int(effect.bits.argmax())
    sentence = t(
        "change.divergence.says",
        language,
        mean=_bits(effect.bits.mean()),
        most=_bits(effect.bits[most]),
        token=quoted(tokenizer, effect.text.ids[most]),
        position=most,
    )
    if not np.isnan(effect.before):
        sentence += t("change.divergence.cost", language, before=f"{effect.before:.2f}", after=f"{effect.after:.2f}")
    if first > 0 or end < n:
        sentence += t("change.window", language, start=first, end=end - 1, n=f"{n:,}")
    return chart_value(figure, sentence, t("change.divergence.note", language))


def window(n: int, position: int) -> tuple[int, int]:
    """The first position of the chart and the one after its last."""
    end = min(n, max(position + WINDOW // 2, WINDOW))
    return max(0, end - WINDOW), end


def _bits(value: float) -> str:
    """As many digits as it takes; what is not zero never reads so."""
    value = float(value)
    if 0 < value < 0.001:
        return "< 0.001"
    return f"{value:.1f}" if value >= 9.95 else f"{value:.2f}" if value >= 0.0995 else f"{value:.3f}"


def parted(memory: Memory, language: Language) -> str:
    """Where both texts part, once they are written."""
    written: Written = memory.written
    at = divergence_index(written.original, written.edited)
    said = summary(written.edits, memory.text.config, language) or t("change.no_edit", language)
    if at is None:
        return t("change.parted.never", language, changes=said, seed=written.params.seed)
    tokenizer = memory.text.loaded.tokenizer
    return t(
        "change.parted",
        language,
        changes=said,
        position=at,
        original=quoted(tokenizer, written.original[at]),
        edited=quoted(tokenizer, written.edited[at]),
        seed=written.params.seed,
    )
