"""Models with random weights, made to be looked at and thrown away: any shape that fits, and the skeleton of one."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from gpt.checks import check_token_id
from gpt.config import GPTConfig
from gpt.errors import GPTError
from gpt.experiments.shapes import cache_numbers, count_parameters
from gpt.model import GPT, ForwardContext
from gpt.models.checkpoints.bpe_files import bpe_tokenizer
from gpt.models.checkpoints.vocabularies import PlainIds
from gpt.models.loading import LoadedModel
from gpt.models.memory import format_bytes, free_memory
from gpt.tokenizer import END_OF_TEXT, Tokenizer, Vocabulary

BUDGET = 2**30  # bytes of all models that are being looked at at the same time


class NoRoom(GPTError):
    """There would be room, but not now: others are using it."""


@dataclass(frozen=True)
class Stage:
    """What one part of a model gave in a forward pass: the name of its module, the shape of its result."""

    name: str
    shape: tuple[int, ...]


class IdentityBlock(nn.Module):
    """Stands where a block was and changes nothing."""

    def forward(self, x: Tensor, ctx: ForwardContext) -> Tensor:
        return x


class PaddedVocabulary:
    """A vocabulary with further ids that no text is encoded to, spelled by their number: "<4096>"."""

    def __init__(self, inner: Vocabulary, n_vocab: int) -> None:
        self.inner, self.n_vocab, self.eot_id = inner, n_vocab, inner.eot_id

    def encode(self, text: str) -> list[int]:
        return self.inner.encode(text)

    def decode(self, ids: list[int]) -> str:
        return b"".join(map(self.token_bytes, ids)).decode("utf-8", "replace")

    def token_bytes(self, token_id: int) -> bytes:
        check_token_id(token_id, self.n_vocab)
        return self.inner.token_bytes(token_id) if token_id < self.inner.n_vocab else f"<{token_id}>".encode()


def run_bytes(config: GPTConfig, *, skeleton: bool = False) -> int:
    """Memory to write with such a model in float32: weights, a cache of one context with its queries, final states.

    A skeleton leaves the cache empty.
    """
    cache = 0 if skeleton else cache_numbers(config) * 3 // 2 * config.block_size
    states = config.block_size * config.n_embd
    return 4 * (count_parameters(config, skeleton=skeleton) + cache + states)


def skeleton(config: GPTConfig, *, generator: torch.Generator | None = None) -> GPT:
    """A GPT whose blocks and norms are replaced by identity, with random weights: embedding, then head.

    Every shape is that of the whole model; nothing is computed between. generator: as of GPT.
    """
    model = GPT(replace(config, n_layer=1), generator=generator)
    model.config = config
    model.h = nn.ModuleList(IdentityBlock() for _ in range(config.n_layer))
    model.ln_f = nn.Identity()  # type: ignore[assignment]
    return model


def skeleton_of(model: GPT) -> GPT:
    """The skeleton of a model: with its own token and position embedding and its own head, which both share."""
    with torch.device("meta"):  # nothing of it is kept but the modules without weights
        made = skeleton(model.config)
    made.wte, made.wpe, made.lm_head = model.wte, model.wpe, model.lm_head
    return made.eval()


def vocabulary_of(size: int, known: Vocabulary) -> Vocabulary:
    """A vocabulary of exactly `size` tokens, made of a known one.

    A longer one has ids without a text. A shorter one has the first tokens, which are themselves a vocabulary:
    byte-pair encoding makes each token of earlier ones; its last is end-of-text. Raises ValueError where nothing
    that short can spell every text.
    """
    if size == known.n_vocab:
        return known
    if isinstance(known, PlainIds):
        return PlainIds(size)
    if size > known.n_vocab:
        return PaddedVocabulary(known, size)
    if not isinstance(known, Tokenizer):
        raise GPTError("experiment.vocabulary_not_bytes", n=known.n_vocab, size=size)
    if size < 257:
        raise GPTError("experiment.vocabulary_size", size=size)
    ranks = {token: rank for token, rank in known.encoding._mergeable_ranks.items() if rank < size - 1}
    return bpe_tokenizer(ranks, {END_OF_TEXT: size - 1}, size)


@torch.inference_mode()
def stages(model: GPT, ids: Sequence[int]) -> list[Stage]:
    """The shapes of a forward pass as they were, in order: ids, embeddings, the inside of the first block, every
    block, last norm, logits. Only for a model that nobody else uses: it is watched while it runs."""
    idx = torch.tensor([list(ids)], device=model.device)
    found = [Stage("idx", tuple(idx.shape))]
    inside = ("h.0.attn.c_attn", "h.0.attn.c_proj", "h.0.mlp.c_fc", "h.0.mlp.c_proj")
    watched = {name: module for name, module in model.named_modules() if name in inside or name.count(".") < 2}
    handles = [
        module.register_forward_hook(lambda _, __, out, name=name: found.append(Stage(name, tuple(out.shape))))
        for name, module in watched.items()
        if name not in ("", "h", "drop")
    ]
    try:
        model(idx)
    finally:
        for handle in handles:
            handle.remove()
    return found


class Workshop:
    """Makes models with random weights within a budget of memory for all that are in use at the same time."""

    def __init__(self, budget: int = BUDGET) -> None:
        self.budget = budget
        self._taken = 0
        self._lock = threading.Lock()

    @contextmanager
    def model(
        self, config: GPTConfig, vocabulary: Vocabulary, *, skeleton_only: bool = False, seed: int = 0
    ) -> Iterator[LoadedModel]:
        """`with workshop.model(config, vocabulary) as loaded`: the same seed gives the same weights.

        Raises ValueError if it would never fit, NoRoom if it does not fit now.
        """
        need = run_bytes(config, skeleton=skeleton_only)
        if need > self.budget:
            raise GPTError("memory.shape_limit", need=format_bytes(need), limit=format_bytes(self.budget))
        with self._lock:
            if need > min(self.budget - self._taken, free_memory()):
                raise NoRoom("memory.shape_in_use", need=format_bytes(need))
            self._taken += need
        try:
            make = skeleton if skeleton_only else GPT
            model = make(config, generator=torch.Generator().manual_seed(seed))
            yield LoadedModel("random", model.eval(), vocabulary, torch.device("cpu"), "fp32")
        finally:
            with self._lock:
                self._taken -= need
