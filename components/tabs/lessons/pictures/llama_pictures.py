"""Figures for the lessons on changes since GPT-2: both bundled models side by side on one text."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np

from components.figures.bars import grouped_bars
from components.figures.lines import lines
from components.labels import decimal, percent
from components.tabs.lessons.pictures.picture import EXAMPLE, Drawn, Picture, Scene, SliderSpec
from components.widgets.chart import chart_data
from gpt import DEFAULT_MODEL, GPT, LoadedModel, get_model, load_model
from gpt.experiments.architectures import (
    bias_effect,
    cache_bytes,
    neuron_counts,
    norm_effect,
    shift_effect,
    token_seconds,
)
from gpt.experiments.shapes import flops_per_token, parameter_parts
from gpt.models.memory import format_bytes
from gpt.models.sources import LLAMA_MODEL

NAMES = {"gpt2": DEFAULT_MODEL, "llama": LLAMA_MODEL}
MAX_SHIFT = 200
SHIFTS = tuple(range(0, MAX_SHIFT + 1, 8))
MAX_CACHED = 256  # context length of both models, in tokens


def models() -> dict[str, LoadedModel]:
    """Return the bundled models with the GPT-2 and Llama architectures."""
    return {shape: get_model(name) for shape, name in NAMES.items()}


def ids_of(scene: Scene, loaded: LoadedModel, least: int = 1) -> list[int]:
    """Encode the scene's text in a model's vocabulary, with the same checks as `Scene.ids`."""
    return replace(scene, loaded=loaded).ids(least)


def table(scene: Scene, *rows: tuple[object, ...]) -> list[list[str]]:
    """Return a table with a header and, in each row, a name and both models' values."""
    head = ["", scene.t("llama.gpt2"), scene.t("llama.llama")]
    return [head, *([scene.t(f"llama.{name}"), str(one), str(other)] for name, one, other in rows)]


def groups(scene: Scene, gpt2: np.ndarray, llama: np.ndarray) -> dict[str, np.ndarray]:
    """Return both models' values, keyed by the models' displayed names."""
    return {scene.t("llama.gpt2"): gpt2, scene.t("llama.llama"): llama}


def rms_norm(scene: Scene) -> Drawn:
    """Compare the mean and root mean square of the last token's vector before and after a layer's first norm."""
    layer = int(scene.a)
    effects = {shape: norm_effect(m.model, ids_of(scene, m), layer) for shape, m in models().items()}
    gpt2, llama = effects["gpt2"], effects["llama"]
    rows = (np.array([effect.mean_after, effect.rms_after]) for effect in (gpt2, llama))
    names = [scene.t("llama.mean_after"), scene.t("llama.rms_after")]
    figure = grouped_bars(names, groups(scene, *rows), y_title="")
    text = scene.t(
        "rms_norm",
        layer=layer,
        mean=decimal(llama.mean_before, 2),
        after=decimal(llama.mean_after, 2),
        rms=decimal(llama.rms_after, 2),
    )
    widths = {shape: m.model.config.n_embd for shape, m in models().items()}
    parts = {shape: parameter_parts(m.model.config)["norms"] for shape, m in models().items()}
    content = table(
        scene,
        ("mean_change", *(f"{decimal(e.mean_before, 2)} → {decimal(e.mean_after, 2)}" for e in (gpt2, llama))),
        ("rms_change", *(f"{decimal(e.rms_before, 2)} → {decimal(e.rms_after, 2)}" for e in (gpt2, llama))),
        ("norm.learned", f"2 × {widths['gpt2']}", widths["llama"]),
        ("norm.all", f"{parts['gpt2']:,}", f"{parts['llama']:,}"),
    )
    return Drawn(chart=chart_data(figure, text), table=content)


def rotary(scene: Scene) -> Drawn:
    """Plot how much the next-token prediction changes when all positions in the text are shifted."""
    shift = int(scene.a) // SHIFTS[1] * SHIFTS[1]
    changed = {shape: shift_effect(m.model, ids_of(scene, m), SHIFTS).numpy() for shape, m in models().items()}
    figure = lines(
        np.array(SHIFTS),
        groups(scene, **changed),
        x_title=scene.t("llama.shift"),
        y_title=scene.t("llama.changed"),
        mark=("", shift),
    )
    here = {shape: percent(float(values[SHIFTS.index(shift)])) for shape, values in changed.items()}
    sizes = (f"{parameter_parts(m.model.config)['position_embedding']:,}" for m in models().values())
    return Drawn(
        chart=chart_data(figure, scene.t("rotary", n=shift, **here)), table=table(scene, ("position.learned", *sizes))
    )


def swiglu(scene: Scene) -> Drawn:
    """Plot a layer's neuron activations at the last token in both models, sorted by magnitude."""
    layer = int(scene.a)
    counts = {shape: neuron_counts(m.model, ids_of(scene, m), layer) for shape, m in models().items()}
    longest = max(len(count.values) for count in counts.values())
    sizes = {
        shape: np.pad(np.sort(count.values.abs().numpy())[::-1], (0, longest - len(count.values)))
        for shape, count in counts.items()
    }
    figure = lines(
        np.arange(1, longest + 1), groups(scene, **sizes), x_title=scene.t("llama.rank"), y_title=scene.t("llama.size")
    )
    text = scene.t("swiglu", layer=layer, **{shape: percent(count.active) for shape, count in counts.items()})
    gpt2, llama = counts["gpt2"], counts["llama"]
    content = table(
        scene,
        ("neurons.matrices", gpt2.n_matrices, llama.n_matrices),
        ("neurons.number", len(gpt2.values), len(llama.values)),
        ("neurons.weights", f"{gpt2.n_weights:,}", f"{llama.n_weights:,}"),
    )
    return Drawn(chart=chart_data(figure, text), table=content)


def grouped_queries(scene: Scene) -> Drawn:
    """Plot the memory used by the key-value cache against the length of the text."""
    n, lengths = int(scene.a), np.arange(0, MAX_CACHED + 1, 16)
    configs = {shape: m.model.config for shape, m in models().items()}
    used = {shape: lengths * cache_bytes(config, 1) / 2**20 for shape, config in configs.items()}
    figure = lines(
        lengths, groups(scene, **used), x_title=scene.t("tokens"), y_title=scene.t("llama.memory"), mark=("", n)
    )
    gpt2, llama = configs["gpt2"], configs["llama"]
    here = {shape: format_bytes(cache_bytes(config, n)) for shape, config in configs.items()}
    times = f"{cache_bytes(gpt2, 1) / cache_bytes(llama, 1):g}"
    content = table(
        scene,
        ("heads.queries", gpt2.n_head, llama.n_head),
        ("heads.keys", gpt2.kv_heads, llama.kv_heads),
        ("heads.token", format_bytes(cache_bytes(gpt2, 1)), format_bytes(cache_bytes(llama, 1))),
    )
    return Drawn(chart=chart_data(figure, scene.t("grouped_queries", n=n, times=times, **here)), table=content)


def no_biases(scene: Scene) -> Drawn:
    """Compare the loss with and without each model's biases, and list both models' sizes, costs and losses."""
    gpt2, llama = (bias_effect(exact(name), ids_of(scene, get_model(name), least=2)) for name in NAMES.values())
    figure = grouped_bars(
        [scene.t("llama.loss"), scene.t("llama.loss_without")],
        groups(scene, np.array([gpt2.loss, gpt2.loss_without]), np.array([llama.loss, llama.loss_without])),
        y_title=scene.t("nats"),
    )
    one, other = (m.model.config for m in models().values())
    times = token_seconds([m.model for m in models().values()], ids_of(scene, get_model()))
    content = table(
        scene,
        ("biases", f"{gpt2.n_biases:,}", f"{llama.n_biases:,}"),
        ("parameters", *(f"{sum(parameter_parts(config).values()):,}" for config in (one, other))),
        ("operations", *(f"{flops_per_token(config, MAX_CACHED - 1).total / 1e6:.1f}" for config in (one, other))),
        ("heads.token", format_bytes(cache_bytes(one, 1)), format_bytes(cache_bytes(other, 1))),
        ("milliseconds", *(f"{1000 * seconds:.2f}" for seconds in times)),
        ("loss.text", f"{gpt2.loss:.2f}", f"{llama.loss:.2f}"),
    )
    text = scene.t("no_biases", loss=f"{gpt2.loss:.2f}", without=f"{gpt2.loss_without:.2f}", n=f"{gpt2.n_biases:,}")
    return Drawn(chart=chart_data(figure, text), table=content)


@lru_cache(maxsize=2)
def exact(name: str) -> GPT:
    """Return a bundled model, its weights unpacked so that experiments can replace them."""
    return load_model(name, device="cpu", trainable=True).model.eval()


LAYER = SliderSpec("attention.layer", 0, 7, 1, 3)  # both models have eight layers
PICTURES: dict[str, Picture] = {
    "rms_norm": Picture(rms_norm, text=EXAMPLE, a=LAYER),
    "rotary": Picture(rotary, text=EXAMPLE, a=SliderSpec("picture.llama.shift", 0, MAX_SHIFT, SHIFTS[1], 96)),
    "swiglu": Picture(swiglu, text=EXAMPLE, a=LAYER),
    "grouped_queries": Picture(grouped_queries, a=SliderSpec("picture.tokens", 1, MAX_CACHED, 1, 128)),
    "no_biases": Picture(no_biases, text=EXAMPLE),
}
