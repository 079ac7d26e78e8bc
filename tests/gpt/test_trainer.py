from __future__ import annotations

import platform

import numpy as np
import pytest
import torch

from gpt.tokenizer import Tokenizer
from gpt.training.recipe import Recipe
from gpt.training.trainer import Process, Trainer, has_bf16, joined

RECIPE = Recipe(
    vocab_size=261, block_size=16, n_layer=1, n_head=2, n_embd=16, steps=20, batch_size=4, warmup=0, dropout=0.1
)
ALONE = Process(torch.device("cpu"))


def make_rows(count: int = 4) -> np.ndarray:
    return np.random.default_rng(count).integers(0, 261, (count, 17), dtype=np.int32)


def weights(trainer: Trainer) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in trainer.model.state_dict().items()}


def test_training_on_the_same_rows_lowers_their_loss() -> None:
    trainer = Trainer(RECIPE, 261, ALONE)
    losses = [trainer.update(make_rows()) for _ in range(10)]
    assert losses[0] == pytest.approx(np.log(261), abs=0.1)  # small random weights know nothing
    assert losses[-1] < losses[0] - 0.5
    assert (trainer.step, trainer.n_tokens, trainer.losses) == (10, 10 * 4 * 16, losses)


def test_state_and_load_go_on_bit_for_bit_dropout_included() -> None:
    first, second, whole = (Trainer(RECIPE, 261, ALONE) for _ in range(3))
    for step in range(6):
        whole.update(make_rows())
        (first if step < 3 else second).update(make_rows())
        if step == 2:
            first.best = 1.5
            torch.rand(5)  # whatever else draws random numbers in between
            second.load(first.state())
    assert (second.step, second.best, second.losses) == (6, 1.5, whole.losses)
    for name, value in weights(whole).items():
        assert torch.equal(value, weights(second)[name]), name


def test_the_seed_decides_the_first_weights() -> None:
    one, same, other = (weights(Trainer(Recipe(**{**vars(RECIPE), "seed": s}), 261, ALONE)) for s in (1, 1, 2))
    assert torch.equal(one["wte.weight"], same["wte.weight"])
    assert not torch.equal(one["wte.weight"], other["wte.weight"])


def test_a_batch_that_does_not_divide_by_the_processes_is_refused() -> None:
    with pytest.raises(ValueError, match=r"batch_size \(4\) must be divisible by the number of processes \(3\)"):
        Trainer(RECIPE, 261, Process(torch.device("cpu"), world=3))


def test_an_infinite_loss_is_refused_before_the_weights_change() -> None:
    trainer = Trainer(RECIPE, 261, ALONE)
    trainer.update(make_rows())
    with torch.no_grad():
        trainer.model.ln_f.weight[0] = float("nan")
    before = weights(trainer)
    with pytest.raises(ValueError, match="infinite at step 1: try lower rates than adamw_lr 0"):
        trainer.update(make_rows())
    assert trainer.step == 1
    for name, value in weights(trainer).items():
        assert torch.equal(value.nan_to_num(7.0), before[name].nan_to_num(7.0)), name


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 70_000.0])  # half precision ends at 65,504
def test_weights_that_half_precision_cannot_hold_are_not_kept(value: float) -> None:
    trainer = Trainer(RECIPE, 261, ALONE)
    trainer.state()
    with torch.no_grad():
        trainer.model.wte.weight[3, 2] = value
    with pytest.raises(ValueError, match="became infinite at step 0"):
        trainer.state()


def test_score_sees_the_weights_without_dropout(byte_tokenizer: Tokenizer) -> None:
    trainer = Trainer(RECIPE, 261, ALONE)
    trainer.update(make_rows())
    scores = [trainer.score(byte_tokenizer, ["the cat", "the dog"]) for _ in range(2)]
    assert scores[0] == scores[1]


def test_bf16_autocast_is_close_to_float32_and_not_equal() -> None:
    losses = [Trainer(RECIPE, 261, Process(torch.device("cpu"), bf16)).update(make_rows()) for bf16 in (False, True)]
    assert losses[0] != losses[1]
    assert losses[0] == pytest.approx(losses[1], rel=1e-2)


def test_precision_is_what_was_asked_for_and_auto_what_the_device_has() -> None:
    for precision in ("fp32", "bf16", "auto"):
        with joined(precision) as process:
            assert (process.rank, process.world, process.is_first) == (0, 1, True)
            assert process.bf16 == {"fp32": False, "bf16": True, "auto": has_bf16(process.device)}[precision]


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="compares with what torch knows of x86")
@pytest.mark.skipif(platform.system() != "Linux", reason="only Linux says what its processor can do")
def test_bf16_is_found_where_torch_finds_it() -> None:
    if not hasattr(torch.cpu, "get_capabilities"):
        pytest.skip("this torch does not say what the processor can do")
    torchs = torch.cpu.get_capabilities()
    assert has_bf16(torch.device("cpu")) == (torchs["avx512_bf16"] or torchs["amx_bf16"])
    assert not has_bf16(torch.device("mps"))
