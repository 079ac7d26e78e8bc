"""A document that a model continues token by token, with activations for every position."""

from __future__ import annotations

import math
import threading
import time
from base64 import b64decode, b64encode
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from gpt.analysis.predictions import TextStatistics, text_statistics, token_statistics
from gpt.background import SMALL_WORK, release_threads, threads_for
from gpt.cache import KVCache, with_room
from gpt.documents.document import KEYS, TYPED, Document, Origin, TokenTree, common_prefix_length
from gpt.documents.edit_text import format_edits, parse_edits
from gpt.documents.saved_document import SavedDocument
from gpt.edits import Edits
from gpt.errors import GPTError, check_head, check_layer, require
from gpt.inference import on_gpu, on_zero_gpu
from gpt.inference.cluster import POLL_SECONDS, ConnectionLost, Replies
from gpt.inputs import AnyModel, Prompt, encode_prompt
from gpt.models.loading import LoadedModel, gpu_copy
from gpt.models.registry import as_loaded, get_model
from gpt.sampling import Draw, SamplingParams, keep_only, sample, with_seed
from gpt.tokenizer import hold_back
from gpt.trace import Trace

READ_SECONDS = 2.0  # time limit for a replica to read a text
MAX_AWAY_SECONDS = 20.0  # maximum time that `Generation.steps` waits for an unreachable cluster
NO_EDITS = Edits()
MAX_LOSSES = 5  # limit on consecutive replica failures without a new token
FLOAT32 = "<f4"  # little-endian
FinishReason = Literal["end_of_text", "max_new_tokens", "context_full", "stopped"]
# A draw, the seconds that it took, and any states read by another process: the first one's position, and (n * C,)
Drawn = tuple[Draw, float, tuple[int, Tensor] | None]
Draws = Generator[Drawn | None, None, None]  # None while there are none


@dataclass(frozen=True)
class Step:
    """One generated token.

    Attributes:
        token_id: The drawn token.
        text: Characters completed by the token; "" for end-of-text or part of a character.
        probability: Probability of the token in the raw softmax, before sampling.
        rank: Rank of the token in the raw softmax, 1 for the most likely.
        entropy: Entropy of the raw softmax, in bits.
        position: Index in the text, counting the prompt and dropped tokens.
        draw: Uniform number that selected the token.
        finish_reason: Reason the text ends; None before the last step.
        seconds: Time that the model took. Ignored when steps are compared.
        trace: Activations of the pass that predicted the token, if `generate` was asked for them. Ignored as well.
    """

    token_id: int
    text: str
    probability: float
    rank: int
    entropy: float
    position: int
    draw: float
    finish_reason: FinishReason | None = None
    seconds: float = field(default=0.0, compare=False)
    trace: Trace | None = field(default=None, compare=False, repr=False)


class Generation(Document):
    """A document with the activations that the model has computed for it.

    The document keeps the queries, keys and values of every layer and the final-norm states of all positions read, so
    `logits`, `attn_weights` and `statistics` need no forward pass. Of positions that another process has read, it keeps
    only the states; `attn_weights` reads them here when it is first called. A branch that becomes the text again is
    read again, from the position where it begins.

    Concurrent reading: while one thread extends the text, `tree`, `ids` and `path` only grow at their ends, and the
    activations of positions below n_read do not change. A reader that first gets n_read, and then uses only positions
    below it, sees a consistent text. `go_back`, `switch`, `undo`, `redo`, `retype`, and `append` with `after`, can
    shorten the text, so callers must exclude readers during these calls.

    n_read: number of positions that the model has read; only these have activations.

    prompt: text, token ids, or the messages of a chat; an empty prompt becomes the start-of-text token.
    heal: whether white space at the end of a text is held back (see `gpt.tokenizer.hold_back`): the model does not read
        it, and the next token must begin with it. Has no effect on token ids and chats.
    held: for token ids, white space to treat in this way.
    special: whether names of control tokens in a text become control tokens (see `encode_prompt`).
    Raises ValueError for a prompt longer than the context, an unknown id, or an empty prompt if the vocabulary has no
    end-of-text token.
    """

    def __init__(
        self,
        model: AnyModel,
        prompt: Prompt,
        *,
        edits: Edits | None = None,
        dropped: Sequence[int] = (),
        heal: bool = True,
        held: str = "",
        special: bool = False,
    ) -> None:
        self.loaded = loaded = as_loaded(model)
        self._engine = loaded.engine
        self._read_lock = threading.Lock()  # held while the cache catches up with the states
        self._set_edits(edits)
        if heal and isinstance(prompt, str):
            prompt, held = hold_back(loaded.tokenizer, prompt)
        ids = encode_prompt(loaded, prompt, special=special)
        super().__init__(loaded.tokenizer, loaded.model.config.block_size, ids, dropped)
        self.held = held
        self._engine.count(self)

    def copy(self) -> Generation:
        """Return an independent copy that shares the model."""
        other = Generation(self.loaded, self.prompt_ids, edits=self.edits, dropped=self.dropped)
        other._set_tree(TokenTree(self.tree.tokens), self._n_prompt_nodes, self.path[-1], self._held)
        other.history = self.history.copy()
        other._cache, other._newest = self._cache.share(), self._newest
        other._states, other.n_read = self.states().clone(), self.n_read
        return other

    def edit(self, edits: Edits | None) -> None:
        """Replace the edits, discard the activations, and give the document a new key."""
        if (edits or NO_EDITS) != (self.edits or NO_EDITS):
            self.key = next(KEYS)
            self._set_edits(edits)

    def _set_edits(self, edits: Edits | None) -> None:
        require(all(hook.name != "logits" for hook in (edits or NO_EDITS).hooks), "hook.logits")
        self.edits = None if edits == NO_EDITS else edits
        model = self.loaded.model
        self._cache = model.new_cache(keep_queries=True)
        self._states = torch.empty(0, model.config.n_embd, dtype=model.dtype, device=model.device)
        self.n_read = 0
        self._newest: tuple[int, Tensor] | None = None  # the position read last and the logits after it

    def to_json(self) -> str:
        """Serialise the document as JSON. Raises ValueError for hooks and for patches without ids."""
        return SavedDocument(
            model=self.loaded.name,
            vocab_size=self.loaded.model.config.vocab_size,
            prompt_tokens=self._n_prompt_nodes,
            current=self.path[-1],
            tree=self.tree,
            edits=format_edits(self.edits or NO_EDITS),
            dropped=self.dropped,
            held=[*self._held.items()],
        ).to_json()

    @classmethod
    def from_json(cls, text: str, loaded: LoadedModel | None = None) -> Generation:
        """Restore a document, with an empty history and without activations.

        loaded: Defaults to the model named in the file. Raises ValueError if the file is damaged or the document does
        not fit the model's vocabulary or context.
        """
        saved = SavedDocument.from_json(text)
        loaded = get_model(saved.model) if loaded is None else loaded
        prompt = [token.token_id for token in saved.tree.tokens[: saved.prompt_tokens]]
        document = cls(loaded, prompt, edits=saved.edits_for(loaded), dropped=saved.dropped)
        document._set_tree(saved.tree, saved.prompt_tokens, saved.current, dict(saved.held))
        return document

    @property
    def n_bytes(self) -> int:
        """Size of the activations in bytes. Excludes the model."""
        return self._cache.n_bytes + self._states.nbytes

    def read(self) -> None:
        """Run one forward pass on all unread ids up to block_size.

        For a deployed model, a replica runs this pass. If none responds within READ_SECONDS, this process runs it.
        """
        deployed, end = self.loaded.deployed, time.monotonic() + READ_SECONDS
        if deployed is not None and self.has_unread:
            with suppress(ConnectionLost, GPTError):
                with closing(deployed.stream(self.request(SamplingParams(), 0))) as found:
                    reply = next((reply for reply in found if reply is not None or time.monotonic() > end), None)
                if reply is not None:
                    n_new = self._keep_states(reply["start"], states_of(reply))
                    self._engine.n_tokens += n_new  # after keeping them, because other threads count, too
        self._read_here()

    @property
    def has_unread(self) -> bool:
        """Whether there are ids, up to block_size, that the model has not read."""
        return self.n_read < min(len(self.ids), self.block_size)

    @property
    def _unread(self) -> tuple[list[int], KVCache, Edits | None]:
        """Arguments for the engine to read the unread ids, up to block_size."""
        self._cache.crop(min(self._cache.length, self.n_read))  # an interrupted read may have left it ahead
        return self.ids[self._cache.length : self.block_size], self._cache, self.edits

    def _read_here(self, *, samples: bool = False) -> None:
        if self.has_unread:
            with self._read_lock:
                self._keep(*self._engine.read(*self._unread, samples=samples))

    def _catch_up(self) -> None:
        """Compute the queries, keys and values of positions that another process has read."""
        if self._cache.length < self.n_read:
            with self._read_lock:
                if ids := self.ids[self._cache.length : self.n_read]:
                    self._engine.read(ids, self._cache, self.edits)

    def _keep(self, states: Tensor, logits: Tensor) -> None:
        """Keep what the engine returns: the states (T, C) of the last T positions in the cache, and the last logits."""
        end = self._cache.length
        self._keep_states(end - len(states), states)
        self._newest = end - 1, logits

    def _keep_states(self, start: int, states: Tensor) -> int:
        """Keep the states, T * C numbers, of the T positions from `start` that have not been read and are in the text.

        Returns their number.
        """
        states = states.view(-1, self._states.shape[1])
        n, end = self.n_read, min(len(self.ids), start + len(states))
        if end > n:
            self._states = with_room(self._states, n, end, self.block_size)
            self._states[n:end] = states[n - start : end - start].detach()
            self._newest, self.n_read = None, end
        return max(0, end - n)

    def states(self) -> Tensor:
        """Return the final-norm states, (n_read, n_embd), as a view that must not be modified."""
        n = self.n_read
        return self._states[:n]

    def logits(self, position: int) -> Tensor:
        """Return the next-token logits after a position: (vocab_size,), float32. See `possible`."""
        return self.possible(position, self._logits(position))

    def _logits(self, position: int) -> Tensor:
        if not 0 <= position < self.n_read:
            raise GPTError("position.not_read", position=position, n=self.n_read)
        newest = self._newest  # another thread may replace it
        if newest is not None and newest[0] == position:
            return newest[1]
        return self._engine.logits(self.states()[position : position + 1])[0]

    def possible(self, position: int, logits: Tensor) -> Tensor:
        """Restrict any logits (..., vocab_size) for the token after a position to the tokens that can follow there.

        After white space that is held back (see `gpt.tokenizer.hold_back`), these are the tokens that begin with it;
        all others get -inf. Elsewhere, the logits are returned unchanged.
        """
        return keep_only(logits, self.tokenizer.ids_after(self.held_after(position)))

    @torch.inference_mode()
    def impossible_share(self, position: int) -> float:
        """Return the probability that the model gives to the tokens that `possible` excludes."""
        all_logits = self._logits(position)
        kept = self.possible(position, all_logits)
        return 0.0 if kept is all_logits else -math.expm1((kept.logsumexp(0) - all_logits.logsumexp(0)).item())

    @torch.inference_mode()
    def attn_weights(self, layer: int, head: int | None = None, *, start: int = 0, stop: int | None = None) -> Tensor:
        """Return the attention weights of one head, or by default the mean over all heads: (stop - start, stop).

        start, stop: the queries, by default all positions read. Raises ValueError for an unknown layer or head.
        """
        config = self.loaded.model.config
        check_layer(layer, config.n_layer)
        if head is not None:
            check_head(head, config.n_head)
        self._catch_up()
        n = min(self.n_read, self._cache.length, self.block_size if stop is None else stop)
        if self.edits is None:
            return self._cache.attn_weights(layer, head=head, start=start, stop=n)[0].mean(dim=0)
        weights = self._cache.attn_weights(layer, start=start, stop=n)  # (1, nh, n - start, n)
        weights = self.edits.apply(layer, "attn_weights", weights, start)[0]
        return weights.mean(dim=0) if head is None else weights[head]

    def without_first(self) -> Generation:
        """Return a new document without the first token, which is added to `dropped`. See `without`."""
        return self._part(self.path[1:], self.edits, [*self.dropped, self.ids[0]])

    def without(self, positions: Collection[int]) -> Generation:
        """Return a new document without the tokens at these positions of the current text.

        The other tokens keep their origins, except that the first one counts as typed. Branches, edits at a position,
        and activations (all positions change) are not copied. Raises ValueError if no token remains.
        """
        nodes = [node for position, node in enumerate(self.path) if position not in positions]
        return self._part(nodes, None if self.edits is None else self.edits.for_any_text(), self.dropped)

    def _part(self, nodes: Sequence[int], edits: Edits | None, dropped: Sequence[int]) -> Generation:
        tokens = [replace(self.tree.tokens[node], parent=n - 1 if n else None) for n, node in enumerate(nodes)]
        tokens[:1] = [replace(token, origin=TYPED) for token in tokens[:1]]
        other = Generation(self.loaded, [token.token_id for token in tokens[:1]], edits=edits, dropped=dropped)
        n_prompt = sum(node < self._n_prompt_nodes for node in nodes)
        other._set_tree(TokenTree(tokens), max(1, n_prompt), len(tokens) - 1)
        other.held = self.held
        return other

    def fork(self, batch_size: int, max_length: int) -> KVCache:
        """Return a key-value cache for a batch of texts that all continue the positions read so far."""
        self._catch_up()
        return self._cache.fork(batch_size, max_length, self.n_read)

    def statistics(self, start: int = 1) -> TextStatistics:
        """Compute statistics for the tokens read so far, from position `start` >= 1: nothing predicts the first."""
        require(start >= 1, "generation.first_position", start=start)
        end = max(start, min(self.n_read + 1, len(self.ids)))
        ids, states = self.ids[start:end], self.states()[start - 1 : end - 1]
        tokens = [*text_statistics(self.loaded.model, states, ids).tokens]
        for i, token_id in enumerate(ids):
            if self.origin(start + i).held:
                logits = self.logits(start + i - 1)[None]
                tokens[i : i + 1] = token_statistics(logits, torch.tensor([[token_id]], device=logits.device))
        return TextStatistics(tuple(tokens))

    def step(self, params: SamplingParams) -> Step:
        """Read the unread tokens, then sample and append one token. The draw depends only on the seed and position.

        Raises ValueError if the context is full.
        """
        return next(self.steps(params, 2))  # the first of two, because the last one would have a finish_reason

    def steps(
        self, params: SamplingParams, max_new_tokens: int, *, slides: bool = False, local: bool = False
    ) -> Iterator[Step]:
        """Generate up to max_new_tokens steps, which `undo` treats as one action.

        The last step has a finish_reason unless the server is shutting down. On ZeroGPU, all steps run in one GPU call.
        For a deployed model, a replica generates them ahead of time. Raises ValueError if the cluster stays unreachable
        for MAX_AWAY_SECONDS.
        slides: whether to drop the first token before each new one once the context is full, see `stream`.
        local: whether to run in this process in any case, on the model's own device.
        """
        deployed, seen = self.loaded.deployed, time.monotonic()
        for _, step in stream(self, params, max_new_tokens, slides=slides, local=local):
            if step is not None:
                yield step
            if step is not None or deployed is None or deployed.is_there:
                seen = time.monotonic()
            elif time.monotonic() - seen > MAX_AWAY_SECONDS:
                raise GPTError("cluster.away")

    def request(self, params: SamplingParams, max_new_tokens: int, *, slides: bool = False) -> dict[str, Any]:
        """Create the request to continue this text in another process, as JSON (see `replies`).

        Raises ValueError if the context is full or the edits cannot be sent.
        """
        if max_new_tokens != 0:
            self.check_room()
        return {
            "ids": self.ids[: self.block_size],
            "dropped": [*self.dropped],
            "held": self.held,
            "edits": format_edits(self.edits or NO_EDITS),
            "params": params.given(),
            "max_new_tokens": max_new_tokens,
            "n_known": self.n_read,
            "slides": slides,
        }

    def draw_next(self, params: SamplingParams) -> Drawn:
        """Read the unread tokens in this process, and sample the next token."""
        began = time.perf_counter()
        self.check_room()
        try:
            self._read_here(samples=True)
            position = len(self.ids) - 1
            logits = self.logits(position) if self.held else self._logits(position)
            draw = sample(logits, params, position=len(self.dropped) + len(self.ids), previous_ids=self.ids)
        finally:
            self._engine.wake_next()
        return draw, time.perf_counter() - began, None

    def append_draw(self, drawn: Drawn, params: SamplingParams, left: int, *, joined: bool, slides: bool) -> Step:
        """Append a drawn token.

        left: number of steps that follow at most. joined: whether it belongs to the same action as the previous one.
        slides: whether a full context does not end the text.
        """
        (token_id, probability, rank, entropy, u), seconds, read = drawn
        origin = self.tree.tokens[self.path[-1]].origin
        if origin.params is not params or origin.held != self.held:
            origin = Origin("sampled", params, self.held)
        text = self._add([token_id], origin, joined=joined)
        if read is not None:
            n_new = self._keep_states(*read)
            self._engine.n_tokens += n_new
        reason: FinishReason | None = None
        if token_id in self.tokenizer.eot_ids:
            reason = "end_of_text"
        elif self.full and not slides:
            reason = "context_full"
        elif left == 0:
            reason = "max_new_tokens"
        if reason in ("max_new_tokens", "context_full"):
            text += self._decoder.finish()  # replacement characters for an incomplete one
            self._restart_decoder()  # a later token may complete it
        position = len(self.dropped) + len(self.ids) - 1
        return Step(token_id, text, probability, rank, entropy, position, u, reason, seconds)

    def take_activations(self, other: Generation) -> None:
        """Reuse another document's activations for the common prefix. Do not use that document afterwards."""
        self._cache, self._states, self._newest = other._cache, other._states, None
        self.n_read = min(common_prefix_length(self.ids, other.ids), other.n_read)
        self._cache.crop(min(self._cache.length, self.n_read))
        self._begin()

    def _go_to(self, node: int) -> str:
        completed = super()._go_to(node)
        self._begin()
        return completed

    def _begin(self) -> None:
        """Forget all activations if those of a text of this length differ at every position (see `KVCache.begin`)."""
        if self._cache.begin(min(len(self.ids), self.block_size)):
            self._newest, self.n_read = None, 0
            self.key = next(KEYS)

    def _cut(self, length: int) -> None:
        if length < self.n_read:
            self._cache.crop(min(length, self._cache.length))
            self._newest, self.n_read = None, length
        super()._cut(length)


def states_of(reply: dict[str, Any]) -> Tensor:
    return torch.from_numpy(np.frombuffer(bytearray(b64decode(reply["states"])), FLOAT32))


def together(
    texts: Sequence[tuple[Generation, SamplingParams]], max_new_tokens: int
) -> Iterator[tuple[Step | None, ...]]:
    """Yield the next step of each text, None for a text that has ended, until all have. See `Generation.steps`.

    Documents of one model are read in shared passes, unless the model runs in another process.
    """
    runs = [document.steps(params, max_new_tokens) for document, params in texts]
    going = [document for document, _ in texts]
    while going:
        here = [] if on_zero_gpu() else [each for each in going if each.loaded.deployed is None and each.has_unread]
        for engine in {each._engine for each in here}:
            unread = [each for each in here if each._engine is engine]
            if len(unread) > 1:
                for each, read in zip(unread, engine.read_together([each._unread for each in unread]), strict=True):
                    each._keep(*read)
        steps = tuple(next(run, None) for run in runs)
        going = [each for (each, _), step in zip(texts, steps, strict=True) if step and step.finish_reason is None]
        if any(steps):
            yield steps


def stream(
    document: Generation, params: SamplingParams, max_new_tokens: int, *, slides: bool = False, local: bool = False
) -> Iterator[tuple[Generation, Step | None]]:
    """Generate up to max_new_tokens steps, and yield each with its document.

    slides: whether to drop the first token before each new one once the context is full. Each step then reads a full
        context again, as in `gpt.generate_greedy`: all tokens shift by one position, which invalidates the cached keys
        and values. A new document replaces the given one for each token from then on.
    local: see `Generation.steps`.
    Yields None instead of a step, every POLL_SECONDS, while a cluster is unreachable or busy. The last step has a
    finish_reason unless generation was stopped.
    """
    params, loaded = with_seed(params), document.loaded
    last_node, left = None, max_new_tokens
    send: Callable[[dict[str, Any]], Replies] | None = None  # to another process
    if not local and on_zero_gpu():
        send = partial(zero_gpu_replies, loaded)
    elif not local and loaded.deployed is not None:
        send = loaded.deployed.stream
    draws = send and drawn_elsewhere(send, lambda: document.request(params, left, slides=slides))
    with closing(draws) if draws else threads_for(SMALL_WORK):
        while left > 0 and not document._engine.stopped:
            if slides and document.full:
                document = document.without_first()
            if draws is None:
                drawn: Drawn | None = document.draw_next(params)
            else:
                try:
                    drawn = next(draws)
                except StopIteration:  # the other process has ended the text early
                    return
            if drawn is None:
                yield document, None
                continue
            left -= 1
            joined = not slides and document.path[-1] == last_node
            step = document.append_draw(drawn, params, left, joined=joined, slides=slides)
            last_node = document.path[-1]
            yield document, step
            if step.finish_reason is not None:
                return


def drawn_elsewhere(send: Callable[[dict[str, Any]], Replies], request: Callable[[], dict[str, Any]]) -> Draws:
    """Yield the draws of another process. If it is lost, another continues from the document's ids.

    send: sends a request; raises ConnectionLost if nothing can be reached.
    """
    losses = 0
    while True:
        try:
            with closing(send(request())) as found:
                for reply in found:
                    if reply is None:
                        yield None
                        continue
                    read = reply["start"], states_of(reply)
                    for draw in reply["draws"]:
                        losses = 0
                        yield Draw(*draw), reply["seconds"] / len(reply["draws"]), read
            return
        except ConnectionLost as lost:
            if not lost.answered:
                time.sleep(POLL_SECONDS)
            elif (losses := losses + 1) > MAX_LOSSES:
                raise GPTError("cluster.lost", n=MAX_LOSSES) from None
            yield None


def of_request(loaded: LoadedModel, request: dict[str, Any]) -> Generation:
    edits = parse_edits(request["edits"], loaded.model, loaded.concepts)
    return Generation(loaded, request["ids"], edits=edits, dropped=request["dropped"], held=request["held"])


def replies(
    document: Generation, request: dict[str, Any], interval: Callable[[], float] = lambda: 0.0
) -> Iterator[dict[str, Any]]:
    """Run a request of `Generation.request` on a document with the same ids, and yield the replies as JSON.

    request: with max_new_tokens 0, the text is only read. n_known: number of positions whose states the caller has.
    Each reply has the `draws` since the last one, the time in `seconds` that they took, and the final-norm `states` of
    the positions read since, the first of which is `start`. The document itself stays with the caller, which computes
    attention weights and traces when they are looked at. Any other process can continue the text with the same tokens,
    because a draw depends only on the seed and the position.

    Sends the first token immediately, and later ones once `interval()` seconds have passed since the last reply. Also
    reads the last token, so that the last reply includes its activations.
    """
    draws, start, sent, seconds = list[Draw](), request["n_known"], -math.inf, 0.0
    key = document.key

    def reply() -> dict[str, Any]:
        release_threads()  # another thread may draw the next token
        states = b64encode(document.states()[start:].float().cpu().numpy().astype(FLOAT32).tobytes()).decode()
        return {"draws": draws, "start": start, "states": states, "seconds": seconds}

    params, slides = SamplingParams(**request["params"]), request["slides"]
    for current, step in stream(document, params, request["max_new_tokens"], slides=slides, local=True):
        assert step is not None  # in this process
        draws.append(Draw(step.token_id, step.probability, step.rank, step.entropy, step.draw))
        seconds += step.seconds
        if current.key != key:  # another document, or all of its activations differ
            document, key, start = current, current.key, 0
        if step.finish_reason is None and (slides or time.perf_counter() - sent >= interval()):
            yield reply()
            draws, start, sent, seconds = [], document.n_read, time.perf_counter(), 0.0
    document.read()
    yield reply()


@on_gpu
def zero_gpu_replies(loaded: LoadedModel, request: dict[str, Any]) -> Replies:
    yield from replies(of_request(gpu_copy(loaded), request), request)
