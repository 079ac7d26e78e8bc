"""The sampling stages: from logits to the sampled token, stage by stage, at the selected token."""

from __future__ import annotations

import math
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
from gpt.sampling import SamplingStage, TokenAtStage, sampling_stages, token_at_stages, top_ids

Unit = Literal["probability", "log_probability", "logit"]
MAX_LINES = 8  # tokens in the chart in addition to the followed one
MAX_CHOICES = 12  # tokens in the picker before a search, and search results

panel = Panel("pipeline")


@panel.state
class Chosen:
    is_open: bool = False
    unit: Unit = setting("probability", lambda s: {unit: t(f"pipeline.{unit}") for unit in get_args(Unit)})
    followed: Tokens = ()  # the followed token, if not the default one
    found: Tokens = ()  # the search results


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

    def through(self, token_id: int) -> list[TokenAtStage]:
        """Return a token before all stages and after each stage."""
        return token_at_stages(self.logits, self.stages, token_id)

    @cached_property
    def rows(self) -> list[TokenAtStage]:
        return self.through(self.followed)

    @cached_property
    def likeliest(self) -> list[int]:
        """Ids in descending order of probability: first the remaining tokens, then the removed ones."""
        last, raw = self.stages[-1].logits.numpy(), self.logits.float().cpu().numpy()
        count = min(MAX_CHOICES, len(raw))
        drawn = [i for i in top_ids(last, count) if math.isfinite(last[i])]
        return [int(i) for i in dict.fromkeys([*drawn, *top_ids(raw, count)])]


def pipeline_of(s: Any) -> PipelineView:
    """Follow the chosen token or, if there is none, the next one in the text or, at its end, the most likely one."""
    text, position = s.text_read(), s.position
    after = [*still_known(text, s[Chosen].followed), *text.ids[position + 1 : position + 2]]
    token = after[0] if after else int(text.document.logits(position).argmax())
    return PipelineView(text.document, position, s.settings.sampling(), token)


def lead(s: Any) -> str | PageError:
    if s.text is None:
        return PageError("error.no_text")
    view = s.cached(pipeline_of)
    token = quoted(view.document.tokenizer, view.document.ids[view.position])
    return t("pipeline.lead", token=token, total=f"{len(view.logits):,}")


def stage_table(view: PipelineView) -> list[list[str]]:
    """List the stages with the removed tokens, and the entropy and perplexity before and after."""
    rows = [[t(f"pipeline.{key}") for key in ("stage", "removed", "entropy", "perplexity")]]
    for stage in view.stages:
        name, value, window = _name(stage.name), getattr(view.params, stage.name, None), view.params.repetition_window
        if stage.name != "final":
            name += f" {t('change.switches.off') if value is None else f'{value:g}'}"
        if stage.name == "repetition_penalty" and value is not None and window is not None:
            name += f" {t('pipeline.window', n=window)}"
        removed = f"{stage.n_removed:,} ({percent(stage.removed_mass)})" if stage.n_removed else "–"
        entropies = stage.entropy_before, stage.entropy_after
        entropy, perplexity = [f"{each:.2f}" for each in entropies], [_number(2**each) for each in entropies]
        rows.append([name, removed, *(" → ".join(dict.fromkeys(pair)) for pair in (entropy, perplexity))])
    return rows


def token_table(view: PipelineView) -> list[list[str]]:
    """List the followed token's logit, log-probability in nats, probability and rank after each stage."""
    keys = ("stage", "logit", "log_probability.short", "probability", "rank")
    rows = [[t(f"pipeline.{key}") for key in keys]]
    for row in view.rows[:-1]:
        cells = ["−∞", "−∞", "0", "–"]
        if row.rank is not None:
            numbers = decimal(row.logit, 2), decimal(row.log_probability, 2)
            cells = [*numbers, percent(row.probability), f"{row.rank:,}"]
        rows.append([_name(row.stage), *cells])
    return rows


def stage_chart(view: PipelineView, unit: Unit) -> dict[str, Any]:
    """Draw the values of the likeliest tokens and of the followed one before all stages and after each of them."""
    tokenizer, ids = view.document.tokenizer, view.likeliest[:MAX_LINES]
    ids = ids if view.followed in ids else [*ids, view.followed]
    values = np.array(
        [[math.nan if row.rank is None else getattr(row, unit) for row in view.through(i)[:-1]] for i in ids]
    )

    def end(value: float) -> str:
        if math.isnan(value):
            return ""
        return percent(value) if unit == "probability" else decimal(value, 2)

    figure = stage_lines(
        [token_text(tokenizer, i) for i in ids],
        ids,
        values,
        [end(value) for value in values[:, -1]],
        stages=[_name(name, short=True) for name in ("raw", *(stage.name for stage in view.stages[:-1]))],
        followed=ids.index(view.followed),
        title=t(f"pipeline.{unit}"),
        percent=unit == "probability",
    )
    return chart_data(figure, sentence(view), t("pipeline.note"))


def sentence(view: PipelineView) -> str:
    whole, rows = view.stages[-1], view.rows
    caption = t(
        "pipeline.says" if whole.n_removed else "pipeline.says.all",
        kept=f"{whole.n_kept:,}",
        total=f"{len(view.logits):,}",
        mass=percent(whole.removed_mass),
        before=_number(2**whole.entropy_before),
        after=_number(2**whole.entropy_after),
    )
    token, before, rank = quoted(view.document.tokenizer, view.followed), percent(rows[0].probability), rows[0].rank
    if rows[-1].rank is not None or rank is None:
        return caption + t("pipeline.followed", token=token, before=before, after=percent(rows[-1].probability))
    stage = _name(next(row.stage for row in rows if row.rank is None))
    return caption + t("pipeline.followed.cut", token=token, before=before, rank=f"{rank:,}", stage=stage)


def _name(stage: str, *, short: bool = False) -> str:
    """Return the name of a stage, or of its slider if the stage has no name of its own."""
    keys = (f"pipeline.short.{stage}", f"pipeline.{stage}", stage)
    return t(next(key for key in keys[not short :] if has_text(key)))


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def to_follow(s: Any) -> list[tuple[str, int]]:
    """Return (label, id) pairs for the search results (by default, the likeliest tokens) and the followed token."""
    if no_text(s):
        return []
    view = s.cached(pipeline_of)
    found = still_known(s.text, s[Chosen].found) or view.likeliest[:MAX_CHOICES]
    return [
        (f"{visible(token_text(view.document.tokenizer, i))}  {i}", i) for i in dict.fromkeys([*found, view.followed])
    ]


def follow(session: Session, wanted: object) -> None:
    """Follow a token, or the first search result for a typed text, through the stages. wanted: may be in a list."""
    wanted = next(iter(wanted), None) if isinstance(wanted, list) else wanted
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
            pick_list("pipeline-follow", choices=to_follow, most=1, label="pipeline.follow", value=followed, on=follow),
            table("pipeline-stages", draw=rows(stage_table)),
            table("pipeline-token", draw=rows(token_table)),
            name="pipeline-open",
            show=lambda s: s[Chosen].is_open,
        ),
        on=lambda session, is_open: session.change(Chosen, is_open=is_open is True),
    )
