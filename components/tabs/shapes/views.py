"""Views for the Shapes tab: the size of a configuration, and the built model."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from components.figures.bars import size_bars
from components.frame import short_name
from components.i18n import t
from components.labels import seed_of
from components.panels.parameter_bars import parameter_bars, parameter_count, size_rows, weight_rows
from components.render import Lines, View
from components.state.snapshot import Message, Snapshot
from components.tabs.shapes.settings import Shape
from components.tabs.shapes.state import Built, ShapesState, choice_of
from components.text_views import strip_labels
from components.widgets.chart import chart_data
from components.widgets.sentence import sentence_data
from gpt.experiments.random_models import MAX_MEMORY_BYTES, memory_bytes
from gpt.experiments.shapes import count_parameters, flops_per_token
from gpt.models.memory import format_bytes

SIDES = ("random", "trained")
MODULES = {
    "idx": "shapes.stage.idx",
    "wte": "shapes.stage.wte",
    "wpe": "shapes.stage.wpe",
    "h.0.attn.c_attn": "shapes.stage.c_attn",
    "h.0.attn.c_proj": "shapes.stage.attention",
    "h.0.mlp.c_gate": "shapes.stage.c_gate",
    "h.0.mlp.c_fc": "shapes.stage.c_fc",
    "h.0.mlp.c_proj": "shapes.stage.feed_forward",
    "ln_f": "shapes.stage.ln_f",
    "lm_head": "shapes.stage.lm_head",
}


def cost_sentence(shape: Shape) -> str:
    """State the FLOPs per token at the beginning and at the end of the context."""
    last = shape.config.block_size - 1
    first, end = (flops_per_token(shape.config, position, skeleton=shape.skeleton) for position in (0, last))
    return t(
        "shapes.cost",
        first=operations(first.total),
        end=operations(end.total),
        position=f"{last:,}",
        matrices=operations(end.matrices),
        attention=operations(end.attention),
    )


def operations(n: int) -> str:
    """Format a number of floating-point operations: 284,812,032 becomes "285 MFLOP"."""
    for unit, size in (("T", 10**12), ("G", 10**9), ("M", 10**6), ("k", 10**3)):
        if n >= 0.9995 * size:  # would round to 1,000 of the next smaller unit
            return f"{n / size:.3g} {unit}FLOP"
    return f"{n} FLOP"


def fits(shape: Shape) -> bool:
    """Return whether a model of this size may be built."""
    return memory_bytes(shape.config, skeleton=shape.skeleton) <= MAX_MEMORY_BYTES


def room_sentence(shape: Shape) -> str:
    """State the memory needed to build the model, and the limit."""
    need = format_bytes(memory_bytes(shape.config, skeleton=shape.skeleton))
    key = "shapes.room" if fits(shape) else "shapes.room.none"
    return t(key, need=need, limit=format_bytes(MAX_MEMORY_BYTES))


def status_sentence(built: Built, running: bool) -> str:
    """Describe the built model and state the number of generated tokens."""
    caption = t("shapes.status.example") if built.job is None else ""
    return (
        caption
        + t(
            "shapes.status" if built.finished or running else "shapes.status.stopped",
            n=f"{count_parameters(built.shape.config, skeleton=built.shape.skeleton):,}",
            seconds=f"{built.seconds:.2f}",
            tokens=built.n_tokens,
        )
        + (seed_of(built.seed) if built.finished or running else "")
    )


def stages_chart(built: Built) -> dict[str, Any]:
    """Plot the tensor shapes in a forward pass, with bars as wide as each stage's vectors."""
    n_layer, skeleton = built.shape.config.n_layer, built.shape.skeleton
    last = f"h.{n_layer - 1}"
    names, shapes = [], []
    for stage in built.stages:
        if stage.name == last:
            names.append(t("shapes.stage.identity" if skeleton else "shapes.stage.blocks", n=n_layer))
        elif stage.name in MODULES:
            key = "shapes.stage.no_norm" if skeleton and stage.name == "ln_f" else MODULES[stage.name]
            names.append(t(key))
        else:
            continue
        shapes.append(stage.shape)
    widths = np.array([shape[-1] if i else 1 for i, shape in enumerate(shapes)])
    figure = size_bars(names, widths, [str(list(shape)) for shape in shapes])
    text = t("shapes.stages.says", first=list(shapes[0]), last=list(shapes[-1]))
    return chart_data(figure, text, t("shapes.stages.skeleton") if skeleton else "")


def headline(s: Snapshot) -> dict[str, Any]:
    shape = choice_of(s).shape
    return {"text": parameter_count(shape.config, shape.skeleton)}


def notice(s: Snapshot) -> dict[str, Any]:
    return sentence_data(choice_of(s).problem)


def parts(s: Snapshot) -> dict[str, Any]:
    shape = choice_of(s).shape
    return parameter_bars(shape.config, shape.skeleton)


def sizes(s: Snapshot) -> dict[str, Any]:
    shape = choice_of(s).shape
    return {"rows": size_rows(shape.config, shape.skeleton)}


def weights(s: Snapshot) -> dict[str, Any]:
    shape = choice_of(s).shape
    return {"rows": weight_rows(shape.config, shape.skeleton)}


def cost(s: Snapshot) -> dict[str, Any]:
    return {"text": cost_sentence(choice_of(s).shape)}


def room(s: Snapshot) -> dict[str, Any]:
    return {"text": room_sentence(choice_of(s).shape)}


def trouble(s: Snapshot) -> dict[str, Any]:
    return sentence_data(s.state(ShapesState).trouble)


def status(s: Snapshot) -> dict[str, Any]:
    """Show the progress, or describe the built model."""
    state = s.state(ShapesState)
    built = state.built
    if state.busy and (built is None or built.job is not state.job):
        return sentence_data(s.progress or Message("shapes.building"))
    return {"text": "" if built is None else status_sentence(built, state.busy)}


def trained_name(s: Snapshot) -> dict[str, Any]:
    built = s.state(ShapesState).built
    name = "" if built is None else t("shapes.trained", model=short_name(built.model))
    return {"text": name}


def strip(side: int, s: Snapshot) -> dict[str, Any]:
    """Show the text of one of the two models."""
    built = s.state(ShapesState).built
    return {
        "lines": Lines() if built is None else built.lines[side],
        "doc": "" if built is None else str(built.documents[side]),
        "labels": strip_labels(t("shapes.build.empty")),
    }


def stages(s: Snapshot) -> dict[str, Any]:
    built = s.state(ShapesState).built
    return chart_data(None, "") if built is None else stages_chart(built)


VIEWS = (
    View("shape-headline", headline),
    View("shape-notice", notice),
    View("shape-parts", parts),
    View("shape-sizes", sizes),
    View("shape-weights", weights),
    View("shape-cost", cost),
    View("shape-room", room),
    View("shape-trouble", trouble),
    View("shape-status", status),
    View("shape-trained-name", trained_name),
    *(View(f"shape-{name}", partial(strip, side)) for side, name in enumerate(SIDES)),
    View("shape-stages", stages),
)
