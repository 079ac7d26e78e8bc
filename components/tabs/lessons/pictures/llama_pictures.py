"""Figures for the lessons on changes since GPT-2: both bundled models side by side on one text."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np

from components.figures.bars import grouped_bars
from components.figures.lines import lines
from components.labels import decimal, percent
from components.tabs.lessons.figure import Drawn, Open, checked_ids, computed, words
from gpt import DEFAULT_MODEL, GPT, GPTConfig, get_model, load_model
from gpt.analysis.tracing import trace_text
from gpt.experiments.architectures import Moments, bias_effect, norm_effect, shift_effect, token_seconds
from gpt.experiments.shapes import cache_numbers, flops_per_token, parameter_parts
from gpt.models.memory import format_bytes
from gpt.models.sources import LLAMA_MODEL

T = TypeVar("T")
NAMES = {"gpt2": DEFAULT_MODEL, "llama": LLAMA_MODEL}
SHIFTS = tuple(range(0, 201, 8))
ACTIVE = 0.1  # magnitude above which a neuron counts as active
MAX_CACHED = 256  # context length of both models, in tokens


def of_both(s: Any, measure: Callable[[GPT, list[int]], T]) -> dict[str, T]:
    """Measure both bundled models, with the GPT-2 and Llama architectures, on the text in their vocabularies."""
    models = {shape: get_model(name) for shape, name in NAMES.items()}
    return {shape: measure(loaded.model, checked_ids(loaded, s[Open].text)) for shape, loaded in models.items()}


@computed
def configs(s: Any) -> dict[str, GPTConfig]:
    return {shape: get_model(name).model.config for shape, name in NAMES.items()}


def table(*rows: tuple[object, ...]) -> list[list[str]]:
    head = ["", words("llama.gpt2"), words("llama.llama")]
    return [head, *([words(f"llama.{name}"), str(one), str(other)] for name, one, other in rows)]


def groups(gpt2: np.ndarray, llama: np.ndarray) -> dict[str, np.ndarray]:
    return {words("llama.gpt2"): gpt2, words("llama.llama"): llama}


@computed
def norm_effects(s: Any) -> dict[str, tuple[Moments, ...]]:
    return of_both(s, lambda model, ids: norm_effect(model, ids, s[Open].shared_layer))


def rms_norm(s: Any) -> Drawn:
    """Compare the mean and root mean square of the last token's vector before and after a layer's first norm."""
    gpt2, llama = s[norm_effects].values()
    names = [words("llama.mean_after"), words("llama.rms_after")]
    bars = groups(*(np.array(after) for _, after in (gpt2, llama)))
    before, after = llama
    means = {"mean": decimal(before.mean, 2), "after": decimal(after.mean, 2)}
    text = words("rms_norm", layer=s[Open].shared_layer, rms=decimal(after.rms, 2), **means)
    one, other = s[configs].values()
    content = table(
        ("mean_change", *(" → ".join(decimal(each.mean, 2) for each in effect) for effect in (gpt2, llama))),
        ("rms_change", *(" → ".join(decimal(each.rms, 2) for each in effect) for effect in (gpt2, llama))),
        ("norm.learned", f"2 × {one.n_embd}", other.n_embd),
        ("norm.all", *(f"{parameter_parts(config)['norms']:,}" for config in (one, other))),
    )
    return Drawn(chart=(grouped_bars(names, bars, y_title=""), text), table=content)


@computed
def shift_effects(s: Any) -> dict[str, np.ndarray]:
    return of_both(s, lambda model, ids: shift_effect(model, ids, SHIFTS).numpy())


def rotary(s: Any) -> Drawn:
    """Plot how much the next-token prediction changes when all positions in the text are shifted."""
    shift = s[Open].shift // SHIFTS[1] * SHIFTS[1]
    changed = s[shift_effects]
    x_title, y_title = words("shift"), words("llama.changed")
    figure = lines(np.array(SHIFTS), groups(**changed), x_title=x_title, y_title=y_title, mark=("", shift))
    here = {shape: percent(float(values[SHIFTS.index(shift)])) for shape, values in changed.items()}
    sizes = (f"{parameter_parts(config)['position_embedding']:,}" for config in s[configs].values())
    return Drawn(chart=(figure, words("rotary", n=shift, **here)), table=table(("position.learned", *sizes)))


@computed
def neurons(s: Any) -> dict[str, np.ndarray]:
    """Return the magnitudes of the inputs to a layer's last matrix at the last token, (n_ff,), in descending order."""

    def sizes(model: GPT, ids: list[int]) -> np.ndarray:
        values = trace_text(model, ids).layers[s[Open].shared_layer].mlp_post[0, -1]
        return np.sort(values.float().abs().cpu().numpy())[::-1]

    return of_both(s, sizes)


def swiglu(s: Any) -> Drawn:
    """Plot a layer's neuron activations at the last token in both models, sorted by magnitude."""
    found = s[neurons]
    longest = max(map(len, found.values()))
    sizes = {shape: np.pad(values, (0, longest - len(values))) for shape, values in found.items()}
    figure = lines(np.arange(1, longest + 1), groups(**sizes), x_title=words("llama.rank"), y_title=words("llama.size"))
    active = {shape: percent(float((values > ACTIVE).mean())) for shape, values in found.items()}
    text = words("swiglu", layer=s[Open].shared_layer, **active)
    matrices = {config: 3 if config.gated else 2 for config in s[configs].values()}
    content = table(
        ("neurons.matrices", *matrices.values()),
        ("neurons.number", *map(len, found.values())),
        ("neurons.weights", *(f"{n * config.n_embd * config.ff_size:,}" for config, n in matrices.items())),
    )
    return Drawn(chart=(figure, text), table=content)


def cache_bytes(config: GPTConfig, n_tokens: int = 1) -> int:
    return 4 * cache_numbers(config) * n_tokens


def grouped_queries(s: Any) -> Drawn:
    n, lengths = s[Open].cached, np.arange(0, MAX_CACHED + 1, 16)
    used = {shape: lengths * cache_bytes(config) / 2**20 for shape, config in s[configs].items()}
    figure = lines(lengths, groups(**used), x_title=words("tokens"), y_title=words("llama.memory"), mark=("", n))
    gpt2, llama = s[configs].values()
    here = {shape: format_bytes(cache_bytes(config, n)) for shape, config in s[configs].items()}
    times = f"{cache_bytes(gpt2) / cache_bytes(llama):g}"
    content = table(
        ("heads.queries", gpt2.n_head, llama.n_head),
        ("heads.keys", gpt2.kv_heads, llama.kv_heads),
        ("heads.token", format_bytes(cache_bytes(gpt2)), format_bytes(cache_bytes(llama))),
    )
    return Drawn(chart=(figure, words("grouped_queries", n=n, times=times, **here)), table=content)


@computed
def bias_effects(s: Any) -> list[tuple[int, float, float]]:
    encoded = (checked_ids(get_model(name), s[Open].text, least=2) for name in NAMES.values())
    return [bias_effect(exact(name), ids) for name, ids in zip(NAMES.values(), encoded, strict=True)]


@computed
def seconds(s: Any) -> list[float]:
    models = [get_model(name).model for name in NAMES.values()]
    return token_seconds(models, checked_ids(get_model(), s[Open].text))


def no_biases(s: Any) -> Drawn:
    """Compare the loss with and without each model's biases, and list both models' sizes, costs and losses."""
    (n_gpt2, *gpt2), (n_llama, *llama) = s[bias_effects]  # numbers of biases, losses with and without them
    figure = grouped_bars(
        [words("llama.loss"), words("llama.loss_without")],
        groups(np.array(gpt2), np.array(llama)),
        y_title=words("nats"),
    )
    one, other = s[configs].values()
    content = table(
        ("biases", f"{n_gpt2:,}", f"{n_llama:,}"),
        ("parameters", *(f"{sum(parameter_parts(config).values()):,}" for config in (one, other))),
        ("operations", *(f"{sum(flops_per_token(config, MAX_CACHED - 1)) / 1e6:.1f}" for config in (one, other))),
        ("heads.token", format_bytes(cache_bytes(one)), format_bytes(cache_bytes(other))),
        ("milliseconds", *(f"{1000 * each:.2f}" for each in s[seconds])),
        ("loss.text", f"{gpt2[0]:.2f}", f"{llama[0]:.2f}"),
    )
    text = words("no_biases", loss=f"{gpt2[0]:.2f}", without=f"{gpt2[1]:.2f}", n=f"{n_gpt2:,}")
    return Drawn(chart=(figure, text), table=content)


@lru_cache(maxsize=2)
def exact(name: str) -> GPT:
    """Return a bundled model, its weights unpacked so that experiments can replace them."""
    return load_model(name, device="cpu", trainable=True).model.eval()
