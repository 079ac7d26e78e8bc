"""Fine-tune a model on a text: python -m examples.fine_tune TEXT_FILE OUT_FOLDER [--model NAME] [--steps N]

Open the result with `python app.py --model OUT_FOLDER`, or choose its files on the page.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import torch

from gpt import load_model, save_model
from gpt.training.data import read_text


def fine_tune(text: str, out: Path, *, model: str = "stories", steps: int = 100, batch_size: int = 8) -> list[float]:
    """Train all weights of a model on a text, save it, and return the loss of every step in nats per token."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise FileExistsError(f"{out} already exists: choose a new folder")
    loaded = load_model(model, trainable=True)
    ids = torch.tensor(loaded.tokenizer.encode(text), device=loaded.device)
    if len(ids) < 2:
        raise ValueError(f"the text has {len(ids)} tokens: there is nothing to predict")
    length = min(loaded.model.config.block_size, len(ids) - 1, 128)
    generator = torch.Generator().manual_seed(0)
    optimizer = torch.optim.AdamW(loaded.model.parameters(), lr=1e-4)
    losses = []
    loaded.model.train()
    for _ in range(steps):
        starts = torch.randint(len(ids) - length, (batch_size,), generator=generator)
        windows = torch.stack([ids[start : start + length + 1] for start in starts.tolist()])  # (B, T + 1)
        loss = loaded.model.loss(windows[:, :-1], windows[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    loaded.model.eval()
    save_model(out, loaded.model, loaded.tokenizer)
    return losses


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        prog="python -m examples.fine_tune", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("text", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--model", default="stories")
    parser.add_argument("--steps", type=int, default=100)
    chosen = parser.parse_args()
    try:
        losses = fine_tune(read_text(chosen.text), chosen.out, model=chosen.model, steps=chosen.steps)
    except (OSError, ValueError) as error:
        sys.exit(str(error))
    print(f"loss {losses[0]:.3f} -> {losses[-1]:.3f} nats per token; saved in {chosen.out}")
