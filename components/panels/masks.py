"""The masks panel: predictions without the causal mask, and padding without a padding mask."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch

from components import kit
from components.errors import NothingToShow
from components.figures.lines import lines
from components.figures.style import Figure
from components.i18n import t
from components.labels import percent, quoted, token_text
from components.state.jobs import Job, time_limited
from components.state.text import NEWEST, Text
from components.widgets.chart import Drawing
from gpt import GPT
from gpt.experiments.masks import FLOOR, MaskEffect, future_leak, padding_effect, train_on_random_text

MAX_TOKENS = 48  # maximum number of tokens in the text; each forward pass runs without a cache
STEPS, MAX_SECONDS = 80, 20.0
Losses = tuple[list[float], list[float]]  # of a model with the causal mask and of one without

panel = kit.Panel("masks")


@panel.state
class Chosen:
    """padding_length: number of padding tokens. latest: losses on random text."""

    padding_length: int = kit.setting(8, low=1, high=32)
    side: str = kit.setting("left", lambda s: {side: t(f"masks.side.{side}") for side in ("left", "right")})
    latest: Losses | None = None
    job: Job | None = None
    notice: ValueError | None = None


def beginning(text: Text) -> tuple[int, ...]:
    return text.ids[: min(text.n_read, MAX_TOKENS)]


def too_short(s: Any) -> NothingToShow | None:
    is_short = s.text is None or len(beginning(s.text)) < 2
    return NothingToShow("masks.error.short") if is_short else None


def check_length(s: Any) -> None:
    if problem := too_short(s):
        raise problem


def replaced_position(s: Any) -> int:
    """Return the selected position, or the middle of the beginning if the position lies beyond it."""
    n = 2 if s.text is None else len(beginning(s.text))
    position = n if s.position is None or s.selection.position == NEWEST else s.position
    return n // 2 if position >= n else max(1, position)


@panel.computed
def leak(s: Any) -> tuple[int, MaskEffect]:
    """Return the token that replaces the one at the position, and the effect on the predictions before it."""
    check_length(s)
    model, ids, position = s.text.loaded.model, list(beginning(s.text)), replaced_position(s)
    other = runner_up(model, ids, position)
    return other, future_leak(model, ids, position, other)


@panel.computed
def padded(s: Any) -> MaskEffect:
    check_length(s)
    loaded, n_padding, side = s.text.loaded, s[Chosen].padding_length, s[Chosen].side
    ids = beginning(s.text)[: max(0, loaded.model.config.block_size - n_padding)]
    return padding_effect(loaded.model, list(ids), n_padding, pad_id=loaded.tokenizer.eot_id or 0, side=side)


@torch.inference_mode()
def runner_up(model: GPT, ids: Sequence[int], position: int) -> int:
    best = model(torch.tensor([ids[:position]], device=model.device))[0, -1].topk(2).indices.tolist()
    return int(best[1] if best[0] == ids[position] else best[0])


def answer(s: Any) -> str:
    other, (_, without_mask) = s[leak]
    position = replaced_position(s)
    tokens = {"old": quoted(s.text.tokenizer, s.text.ids[position]), "new": quoted(s.text.tokenizer, other)}
    return t("masks.says", position=position, most=share(without_mask[:position]), **tokens)


def causal(s: Any) -> Drawing:
    (_, effect), position = s[leak], replaced_position(s)
    kept, leaked = (share(side[:position]) for side in effect)
    figure = moves(s, effect, (t("masks.exchanged"), position))
    return figure, t("masks.causal.picture", kept=kept, leaked=leaked)


def padding(s: Any) -> Drawing:
    effect, side = s[padded], s[Chosen].side
    with_mask, without_mask = effect
    shares = {"kept": share(with_mask), "moved": share(without_mask)}
    says = t("masks.padding.picture", n=s[Chosen].padding_length, side=t(f"masks.side.{side}"), **shares)
    return moves(s, effect), says + (t("masks.padding.right") if side == "right" else "")


def share(moved: torch.Tensor) -> str:
    """Return the largest change as a percentage, rounded to 0.01%."""
    return percent(round(moved.max().item(), 4))


def moves(s: Any, effect: MaskEffect, mark: tuple[str, int] | None = None) -> Figure:
    with_mask, without_mask = (side.cpu().numpy() for side in effect)
    n = len(with_mask)
    return lines(
        np.arange(n),
        {t("masks.without"): without_mask, t("masks.with"): with_mask},
        ticks=[token_text(s.text.tokenizer, token_id) for token_id in s.text.ids[:n]],
        x_title=t("masks.token"),
        y_title=t("masks.moved"),
        mark=mark,
    )


def train(s: Any) -> Iterator[Losses]:
    return time_limited(train_on_random_text(steps=STEPS), MAX_SECONDS)


def losses(s: Any) -> Drawing:
    trained = s[Chosen].latest
    if trained is None:
        return None
    with_mask, without_mask = trained
    n = len(with_mask)
    figure = lines(
        np.arange(1, n + 1),
        {t("masks.without"): np.array(without_mask), t("masks.with"): np.array(with_mask)},
        x_title=t("masks.update"),
        y_title=t("masks.loss"),
        level_at=(t("masks.floor"), FLOOR),
    )
    kept, cheated = (f"{side[-1]:.2f}" for side in trained)
    values = {"steps": n, "kept": kept, "cheated": cheated, "floor": f"{FLOOR:.2f}"}
    return figure, t("masks.learn.picture", **values)


SECTION = panel.section(
    answer,
    kit.row(
        kit.position_slider(
            "masks-position",
            "masks.position",
            low=1,
            high=lambda s: max(2, 1 if s.text is None else len(beginning(s.text)) - 1),
            value=replaced_position,
        )
    ),
    kit.picture("masks-causal", causal),
    kit.question("masks.padding.question"),
    kit.row(
        kit.slider(Chosen.padding_length, "masks.padding", info="masks.padding.info"),
        kit.choice(Chosen.side, "masks.side", labelled=True),
    ),
    kit.picture("masks-padding", padding),
    kit.question("masks.learn.question"),
    kit.caption("masks.learn.says"),
    kit.experiment_buttons("masks", "masks.learn", Chosen, train),
    kit.picture("masks-losses", losses),
    notice=lambda s: too_short(s) or s[Chosen].notice,
    reads_text=True,
)
