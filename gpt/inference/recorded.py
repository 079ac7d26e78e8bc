"""On a GPU a step is recorded once for each text, as a CUDA graph, and played back for every token.

One token keeps a GPU busy for less time than Python takes to ask for each of its operations. A graph asks for all of
them at once, but always for the same ones on the same memory: token and position stand in two tensors, and attention
runs over the whole cache with what lies ahead masked. Nothing is compiled; recording takes about as long as two steps.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cache
from weakref import WeakKeyDictionary

import torch
from torch import Tensor
from torch.nn import functional as F

from gpt.cache import KVCache
from gpt.inference.decode import Decoder
from gpt.inference.step import Block, Rotation

KEPT = 32  # texts whose steps stay recorded: those that are written now
Play = Callable[[], Tensor]
_recording = threading.Lock()  # torch allows one at a time in a process


class FixedStep:
    """The step of one text, with the same operations on the same memory for every token."""

    def __init__(self, decoder: Decoder, cache: KVCache) -> None:
        self.decoder, self.layers = decoder, cache.layers  # the memory, not the cache: it may be let go
        self.token, self.position = (torch.zeros(1, dtype=torch.long, device=decoder.device) for _ in range(2))
        self.places = torch.arange(cache.layers[0][1].shape[2], device=decoder.device)

    def at(self, token_id: int, position: int) -> None:
        """What is to be read next, and where."""
        self.token.fill_(token_id)
        self.position.fill_(position)

    def run(self) -> Tensor:
        """(1, C): the state of the token, after the last norm; its keys and values are in the cache."""
        seen = (self.places <= self.position)[None, None, None]  # (1, 1, 1, S)

        def through(layer: int, block: Block, x: Tensor, rotation: Rotation) -> Tensor:
            qkv = block.ask(x, rotation)
            kept, k, v = self.layers[layer]
            kept.index_copy_(2, self.position, qkv[0, -len(kept) :, :, None])
            looked = F.scaled_dot_product_attention(qkv[:, 0, :, None], k, v, attn_mask=seen)
            return block.answer(x, looked.view(1, -1))

        return self.decoder.run(self.token, self.position, through)


class Recorder:
    """`Decoder.step` for one text after another, each recorded when it is first asked for.

    record: makes of a step that is ready to run what plays it. The longest unused is forgotten.
    """

    def __init__(self, decoder: Decoder, record: Callable[[FixedStep], Play] | None = None) -> None:
        self.decoder, self.record = decoder, record or cuda_graph
        self._recorded: WeakKeyDictionary[KVCache, tuple[FixedStep, Play]] = WeakKeyDictionary()

    @torch.inference_mode()
    def step(self, token_id: int, cache: KVCache) -> Tensor:
        """Read one token into a cache of batch size 1: (1, C)."""
        cache.need(1)
        step, play = self._recorded.pop(cache, (None, None))
        if step is None:
            step = FixedStep(self.decoder, cache)
            step.at(token_id, cache.length)
            play = self.record(step)
            while len(self._recorded) >= KEPT:
                del self._recorded[next(iter(self._recorded))]
        self._recorded[cache] = step, play  # the newest last
        step.at(token_id, cache.length)
        state = play().clone()  # the next one overwrites it
        cache.advance(1)
        return state


def cuda_graph(step: FixedStep) -> Play:
    """Record a step, as torch's notes on CUDA graphs say: run it on a stream of its own first, then capture it.

    Raises RuntimeError where that cannot be; the stream of the calling thread is then the one it was.
    """
    device = step.decoder.device
    aside, current = _aside(device), torch.cuda.current_stream(device)
    graph = torch.cuda.CUDAGraph()
    with _recording:
        aside.wait_stream(current)
        with torch.cuda.stream(aside):
            for _ in range(2):
                step.run()  # it writes where the token will stand anyway
        current.wait_stream(aside)
        # Other threads may use the GPU meanwhile; the stream is named, else torch takes one of the default GPU.
        capture = torch.cuda.graph(graph, stream=aside, capture_error_mode="thread_local")
        with torch.cuda.stream(current), capture:
            state = step.run()

    def play() -> Tensor:
        graph.replay()
        return state

    return play


@cache
def _aside(device: torch.device) -> torch.cuda.Stream:
    """One stream for every recording on a GPU: for each, cuBLAS would keep memory of its own."""
    return torch.cuda.Stream(device)
