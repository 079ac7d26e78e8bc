"""The masks panel: predictions without the causal mask, and padding without a padding mask."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import torch

from components.errors import PageError
from components.figures.lines import lines
from components.i18n import t
from components.labels import percent, quoted, token_text
from components.panels.experiment import Experiment, experiment_buttons, time_limited
from components.panels.panel import (
    Panel,
    Result,
    Settings,
    computed,
    of_state,
    one_of,
    panel_section,
    problem_sentence,
    select_position,
    setter,
    text_of,
    value_of,
    waiting_sentence,
    within,
)
from components.parts import caption, question, row, slider
from components.render import View
from components.state.selection import NEWEST
from components.state.snapshot import Snapshot
from components.state.text import Text
from components.widgets.chart import chart, chart_data
from gpt import GPT, LoadedModel
from gpt.experiments.masks import MaskEffect, RandomTextLosses, future_leak, padding_effect, train_on_random_text

MAX_TOKENS = 48  # maximum number of tokens in the text; each forward pass runs without a cache
STEPS, MAX_SECONDS = 80, 20.0
Side = Literal["left", "right"]


class MasksInputs(NamedTuple):
    """A text's prefix, the replaced token's position, and the padding."""

    text: Text
    position: int
    n_padding: int
    side: Side

    @property
    def ids(self) -> tuple[int, ...]:
        return beginning(self.text)


class Effects(NamedTuple):
    """The measured effects.

    other: the replacement token; leak: the effect of the replacement; padding: the effect of padding.
    """

    request: MasksInputs
    other: int
    leak: MaskEffect
    padding: MaskEffect


@dataclass(frozen=True)
class MasksState:
    """The panel's state. n_padding: number of padding tokens. run: training run of two models on random text."""

    n_padding: int = 8
    side: Side = "left"
    result: Result[Effects] | None = None
    run: Experiment[RandomTextLosses] = field(default_factory=Experiment)

    @property
    def busy(self) -> bool:
        return self.run.running


def beginning(text: Text) -> tuple[int, ...]:
    """Return the ids at the start of the text that the panel uses."""
    return text.ids[: min(text.n_read, MAX_TOKENS)]


def replaced_position(s: Snapshot) -> int:
    """Return the selected position, or the middle of the prefix if the position lies beyond it."""
    n = 2 if s.text is None else len(beginning(s.text))
    position = n if s.position is None or s.selection.position == NEWEST else s.position
    return n // 2 if position >= n else max(1, position)


def request_of(s: Snapshot) -> MasksInputs | None:
    text, state = text_of(s), s.state(MasksState)
    if text is None or len(beginning(text)) < 2:
        return None
    return MasksInputs(text, replaced_position(s), state.n_padding, state.side)


def compute(request: MasksInputs) -> Effects:
    """Compute both effects on the visitor's model."""
    loaded, ids = request.text.loaded, list(request.ids)
    other = runner_up(loaded.model, ids, request.position)
    leak = future_leak(loaded.model, ids, request.position, other)
    room = ids[: max(0, loaded.model.config.block_size - request.n_padding)]
    pad_id = loaded.tokenizer.eot_id or 0
    padding = padding_effect(loaded.model, room, request.n_padding, pad_id=pad_id, side=request.side)
    return Effects(request, other, leak, padding)


@torch.inference_mode()
def runner_up(model: GPT, ids: Sequence[int], position: int) -> int:
    """Return the most probable token at a position, excluding the actual one."""
    best = model(torch.tensor([ids[:position]], device=model.device))[0, -1].topk(2).indices.tolist()
    return int(best[1] if best[0] == ids[position] else best[0])


def result_of(s: Snapshot) -> Effects | None:
    return value_of(s, s.state(MasksState).result)


def answer(s: Snapshot) -> dict[str, Any]:
    effects = result_of(s)
    if effects is None:
        return {"text": "" if too_short(s) else waiting_sentence(s)}
    request = effects.request
    caption = t(
        "masks.says",
        old=quoted(request.text.tokenizer, request.ids[request.position]),
        new=quoted(request.text.tokenizer, effects.other),
        position=request.position,
        most=share(effects.leak.without_mask[: request.position]),
    )
    return {"text": caption}


def too_short(s: Snapshot) -> PageError | None:
    is_short = s.text is None or len(beginning(s.text)) < 2
    return PageError("masks.error.short") if is_short else None


def notice(s: Snapshot) -> dict[str, Any]:
    state = s.state(MasksState)
    return problem_sentence(s, too_short(s), state.result, state.run.problem)


def causal(s: Snapshot) -> dict[str, Any]:
    """Draw how much each prediction changes when one token is replaced."""
    effects = result_of(s)
    if effects is None:
        return chart_data(None, "")
    request, leak = effects.request, effects.leak
    mark = (t("masks.exchanged"), request.position)
    figure = moves(request.text.loaded, request.ids, leak, mark)
    kept, leaked = (share(side[: request.position]) for side in (leak.with_mask, leak.without_mask))
    return chart_data(figure, t("masks.causal.picture", kept=kept, leaked=leaked))


def padding(s: Snapshot) -> dict[str, Any]:
    """Draw how much each prediction changes when padding is added before or after the text."""
    effects = result_of(s)
    if effects is None:
        return chart_data(None, "")
    request, effect = effects.request, effects.padding
    caption = t(
        "masks.padding.picture",
        n=request.n_padding,
        side=t(f"masks.side.{request.side}"),
        kept=share(effect.with_mask),
        moved=share(effect.without_mask),
    )
    note = t("masks.padding.right") if request.side == "right" else ""
    ids = request.ids[: len(effect.with_mask)]
    return chart_data(moves(request.text.loaded, ids, effect), caption + note)


def share(moved: torch.Tensor) -> str:
    """Return the largest change as a percentage, rounded to 0.01%."""
    return percent(round(moved.max().item(), 4))


def moves(
    loaded: LoadedModel,
    ids: Sequence[int],
    effect: MaskEffect,
    mark: tuple[str, int] | None = None,
) -> dict[str, Any]:
    """Draw the changes with and without the mask for each token."""
    sides = {"masks.without": effect.without_mask, "masks.with": effect.with_mask}
    return lines(
        np.arange(len(ids)),
        {t(key): side.cpu().numpy() for key, side in sides.items()},
        ticks=[token_text(loaded.tokenizer, token_id) for token_id in ids],
        x_title=t("masks.token"),
        y_title=t("masks.moved"),
        mark=mark,
        height=300,
    )


def train(s: Snapshot) -> Iterator[RandomTextLosses]:
    """Train two small models on random text for at most MAX_SECONDS, yielding their losses."""
    return time_limited(train_on_random_text(steps=STEPS), MAX_SECONDS)


def losses(s: Snapshot) -> dict[str, Any]:
    """Draw both losses over the updates, and the lowest possible loss with the causal mask."""
    trained = s.state(MasksState).run.latest
    if trained is None:
        return chart_data(None, "")
    sides = {"masks.without": trained.without_mask, "masks.with": trained.with_mask}
    n = len(trained.with_mask)
    figure = lines(
        np.arange(1, n + 1),
        {t(key): np.array(side) for key, side in sides.items()},
        x_title=t("masks.update"),
        y_title=t("masks.loss"),
        level_at=(t("masks.floor"), trained.floor),
        height=280,
    )
    kept, cheated = (f"{side[-1]:.2f}" for side in (trained.with_mask, trained.without_mask))
    values = {"steps": n, "kept": kept, "cheated": cheated, "floor": f"{trained.floor:.2f}"}
    return chart_data(figure, t("masks.learn.picture", **values))


VIEWS = (
    View("masks-answer", answer),
    View("masks-notice", notice),
    View("masks-causal", causal),
    View("masks-padding", padding),
    View("masks-losses", losses),
)
ANALYSIS = computed(MasksState, request_of, compute)
CHECKS = {"n_padding": within(1, 32), "side": one_of(*get_args(Side))}
SETTINGS = Settings(MasksState, CHECKS)


def build_masks() -> Panel:
    """Build the panel for the prefix of the visitor's text, with one token replaced and with padding."""
    position = slider(
        "masks-position",
        1,
        lambda s: max(2, 1 if s.text is None else len(beginning(s.text)) - 1),
        1,
        label="masks.position",
        info="masks.position.info",
        value=replaced_position,
        on=select_position,
    )
    padding = slider(
        "masks-padding-length",
        1,
        32,
        1,
        label="masks.padding",
        info="masks.padding.info",
        value=of_state(MasksState, "n_padding"),
        on=setter(MasksState, "n_padding", CHECKS["n_padding"]),
    )
    side = SETTINGS.choice("masks.side", lambda s: [(t(f"masks.side.{each}"), each) for each in get_args(Side)])
    part = panel_section(
        "masks",
        row(position, classes="gb-panel-controls"),
        chart("masks-causal"),
        question("masks.padding.question"),
        row(padding, side, classes="gb-panel-controls"),
        chart("masks-padding"),
        question("masks.learn.question"),
        caption("masks.learn.says"),
        experiment_buttons("masks", "masks.learn", MasksState, train),
        chart("masks-losses"),
    )
    return Panel(part, VIEWS, ANALYSIS)
