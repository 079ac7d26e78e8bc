"""Compare results with transformers: python -m benchmarks.parity

All weights are random, and nothing is downloaded. Prints the largest absolute difference in each comparison.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from transformers import GPT2Config, GPT2LMHeadModel
from transformers.utils import logging

from gpt.cache import KVCache
from gpt.models.checkpoints.checkpoint import open_checkpoint
from gpt.models.checkpoints.writing import convert
from gpt.trace import Trace
from tests.parity.family_models import OPTIONS, family_twins

SHAPES = {
    "2 layers, 3 heads, width 24": {"n_layer": 2, "n_head": 3, "n_embd": 24, "vocab_size": 61, "n_positions": 64},
    "GPT-2 small": {},
    "GPT-2 medium": {"n_layer": 24, "n_head": 16, "n_embd": 1024},
}


@dataclass(frozen=True)
class Row:
    """One comparison: the quantity, the reference, the model and the largest absolute difference."""

    what: str
    against: str
    model: str
    difference: float


def max_diff(a: Tensor, b: Tensor) -> float:
    return (a.double() - b.double()).abs().max().item()


def against_transformers(name: str, shape: dict[str, int], folder: Path) -> Iterator[Row]:
    """Load a checkpoint written by transformers and compare all results for a few tokens."""
    config = GPT2Config(**shape, attn_implementation="eager", bos_token_id=0, eos_token_id=0)
    reference = GPT2LMHeadModel(config).eval()
    for key, parameter in reference.named_parameters():  # including biases and norms, which are initialised to 0 and 1
        torch.nn.init.normal_(parameter, float("ln_" in key and key.endswith("weight")), 0.05)
    reference.save_pretrained(folder)
    model = open_checkpoint(folder).build()
    idx = torch.randint(config.vocab_size, (1, 64))
    theirs = reference(idx, labels=idx, output_attentions=True)
    trace = Trace()
    logits = model(idx)
    yield Row("logits", "transformers", name, max_diff(logits, theirs.logits))
    model(idx, trace=trace)
    weights = [max_diff(a.attn_weights, b) for a, b in zip(trace.layers, theirs.attentions, strict=True)]
    yield Row("attention weights", "transformers", name, max(weights))
    yield Row("loss, in nats", "transformers", name, max_diff(model.loss(idx[:, :-1], idx[:, 1:]), theirs.loss))
    cache = KVCache(model.config)
    steps = [model(idx[:, i : i + 1], cache=cache) for i in range(idx.shape[1])]
    yield Row("logits, token by token with a cache", "all at once", name, max_diff(torch.cat(steps, dim=1), logits))
    convert(folder, folder / "ours")
    convert(folder / "ours", folder / "theirs", to="hf")
    back = GPT2LMHeadModel.from_pretrained(folder / "theirs").eval()
    yield Row(
        "logits after converting to our format and back",
        "transformers",
        name,
        max_diff(back(idx).logits, theirs.logits),
    )


def against_families() -> Iterator[Row]:
    """Compare every case in tests/parity/family_models.py and yield each family's largest difference."""
    idx = torch.randint(61, (2, 40))
    for family, cases in OPTIONS.items():
        pairs = [family_twins(family, name) for name in cases]
        differences = [max_diff(pair.ours(idx), pair.reference(idx).logits) for pair in pairs]
        yield Row("logits", "transformers", f"{family}, {len(pairs)} small models", max(differences))


@torch.inference_mode()
def main() -> None:
    torch.manual_seed(0)
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    print("| quantity | reference | model | largest difference |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for number, (name, shape) in enumerate(SHAPES.items()):
            for row in against_transformers(name, shape, Path(folder) / str(number)):
                print(f"| {row.what} | {row.against} | {row.model} | {row.difference:.1e} |")
        for row in against_families():
            print(f"| {row.what} | {row.against} | {row.model} | {row.difference:.1e} |")


if __name__ == "__main__":
    main()
