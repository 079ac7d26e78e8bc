"""The skeleton panel: a GPT without its blocks, with the same shapes at every stage."""

from __future__ import annotations

from typing import Any

import torch

from components.i18n import t
from components.kit import Panel, caption, column, columns, no_text, question, says
from components.labels import percent, quoted
from components.next_tokens import best_of_both, no_bars, token_bars
from components.widgets.simple import predictions, table
from gpt import GPT, Edits, GPTConfig
from gpt.experiments.masks import total_variation
from gpt.experiments.random_models import module_shapes, skeleton

SMALL = GPTConfig(vocab_size=10_000, block_size=128, n_layer=2, n_head=4, n_embd=128)  # the curriculum's configuration
TEXT = tuple(range(0, 1600, 100))
MAX_BARS = 5

panel = Panel("skeleton")


@panel.computed
@torch.inference_mode()
def logits(s: Any) -> list[torch.Tensor]:
    """Return the logits after the selected token with and without the model's blocks, (vocab_size,) each.

    Blocks are removed by scaling their branches by 0.
    """
    text, position = s.text_read(), s.position
    model = text.loaded.model
    idx = torch.tensor([text.ids[: position + 1]], device=model.device)
    nothing = dict.fromkeys(range(model.config.n_layer), 0.0)
    edits = Edits(attn_scale=nothing, mlp_scale=nothing)
    both = model(idx)[0, -1], model(idx, edits=edits)[0, -1]
    return [text.document.possible(position, each.cpu()) for each in both]


@panel.computed
@torch.inference_mode()
def small_pair(s: Any) -> tuple[list[dict[str, tuple[int, ...]]], list[float]]:
    """Measure the small model and its skeleton, which are the same for all visitors.

    Returns the shapes in both, and how much each one's last prediction changes with the first token, from 0 to 1.
    """
    pair = [make(SMALL, generator=torch.Generator().manual_seed(0)).eval() for make in (GPT, skeleton)]
    texts = torch.tensor([TEXT, (1, *TEXT[1:])])  # (2, T)
    changes = [total_variation(*model(texts)[:, -1]).item() for model in pair]
    return [module_shapes(model, TEXT) for model in pair], changes


def probabilities(s: Any) -> list[torch.Tensor]:
    """Return the probabilities of the next token with and without blocks, (vocab_size,) each."""
    return [s.stages(each, s.text.ids[: s.position + 1]).final for each in s[logits]]


def selected_token(s: Any) -> str:
    return quoted(s.text.tokenizer, s.text.ids[s.position])


def answer(s: Any) -> str:
    full, bare = probabilities(s)
    best = {"full": quoted(s.text.tokenizer, int(full.argmax())), "bare": quoted(s.text.tokenizer, int(bare.argmax()))}
    moved = (full - bare).abs().sum().item() / 2  # total variation distance
    return t("skeleton.says", token=selected_token(s), moved=percent(round(moved, 6)), **best)


def bars(s: Any) -> dict[str, Any]:
    """Show the predictions of the full model (pale) and of the model with all blocks skipped."""
    if no_text(s):
        return no_bars()
    full, bare = probabilities(s)
    ids, where = best_of_both(full, bare, MAX_BARS), t("bars.position", token=selected_token(s))
    both = full.numpy(), bare.numpy()
    return token_bars(t("bars.question"), s.text.tokenizer, ids, *both, "skeleton.bar", text=where)


def stages(s: Any) -> dict[str, Any]:
    (whole, bare), _ = s[small_pair]
    heads = [t(f"skeleton.{key}") for key in ("stage", "whole", "skeleton")]
    rows = ([name, str(list(shape)), str(list(bare[name])) if name in bare else "–"] for name, shape in whole.items())
    return {"rows": [heads, *rows]}


def shapes(s: Any) -> str:
    (whole, _), (full, bare) = s[small_pair]
    moved = {"full": percent(full), "bare": percent(bare)}
    return t("skeleton.shapes.says", last=str(list(whole["lm_head"])), n=len(TEXT), **moved)


SECTION = panel.section(
    answer,
    columns(
        column(predictions("skeleton-bars", selectable=False, draw=bars), caption("skeleton.bars.says")),
        column(
            question("skeleton.shapes.question"),
            table("skeleton-stages", draw=stages),
            says("skeleton-shapes", shapes, kind="caption"),
        ),
    ),
    notice=no_text,
    reads_text=True,
)
