"""The sampling stages: from logits to the sampled token, stage by stage, at the selected token."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
from torch import Tensor

from components.errors import PageError
from components.figures.lines import stage_lines
from components.i18n import has_text, t
from components.kit import Panel, choice, column, fold, no_text, picture, says, setting
from components.labels import decimal, percent, quoted, token_text, visible
from components.parts import Part, pick_list
from components.state.session import Session
from components.text_views import Tokens, found_tokens, picked, still_known
from components.widgets.chart import chart_data
from components.widgets.simple import table
from gpt import Generation, SamplingParams
from gpt.analysis.sampling_stages import SamplingStage, TokenAtStage, sampling_stages, token_at_stages
from gpt.sampling import top_ids

Unit = Literal["probability", "log_probability", "logit"]
MAX_LINES = 8  # tokens in the chart in addition to the followed one
MAX_CHOICES = 12  # tokens in the picker before a search, and search results

panel = Panel("pipeline")


@panel.state
class Chosen:
    """State of the card: whether it is open, the unit of its chart, the followed token, if not the default one, and the
    other search results.
    """

    is_open: bool = False
    unit: Unit = setting("probability", lambda s: {unit: t(f"pipeline.{unit}") for unit in get_args(Unit)})
    followed: Tokens = ()
    found: Tokens = ()


@dataclass(frozen=True)
class PipelineView:
    """The stages at one position. `followed` is the id of the followed token."""

    document: Generation
    position: int
    params: SamplingParams
    followed: int

    @cached_property
    def logits(self) -> Tensor:
        """The raw logits, (vocab_size,)."""
        return self.document.logits(self.position)

    @cached_property
    def stages(self) -> list[SamplingStage]:
        """The individual stages, followed by their combination."""
        return sampling_stages(self.logits, self.params, previous_ids=self.document.ids[: self.position + 1])

    @cached_property
    def rows(self) -> list[TokenAtStage]:
        """The followed token before all stages and after each stage."""
        return token_at_stages(self.logits, self.stages, self.followed)

    @property
    def likeliest(self) -> list[int]:
        """Ids in descending order of probability: first the remaining tokens, then the removed ones."""
        last, raw = self.stages[-1].logits.numpy(), self.logits.float().cpu().numpy()
        count = min(MAX_CHOICES, len(raw))
        drawn = [i for i in top_ids(last, count) if math.isfinite(last[i])]
        return [int(i) for i in dict.fromkeys([*drawn, *top_ids(raw, count)])]


def natural(document: Generation, position: int) -> int:
    """Return the token to follow by default: the next one in the text or, at its end, the most likely one."""
    if position + 1 < len(document.ids):
        return document.ids[position + 1]
    return int(document.logits(position).argmax())


def stage_table(view: PipelineView) -> list[list[str]]:
    """List the stages with the removed tokens, and the entropy and perplexity before and after."""
    head = [t(f"pipeline.{key}") for key in ("stage", "removed", "entropy", "perplexity")]
    return [head, *(_stage_row(view, stage) for stage in view.stages)]


def _stage_row(view: PipelineView, stage: SamplingStage) -> list[str]:
    removed = f"{stage.n_removed:,} ({percent(stage.removed_mass)})" if stage.n_removed else "–"
    entropy = _change(f"{stage.entropy_before:.2f}", f"{stage.entropy_after:.2f}")
    perplexity = _change(_number(2**stage.entropy_before), _number(2**stage.entropy_after))
    return [_stage_name(view, stage), removed, entropy, perplexity]


def _stage_name(view: PipelineView, stage: SamplingStage) -> str:
    name = _name(stage.name)
    if stage.name == "final":
        return name
    value, window = getattr(view.params, stage.name), view.params.repetition_window
    if stage.name == "repetition_penalty" and value is not None and window is not None:
        return f"{name} {value:g} {t('pipeline.window', n=window)}"
    return f"{name} {t('pipeline.off') if value is None else f'{value:g}'}"


def token_table(view: PipelineView) -> list[list[str]]:
    """List the followed token's logit, log-probability in nats, probability and rank after each stage."""
    keys = ("stage", "logit", "log_probability.short", "probability", "rank")
    head = [t(f"pipeline.{key}") for key in keys]
    return [head, *([_name(row.stage), *_cells(row)] for row in view.rows[:-1])]


def _cells(row: TokenAtStage) -> list[str]:
    if row.rank is None:
        return ["−∞", "−∞", "0", "–"]
    return [decimal(row.logit, 2), decimal(row.log_probability, 2), percent(row.probability), f"{row.rank:,}"]


def stage_chart(view: PipelineView, unit: Unit) -> dict[str, Any]:
    tokenizer, ids = view.document.tokenizer, view.likeliest[:MAX_LINES]
    ids = ids if view.followed in ids else [*ids, view.followed]
    values = np.array([_values(view, i, unit) for i in ids])
    names = ("raw", *(stage.name for stage in view.stages[:-1]))
    figure = stage_lines(
        [token_text(tokenizer, i) for i in ids],
        ids,
        values,
        [_end(value, unit) for value in values[:, -1]],
        stages=[_name(name, short=True) for name in names],
        followed=ids.index(view.followed),
        title=t(f"pipeline.{unit}"),
        percent=unit == "probability",
    )
    return chart_data(figure, sentence(view), t("pipeline.note"))


def _values(view: PipelineView, token_id: int, unit: Unit) -> list[float]:
    """Return one token's values before all stages and after each stage; NaN where the token is removed."""
    rows = token_at_stages(view.logits, view.stages, token_id)[:-1]
    return [math.nan if row.rank is None else getattr(row, unit) for row in rows]


def _end(value: float, unit: Unit) -> str:
    if math.isnan(value):
        return ""
    return percent(value) if unit == "probability" else decimal(value, 2)


def sentence(view: PipelineView) -> str:
    whole, first, last = view.stages[-1], view.rows[0], view.rows[-1]
    caption = t(
        "pipeline.says" if whole.n_removed else "pipeline.says.all",
        kept=f"{whole.n_kept:,}",
        total=f"{len(view.logits):,}",
        mass=percent(whole.removed_mass),
        before=_number(2**whole.entropy_before),
        after=_number(2**whole.entropy_after),
    )
    token, before = quoted(view.document.tokenizer, view.followed), percent(first.probability)
    if last.rank is None and first.rank is not None:
        cut = next(row.stage for row in view.rows if row.rank is None)
        stage = _name(cut)
        return caption + t("pipeline.followed.cut", token=token, before=before, rank=f"{first.rank:,}", stage=stage)
    return caption + t("pipeline.followed", token=token, before=before, after=percent(last.probability))


def choices(view: PipelineView, found: Sequence[int] = ()) -> list[tuple[str, int]]:
    """Return (label, id) pairs for the search results (by default, the likeliest tokens) and the followed token."""
    ids = list(dict.fromkeys([*(found or view.likeliest[:MAX_CHOICES]), view.followed]))
    return [(f"{visible(token_text(view.document.tokenizer, i))}  {i}", i) for i in ids]


def _name(stage: str, *, short: bool = False) -> str:
    """Return the name of a stage, or of its slider if the stage has no name of its own."""
    keys = (f"pipeline.short.{stage}", f"pipeline.{stage}", stage)
    return t(next(key for key in keys[not short :] if has_text(key)))


def _change(before: str, after: str) -> str:
    return before if before == after else f"{before} → {after}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def pipeline_of(s: Any) -> PipelineView:
    text, known = s.text_read(), s[Chosen].followed
    followed = still_known(text, known)
    token = followed[0] if followed else natural(text.document, s.position)
    return PipelineView(text.document, s.position, s.settings.sampling(), token)


def lead(s: Any) -> str | PageError:
    if s.text is None:
        return PageError("error.no_text")
    view = s.cached(pipeline_of)
    token = quoted(view.document.tokenizer, view.document.ids[view.position])
    return t("pipeline.lead", token=token, total=f"{len(view.logits):,}")


def follow(session: Session, wanted: object) -> None:
    """Follow a token, or the first search result for a typed text, through the stages."""
    with session.lock.reading():
        text = session.snapshot().text
    if text is None or text.n_read == 0:
        return
    found = found_tokens(text, session.selection, wanted, MAX_CHOICES) if isinstance(wanted, str) else []
    wanted = found[0] if found else wanted
    if type(wanted) is int and 0 <= wanted < text.config.vocab_size:
        session.change(Chosen, followed=picked(text, [wanted]), found=picked(text, found))


def pipeline(*settings: Part) -> Part:
    """Return the stages, collapsed at first and drawn only while open. settings: controls above them."""

    def rows(of: Any) -> Any:
        return lambda s: {"rows": of(s.cached(pipeline_of))}

    def pick(session: Session, chosen: object) -> None:
        follow(session, chosen[0] if isinstance(chosen, list) and chosen else None)

    def to_follow(s: Any) -> list[tuple[str, int]]:
        return [] if no_text(s) else choices(s.cached(pipeline_of), still_known(s.text, s[Chosen].found))

    def followed(s: Any) -> list[int]:
        return [] if no_text(s) else [s.cached(pipeline_of).followed]

    return fold(
        "pipeline",
        "pipeline.more",
        column(
            *settings,
            says("pipeline-lead", lead, kind="caption"),
            choice(Chosen.unit, "pipeline.unit"),
            picture(
                "pipeline-lines",
                lambda s: stage_chart(s.cached(pipeline_of), s[Chosen].unit),
                clickable=True,
                on=lambda session, sent: follow(session, sent.get("customdata")),
            ),
            pick_list("pipeline-follow", choices=to_follow, most=1, label="pipeline.follow", value=followed, on=pick),
            table("pipeline-stages", draw=rows(stage_table)),
            table("pipeline-token", draw=rows(token_table)),
            name="pipeline-open",
            show=lambda s: s[Chosen].is_open,
        ),
        on=lambda session, is_open: session.change(Chosen, is_open=is_open is True),
    )
