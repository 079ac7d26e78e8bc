"""A document that a model continues token by token, and the activations of every position."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from gpt.analysis.text_statistics import TextStatistics, text_statistics
from gpt.cache import KVCache
from gpt.checks import check_head, check_layer
from gpt.documents.document import Document
from gpt.documents.document_cache import MAX_BRANCH_BYTES, DocumentCache
from gpt.documents.edit_text import format_edits
from gpt.documents.prompt import Prompt, encode_prompt
from gpt.documents.saved_document import SavedDocument
from gpt.documents.token_tree import TYPED, Origin, TokenTree
from gpt.edits import Edits
from gpt.errors import GPTError
from gpt.inference.threads import threads_for
from gpt.inference.zero_gpu import on_gpu, on_zero_gpu
from gpt.models.gpu_copy import gpu_copy
from gpt.models.loading import LoadedModel
from gpt.models.registry import get_model
from gpt.sampling import SamplingParams, sample_token, uniform_draw, with_seed

FinishReason = Literal["end_of_text", "max_new_tokens", "context_full", "stopped"]


@dataclass(frozen=True)
class Step:
    """One generated token.

    text: the characters that it completes; "" for a part of a character and for end-of-text.
    probability, rank (1 = best), entropy (bits): of the raw softmax before sampling.
    position: index in the text, prompt and dropped tokens included. draw: the uniform number that selected it.
    finish_reason: None until the last step.
    """

    token_id: int
    text: str
    probability: float
    rank: int
    entropy: float
    position: int
    draw: float
    finish_reason: FinishReason | None = None


class Generation(Document):
    """A document and the activations that the model computed for it.

    For each position that was read, queries, keys and values of every layer and the final-norm state are kept, so
    `logits`, `attn_weights` and `statistics` run no forward pass. Activations of other branches are kept as well, up
    to max_branch_bytes; beyond it the oldest are evicted, and computed again when their branch becomes current.

    Concurrent reading: while one thread extends the text, nodes of `tree` are only appended, `ids` and `path` only
    grow at their ends, and the activations of positions below n_read do not change. A reader that stores n_read first
    and uses only positions below it sees a consistent text. `go_back`, `switch`, `undo`, `redo`, `retype` and appending
    with `after` shorten the text: callers must exclude readers meanwhile.

    prompt: text, token ids, or the messages of a chat; an empty one starts from the token that begins a text.
    Raises ValueError for a prompt longer than the context, an id that does not exist, or an empty prompt
    with a vocabulary without end-of-text token.
    """

    def __init__(
        self,
        loaded: LoadedModel,
        prompt: Prompt,
        *,
        edits: Edits | None = None,
        dropped: Sequence[int] = (),
        max_branch_bytes: int = MAX_BRANCH_BYTES,
    ) -> None:
        self.loaded, self.edits = loaded, edits
        self._cache = DocumentCache(loaded.engine, edits, max_branch_bytes)
        ids = encode_prompt(loaded, prompt)
        tree = TokenTree.from_ids(ids)
        super().__init__(loaded.tokenizer, loaded.model.config.block_size, tree, len(ids), len(ids) - 1, dropped)

    def copy(self) -> Generation:
        """An independent document with the same content; the model is shared."""
        other = Generation(self.loaded, self.prompt_ids, edits=self.edits, dropped=self.dropped)
        other._set_tree(TokenTree(self.tree.tokens), self._n_prompt_nodes, self.path[-1])
        other.history, other._cache = self.history, self._cache.copy()
        return other

    def to_json(self) -> str:
        """The document as a file, see `gpt.documents.saved_document`. Raises ValueError for patches without ids."""
        edits, dropped = format_edits(self.edits or Edits()), tuple(self.dropped)
        name, n_vocab, tokens = self.loaded.name, self.loaded.model.config.vocab_size, tuple(self.tree.tokens)
        return SavedDocument(name, n_vocab, self._n_prompt_nodes, self.path[-1], tokens, edits, dropped).to_json()

    @classmethod
    def from_json(
        cls, text: str, loaded: LoadedModel | None = None, *, max_branch_bytes: int = MAX_BRANCH_BYTES
    ) -> Generation:
        """The document of a file, with an empty history and nothing read.

        loaded: None loads the model that the file names. Raises ValueError for a damaged file, and where the
        vocabulary or the context of the model does not fit it.
        """
        saved = SavedDocument.from_json(text)
        loaded = get_model(saved.model) if loaded is None else loaded
        saved.check(loaded)
        prompt = [token.token_id for token in saved.tokens[: saved.n_prompt]]
        edits = saved.edits_for(loaded)
        document = cls(loaded, prompt, edits=edits, dropped=saved.dropped, max_branch_bytes=max_branch_bytes)
        document._set_tree(TokenTree(saved.tokens), saved.n_prompt, saved.current)
        return document

    @property
    def n_read(self) -> int:
        """Number of positions that the model has read: only these have activations."""
        return self._cache.length

    @property
    def n_bytes(self) -> int:
        """Bytes of the activations kept, of the current text and of the other branches; the model is not counted."""
        return self._cache.n_bytes

    @property
    def version(self) -> tuple[int, int, int, int]:
        """(key, nodes in the tree, last node of the text, n_read): equal only for equal tree, text and activations."""
        return self.key, len(self.tree), self.path[-1], self.n_read

    @property
    def evicted(self) -> frozenset[int]:
        """Nodes whose activations were evicted and have not been computed again."""
        return frozenset(self._cache.branches.evicted)

    def read(self) -> None:
        """Run one forward pass over the ids that were not read, up to block_size."""
        self._cache.read(self.ids, self.path, lambda: None)

    def states(self) -> Tensor:
        """(n_read, n_embd): final-norm states; a view that must not be changed."""
        return self._cache.states[: self.n_read]

    def logits(self, position: int) -> Tensor:
        """(vocab_size,) float32: logits of the token after a position."""
        return self._cache.logits(position)

    @torch.inference_mode()
    def attn_weights(self, layer: int, head: int | None = None) -> Tensor:
        """(n_read, n_read): attention weights of one head, or their mean over the heads for None."""
        config = self.loaded.model.config
        check_layer(layer, config.n_layer)
        if head is not None:
            check_head(head, config.n_head)
        weights = self._cache.kv.attn_weights(layer, stop=self.n_read)[0]  # (nh, S, S)
        return weights.mean(dim=0) if head is None else weights[head]

    def without_first(self) -> Generation:
        """A new document without the first token, which goes to `dropped`; the first that remains counts as typed.
        Branches and activations are not copied: every token has another position now."""
        tokens = [replace(self.tree.tokens[node], parent=n - 1 if n else None) for n, node in enumerate(self.path[1:])]
        tokens[0] = replace(tokens[0], origin=TYPED)
        other = Generation(self.loaded, [tokens[0].token_id], edits=self.edits, dropped=[*self.dropped, self.ids[0]])
        other._set_tree(TokenTree(tokens), max(1, self.n_prompt - 1), len(tokens) - 1)
        return other

    def fork(self, batch_size: int, max_length: int) -> KVCache:
        """A key-value cache for a batch of continuations of what was read."""
        return self._cache.kv.fork(self.loaded.model.config, batch_size, max_length, self.n_read)

    def activations(self, start: int) -> tuple[Tensor, ...]:
        """Copies of all activations from position `start` on."""
        return self._cache.activations(start)

    def statistics(self, start: int = 1) -> TextStatistics:
        """Statistics of each token from position `start` on, while the positions before them were read.

        Raises ValueError for a start below 1: nothing predicts the first token.
        """
        if start < 1:
            raise GPTError("generation.first_position", start=start)
        end = max(start, min(self.n_read + 1, len(self.ids)))
        return text_statistics(self.loaded.model, self.states()[start - 1 : end - 1], self.ids[start:end])

    def step(self, params: SamplingParams) -> Step:
        """Read what is unread, then sample and append one token, with a draw that depends on seed and position only.

        Raises ValueError where the context is full.
        """
        return self._step(with_seed(params), joined=False)

    def steps(self, params: SamplingParams, max_new_tokens: int) -> Iterator[Step]:
        """Up to max_new_tokens steps as one action for `undo`; the last carries its finish_reason.

        They end without one when `loaded.engine.stopped` is set, as it is before the server ends.
        On ZeroGPU all of them run in one call on the GPU.
        """
        params = with_seed(params)
        return (self._zero_gpu_steps if on_zero_gpu() else self.local_steps)(params, max_new_tokens)

    def local_steps(self, params: SamplingParams, max_new_tokens: int) -> Iterator[Step]:
        """`steps` in this process, on the model's own device. params: with a seed."""
        last = None
        for count in range(1, max_new_tokens + 1):
            if self.loaded.engine.stopped:
                return
            step = self._step(params, joined=self.path[-1] == last)
            last = self.path[-1]
            if step.finish_reason is None and count == max_new_tokens:
                step = replace(step, finish_reason="max_new_tokens")
            if step.finish_reason in ("max_new_tokens", "context_full"):
                step = replace(step, text=step.text + self.incomplete_text())
            yield step
            if step.finish_reason is not None:
                return

    def _zero_gpu_steps(self, params: SamplingParams, max_new_tokens: int) -> Iterator[Step]:
        last, given = None, (self.ids, self.dropped, self.edits)
        for step, start, rows in zero_gpu_steps(self.loaded, *given, params, max_new_tokens):
            self.add_step(step, params, start, rows, joined=self.path[-1] == last)
            last = self.path[-1]
            yield step

    def add_step(
        self, step: Step, params: SamplingParams, start: int, rows: Sequence[np.ndarray], *, joined: bool = False
    ) -> None:
        """Append a step that a copy of this document made elsewhere, with its activations from position `start` on."""
        self._cache.set_activations(start, [torch.from_numpy(part) for part in rows])
        self._add([step.token_id], Origin("sampled", params), joined=joined)

    def incomplete_text(self) -> str:
        """Replacement characters for bytes at the end that are no character yet."""
        text = self._decoder.finish()
        self._restart_decoder()  # a later token may complete the character
        return text

    @torch.inference_mode()
    def _step(self, params: SamplingParams, *, joined: bool) -> Step:
        """joined: one action with the step before."""
        if self.full:
            raise GPTError("context.full", limit=self.block_size)
        return self._cache.read(self.ids, self.path, lambda: self._sample(params, joined))

    def _sample(self, params: SamplingParams, joined: bool) -> Step:
        position = len(self.dropped) + len(self.ids)
        predicted = self._cache.distribution(len(self.ids) - 1)
        logits = predicted.logits.cpu()
        assert params.seed is not None  # set by with_seed
        draw = uniform_draw(params.seed, position)
        with threads_for(len(logits)):
            token_id = sample_token(logits, params, draw, previous_ids=self.ids)
        scores = logits.numpy()
        score = scores[token_id]
        return Step(
            token_id=token_id,
            text=self._add([token_id], Origin("sampled", params), joined=joined),
            probability=math.exp(float(score) - predicted.log_sum),
            rank=1 + int(np.count_nonzero(scores > score)),
            entropy=predicted.entropy,
            position=position,
            draw=draw,
            finish_reason=self._finish_reason(token_id),
        )

    def _go_to(self, node: int) -> str:
        self._cache.store_branch(self.path, self.tree.shared_length(node, self.path))
        completed = super()._go_to(node)
        self._cache.restore_branch(self.path)
        return completed

    def _remove_nodes(self, start: int) -> None:
        self._cache.branches.forget(start)
        super()._remove_nodes(start)

    def _finish_reason(self, token_id: int) -> FinishReason | None:
        if token_id in self.loaded.tokenizer.eot_ids:
            return "end_of_text"
        return "context_full" if self.full else None


@on_gpu
def zero_gpu_steps(
    loaded: LoadedModel,
    ids: list[int],
    dropped: list[int],
    edits: Edits | None,
    params: SamplingParams,
    max_new_tokens: int,
) -> Iterator[tuple[Step, int, tuple[Any, ...]]]:
    """The steps after `ids`, in one ZeroGPU call: (step, start, activations from position start on).

    Those of the first cover the prompt, of each later one the position that its step has read.
    """
    remote = Generation(gpu_copy(loaded), ids, edits=edits, dropped=dropped)
    for step in remote.local_steps(params, max_new_tokens):
        start = 0 if remote.n_read <= len(ids) else remote.n_read - 1
        yield step, start, remote.activations(start)
