from types import SimpleNamespace

import numpy as np
import pytest
import torch

from components.next_tokens import best, next_tokens
from gpt import Generation, get_model
from tests.components.drawing import spoken_in


def shares(size, zeros, seed):
    rng = np.random.default_rng(seed)
    raw = rng.random(size).astype(np.float32)
    final = np.where(rng.random(size) < zeros, 0, raw * rng.random(size)).astype(np.float32)
    return raw / raw.sum(), final / max(final.sum(), 1e-9)


def stages(raw, final):
    return SimpleNamespace(raw=torch.from_numpy(raw), final=torch.from_numpy(final))


@pytest.mark.parametrize(("size", "most"), [(1, 5), (5, 5), (6, 5), (5000, 20)])
@pytest.mark.parametrize("zeros", [0, 0.5, 0.999])
def test_the_best_are_those_of_a_full_sort(size, most, zeros):
    raw, final = shares(size, zeros, size)
    assert best(final, raw, most).tolist() == np.lexsort((np.arange(size), -raw, -final))[:most].tolist()


@pytest.fixture(scope="module")
def document():
    return Generation(get_model(), "The dog and the cat")


@pytest.mark.parametrize("rank", [0, 3, 700])
def test_a_chosen_token_has_a_bar_however_unlikely(document, rank):
    raw, _ = shares(4096, 0, 1)
    raw = np.sort(raw)[::-1].copy()
    taken = document.ids[2]
    raw[[rank, taken]] = raw[[taken, rank]]
    shown = next_tokens(document, 1, stages(raw, raw), 20)
    ids, chosen, content = shown.ids, shown.chosen, shown.figure()
    assert (len(ids), chosen) == (20, taken)
    row = ids.tolist().index(taken)
    assert row == min(rank, 19)
    assert content["data"][2]["y"] == [row]
    assert content["data"][1]["x"].tolist() == raw[ids].tolist()


def test_after_the_last_token_nothing_is_taken(document):
    raw, final = shares(4096, 0.5, 2)
    shown = next_tokens(document, len(document.ids) - 1, stages(raw, final), 10)
    assert (len(shown.ids), shown.chosen, spoken_in("zh", shown.figure)["data"][2]["y"]) == (10, None, [None])
