"""The panel on the skeleton: a GPT without its blocks has every shape, and another meaning."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import lru_cache, partial
from typing import Any

import gradio as gr
import torch

from components.errors import PageError
from components.figures import charts as figures
from components.frame import Frame
from components.i18n import Language, t
from components.labels import percent, quoted, token_text
from components.legacy import Playground
from components.localized import Words
from components.panels.panel import Panel, Values, best_of_both, document_of, make_panel
from components.widgets.chart import chart, chart_value
from components.widgets.sentence import sentence
from components.widgets.table import table, table_value
from gpt import GPT, Edits, GPTConfig
from gpt.experiments.masks import total_variation
from gpt.experiments.random_models import ModuleShape, module_shapes, skeleton

SMALL = GPTConfig(vocab_size=10_000, block_size=128, n_layer=2, n_head=4, n_embd=128)  # the curriculum's
TEXT = tuple(range(0, 1600, 100))
SHOWN = 8  # tokens in the bars


@dataclass(frozen=True)
class SkeletonPanel:
    """The components of the panel."""

    frame: Frame
    playground: Playground
    answer: gr.HTML
    notice: gr.HTML
    bars: gr.HTML
    shapes: gr.HTML
    stages: gr.HTML


@dataclass(frozen=True)
class Pair:
    """The stages of a small model and of its skeleton, and how far exchanging the first token moves the last
    prediction of both, 0 to 1."""

    whole: list[ModuleShape]
    bare: list[ModuleShape]
    whole_moved: float
    bare_moved: float


def build_skeleton(words: Words, frame: Frame, playground: Playground) -> Panel:
    """Lay the panel out: the running model with its blocks skipped, and a small model beside its skeleton."""
    parts: dict[str, Any] = {"frame": frame, "playground": playground}
    with gr.Column(elem_classes="gb-card gb-panel"):
        words.build(sentence, {"value": "skeleton.question"}, kind="question")
        parts["answer"] = sentence(kind="lead", elem_id="skeleton-answer")
        parts["notice"] = sentence(kind="notice", elem_id="skeleton-notice")
        with gr.Row(elem_classes="gb-columns"):
            with gr.Column(min_width=280):
                parts["bars"] = chart(elem_id="skeleton-bars")
            with gr.Column(min_width=280):
                words.build(sentence, {"value": "skeleton.shapes.question"}, kind="question")
                parts["stages"] = table(elem_id="skeleton-stages")
                parts["shapes"] = sentence(kind="caption", elem_id="skeleton-shapes")
    ui = SkeletonPanel(**{field.name: parts[field.name] for field in fields(SkeletonPanel)})
    return make_panel(
        frame,
        playground,
        partial(draw, ui),
        controls=[],
        outputs=[ui.answer, ui.bars, ui.shapes, ui.stages],
        notice=ui.notice,
    )


def draw(ui: SkeletonPanel, values: Values, entering: bool) -> Values:
    """The next token after the selected one, with and without blocks; the shapes of the small pair."""
    language: Language = values[ui.frame.language]
    document = document_of(values, ui.playground)
    if document is None:
        raise PageError("error.no_text")
    position = values[ui.playground.session].selection.at(document)
    tokenizer, ids = document.loaded.tokenizer, document.ids[: position + 1]
    full, bare = with_and_without_blocks(document.loaded.model, ids)
    shares = torch.stack((full, bare)).float().softmax(-1).cpu()  # (2, vocab_size)
    shown = best_of_both(full, bare, SHOWN)
    figure = figures.next_token_bars(
        [token_text(tokenizer, token_id) for token_id in shown],
        shares[0, shown].numpy(),
        shares[1, shown].numpy(),
        before_name=t("skeleton.full", language),
        after_name=t("skeleton.bare", language),
        chosen_name=t("bars.chosen", language),
    )
    token = quoted(tokenizer, ids[-1])
    pair = small_pair()
    return {
        ui.answer: t(
            "skeleton.says",
            language,
            token=token,
            full=quoted(tokenizer, full.argmax().item()),
            bare=quoted(tokenizer, bare.argmax().item()),
            moved=percent(total_variation(full, bare).item()),
        ),
        ui.bars: chart_value(figure, t("skeleton.bars.says", language, token=token)),
        ui.stages: table_value(both(pair, language)),
        ui.shapes: t(
            "skeleton.shapes.says",
            language,
            last=list(pair.whole[-1].shape),
            n=len(TEXT),
            bare=percent(pair.bare_moved),
            full=percent(pair.whole_moved),
        ),
    }


@torch.inference_mode()
def with_and_without_blocks(model: GPT, ids: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits after the last token, (vocab_size,) each: of the model, and of it with every branch of a block at zero."""
    idx = torch.tensor([ids], device=model.device)
    nothing = dict.fromkeys(range(model.config.n_layer), 0.0)
    edits = Edits(attn_scale=nothing, mlp_scale=nothing)
    return model(idx)[0, -1], model(idx, edits=edits)[0, -1]


@lru_cache(maxsize=1)
@torch.inference_mode()
def small_pair() -> Pair:
    """The small model and its skeleton, looked at once; the same for everybody."""
    whole = GPT(SMALL, generator=torch.Generator().manual_seed(0)).eval()
    bare = skeleton(SMALL, generator=torch.Generator().manual_seed(0)).eval()
    texts = torch.tensor([TEXT, (1, *TEXT[1:])])  # (2, T)
    changes = [total_variation(*logits[:, -1]).item() for logits in (whole(texts), bare(texts))]
    return Pair(module_shapes(whole, TEXT), module_shapes(bare, TEXT), *changes)


def both(pair: Pair, language: Language) -> list[list[str]]:
    """A row for each stage of the whole model, with the skeleton's shape where it has such a stage."""
    bare = {stage.name: stage.shape for stage in pair.bare}
    heads = [t(f"skeleton.{key}", language) for key in ("stage", "whole", "skeleton")]
    rows = [[stage.name, str(list(stage.shape)), shape_text(bare.get(stage.name))] for stage in pair.whole]
    return [heads, *rows]


def shape_text(shape: tuple[int, ...] | None) -> str:
    """A shape as PyTorch writes it; a dash where there is none."""
    return "–" if shape is None else str(list(shape))
