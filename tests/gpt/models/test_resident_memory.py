"""What stays in memory while weights are read from memory-mapped files, as Linux states it in /proc."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import LlamaConfig, LlamaForCausalLM

from gpt.models.checkpoints import open_checkpoint
from gpt.models.checkpoints.untrusted import open_safetensors
from gpt.models.memory import release_file_pages
from gpt.models.meta import meta_model

SHAPE = {"vocab_size": 64, "hidden_size": 256, "intermediate_size": 1024, "num_hidden_layers": 8}


def file_bytes() -> int:
    """Bytes of mapped files in the memory of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("RssFile:"))


def test_of_a_model_in_several_files_one_block_at_a_time_is_held_twice(tmp_path: Path) -> None:
    LlamaForCausalLM(LlamaConfig(**SHAPE, num_attention_heads=4)).save_pretrained(tmp_path, max_shard_size="9MB")
    assert len(list(tmp_path.glob("*.safetensors"))) > 3
    opened = open_checkpoint(tmp_path)
    model = meta_model(opened.config)
    block = 4 * sum(weight.numel() for weight in model.h[0].parameters())
    before = file_bytes()
    grown = [file_bytes() - before for _ in opened.fill(model)]
    assert len(grown) == SHAPE["num_hidden_layers"]
    assert max(grown) < 2 * block < opened.n_bytes() / 3


def test_released_pages_are_those_of_files_and_are_read_again(tmp_path: Path) -> None:
    stored, other = torch.randn(3_000_000), torch.ones(3_000_000)
    save_file({"weight": stored}, tmp_path / "model.safetensors")
    mapped = open_safetensors(tmp_path / "model.safetensors")["weight"]
    before = file_bytes()
    assert torch.equal(mapped, stored)
    assert file_bytes() - before > 10_000_000
    release_file_pages([mapped, other])
    assert file_bytes() - before < 2_000_000
    assert torch.equal(mapped, stored)
    assert other.sum() == len(other)
