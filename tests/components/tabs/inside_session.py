"""Shared by the tests of the Inside tab: models, and the tab as a visitor has it."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import pytest
import torch

from components.kit import Tab
from components.state.session import Session
from components.state.text import Selection
from components.tabs.inside import stream
from components.tabs.inside.recording import Recording
from components.tabs.inside.scene import STEPS, Chosen, recorded
from components.tabs.inside.tab import tab
from gpt import GPT, Generation, GPTConfig, LoadedModel, Tokenizer, Trace
from tests.components.drawing import Drawn
from tests.gpt.family_configs import randomized

TEXT = "the <b>cat</b> sat there, on the\nmat"
RANDOM_MODELS = {
    "learned": {"position": "learned"},
    "untied": {"position": "learned", "tie_weights": False},
    "llama": {
        "position": "rotary",
        "norm": "rms",
        "bias": False,
        "n_kv_head": 1,
        "gated": True,
        "activation": "silu",
    },
    "neox": {"position": "rotary", "rotary_share": 0.5, "parallel": True, "activation": "gelu", "tie_weights": False},
    "gemma": {
        "position": "rotary",
        "norm": "rms",
        "bias": False,
        "n_head": 4,
        "n_kv_head": 2,
        "head_dim": 10,
        "qk_norm": True,
        "attn_scale": 0.5,
        "gated": True,
        "post_norm": True,
        "embedding_scale": 6.0,
        "window": 5,
        "full_layers": (2,),
        "window_rotary_base": 1000.0,
    },
    "gemma2": {
        "position": "rotary",
        "norm": "rms",
        "bias": False,
        "gated": True,
        "post_norm": True,
        "attn_softcap": 0.8,
        "logit_softcap": 2.5,
    },
    "olmo2": {
        "position": "rotary",
        "norm": "rms",
        "bias": False,
        "n_kv_head": 1,
        "qk_norm": "full",
        "gated": True,
        "pre_norm": False,
        "post_norm": True,
    },
    "smollm3": {"position": "rotary", "norm": "rms", "bias": False, "gated": True, "unrotated_layers": (1, 2)},
}
QUICK = ("learned", "gemma", "gemma2")
MODELS = [pytest.param(name, marks=[] if name in QUICK else pytest.mark.thorough) for name in RANDOM_MODELS]


def document_of(model: GPT, tokenizer: Tokenizer, text: str = TEXT) -> Generation:
    document = Generation(LoadedModel("tiny", model, tokenizer, torch.device("cpu"), "fp32"), text)
    document.read()
    return document


def random_document(name: str, tokenizer: Tokenizer) -> Generation:
    """Return the text as read by one of RANDOM_MODELS."""
    shape = {"n_layer": 3, "n_head": 3, "n_embd": 36, **RANDOM_MODELS[name]}
    config = GPTConfig(vocab_size=tokenizer.n_vocab, block_size=192, **shape)
    return document_of(randomized(GPT(config), 0.2), tokenizer)


def trace_of(document: Generation) -> Trace:
    trace = Trace()
    with torch.inference_mode():
        document.loaded.model(torch.tensor([document.ids[: document.n_read]]), trace=trace, edits=document.edits)
    return trace


class Inside:
    """What one visitor sees inside the model. `shown` returns the data of a picture, after computing what is missing.

    part: a step of the Machine tab, "stream" in the Activations tab, or "embeddings".
    """

    def __init__(
        self, document: Generation | None, selection: Selection | None = None, part: str = "heads", **chosen: Any
    ) -> None:
        self.session = Session(document, selection=selection)
        self.session.change(Chosen, **chosen)
        if part in STEPS:
            self.session.change(Chosen, step=part)
        tabs = {"stream": (Tab("activations"), stream.STREAM), "embeddings": (stream.tab,)}
        self.drawn = Drawn(self.session, *tabs.get(part, (tab,)))

    def shown(self, name: str) -> dict[str, Any]:
        return self.drawn.update()[name]

    def write(self, *ids: int) -> None:
        """Append tokens."""
        with self.session.lock.changing():
            self.session.document.append(*ids)
            self.session.document.read()

    @property
    def recording(self) -> Recording:
        self.drawn.update()
        return self.session.snapshot()[recorded]


def unpacked(text: str, dtype: str, *shape: int) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), dtype).reshape(shape)
