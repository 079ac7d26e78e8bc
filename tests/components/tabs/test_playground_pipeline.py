"""The pipeline card: its tables and its chart contain the numbers of the stages, whatever the settings."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from components.figures.lines import spread
from components.state.settings import LIMITS, sampling_params
from components.tabs.playground import stages as views
from components.tabs.playground.generation import PRESETS
from gpt import Generation, SamplingParams
from gpt.analysis.sampling_stages import sampling_stages, token_at_stages
from tests.components.drawing import spoken_in
from tests.gpt.fake_models import N_VOCAB, tiny_model

DOCUMENT = Generation(tiny_model(), "the cat <b>")
DOCUMENT.read()
LAST = len(DOCUMENT.ids) - 1
EVERYTHING = SamplingParams(temperature=0.8, top_k=40, top_p=0.9, min_p=0.05, repetition_penalty=1.3)


def pipeline_at_end(params=EVERYTHING, followed=97):
    return views.PipelineView(DOCUMENT, LAST, params, followed)


def test_the_table_of_stages_adds_up():
    head, *rows = views.stage_table(pipeline_at_end())
    assert head == ["stage", "removes", "entropy, bits", "perplexity"]
    assert [row[0] for row in rows] == [
        "repetition 1.3",
        "temperature 0.8",
        "Top-k 40",
        "Top-p 0.9",
        "Min-p 0.05",
        "all settings",
    ]
    removed = [int(row[1].split(" (")[0].replace(",", "")) if row[1] != "–" else 0 for row in rows]
    assert sum(removed[:-1]) == removed[-1]
    assert removed[2] == N_VOCAB - 40
    ends = [row[2].split(" → ") for row in rows]
    assert all(before[-1] == after[0] for before, after in pairwise(ends[:-1]))
    assert (ends[0][0], ends[-2][-1]) == (ends[-1][0], ends[-1][-1])
    raw = DOCUMENT.logits(LAST).double().softmax(0)
    entropy = -(raw * raw.log2()).sum().item()
    assert ends[0][0] == f"{entropy:.2f}"
    assert float(rows[0][3].split(" → ")[0]) == pytest.approx(2**entropy, rel=0.01)


def test_a_stage_that_is_off_says_so_and_changes_nothing():
    rows = (views.stage_table(pipeline_at_end(SamplingParams())))[1:]
    assert [row[0] for row in rows[2:5]] == ["Top-k off", "Top-p off", "Min-p off"]
    assert {tuple(row[1:]) for row in rows} == {tuple(rows[0][1:])}
    assert rows[0][1] == "–"


def test_the_followed_token_has_its_logit_and_probability_after_each_stage():
    raw = DOCUMENT.logits(LAST)
    best = int(raw.argmax())
    first, *_, last = (views.token_table(pipeline_at_end(SamplingParams(temperature=0.5), best)))[1:]
    assert first[1] == f"{raw[best].item():.2f}".replace("-", "−")
    assert last[1] == f"{2 * raw[best].item():.2f}".replace("-", "−")
    assert (first[4], last[4]) == ("1", "1")
    worst = int(raw.argmin())
    assert (views.token_table(pipeline_at_end(SamplingParams(top_k=1), worst)))[-1][1:] == ["−∞", "−∞", "0", "–"]


@pytest.mark.parametrize("unit", ["probability", "log_probability", "logit"])
def test_each_line_of_the_picture_is_one_token_and_ends_where_it_was_removed(unit):
    content = views.stage_chart(pipeline_at_end(followed=3), unit)
    data = content["figure"]["data"]
    lines = {line["customdata"][0]: line for line in data}
    assert 3 in lines
    assert len(lines) == len(data)
    for token_id, line in lines.items():
        rows = token_at_stages(DOCUMENT.logits(LAST), pipeline_at_end().stages, token_id)[:-1]
        values = [getattr(row, unit) for row in rows if row.rank is not None]
        removed = len(values) < 6
        assert line["y"] == pytest.approx([*values, values[-1]] if removed else values)
        assert line["marker"]["symbol"] == ["circle"] * len(values) + ["x"] * removed
    assert "<b>" not in str(content["figure"]["layout"])


def test_the_likeliest_are_those_that_can_be_drawn_and_then_those_that_could_have_been():
    kept = pipeline_at_end(SamplingParams(top_k=3)).likeliest
    raw = DOCUMENT.logits(LAST).argsort(descending=True, stable=True).tolist()
    assert kept == raw[: views.MAX_CHOICES]


def test_the_sentence_names_the_stage_that_removed_the_token():
    worst = int(DOCUMENT.logits(LAST).argmin())
    assert "before Top-k removed it" in views.sentence(pipeline_at_end(SamplingParams(top_k=5), worst))
    assert "5 of 260 tokens can be drawn" in views.sentence(pipeline_at_end(SamplingParams(top_k=5), worst))
    assert "在“Top-p”这一步被去掉了" in spoken_in(
        "zh", views.sentence, pipeline_at_end(SamplingParams(top_p=0.1), worst)
    )


@given(st.lists(st.floats(0, 100), min_size=1, max_size=12))
def test_names_keep_their_order_and_their_distance(heights):
    places = spread(np.sort(heights)[::-1], 8.0, 0.0, 100.0)
    assert all(above - below >= 8 - 1e-9 for above, below in pairwise(places))
    assert min(places) >= 0
    if len(heights) == 1:
        assert places == heights


def test_every_preset_is_within_the_limits_and_no_two_are_the_same():
    assert len({tuple(preset.values()) for preset in PRESETS.values()}) == len(PRESETS)
    for preset in PRESETS.values():
        assert list(preset) == list(LIMITS)
        sampling_params(**preset)
    assert PRESETS["greedy"]["temperature"] == 0


def test_presets_from_greedy_to_wild_are_ever_less_sure():
    torch.manual_seed(0)
    entropies = []
    for preset in PRESETS.values():
        stages = sampling_stages(DOCUMENT.logits(LAST), sampling_params(**preset))
        entropies.append(stages[-1].entropy_after)
    assert entropies == sorted(entropies)
    assert entropies[0] == 0
    assert math.isfinite(entropies[-1])
