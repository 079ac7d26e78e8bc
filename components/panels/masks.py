"""The panel on masks: what every token would see without the causal one, and padding without its own."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, get_args

import gradio as gr
import numpy as np
import torch

from components.errors import PageError
from components.events import Events
from components.i18n import Language, t
from components.labels import percent, quoted, token_text
from components.localized import Localizer
from components.panels.panel import (
    IsOpen,
    Result,
    Run,
    add_panel,
    computed,
    one_of,
    problem_sentence,
    run_buttons,
    text_of,
    value_of,
    waiting_sentence,
    wire_run,
    wire_selection,
    wire_values,
    within,
)
from components.panels.panel_figures import lines
from components.render import Control, View
from components.state.selection import NEWEST
from components.state.snapshot import Snapshot
from components.state.text import Text
from components.widgets.chart import chart, chart_data
from components.widgets.sentence import sentence
from gpt import GPT, LoadedModel
from gpt.experiments.masks import MaskEffect, RandomTextLosses, future_leak, padding_effect, train_on_random_text

MAX_TOKENS = 48  # of the text, read at once and without a cache
STEPS, MAX_SECONDS = 80, 20.0  # of training
Side = Literal["left", "right"]


class Question(NamedTuple):
    """The beginning of a text, the token that is replaced, and the padding."""

    text: Text
    position: int
    n_padding: int
    side: Side

    @property
    def ids(self) -> tuple[int, ...]:
        return beginning(self.text)


class Effects(NamedTuple):
    """asked: what it is about. other: the token that was put in place; leak: what that changes; padding: what padding
    changes."""

    asked: Question
    other: int
    leak: MaskEffect
    padding: MaskEffect


@dataclass(frozen=True)
class MasksState:
    """n_padding: tokens. run: the two models that are trained on random letters."""

    n_padding: int = 8
    side: Side = "left"
    result: Result[Effects] | None = None
    run: Run[RandomTextLosses] = field(default_factory=Run)

    @property
    def busy(self) -> bool:
        return self.run.running


def beginning(text: Text) -> tuple[int, ...]:
    """The ids that the panel is about."""
    return text.ids[: min(text.n_read, MAX_TOKENS)]


def replaced_position(s: Snapshot) -> int:
    """The selected token, as far as it lies in the beginning of the text; the middle of that otherwise."""
    n = 2 if s.text is None else len(beginning(s.text))
    position = s.selection.position
    return n // 2 if position == NEWEST or position >= n else max(1, position)


def question(s: Snapshot) -> Question | None:
    text, state = text_of(s), s.state(MasksState)
    if text is None or len(beginning(text)) < 2:
        return None
    return Question(text, replaced_position(s), state.n_padding, state.side)


def compute(asked: Question) -> Effects:
    """Both effects on the visitor's model."""
    loaded, ids = asked.text.loaded, list(asked.ids)
    other = runner_up(loaded.model, ids, asked.position)
    leak = future_leak(loaded.model, ids, asked.position, other)
    room = ids[: max(0, loaded.model.config.block_size - asked.n_padding)]
    pad_id = loaded.tokenizer.eot_id or 0
    padding = padding_effect(loaded.model, room, asked.n_padding, pad_id=pad_id, side=asked.side)
    return Effects(asked, other, leak, padding)


@torch.inference_mode()
def runner_up(model: GPT, ids: Sequence[int], position: int) -> int:
    """The token, other than the one at a position, that the model held most probable there."""
    best = model(torch.tensor([ids[:position]], device=model.device))[0, -1].topk(2).indices.tolist()
    return int(best[1] if best[0] == ids[position] else best[0])


def found(s: Snapshot) -> Effects | None:
    return value_of(s, s.state(MasksState).result)


def answer(s: Snapshot) -> dict[str, Any]:
    effects = found(s)
    if effects is None:
        return {"text": "" if too_short(s) else waiting_sentence(s)}
    asked = effects.asked
    caption = t(
        "masks.says",
        s.language,
        old=quoted(asked.text.tokenizer, asked.ids[asked.position]),
        new=quoted(asked.text.tokenizer, effects.other),
        position=asked.position,
        most=share(effects.leak.without_mask[: asked.position]),
    )
    return {"text": caption}


def too_short(s: Snapshot) -> PageError | None:
    is_short = s.text is None or len(beginning(s.text)) < 2
    return PageError("masks.error.short") if is_short else None


def notice(s: Snapshot) -> dict[str, Any]:
    state = s.state(MasksState)
    return problem_sentence(s, too_short(s), state.result and state.result.problem, state.run.problem)


def causal(s: Snapshot) -> dict[str, Any]:
    """How far every prediction moves when one token is replaced."""
    effects = found(s)
    if effects is None:
        return chart_data(None, "")
    asked, leak = effects.asked, effects.leak
    mark = (t("masks.exchanged", s.language), asked.position)
    figure = moves(asked.text.loaded, asked.ids, leak, s.language, mark)
    kept, leaked = (share(side[: asked.position]) for side in (leak.with_mask, leak.without_mask))
    return chart_data(figure, t("masks.causal.picture", s.language, kept=kept, leaked=leaked))


def padding(s: Snapshot) -> dict[str, Any]:
    """How far every prediction moves when padding is put before or behind a text."""
    effects = found(s)
    if effects is None:
        return chart_data(None, "")
    asked, effect = effects.asked, effects.padding
    caption = t(
        "masks.padding.picture",
        s.language,
        n=asked.n_padding,
        side=t(f"masks.side.{asked.side}", s.language),
        kept=share(effect.with_mask),
        moved=share(effect.without_mask),
    )
    note = t("masks.padding.right", s.language) if asked.side == "right" else ""
    ids = asked.ids[: len(effect.with_mask)]
    return chart_data(moves(asked.text.loaded, ids, effect, s.language), caption + note)


def share(moved: torch.Tensor) -> str:
    """The largest of some changes; what is only rounding is 0."""
    return percent(round(moved.max().item(), 4))


def moves(
    loaded: LoadedModel,
    ids: Sequence[int],
    effect: MaskEffect,
    language: Language,
    mark: tuple[str, int] | None = None,
) -> dict[str, Any]:
    """With the mask and without it, after each token."""
    sides = {"masks.without": effect.without_mask, "masks.with": effect.with_mask}
    return lines(
        np.arange(len(ids)),
        {t(key, language): side.cpu().numpy() for key, side in sides.items()},
        ticks=[token_text(loaded.tokenizer, token_id) for token_id in ids],
        x_title=t("masks.token", language),
        y_title=t("masks.moved", language),
        mark=mark,
        markers=True,
        height=300,
    )


def train(s: Snapshot) -> Iterator[RandomTextLosses]:
    """The losses of two tiny models, until MAX_SECONDS at the latest."""
    end = time.monotonic() + MAX_SECONDS
    for losses_so_far in train_on_random_text(steps=STEPS):
        yield losses_so_far
        if time.monotonic() > end:
            return


def losses(s: Snapshot) -> dict[str, Any]:
    """Both losses over the updates, and the lowest without looking ahead."""
    trained = s.state(MasksState).run.found
    if trained is None:
        return chart_data(None, "")
    sides = {"masks.without": trained.without_mask, "masks.with": trained.with_mask}
    n = len(trained.with_mask)
    figure = lines(
        np.arange(1, n + 1),
        {t(key, s.language): np.array(side) for key, side in sides.items()},
        x_title=t("masks.update", s.language),
        y_title=t("masks.loss", s.language),
        level=(t("masks.floor", s.language), trained.floor),
        height=280,
    )
    kept, cheated = (f"{side[-1]:.2f}" for side in (trained.with_mask, trained.without_mask))
    values = {"steps": n, "kept": kept, "cheated": cheated, "floor": f"{trained.floor:.2f}"}
    return chart_data(figure, t("masks.learn.picture", s.language, **values))


def inputs(s: Snapshot) -> tuple[Any, ...]:
    state = s.state(MasksState)
    return state.result, state.run.problem, s.text, s.generating, s.language


VIEWS = (
    View("masks-answer", inputs, answer),
    View("masks-notice", inputs, notice),
    View("masks-causal", inputs, causal),
    View("masks-padding", inputs, padding),
    View("masks-losses", lambda s: (s.state(MasksState).run, s.language), losses),
)
ANALYSIS = computed(MasksState, question, compute)
CHECKS = {"n_padding": within(1, 32), "side": one_of(*get_args(Side))}


def build_masks(localizer: Localizer, events: Events, tab: str, is_open: IsOpen) -> None:
    """Lay the panel out; it is about the beginning of the visitor's text."""
    parts: dict[str, Any] = {}
    with gr.Column(elem_classes="gb-card gb-panel"):
        localizer.sentence("masks.question", kind="question")
        sentence(kind="lead", elem_id="masks-answer", view="masks-answer")
        sentence(kind="notice", elem_id="masks-notice", view="masks-notice")
        with gr.Row(elem_classes="gb-panel-controls"):
            parts["position"] = _slider(localizer, "position", MAX_TOKENS - 1, "masks-position")
        chart(elem_id="masks-causal", view="masks-causal")
        localizer.sentence("masks.padding.question", kind="question")
        with gr.Row(elem_classes="gb-panel-controls"):
            parts["n_padding"] = _slider(localizer, "padding", 32, "masks-padding-length")
            parts["side"] = localizer.build(
                gr.Radio, {"label": "masks.side", "choices": side_choices}, value="left", elem_id="masks-side"
            )
        chart(elem_id="masks-padding", view="masks-padding")
        localizer.sentence("masks.learn.question", kind="question")
        localizer.sentence("masks.learn.says", kind="caption")
        buttons = run_buttons(localizer, "masks.learn", "masks")
        chart(elem_id="masks-losses", view="masks-losses")
    position = Control(parts["position"], _position_inputs, _position)
    add_panel(events, tab, is_open, VIEWS, [position, *buttons.controls(MasksState)], ANALYSIS)
    wire_values(events, MasksState, CHECKS, parts)
    wire_selection(events, parts)
    wire_run(events, buttons, MasksState, train)


def _slider(localizer: Localizer, name: str, high: int, elem_id: str) -> gr.Slider:
    texts: Any = {"label": f"masks.{name}", "info": f"masks.{name}.info"}
    return localizer.build(gr.Slider, texts, minimum=1, maximum=high, step=1, value=8, elem_id=elem_id)


def _position_inputs(s: Snapshot) -> tuple[Any, ...]:
    return s.text, s.selection.position


def _position(s: Snapshot) -> dict[str, Any]:
    """The slider of the replaced token."""
    last = 1 if s.text is None else len(beginning(s.text)) - 1
    return {"maximum": max(2, last), "value": replaced_position(s)}


def side_choices(language: Language) -> list[tuple[str, str]]:
    """(what the switch says, side)."""
    return [(t(f"masks.side.{side}", language), side) for side in get_args(Side)]
