"""Figures for the lessons on configurations: sizes, parameters, layouts, cost."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from components.figures.lines import lines
from components.i18n import spoken
from components.panels.shape_settings import parameter_bars, parameter_count, shape_of, size_rows, values_of
from components.tabs.lessons.figure import Drawn, Open, words
from components.widgets.chart import Drawing
from gpt import PRESETS, GPTConfig
from gpt.experiments.shapes import UNTIED_124M, cache_numbers, next_token_multiplications
from gpt.model import meta_model
from gpt.models.checkpoints.layouts import BOOK, MATRICES
from gpt.models.checkpoints.translate import role_of, their_name
from gpt.models.memory import format_bytes


def configuration(s: Any) -> Drawn:
    chosen = {name: getattr(s[Open], name) for name in ("n_embd", "n_head", "n_layer")}
    config = shape_of(values_of(PRESETS["gpt2"]) | chosen)
    says = words("configuration", size=config.head_size, total=parameter_count(config, False))
    return Drawn(says, chart=parameter_bars(config, False))


def parameters(s: Any) -> Drawn:
    """Count the 124M configuration's parameters with or without weight tying, and list its size in each data type."""
    config = UNTIED_124M if s[Open].tying == "untied" else GPTConfig(qkv_bias=False)
    rows = size_rows(config, False)
    return Drawn(parameter_count(config, False), chart=parameter_bars(config, False), table=rows)


def layouts(s: Any) -> Drawn:
    rows = name_rows(s[Open].layout)
    head = [words(key) for key in ("theirs", "shape", "ours", "shape")]
    return Drawn(words(f"layouts.{s[Open].layout}", n=len(rows)), table=[head, *rows])


@lru_cache(maxsize=4)
def name_rows(layout: str) -> list[list[str]]:
    """Return the names and shapes of each kind of weight in both layouts, with one row for all layers."""
    rows = []
    for ours, tensor in meta_model(GPTConfig(n_layer=1)).state_dict().items():
        here = [ours, str(list(tensor.shape))]
        if layout == "book" and ".c_attn." in ours:  # three weights: for query, key and value
            third = [tensor.shape[0] // 3, *tensor.shape[1:]]
            rows += [[their_name(ours.replace("c_attn", letter), BOOK), str(third), *here] for letter in "qkv"]
        elif layout == "book":
            rows.append([their_name(ours, BOOK), str(list(tensor.shape)), *here])
        else:
            is_matrix = role_of(ours).removesuffix(".weight") in MATRICES
            theirs = tensor.t() if layout == "hugging_face" and is_matrix else tensor
            name = ours if ours == "lm_head.weight" else f"transformer.{ours}"
            rows.append([name, str(list(theirs.shape)), *here])
    return rows


def cost(s: Any) -> Drawing:
    """Plot the multiplications needed for one more token against the text length, with and without a KV cache."""
    config = PRESETS[s[Open].preset]
    length = min(s[Open].tokens, config.block_size)
    lengths = np.unique(np.linspace(1, config.block_size, 65, dtype=int))
    counts = {
        cached: np.array([next_token_multiplications(config, int(n), cached=cached) for n in lengths])
        for cached in (True, False)
    }
    figure = lines(
        lengths,
        {words("cached"): counts[True], words("uncached"): counts[False]},
        x_title=words("tokens"),
        y_title=words("multiplications"),
        mark=("", length),
        log_y=True,
    )
    with_cache, without = (next_token_multiplications(config, length, cached=cached) for cached in (True, False))
    unit = 1e8 if spoken() == "zh" else 1e6  # Chinese text uses units of 10⁸
    each = 4 * cache_numbers(config)  # bytes per token
    return figure, words(
        "cost",
        model=words(f"next.choice.{s[Open].preset}"),
        n=f"{length:,}",
        cached=f"{with_cache / unit:,.1f}",
        uncached=f"{without / unit:,.1f}",
        times=f"{without / with_cache:,.0f}",
        memory=format_bytes(each * length),
        each=format_bytes(each),
    )
