"""The skeleton panel: a GPT without its blocks, with the same shapes at every stage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import torch

from components.figures.bars import next_token_bars
from components.i18n import t
from components.labels import percent, quoted, token_text
from components.panels.panel import (
    Panel,
    Result,
    best_of_both,
    computed,
    no_text,
    panel_section,
    problem_sentence,
    text_of,
    value_of,
    waiting_sentence,
)
from components.parts import column, columns, question
from components.render import View
from components.state.snapshot import Snapshot
from components.state.text import Text
from components.widgets.chart import chart, chart_data
from components.widgets.sentence import sentence
from components.widgets.table import table
from gpt import GPT, Edits, GPTConfig
from gpt.experiments.masks import total_variation
from gpt.experiments.random_models import ModuleShape, module_shapes, skeleton

SMALL = GPTConfig(vocab_size=10_000, block_size=128, n_layer=2, n_head=4, n_embd=128)  # the curriculum's configuration
TEXT = tuple(range(0, 1600, 100))
MAX_BARS = 8


class SkeletonInputs(NamedTuple):
    """The text, and the position to predict from."""

    text: Text
    position: int


class Pair(NamedTuple):
    """The module shapes of a small model and of its skeleton, and how much the first token matters to each.

    whole_moved, bare_moved: total variation distance of the last prediction when the first token is replaced, 0 to 1.
    """

    whole: list[ModuleShape]
    bare: list[ModuleShape]
    whole_moved: float
    bare_moved: float


class Predictions(NamedTuple):
    """Logits of the visitor's model with its blocks (full) and without them (bare), (vocab_size,) each.

    pair: measurements of the small models.
    """

    request: SkeletonInputs
    full: torch.Tensor
    bare: torch.Tensor
    pair: Pair


@dataclass(frozen=True)
class SkeletonState:
    """The predictions after the selected token."""

    result: Result[Predictions] | None = None


def request_of(s: Snapshot) -> SkeletonInputs | None:
    text = text_of(s)
    return None if text is None else SkeletonInputs(text, text.at(s.selection))


def compute(request: SkeletonInputs) -> Predictions:
    ids = request.text.ids[: request.position + 1]
    full, bare = with_and_without_blocks(request.text.loaded.model, ids)
    return Predictions(request, full.cpu(), bare.cpu(), small_pair())


@torch.inference_mode()
def with_and_without_blocks(model: GPT, ids: Sequence[int]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the logits after the last token with and without the model's blocks, (vocab_size,) each.

    Blocks are removed by scaling their branches by 0.
    """
    idx = torch.tensor([ids], device=model.device)
    nothing = dict.fromkeys(range(model.config.n_layer), 0.0)
    edits = Edits(attn_scale=nothing, mlp_scale=nothing)
    return model(idx)[0, -1], model(idx, edits=edits)[0, -1]


@lru_cache(maxsize=1)
@torch.inference_mode()
def small_pair() -> Pair:
    """Measure the small model and its skeleton, which are the same for all visitors."""
    whole = GPT(SMALL, generator=torch.Generator().manual_seed(0)).eval()
    bare = skeleton(SMALL, generator=torch.Generator().manual_seed(0)).eval()
    texts = torch.tensor([TEXT, (1, *TEXT[1:])])  # (2, T)
    changes = [total_variation(*logits[:, -1]).item() for logits in (whole(texts), bare(texts))]
    return Pair(module_shapes(whole, TEXT), module_shapes(bare, TEXT), *changes)


def result_of(s: Snapshot) -> Predictions | None:
    return value_of(s, s.state(SkeletonState).result)


def probabilities(s: Snapshot, both: Predictions) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the probabilities of the next token with and without blocks, (vocab_size,) each."""
    text, position = both.request
    logits = (text.document.possible(position, each) for each in (both.full, both.bare))
    full, bare = (s.stages(each, text.ids[: position + 1]).final for each in logits)
    return full, bare


def answer(s: Snapshot) -> dict[str, Any]:
    both = result_of(s)
    if both is None:
        return {"text": "" if no_text(s) else waiting_sentence(s)}
    text, position = both.request
    full, bare = probabilities(s, both)
    caption = t(
        "skeleton.says",
        token=quoted(text.tokenizer, text.ids[position]),
        full=quoted(text.tokenizer, int(full.argmax())),
        bare=quoted(text.tokenizer, int(bare.argmax())),
        moved=percent(round((full - bare).abs().sum().item() / 2, 6)),  # total variation distance
    )
    return {"text": caption}


def bars(s: Snapshot) -> dict[str, Any]:
    """Draw the next-token probabilities with and without blocks."""
    both = result_of(s)
    if both is None:
        return chart_data(None, "")
    text, position = both.request
    full, bare = probabilities(s, both)
    shown = best_of_both(full, bare, MAX_BARS)
    figure = next_token_bars(
        [token_text(text.tokenizer, token_id) for token_id in shown],
        full[shown].numpy(),
        bare[shown].numpy(),
        before_name=t("skeleton.full"),
        after_name=t("skeleton.bare"),
    )
    return chart_data(figure, t("skeleton.bars.says", token=quoted(text.tokenizer, text.ids[position])))


def stages(s: Snapshot) -> dict[str, Any]:
    """Return one row per stage of the full model, with the skeleton's shape if it has that stage."""
    both = result_of(s)
    if both is None:
        return {"rows": []}
    bare = {stage.name: stage.shape for stage in both.pair.bare}
    heads = [t(f"skeleton.{key}") for key in ("stage", "whole", "skeleton")]
    rows = [[stage.name, shape_text(stage.shape), shape_text(bare.get(stage.name))] for stage in both.pair.whole]
    return {"rows": [heads, *rows]}


def shape_text(shape: tuple[int, ...] | None) -> str:
    """Format a shape as PyTorch prints it, or a dash for None."""
    return "–" if shape is None else str(list(shape))


def shapes(s: Snapshot) -> dict[str, Any]:
    both = result_of(s)
    if both is None:
        return {"text": ""}
    pair = both.pair
    values = {"last": shape_text(pair.whole[-1].shape), "n": len(TEXT)}
    moved = {"bare": percent(pair.bare_moved), "full": percent(pair.whole_moved)}
    return {"text": t("skeleton.shapes.says", **values, **moved)}


VIEWS = (
    View("skeleton-answer", answer),
    View("skeleton-notice", lambda s: problem_sentence(s, no_text(s), s.state(SkeletonState).result)),
    View("skeleton-bars", bars),
    View("skeleton-stages", stages),
    View("skeleton-shapes", shapes),
)
ANALYSIS = computed(SkeletonState, request_of, compute)


def build_skeleton() -> Panel:
    """Build the panel that skips the blocks of the visitor's model and shows a small model beside its skeleton."""
    part = panel_section(
        "skeleton",
        columns(
            column(chart("skeleton-bars")),
            column(
                question("skeleton.shapes.question"),
                table("skeleton-stages"),
                sentence("skeleton-shapes", kind="caption"),
            ),
        ),
    )
    return Panel(part, VIEWS, ANALYSIS)
