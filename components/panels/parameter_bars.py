"""The size of a configuration: parameter counts in total and by part, and memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from components.figures.bars import size_bars
from components.i18n import t
from components.labels import percent
from components.widgets.chart import chart_data
from gpt import GPTConfig
from gpt.experiments.shapes import NUMBER_BYTES, Part, cache_numbers, count_parameters, parameter_parts, weight_shapes
from gpt.models.memory import format_bytes

PARTS: dict[Part, str] = {
    "token_embedding": "shapes.part.token_embedding",
    "position_embedding": "shapes.part.position_embedding",
    "attention": "shapes.part.attention",
    "feed_forward": "shapes.part.feed_forward",
    "norms": "shapes.part.norms",
    "head": "shapes.part.head",
}
IN_BLOCKS = ("attention", "feed_forward")


def parameter_count(config: GPTConfig, skeleton: bool) -> str:
    return t("shapes.headline", n=f"{count_parameters(config, skeleton=skeleton):,}")


def size_rows(config: GPTConfig, skeleton: bool) -> list[list[str]]:
    """Return a table of the memory needed by weights and KV cache for each data type."""
    n_cache = 0 if skeleton else cache_numbers(config)
    numbers = {
        t("shapes.size.weights"): count_parameters(config, skeleton=skeleton),
        t("shapes.size.cache"): n_cache,
        t("shapes.size.context", n=f"{config.block_size:,}"): n_cache * config.block_size,
    }
    rows = [[name, *(format_bytes(n * size) for size in NUMBER_BYTES.values())] for name, n in numbers.items()]
    return [["", *NUMBER_BYTES], *rows]


def weight_rows(config: GPTConfig, skeleton: bool) -> list[list[str]]:
    """Return a table of all weights, with one row for a weight repeated in every block."""
    rows = [[t(f"shapes.weight.{column}") for column in ("name", "shape", "copies", "parameters")]]
    for weight in weight_shapes(config, skeleton=skeleton):
        rows.append([weight.name, str(list(weight.shape)), f"× {weight.copies}", f"{weight.n_parameters:,}"])
    return rows


def parameter_bars(config: GPTConfig, skeleton: bool) -> dict[str, Any]:
    """Draw each part's parameters as bars; shared or replaced parts are outlined."""
    counts = parameter_parts(config, skeleton=skeleton)
    whole = parameter_parts(config) | {"head": config.vocab_size * config.n_embd}
    total = sum(counts.values())
    names, labels = [], []
    for part, key in PARTS.items():
        name = t(key)
        names.append(f"{name} × {config.n_layer}" if part in IN_BLOCKS else name)
        if counts[part] or not whole[part]:
            labels.append(f"{counts[part]:,} · {percent(counts[part] / total)}")
        else:
            key = "shapes.part.shared" if part == "head" else "shapes.part.replaced"
            labels.append(t(key, n=f"{whole[part]:,}"))
    blocks = np.array([config.n_layer if part in IN_BLOCKS else 1 for part in PARTS])
    figure = size_bars(
        names,
        np.array([counts[part] for part in PARTS]),
        labels,
        ghosts=np.array([0 if counts[part] else whole[part] for part in PARTS]),
        blocks=blocks,
    )
    own = total if counts["head"] else total + whole["head"]
    largest = max(counts, key=counts.__getitem__)
    text = t(
        "shapes.parts.says",
        part=t(PARTS[largest]),
        share=percent(counts[largest] / total),
        untied=f"{own:,}",
        tied=f"{own - whole['head']:,}",
        shape=f"[{config.vocab_size}, {config.n_embd}]",
    )
    return chart_data(figure, text)
