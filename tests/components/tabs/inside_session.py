"""Shared by the tests of the Inside tab: a session with a fully analysed text, and the contents of its views."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import torch

from components.i18n import speaking
from components.limits import MAX_VISITOR_BYTES
from components.render import Renderer
from components.session_events import analyse
from components.state.selection import Selection
from components.state.session import Session
from components.tabs.inside.analysis import analysis
from components.tabs.inside.state import InsideState
from components.tabs.inside.views import VIEWS
from gpt import GPT, Generation, GPTConfig, LoadedModel, Tokenizer, Trace
from tests.conftest import randomized

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
    """The Inside tab of one visitor: `analyse` runs what the page would, `shown` returns a view."""

    def __init__(
        self,
        document: Generation | None,
        selection: Selection | None = None,
        *,
        max_bytes: int = MAX_VISITOR_BYTES,
        **state: Any,
    ) -> None:
        self.session = Session(document, selection=selection)
        self.session.tab = "inside"
        self.session.change(InsideState, **state)
        self.renderer = Renderer()
        self.renderer.add("inside", VIEWS, analysis(max_bytes))
        self.analyse()

    def analyse(self) -> int:
        """Run all rounds of the analysis, and return their number, including a last one that finds nothing."""
        return len(list(analyse(self.renderer, self.session)))

    def select(self, **selected: Any) -> None:
        self.session.selection = Selection(**selected)
        self.analyse()

    def change(self, **state: Any) -> None:
        self.session.change(InsideState, **state)
        self.analyse()

    def write(self, *ids: int) -> None:
        """Append tokens."""
        with self.session.changing():
            self.session.document.append(*ids)
            self.session.document.read()
        self.analyse()

    @property
    def state(self) -> InsideState:
        return self.session.state(InsideState)

    def shown(self, name: str) -> dict[str, Any]:
        """Return the contents of a view."""
        numbers = self.session.numbers
        with self.session.lock.reading(), speaking(self.session.language, exact=numbers):
            return next(view for view in VIEWS if view.name == name).draw(self.session.snapshot())


def unpacked(text: str, dtype: str, *shape: int) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), dtype).reshape(shape)
