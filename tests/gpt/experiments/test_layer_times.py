"""The time of each part, on a clock that only the modules of the model advance."""

from __future__ import annotations

import pytest

from gpt.experiments import layer_times
from gpt.experiments.layer_times import measure_layers
from gpt.model import GPT


def test_each_part_has_the_time_of_its_modules(model: GPT, monkeypatch: pytest.MonkeyPatch) -> None:
    now, n_heads = 0.0, []

    def takes(module: object, seconds: float) -> None:
        def advance(*_: object) -> None:
            nonlocal now
            now += seconds

        module.register_forward_hook(advance)  # type: ignore[attr-defined]

    monkeypatch.setattr(layer_times, "perf_counter", lambda: now)
    takes(model.wte, 5)
    for number, block in enumerate(model.blocks, 1):
        takes(block.ln_1, 0.25)
        takes(block.attn, 10 * number)
        takes(block.ln_2, 0.5)
        takes(block.mlp, 100 * number)
    takes(model.ln_f, 0.125)
    takes(model.lm_head, 1000)
    model.lm_head.register_forward_hook(lambda _, args, out: n_heads.append(args[0].shape))
    found = list(measure_layers(model, [5, 1, 60, 8], 2))
    assert len(found) == 2
    for times in found:
        assert times.embedding == 5
        assert times.attention == (10.25, 20.25, 30.25)
        assert times.feed_forward == (100.5, 200.5, 300.5)
        assert times.head == 1000.125
        assert times.total == sum((5, 60.75, 601.5, 1000.125))
    assert n_heads == [(1, 24)] * 3  # the last token alone, once without being counted


def test_an_empty_text_and_one_beyond_the_context_are_refused(model: GPT) -> None:
    with pytest.raises(ValueError, match="the text is empty"):
        next(measure_layers(model, [], 1))
    with pytest.raises(ValueError, match="17"):
        next(measure_layers(model, [1] * 17, 1))
