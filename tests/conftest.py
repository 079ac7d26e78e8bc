"""Shared fixtures: tiny configurations, a tiny reference model with our copy of it, vocabularies."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from types import SimpleNamespace

import pytest
import torch
from hypothesis import settings

from gpt.config import GPTConfig
from gpt.model import GPT
from gpt.tokenizer import Tokenizer, gpt2_tokenizer, load_vocabulary, save_vocabulary
from tests.gpt.family_configs import FAMILIES, randomized

settings.register_profile("quick", max_examples=10, deadline=None)
settings.register_profile("thorough", max_examples=100, deadline=None)
settings.load_profile("quick")
DRAWN_SEEDS = Random(0)  # seeds of texts for which none is given
torch.set_num_threads(1)  # faster for models this small, and reproducible sums
gc.disable()  # until everything is imported: looking for garbage took a third of the time


def pytest_collection_finish() -> None:
    """Never look for garbage among what the imports made, half a million objects."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True)
def seeded() -> None:
    """Start every test from the same random numbers."""
    DRAWN_SEEDS.seed(0)
    torch.default_generator.manual_seed(0)  # `torch.manual_seed` would queue a call for CUDA, with its stack


@pytest.fixture(autouse=True, scope="session")
def reproducible_seeds() -> Iterator[None]:
    """Where a text is given no seed, draw it from `DRAWN_SEEDS`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gpt.sampling.secrets", SimpleNamespace(randbelow=DRAWN_SEEDS.randrange))
        yield


@pytest.fixture(autouse=True, scope="session")
def alongside() -> Iterator[None]:
    """Let training start without waiting for the machine to be idle."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gpt.training.live_run.lower_priority", lambda: None)
        yield


QUICK_FAMILIES = ("gpt2", "llama", "gemma2")


def families(*names: str) -> list[object]:
    """Return families as parameters of a test, most of them for the thorough part of the suite."""
    return [pytest.param(name, marks=[] if name in QUICK_FAMILIES else pytest.mark.thorough) for name in names]


@pytest.fixture(params=families("gpt2", "gpt_neox", "llama", "gemma3", "gemma2", "olmo2", "smollm3", "every_bias"))
def model(request: pytest.FixtureRequest) -> GPT:
    """Tiny models that together have every option. Every parameter is random and large enough to matter."""
    return randomized(GPT(FAMILIES[request.param]))


@pytest.fixture
def twins() -> Callable[..., tuple[torch.nn.Module, GPT]]:
    """twins(**GPT2Config's arguments): a random transformers model, and ours with the same weights."""
    return make_twins


def make_twins(**kwargs: object) -> tuple[torch.nn.Module, GPT]:
    from transformers import GPT2Config, GPT2LMHeadModel  # noqa: PLC0415 - slow, and few tests need it

    reference = GPT2LMHeadModel(GPT2Config(attn_implementation="eager", bos_token_id=0, eos_token_id=0, **kwargs))
    hf = randomized(reference, std=0.1).config
    config = GPTConfig(
        vocab_size=hf.vocab_size,
        block_size=hf.n_positions,
        n_layer=hf.n_layer,
        n_head=hf.n_head,
        n_embd=hf.n_embd,
        n_ff=hf.n_inner,
        tie_weights=hf.tie_word_embeddings,
        activation={"gelu_new": "gelu_tanh"}.get(hf.activation_function, hf.activation_function),
    )
    ours = GPT(config).eval()
    state = {}
    for name, value in reference.state_dict().items():
        transposed = name.endswith(("c_attn.weight", "c_proj.weight", "c_fc.weight"))  # Conv1D computes x @ W
        state[name.removeprefix("transformer.")] = value.T if transposed else value
    ours.load_state_dict(state)
    return reference, ours


@pytest.fixture
def byte_tokenizer(tmp_path: Path) -> Tokenizer:
    """A vocabulary of the 256 bytes, a few merges and end-of-text (id 260), loaded from our own file format."""
    merges = [b" t", b" th", b" the", b"\xf0\x9f"]
    ranks = {token: rank for rank, token in enumerate([*(bytes([b]) for b in range(256)), *merges])}
    save_vocabulary(ranks, tmp_path / "vocab.tiktoken")
    return load_vocabulary(tmp_path / "vocab.tiktoken")


@pytest.fixture(scope="session")
def gpt2() -> Tokenizer:
    """GPT-2's own vocabulary."""
    return gpt2_tokenizer()
