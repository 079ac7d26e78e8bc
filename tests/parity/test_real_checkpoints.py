"""Checkpoints from courses match the logits of their own programs; see ../shared/real/README.md."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from gpt import load_model
from gpt.models.checkpoints import HeadsUnknown, ScaleUnknown, open_checkpoint
from gpt.models.checkpoints.vocabularies import Characters

FOLDER = Path(__file__).parents[3] / "shared" / "real" / "checkpoints"
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the collection of real files is not beside the repository")

# What the user must specify for each file, and whether it includes its vocabulary. Everything else is read.
FILES: dict[str, tuple[dict[str, Any], bool]] = {
    "heads-and-characters-inside.pt": ({}, True),
    "heads-in-model-args.pt": ({}, False),
    "lecture-first-edition.pth": ({"attn_scale": "n_embd"}, True),
    "n-head-inside.pt": ({"activation": "gelu_tanh"}, False),
    "per-head-modules.pth": ({"attn_scale": "head_size"}, False),
}


@pytest.mark.parametrize("name", FILES)
def test_a_checkpoint_gives_the_logits_of_its_own_program(name: str) -> None:
    hints, has_characters = FILES[name]
    stated = json.loads((FOLDER / name).with_suffix(".json").read_text())
    loaded = load_model(FOLDER / name, device="cpu", names="infer", **hints)
    assert isinstance(loaded.tokenizer, Characters) == has_characters
    with torch.inference_mode():
        logits = loaded.model(torch.tensor([stated["ids"]]))[0]
    assert logits.argmax(dim=-1).tolist()[-len(stated["argmax"]) :] == stated["argmax"]
    torch.testing.assert_close(logits[-1], torch.tensor(stated["logits_last"]), atol=2e-5, rtol=1e-5)


@pytest.mark.parametrize("name", ["lecture-first-edition.pth", "per-head-modules.pth"])
def test_a_checkpoint_with_a_module_for_each_head_asks_for_its_scale(name: str) -> None:
    with pytest.raises(ScaleUnknown):
        open_checkpoint(FOLDER / name, names="infer")


def test_a_checkpoint_without_an_output_projection_opens_once_its_heads_are_given() -> None:
    path = FOLDER / "no-output-projection.pth"
    with pytest.raises(HeadsUnknown):
        open_checkpoint(path, names="infer")
    model = open_checkpoint(path, names="infer", n_head=1, activation="relu").build()
    assert torch.equal(model.h[0].attn.c_proj.weight, torch.eye(128))
    assert model(torch.arange(8)[None]).isfinite().all()
