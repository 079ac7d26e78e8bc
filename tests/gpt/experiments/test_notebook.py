"""The textbook experiment from start to end."""

from __future__ import annotations

import pytest

from gpt.experiments import notebook
from gpt.experiments.notebook import PRINTED, run_notebook
from gpt.tokenizer import gpt2_tokenizer


@pytest.mark.thorough
def test_every_printed_value_is_computed_from_the_seed_to_the_six_tokens() -> None:
    values = list(run_notebook())
    assert [value.name for value in values] == list(PRINTED)
    assert [value.computed for value in values if not value.is_equal] == []
    assert gpt2_tokenizer().decode(list(values[-1].computed)) == " Featureiman Byeswickattribute argue"


def test_another_seed_gives_other_values_and_without_memory_no_model_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notebook, "SEED", 124)
    monkeypatch.setattr(notebook, "free_memory", lambda: 700 * 2**20)
    values = run_notebook()
    assert [next(values).is_equal for _ in range(9)] == [True] * 2 + [False] * 4 + [True] * 3
    with pytest.raises(ValueError, match=r"needs 621\.83 MiB of memory"):
        next(values)
