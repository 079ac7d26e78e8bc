"""The training process: precision and device capabilities."""

from __future__ import annotations

import platform

import pytest
import torch

from gpt.training.process import has_bf16, join_processes


def test_a_given_precision_is_used_and_auto_is_bf16_where_the_device_has_it() -> None:
    for precision in ("fp32", "bf16", "auto"):
        with join_processes(precision) as process:
            assert (process.rank, process.world_size, process.is_first) == (0, 1, True)
            assert process.bf16 == {"fp32": False, "bf16": True, "auto": has_bf16(process.device)}[precision]


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="compares with what torch knows of x86")
@pytest.mark.skipif(platform.system() != "Linux", reason="only Linux says what its processor can do")
def test_has_bf16_agrees_with_torch() -> None:
    if not hasattr(torch.cpu, "get_capabilities"):
        pytest.skip("this torch does not say what the processor can do")
    torchs = torch.cpu.get_capabilities()
    assert has_bf16(torch.device("cpu")) == (torchs["avx512_bf16"] or torchs["amx_bf16"])
    assert not has_bf16(torch.device("mps"))
