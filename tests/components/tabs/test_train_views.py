"""The Train tab's pictures show the numbers of the run."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from components.figures.lines import ZERO_AT, Share, learning_curve, log_grouped, stairs
from components.tabs.train import choices, film, scaling
from components.tabs.train.curve import curve_chart
from components.tabs.train.film import Shown, shares_of_next, shown_at
from components.tabs.train.tab import Train, status_sentence
from gpt.config import GPTConfig
from gpt.experiments.scaling import load_scaling, training_flops
from gpt.experiments.shapes import count_parameters
from gpt.training.live_run import Evaluation, LiveRun
from gpt.training.recipe import Recipe
from gpt.training.tasks import TASKS, TaskDataset
from tests.components.drawing import spoken_in
from tools.scaling import SIZES, llama_recipe


@pytest.fixture(scope="module")
def run() -> LiveRun:
    recipe = Recipe(n_layer=2, n_head=2, n_embd=16, steps=6, batch_size=4, warmup=2)
    run = LiveRun(TaskDataset(TASKS["reverse"]), recipe)
    run.start()
    assert run.wait(120)
    return run


def at(run: LiveRun, step: int | None = None, **chosen: int) -> Shown:
    """Return the run at a step, by default the newest."""
    return shown_at(Train(step=step, **chosen), run, run.progress)


def look_of(weights: np.ndarray) -> Evaluation:
    return Evaluation(0, 1.0, 0.0, (), weights)


@pytest.mark.parametrize("n", [0, 1, 7, 300, 301, 4999])
def test_groups_keep_the_order_and_are_even_on_a_log_scale(n: int) -> None:
    means = log_grouped(np.arange(1, n + 1), 300)
    assert len(means) <= 300
    assert (np.diff(means) > 0).all()
    if n > 300:
        assert means[0] == 1
        assert n * 0.95 < means[-1] <= n
        assert len(log_grouped(np.ones(n), 300)) == len(means)
        assert np.diff(np.log(means))[-20:] == pytest.approx(np.log(n) / 300, rel=0.3)


def test_a_line_through_the_stairs_has_every_jump() -> None:
    rates = np.repeat([1.0, 3.0, 0.3, 1.0], [731, 3, 1, 900])
    kept = stairs(rates)
    assert np.allclose(np.interp(np.arange(len(rates)), kept, rates[kept]), rates)
    assert len(kept) < 120


def test_the_curve_holds_the_numbers_of_the_run(run: LiveRun) -> None:
    progress = run.progress
    _, text, _ = curve_chart(at(run))
    assert f"{progress.evaluations[-1].val_loss:.3f} nats" in text
    assert f"{math.log(run.dataset.vocabulary.n_vocab):.2f}" in text
    assert "of 500 held-out examples" in text
    figure, early, _ = curve_chart(at(run, 0))
    assert f"{progress.evaluations[0].val_loss:.3f} nats" in early
    marks = [shape for shape in figure["layout"]["shapes"] if shape["x0"] == shape["x1"]]
    assert [mark["x0"] for mark in marks] == [ZERO_AT]


def test_shares_have_a_panel_where_there_are_any() -> None:
    some = np.array([1.0, 0.5])
    with_shares = learning_curve(some, some, some, some, [Share("right", some)], steps=2, guessing=1.0)
    without = learning_curve(some, some, some, some, steps=2, guessing=1.0)
    assert len(without["data"]) == len(with_shares["data"]) - 1
    assert "yaxis2" not in without["layout"]
    assert list(with_shares["data"][2]["y"]) == [100, 50]


def test_the_pinned_head_is_the_one_that_attends_to_what_comes_next_at_the_end(run: LiveRun) -> None:
    ids, first = [5, 6, 7, 0, 7, 6, 5], 3  # 0 asks for the reversed letters
    weights = np.zeros((2, 3, 7, 7), np.float16)
    weights[:, :, range(7), range(7)] = 1  # every token attends to itself
    before = look_of(weights.copy())
    for row, column in ((3, 2), (4, 1), (5, 0)):
        weights[1, 2, row] = 0
        weights[1, 2, row, column] = 1
    progress = replace(run.progress, evaluations=(before, look_of(weights)))
    example = SimpleNamespace(dataset=SimpleNamespace(example=ids, query=first), progress=progress)
    assert shares_of_next(before, example).max() == 0
    assert shares_of_next(progress.evaluations[1], example)[1, 2] == 1
    larger = at(example, layer=3, head=0)  # chosen earlier, in a larger model
    for shown, head in ((at(example, 0), (1, 2)), (at(example, layer=0, head=1), (0, 1)), (larger, (1, 2))):
        assert (shown.layer, shown.head) == head


def test_the_heatmap_is_that_head_at_that_step(run: LiveRun) -> None:
    look = run.progress.evaluations[0]
    weights = look.attn_weights[1, 0].astype(np.float32)
    row = run.dataset.query
    assert run.dataset.test_examples[0].prompt[row] == ">"
    best = film.labels(run)[int(weights[row, : row + 1].argmax())]
    text = film.heatmap(at(run, 0, layer=1, head=0))[1]
    assert f"layer 1, head 0 attends most to “{best}”" in text
    assert f"when the model predicts “{run.dataset.test_examples[0].answer[0]}”" in text


def test_samples_say_what_is_right(run: LiveRun) -> None:
    _, *rows = film.samples_rows(at(run))["rows"]
    for row, sample in zip(rows, run.progress.evaluations[-1].samples, strict=True):
        assert row[0] == sample.prompt
        assert row[2] == sample.expected.removesuffix("\n")
        assert row[3] == ("✓ right" if sample.text == sample.expected else "✗ wrong")


def test_every_state_of_a_run_has_its_sentence(run: LiveRun) -> None:
    waiting = LiveRun(TaskDataset(TASKS["add"]), Recipe(n_layer=1, n_head=1, n_embd=8, steps=9))
    for language in ("en", "zh"):
        told = {
            spoken_in(language, status_sentence, waiting, waiting.progress),
            spoken_in(language, status_sentence, run, run.progress),
        }
        assert len(told) == 2
    waiting.cancel()
    assert status_sentence(waiting, waiting.progress) == "Cancelled at step 0."


def test_the_recorded_sizes_are_those_of_their_models() -> None:
    found = load_scaling()
    assert [curve.name for curve in found.curves[:-1]] == list(SIZES)
    for curve, (n_layer, n_head, n_embd) in zip(found.curves, SIZES.values(), strict=False):
        config = GPTConfig(vocab_size=4096, block_size=256, n_layer=n_layer, n_head=n_head, n_embd=n_embd)
        assert curve.parameters == count_parameters(config)
        assert curve.block_parameters == curve.parameters - (4096 + 256) * n_embd
        for point in curve.points:
            assert point.flops == pytest.approx(point.tokens * training_flops(config))
    for curve, (n_layer, n_head, n_embd) in zip(found.llama, SIZES.values(), strict=True):
        config = llama_recipe(Recipe(n_layer=n_layer, n_head=n_head, n_embd=n_embd)).model_config(4096)
        assert curve.parameters == count_parameters(config)
        assert curve.points[-1].flops == pytest.approx(curve.points[-1].tokens * training_flops(config))
        assert [point.tokens for point in curve.points] == [point.tokens for point in found.curves[0].points]
    bundled = found.curves[-1]
    assert (bundled.points[-1].tokens, bundled.parameters) == (20_480_000, 4_394_880)
    # The model card states the same loss for the first part.
    assert bundled.points[-1].bits_per_byte == pytest.approx(0.6481, abs=2e-4)


def test_the_scaling_pictures_say_what_was_measured() -> None:
    found = load_scaling()
    common = min(len(curve.points) for curve in found.curves[:-1]) - 1
    small, large = found.curves[0].points[common], found.curves[-2].points[common]
    assert small.tokens == large.tokens
    text = scaling.by_tokens(found)[1]
    assert f"{small.loss - large.loss:.2f} nats ahead" in text
    assert f"{found.llama[-1].points[-1].loss:.2f}." in text
    budget = min(curve.points[-1].flops for curve in found.curves[:-1])
    best = min(found.curves[:-1], key=lambda curve: scaling.loss_at(curve, budget))
    assert scaling.named(best) in scaling.by_flops(found)[1]
    for draw in scaling.PICTURES.values():
        *lines, star = spoken_in("zh", draw, found)[0]["data"]
        assert sum("Llama" in line["name"] for line in lines) == (1 if draw is scaling.by_parameters else 3)
        assert sum("Llama" not in line["name"] for line in lines) >= 3
        assert star["marker"]["symbol"] == "star"
    assert "0.648 bits per byte" in scaling.limitations(found)


@pytest.mark.parametrize(("number", "said"), [(98_432, "98\u00a0k"), (2_097_152, "2.1\u00a0M"), (6.3e12, "6.3 × 10¹²")])
def test_large_numbers_are_short(number: float, said: str) -> None:
    assert scaling.short(number) == said


def test_the_same_example_explains_a_task_in_both_languages() -> None:
    for kind, task in TASKS.items():
        longest = [
            max(re.findall(f"[{re.escape(task.characters)}]+", spoken_in(each, choices.about, kind)), key=len)
            for each in ("en", "zh")
        ]
        assert longest[0].rstrip(".") == longest[1]
