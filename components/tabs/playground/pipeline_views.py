"""What the pipeline card shows of one position: values for its widgets, exact over the whole vocabulary."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from torch import Tensor

from components.figures.style import escape
from components.i18n import Language, has_text, t
from components.labels import decimal, percent, quoted, token_text, visible
from components.tabs.playground.pipeline_figures import stage_lines
from components.widgets.chart import chart_value
from components.widgets.table import table_value
from gpt import Generation, SamplingParams
from gpt.documents.pipeline import Row, Stage, follow, pipeline
from gpt.sampling import best

Unit = Literal["probability", "log_probability", "logit"]
LINES = 8  # tokens in the picture, the followed one apart
CHOICES = 12  # tokens that the picker offers unasked


@dataclass(frozen=True)
class Way:
    """The stages at one position. followed: the id of the token that is followed through them."""

    document: Generation
    position: int
    params: SamplingParams
    followed: int

    @cached_property
    def logits(self) -> Tensor:
        """(vocab_size,), as the model gave them."""
        return self.document.logits(self.position)

    @cached_property
    def stages(self) -> list[Stage]:
        """The five, and the whole of them."""
        return pipeline(self.logits, self.params, previous_ids=self.document.ids[: self.position + 1])

    @cached_property
    def rows(self) -> list[Row]:
        """The followed token, before all stages and after each."""
        return follow(self.logits, self.stages, self.followed)

    @property
    def likeliest(self) -> list[int]:
        """Ids: those that can be drawn first, the most likely first, then the others."""
        last, raw = self.stages[-1].logits.numpy(), self.logits.float().cpu().numpy()
        count = min(CHOICES, len(raw))
        drawn = [i for i in best(last, count) if math.isfinite(last[i])]
        return [int(i) for i in dict.fromkeys([*drawn, *best(raw, count)])]


def natural(document: Generation, position: int) -> int:
    """The token that is followed unasked: the one that came next, else the most likely."""
    if position + 1 < len(document.ids):
        return document.ids[position + 1]
    return int(document.logits(position).argmax())


def lead(way: Way, language: Language) -> str:
    """What is shown, and after which token."""
    token = quoted(way.document.tokenizer, way.document.ids[way.position])
    return t("pipeline.lead", language, token=token, total=f"{len(way.logits):,}")


def stage_table(way: Way, language: Language) -> str:
    """A row per stage: what it removed, entropy and perplexity before and after it."""
    head = [t(f"pipeline.{key}", language) for key in ("stage", "removed", "entropy", "perplexity")]
    return table_value([head, *(_stage_row(way, stage, language) for stage in way.stages)])


def _stage_row(way: Way, stage: Stage, language: Language) -> list[str]:
    removed = f"{stage.n_removed:,} ({percent(stage.removed_mass)})" if stage.n_removed else "–"
    entropy = _change(f"{stage.entropy_before:.2f}", f"{stage.entropy_after:.2f}")
    perplexity = _change(_number(stage.perplexity_before), _number(stage.perplexity_after))
    return [_stage_name(way, stage, language), removed, entropy, perplexity]


def _stage_name(way: Way, stage: Stage, language: Language) -> str:
    """The stage with its setting."""
    name = _name(stage.name, language)
    if stage.name == "final":
        return name
    value = getattr(way.params, stage.name)
    return f"{name} {t('pipeline.off', language) if value is None else f'{value:g}'}"


def token_table(way: Way, language: Language) -> str:
    """The followed token after each stage: logit, log-probability in nats, probability, rank."""
    keys = ("stage", "logit", "log_probability.short", "probability", "rank")
    head = [t(f"pipeline.{key}", language) for key in keys]
    return table_value([head, *([_name(row.stage, language), *_cells(row)] for row in way.rows[:-1])])


def _cells(row: Row) -> list[str]:
    if row.rank is None:
        return ["−∞", "−∞", "0", "–"]
    return [decimal(row.logit, 2), decimal(row.log_probability, 2), percent(row.probability), f"{row.rank:,}"]


def lines(way: Way, unit: Unit, language: Language) -> str:
    """The picture: the likeliest tokens and the followed one, from stage to stage."""
    tokenizer, ids = way.document.tokenizer, way.likeliest[:LINES]
    ids = ids if way.followed in ids else [*ids, way.followed]
    values = np.array([_values(way, i, unit) for i in ids])
    names = ("raw", *(stage.name for stage in way.stages[:-1]))
    figure = stage_lines(
        [token_text(tokenizer, i) for i in ids],
        ids,
        values,
        [_end(value, unit) for value in values[:, -1]],
        stages=[_name(name, language, short=True) for name in names],
        followed=ids.index(way.followed),
        title=t(f"pipeline.{unit}", language),
        percent=unit == "probability",
    )
    return chart_value(figure, sentence(way, language), t("pipeline.note", language))


def _values(way: Way, token_id: int, unit: Unit) -> list[float]:
    """One token before all stages and after each of the five, NaN where it is removed."""
    rows = follow(way.logits, way.stages, token_id)[:-1]
    return [math.nan if row.rank is None else getattr(row, unit) for row in rows]


def _end(value: float, unit: Unit) -> str:
    if math.isnan(value):
        return ""
    return escape(percent(value)) if unit == "probability" else decimal(value, 2)


def sentence(way: Way, language: Language) -> str:
    """The result in words, and what became of the followed token."""
    whole, first, last = way.stages[-1], way.rows[0], way.rows[-1]
    said = t(
        "pipeline.says" if whole.n_removed else "pipeline.says.all",
        language,
        kept=f"{whole.n_kept:,}",
        total=f"{len(way.logits):,}",
        mass=percent(whole.removed_mass),
        before=_number(whole.perplexity_before),
        after=_number(whole.perplexity_after),
    )
    token, before = quoted(way.document.tokenizer, way.followed), percent(first.probability)
    if last.rank is None and first.rank is not None:
        cut = next(row.stage for row in way.rows if row.rank is None)
        stage = _name(cut, language)
        return said + t(
            "pipeline.followed.cut", language, token=token, before=before, rank=f"{first.rank:,}", stage=stage
        )
    change = _change(before, percent(last.probability))
    return said + t("pipeline.followed", language, token=token, change=change)


def choices(way: Way, found: Sequence[int] = ()) -> list[tuple[str, int]]:
    """(what the picker says, id): the tokens that a search found, else the likeliest; the followed one among them."""
    ids = list(dict.fromkeys([*(found or way.likeliest[:CHOICES]), way.followed]))
    return [(f"{visible(token_text(way.document.tokenizer, i))}  {i}", i) for i in ids]


def _name(stage: str, language: Language, *, short: bool = False) -> str:
    """A stage as its slider calls it, where there is no word of its own."""
    keys = (f"pipeline.short.{stage}", f"pipeline.{stage}", stage)
    return t(next(key for key in keys[not short :] if has_text(key)), language)


def _change(before: str, after: str) -> str:
    return before if before == after else f"{before} → {after}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"
