"""Models of any size with random weights, within a memory budget, and model skeletons without blocks."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from gpt.config import GPTConfig
from gpt.errors import GPTError, check_token_id, require
from gpt.experiments.shapes import cache_numbers, count_parameters
from gpt.model import GPT, ForwardContext
from gpt.models.loading import LoadedModel
from gpt.models.memory import format_bytes, free_memory
from gpt.tokenizer import END_OF_TEXT, PlainIds, Vocabulary, bpe_tokenizer

MAX_MEMORY_BYTES = 2**30  # shared by all random models in use at the same time


class MemoryInUse(GPTError):
    """Raised when a model would fit the budget on its own, but not alongside the models in use."""

    def __init__(self, n_bytes: int) -> None:
        super().__init__("memory.shape_in_use", need=format_bytes(n_bytes))


class IdentityBlock(nn.Module):
    """A stand-in for a block that returns its input unchanged."""

    def forward(self, x: Tensor, ctx: ForwardContext) -> Tensor:
        return x


class PaddedVocabulary(Vocabulary):
    """A vocabulary with extra ids that encoding never produces. For example, id 4096 decodes to "<4096>"."""

    def __init__(self, inner: Vocabulary, n_vocab: int) -> None:
        self.inner, self.n_vocab, self.eot_id = inner, n_vocab, inner.eot_id
        self.eot_ids, self.special_ids = inner.eot_ids, inner.special_ids
        self.prefix_ids, self.strips_space = inner.prefix_ids, inner.strips_space

    def encode(self, text: str) -> list[int]:
        return self.inner.encode(text)

    def encode_continuation(self, text: str) -> list[int]:
        return self.inner.encode_continuation(text)

    def token_bytes(self, token_id: int) -> bytes:
        check_token_id(token_id, self.n_vocab)
        return self.inner.token_bytes(token_id) if token_id < self.inner.n_vocab else f"<{token_id}>".encode()


def memory_bytes(config: GPTConfig, *, skeleton: bool = False) -> int:
    """Return the memory needed by a float32 model and a full document: weights, KV cache with queries, final states."""
    queries = config.n_layer * config.n_head * config.head_size
    cache = 0 if skeleton else cache_numbers(config) + queries
    return 4 * (count_parameters(config, skeleton=skeleton) + (cache + config.n_embd) * config.block_size)


def skeleton(config: GPTConfig, *, generator: torch.Generator | None = None) -> GPT:
    """Return a random GPT whose blocks and final norm are identities. All shapes are those of the complete model."""
    model = GPT(config.with_layers(1), generator=generator)
    model.config = config
    model.h = nn.ModuleList(IdentityBlock() for _ in range(config.n_layer))
    model.ln_f = nn.Identity()  # type: ignore[assignment]
    return model


def resize_vocabulary(vocabulary: Vocabulary, size: int) -> Vocabulary:
    """Return a vocabulary with exactly `size` tokens, derived from another one.

    A larger vocabulary gets additional ids without text. A smaller one keeps the first tokens and end-of-text, which
    works because byte-pair encoding merges each token from earlier ones. Raises ValueError if the smaller vocabulary
    could not encode every text.
    """
    if size == vocabulary.n_vocab:
        return vocabulary
    if isinstance(vocabulary, PlainIds):
        return PlainIds(size)
    if size > vocabulary.n_vocab:
        return PaddedVocabulary(vocabulary, size)
    first = range(min(vocabulary.n_vocab, max(size - 1, 256)))
    ranks = {vocabulary.token_bytes(i): i for i in first if i not in vocabulary.special_ids}
    has_bytes = len(ranks) == len(first) and all(bytes([byte]) in ranks for byte in range(256))
    require(has_bytes, "experiment.vocabulary_not_bytes", n=vocabulary.n_vocab, size=size)
    require(size >= 257, "experiment.vocabulary_size", size=size)
    return bpe_tokenizer(ranks, {END_OF_TEXT: size - 1}).padded(size)


@torch.inference_mode()
def module_shapes(model: GPT, ids: Sequence[int]) -> dict[str, tuple[int, ...]]:
    """Return the output shapes of a model's modules in a forward pass, in order, keyed by name.

    Covers the ids, the embeddings, the first block's linear layers, all blocks, the final norm and the logits. Do not
    share the model between threads, because the pass registers hooks on it."""
    idx = torch.tensor([list(ids)], device=model.device)
    found = {"idx": tuple(idx.shape)}
    inside = ("h.0.attn.c_attn", "h.0.attn.c_proj", "h.0.mlp.c_gate", "h.0.mlp.c_fc", "h.0.mlp.c_proj")
    handles = [
        module.register_forward_hook(lambda _, __, out, name=name: found.update({name: tuple(out.shape)}))
        for name, module in model.named_modules()
        if name in inside or (name.count(".") < 2 and name not in ("", "h", "drop"))
    ]
    model(idx)
    for handle in handles:
        handle.remove()
    return found


class RandomModels:
    """Creates models with random weights, within a memory budget for all models in use at the same time."""

    def __init__(self, max_memory_bytes: int = MAX_MEMORY_BYTES) -> None:
        self.max_memory_bytes = max_memory_bytes
        self._used_bytes = 0
        self._lock = threading.Lock()

    @contextmanager
    def model(self, config: GPTConfig, vocabulary: Vocabulary, *, skeleton_only: bool = False) -> Iterator[LoadedModel]:
        """Create a model, with the same weights each time: `with models.model(config, vocabulary) as loaded: ...`.

        Raises MemoryInUse if the model does not currently fit, and ValueError if it exceeds the budget.
        """
        need = memory_bytes(config, skeleton=skeleton_only)
        limit = self.max_memory_bytes
        require(need <= limit, "memory.shape_limit", need=format_bytes(need), limit=format_bytes(limit))
        with self._lock:
            if need > min(limit - self._used_bytes, free_memory()):
                raise MemoryInUse(need)
            self._used_bytes += need
        try:
            make = skeleton if skeleton_only else GPT
            model = make(config, generator=torch.Generator().manual_seed(0))
            yield LoadedModel("random", model.eval(), vocabulary, torch.device("cpu"), "fp32")
        finally:
            with self._lock:
                self._used_bytes -= need
