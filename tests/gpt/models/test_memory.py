"""Peak and resident memory, as Linux reports it."""

from __future__ import annotations

import json
import subprocess
import sys
from ctypes import c_size_t, c_void_p
from pathlib import Path
from typing import get_args

import pytest
import torch
from safetensors.torch import save_file
from transformers import LlamaConfig, LlamaForCausalLM

from gpt.models import memory
from gpt.models.loading import Precision

SHARDS, SLACK = 3, 128 * 2**20  # bytes for libraries, threads and the allocator

CHILD = """
import os
import sys
from pathlib import Path
import torch
from torch import nn
from gpt.inference.packed_weights import pack
from gpt.models.checkpoints.checkpoint import open_checkpoint
from gpt.model import meta_model
from gpt.models.loading import build, peak_bytes

def memory(field):
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(lines[field].split()[0]) * 1024

def measure(folder, precision):
    pack(nn.Sequential(nn.Linear(8, 8)), precision)  # loads the libraries
    checkpoint = open_checkpoint(folder)
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts here
    before = memory("VmRSS")
    model = build("model", checkpoint, torch.device("cpu"), precision).model
    peak = memory("VmHWM") - before
    print(precision, peak, peak_bytes(checkpoint, meta_model(checkpoint.config), precision), flush=True)

torch.set_num_threads(1)
for precision in sys.argv[2:]:  # each in a process that has imported torch already
    if os.fork() == 0:
        measure(sys.argv[1], precision)
        os._exit(0)
    os.wait()
"""


@pytest.fixture(scope="module")
def sharded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A 190 MB Llama in bfloat16, in several files: grouped keys, gates, a tied head on a large vocabulary."""
    folder = tmp_path_factory.mktemp("sharded")
    sizes = {"vocab_size": 49152, "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 3}
    heads = {"num_attention_heads": 16, "num_key_value_heads": 4, "tie_word_embeddings": True}
    config = LlamaConfig(**sizes, **heads, bos_token_id=None, eos_token_id=None)
    with torch.device("meta"):
        shapes = {name: weight.shape for name, weight in LlamaForCausalLM(config).named_parameters()}
    generator, names = torch.Generator().manual_seed(0), list(shapes)
    (folder / "config.json").write_text(json.dumps({**config.to_dict(), "architectures": ["LlamaForCausalLM"]}))
    for i in range(SHARDS):
        part = {name: torch.empty(shapes[name], dtype=torch.bfloat16) for name in names[i::SHARDS]}
        for weight in part.values():
            weight.uniform_(-0.05, 0.05, generator=generator)
        save_file(part, folder / f"model-{i + 1:05}-of-{SHARDS:05}.safetensors", metadata={"format": "pt"})
    return folder


@pytest.mark.thorough
@pytest.mark.skipif(sys.platform != "linux", reason="/proc tells the peak on Linux only")
def test_a_sharded_checkpoint_takes_no_more_memory_than_it_needs_at_its_peak(sharded: Path) -> None:
    command = [sys.executable, "-c", CHILD, str(sharded), *get_args(Precision)]
    lines = subprocess.check_output(command, text=True).splitlines()
    assert [line.split()[0] for line in lines] == [*get_args(Precision)]
    mapped = sum(file.stat().st_size for file in sharded.iterdir())  # counted, but freed on demand
    for line in lines:
        peak, needed = map(int, line.split()[1:])
        assert needed / 2 < peak < needed + mapped + SLACK, line


BLOCK = "{} rw-p 00000000 {}\nSize: 8192 kB\nKernelPageSize: 4 kB\nMMUPageSize: 4 kB\nRss: {} kB\n"


def test_huge_pages_are_asked_for_where_a_block_of_memory_is_in_use(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    advised: list[tuple[int, int]] = []

    def record(name: str, start: c_void_p, size: c_size_t, advice: int) -> None:
        advised.append((start.value or 0, size.value))

    of_file = BLOCK.format("563862ec8000-5638636c8000", "fe:00 260386  /usr/lib/of_a_file.so", 8192)
    in_use = BLOCK.format("7f1000000000-7f1000800000", "00:00 0  [heap]", 8188)
    reserved = BLOCK.format("7f2000000000-7f2000800000", "00:00 0 ", 4096)
    (tmp_path / "smaps").write_text(of_file + in_use + reserved)
    monkeypatch.setattr(memory, "SMAPS", tmp_path / "smaps")
    monkeypatch.setattr(memory, "call_glibc", record)
    memory.use_huge_pages()
    assert advised == [(0x7F1000000000, 8 * 2**20)]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has this advice")
def test_memory_keeps_its_values_on_huge_pages() -> None:
    weight = torch.arange(2**21)
    assert memory.MAPPING.search(memory.SMAPS.read_text())
    memory.use_huge_pages()
    assert weight.equal(torch.arange(2**21))
