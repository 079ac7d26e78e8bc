"""What the Shapes tab says of a configuration: values for its widgets, no components."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from components.figures.part_bars import part_bars
from components.frame import short_name
from components.i18n import Language, t
from components.panels.parameter_bars import parameter_bars, parameter_count, size_rows
from components.widgets.chart import chart_value
from components.widgets.encoding import to_json
from components.widgets.table import table_value
from gpt import GPTConfig
from gpt.experiments.random_models import MAX_MEMORY_BYTES, ModuleShape, memory_bytes
from gpt.experiments.shapes import count_parameters, flops_per_token
from gpt.models.memory import format_bytes

MODULES = {
    "idx": "shapes.stage.idx",
    "wte": "shapes.stage.wte",
    "wpe": "shapes.stage.wpe",
    "h.0.attn.c_attn": "shapes.stage.c_attn",
    "h.0.attn.c_proj": "shapes.stage.attention",
    "h.0.mlp.c_fc": "shapes.stage.c_fc",
    "h.0.mlp.c_proj": "shapes.stage.feed_forward",
    "ln_f": "shapes.stage.ln_f",
    "lm_head": "shapes.stage.lm_head",
}


@dataclass(frozen=True)
class Facts:
    """What is known of a model that was built and has written.

    stages: of one forward pass over its prompt. model: the trained one beside it. n_tokens: written by it, 0 where
    it was stopped. example: of the page's own text and shape, shown before anything was built.
    """

    config: GPTConfig
    skeleton: bool
    stages: tuple[ModuleShape, ...]
    seconds: float
    model: str
    n_tokens: int
    seed: int
    example: bool = False


def headline(config: GPTConfig, skeleton: bool, language: Language) -> str:
    """All parameters in one number."""
    return parameter_count(config, skeleton, language)


def parts(config: GPTConfig, skeleton: bool, language: Language) -> str:
    """The parameters of each part as bars."""
    return to_json(parameter_bars(config, skeleton, language))


def sizes(config: GPTConfig, skeleton: bool, language: Language) -> str:
    """Weights and KV cache in each type of number."""
    return table_value(size_rows(config, skeleton, language))


def cost(config: GPTConfig, skeleton: bool, language: Language) -> str:
    """Operations of one token, at the beginning and at the end of the context."""
    last = config.block_size - 1
    first, end = (flops_per_token(config, position, skeleton=skeleton) for position in (0, last))
    return t(
        "shapes.cost",
        language,
        first=operations(first.total),
        end=operations(end.total),
        position=f"{last:,}",
        matrices=operations(end.matrices),
        attention=operations(end.attention),
    )


def fits(config: GPTConfig, skeleton: bool) -> bool:
    """Whether such a model may be built here."""
    return memory_bytes(config, skeleton=skeleton) <= MAX_MEMORY_BYTES


def room(config: GPTConfig, skeleton: bool, language: Language) -> str:
    """What building it would take, and the limit."""
    need = format_bytes(memory_bytes(config, skeleton=skeleton))
    key = "shapes.room" if fits(config, skeleton) else "shapes.room.none"
    return t(key, language, need=need, limit=format_bytes(MAX_MEMORY_BYTES))


def status(facts: Facts | None, language: Language) -> str:
    """What was built, and how it wrote."""
    if facts is None:
        return ""
    said = t("shapes.status.example", language) if facts.example else ""
    return said + t(
        "shapes.status" if facts.n_tokens else "shapes.status.stopped",
        language,
        n=f"{count_parameters(facts.config, skeleton=facts.skeleton):,}",
        seconds=f"{facts.seconds:.2f}",
        tokens=facts.n_tokens,
        seed=facts.seed,
    )


def trained(model: str, language: Language) -> str:
    """The name of the trained side."""
    return t("shapes.trained", language, model=short_name(model, language)) if model else ""


def stages(facts: Facts | None, language: Language) -> str:
    """The shapes of a forward pass, each stage as wide as its vectors."""
    if facts is None:
        return ""
    n_layer = facts.config.n_layer
    last = f"h.{n_layer - 1}"
    names, shapes = [], []
    for stage in facts.stages:
        if stage.name == last:
            names.append(t("shapes.stage.identity" if facts.skeleton else "shapes.stage.blocks", language, n=n_layer))
        elif stage.name in MODULES:
            key = "shapes.stage.no_norm" if facts.skeleton and stage.name == "ln_f" else MODULES[stage.name]
            names.append(t(key, language))
        else:
            continue
        shapes.append(stage.shape)
    widths = np.array([shape[-1] if i else 1 for i, shape in enumerate(shapes)])
    figure = part_bars(names, widths, [written(shape) for shape in shapes])
    text = t("shapes.stages.says", language, first=written(shapes[0]), last=written(shapes[-1]))
    return chart_value(figure, text, t("shapes.stages.skeleton", language) if facts.skeleton else "")


def written(shape: tuple[int, ...]) -> str:
    """A shape as in code."""
    return f"[{', '.join(map(str, shape))}]"


def operations(n: int) -> str:
    """A number of floating-point operations: 284,812,032 is 285 MFLOP."""
    for unit, size in (("T", 10**12), ("G", 10**9), ("M", 10**6), ("k", 10**3)):
        if n >= 0.9995 * size:  # which three digits would write as 1,000 of the unit below
            return f"{n / size:.3g} {unit}FLOP"
    return f"{n} FLOP"
