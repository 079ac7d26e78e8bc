"""A document that a model continues token by token, with what is needed to inspect every position afterwards."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from gpt.cache import KVCache
from gpt.documents.branches import Branches, Origin
from gpt.documents.document import Document
from gpt.documents.edit_text import format_edits
from gpt.documents.reading import BRANCH_MEMORY, Reading
from gpt.documents.saved_document import SavedDocument
from gpt.documents.text_statistics import TextStatistics, text_statistics
from gpt.edits import Edits
from gpt.errors import GPTError
from gpt.inference.threads import threads_for
from gpt.inference.zero_gpu import on_gpu, on_zero_gpu
from gpt.models.gpu_twin import gpu_twin
from gpt.models.loading import LoadedModel
from gpt.models.registry import get_model
from gpt.sampling import SamplingParams, choose, uniform, with_seed
from gpt.tokenizer import whole_ids

FinishReason = Literal["end_of_text", "max_new_tokens", "context_full", "stopped"]


@dataclass(frozen=True)
class Step:
    """One generated token.

    text: the characters that it completed, "" where it only adds bytes to one, or ends the text.
    probability, rank (1 = best), entropy (bits): of the raw softmax it was chosen from.
    position: its index in the document, prompt included. draw: the uniform number that chose it.
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
    """A document that a person steers, and what the model made of it.

    A hidden state is n_embd numbers; the logits over the whole vocabulary are one product with the head away.
    The cache keeps queries as well, so the attention of any head at any position needs no further pass.
    What the model made of other branches is kept too, each token once, so that a return costs no pass.

    prompt: text, or ids; an empty one starts from the end-of-text token. branch_memory: bytes for the branches
    that are not current; beyond it those left the longest ago are forgotten, and read again on return.
    Raises ValueError for a prompt longer than the context, an id that does not exist, or an empty prompt
    where the vocabulary has no end-of-text token.
    """

    def __init__(
        self,
        loaded: LoadedModel,
        prompt: str | Sequence[int],
        *,
        edits: Edits | None = None,
        branch_memory: int = BRANCH_MEMORY,
    ) -> None:
        self.loaded, self.edits = loaded, edits
        self._reading = Reading(loaded.engine, edits, branch_memory)
        ids = encode_prompt(loaded, prompt)
        super().__init__(loaded.tokenizer, loaded.model.config.block_size, Branches.line(ids), len(ids), len(ids) - 1)

    def copy(self) -> Generation:
        """The same document, to go on with on its own."""
        other = Generation(self.loaded, self.prompt_ids, edits=self.edits)
        other._plant(Branches(self.tree.tokens), self._n_given, self.path[-1])
        other.history, other._reading = self.history, self._reading.copy()
        return other

    def __deepcopy__(self, memo: dict[int, object]) -> Generation:
        """The model stays shared, also when a copy is made of something that holds a document; it is the same one."""
        other = self.copy()
        other.key = self.key
        return other

    def to_json(self) -> str:
        """The document as a file, see `gpt.documents.saved_document`. Raises ValueError for edits that have no text."""
        edits = format_edits(self.edits or Edits())
        vocab_size = self.loaded.model.config.vocab_size
        tokens = tuple(self.tree.tokens)
        return SavedDocument(self.loaded.name, vocab_size, self._n_given, self.path[-1], tokens, edits).to_json()

    @classmethod
    def from_json(
        cls, text: str, loaded: LoadedModel | None = None, *, branch_memory: int = BRANCH_MEMORY
    ) -> Generation:
        """The document of a file, for the model it names, or for another one with as many tokens in its vocabulary.

        Nothing is read yet, and undo begins anew. Raises ValueError, with a sentence for a person, for a file that
        is damaged or does not fit the model.
        """
        saved = SavedDocument.from_json(text)
        loaded = get_model(saved.model) if loaded is None else loaded
        saved.check(loaded)
        prompt = [token.token_id for token in saved.tokens[: saved.n_prompt]]
        document = cls(loaded, prompt, edits=saved.edits_for(loaded), branch_memory=branch_memory)
        document._plant(Branches(saved.tokens), saved.n_prompt, saved.current)
        return document

    @property
    def n_read(self) -> int:
        """How many of the ids the model has read: only these positions have a state."""
        return self._reading.length

    @property
    def forgotten(self) -> frozenset[int]:
        """The tokens of the tree whose states went when branch_memory ran out, until they are read again."""
        return frozenset(self._reading.shelf.forgotten)

    def read(self) -> None:
        """Let the model read the ids that it has not read yet, as far as the context goes: one forward pass."""
        self._reading.read(self.ids, self.path)

    def states(self) -> Tensor:
        """(n_read, n_embd): what the last norm made of each position; not to be changed."""
        return self._reading.states[: self.n_read]

    def logits(self, position: int) -> Tensor:
        """(vocab_size,) float32: the scores of what may follow the token at this position."""
        return self._reading.logits(position)

    def attn_weights(self, layer: int, head: int | None = None) -> Tensor:
        """(n_read, n_read): who looked at whom, in one head, or averaged over the heads for None."""
        return self._reading.attn_weights(layer, head)

    def fork(self, batch_size: int, max_length: int) -> KVCache:
        """A cache for a batch of texts that all go on from what was read."""
        return self._reading.fork(batch_size, max_length)

    def statistics(self, start: int = 1) -> TextStatistics:
        """Probability, rank, entropy and surprisal of each token from position `start` on, as far as was read.

        Raises ValueError for a start below 1: nothing stands before the first token.
        """
        if start < 1:
            raise GPTError("generation.first_position", start=start)
        end = max(start, min(self.n_read + 1, len(self.ids)))
        return text_statistics(self.loaded.model, self.states()[start - 1 : end - 1], self.ids[start:end])

    def token_statistics(self, start: int = 1) -> list[tuple[float, int]]:
        """(probability, rank) of each token from position `start` >= 1 on, in the raw softmax before it."""
        return [(token.probability, token.rank) for token in self.statistics(start).tokens]

    def step(self, params: SamplingParams) -> Step:
        """Read what is unread, then choose and append one token.

        The draw depends on the seed and the position alone, so it can be repeated.
        """
        return self._step(with_seed(params), joined=False)

    def rows(self, start: int) -> tuple[Tensor, ...]:
        """All that is kept of the positions from `start` on."""
        return self._reading.rows(start)

    def steps(self, params: SamplingParams, max_new_tokens: int) -> Iterator[Step]:
        """Go on for up to max_new_tokens, one action for `undo`; the last step carries its finish_reason.

        On ZeroGPU all of them are one call to the GPU that is lent.
        """
        params = with_seed(params)
        return (self._zero_gpu_steps if on_zero_gpu() else self.steps_here)(params, max_new_tokens)

    def _zero_gpu_steps(self, params: SamplingParams, max_new_tokens: int) -> Iterator[Step]:
        last = None
        for step, start, rows in zero_gpu_steps(self.loaded, self.ids, self.edits, params, max_new_tokens):
            self._reading.take(start, [torch.from_numpy(part) for part in rows])
            self._add([step.token_id], Origin("sampled", params), joined=self.path[-1] == last)
            last = self.path[-1]
            yield step

    def steps_here(self, params: SamplingParams, max_new_tokens: int) -> Iterator[Step]:
        """`steps` in this process, wherever the model is. params with a seed."""
        last = None
        for count in range(1, max_new_tokens + 1):
            step = self._step(params, joined=self.path[-1] == last)
            last = self.path[-1]
            if step.finish_reason is None and count == max_new_tokens:
                step = replace(step, finish_reason="max_new_tokens")
            if step.finish_reason in ("max_new_tokens", "context_full"):
                step = replace(step, text=step.text + self._decoder.feed(b"", final=True))
                self._restart_decoder()  # the character may be finished yet
            yield step
            if step.finish_reason is not None:
                return

    @torch.inference_mode()
    def _step(self, params: SamplingParams, *, joined: bool) -> Step:
        """joined: one action with the step before."""
        if self.full:
            raise GPTError("context.full", limit=self.block_size)
        return self._reading.read(self.ids, self.path, lambda: self._chosen(params, joined))

    def _chosen(self, params: SamplingParams, joined: bool) -> Step:
        position = len(self.ids)
        outlook = self._reading.outlook(position - 1)
        logits = outlook.logits.cpu()
        draw = uniform(params.seed, position)
        with threads_for(len(logits)):
            token_id = choose(logits, params, draw, previous_ids=self.ids)
        scores = logits.numpy()
        score = scores[token_id]
        return Step(
            token_id=token_id,
            text=self._add([token_id], Origin("sampled", params), joined=joined),
            probability=math.exp(float(score) - outlook.log_sum),
            rank=1 + int(np.count_nonzero(scores > score)),
            entropy=outlook.entropy,
            position=position,
            draw=draw,
            finish_reason=self._finished(token_id),
        )

    def _go(self, tip: int) -> str:
        self._reading.leave(self.path, self.tree.shared(tip, self.path))
        completed = super()._go(tip)
        self._reading.resume(self.path)
        return completed

    def _finished(self, token_id: int) -> FinishReason | None:
        if token_id == self.loaded.tokenizer.eot_id:
            return "end_of_text"
        return "context_full" if self.full else None


def encode_prompt(loaded: LoadedModel, prompt: str | Sequence[int]) -> list[int]:
    """The ids that a prompt starts from; see `Generation` for what is refused."""
    tokenizer, block_size = loaded.tokenizer, loaded.model.config.block_size
    ids = tokenizer.encode(prompt) if isinstance(prompt, str) else whole_ids(prompt)
    if not ids:
        if tokenizer.eot_id is None:
            raise GPTError("prompt.empty")
        ids = [tokenizer.eot_id]
    if len(ids) > block_size:
        excess = len(ids) - block_size
        raise GPTError("context.prompt_too_long", n=len(ids), excess=excess, limit=block_size)
    for token_id in ids:
        tokenizer.token_bytes(token_id)
    return ids


@on_gpu
def zero_gpu_steps(
    loaded: LoadedModel, ids: list[int], edits: Edits | None, params: SamplingParams, max_new_tokens: int
) -> Iterator[tuple[Step, int, tuple[Tensor, ...]]]:
    """The steps after `ids`, written in one call on the GPU that ZeroGPU lends.

    Yields (step, start, rows): the document's `rows` from position start on. The first covers the prompt,
    each later one the single position that its step has read.
    """
    remote = Generation(gpu_twin(loaded), ids, edits=edits)
    for step in remote.steps_here(params, max_new_tokens):
        start = 0 if remote.n_read <= len(ids) else remote.n_read - 1
        yield step, start, remote.rows(start)
