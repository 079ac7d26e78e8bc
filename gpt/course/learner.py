"""A learner's GPT as a model in the app. Its results come from the process that runs the learner's program."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from weakref import finalize

import torch
from torch import Tensor, nn

from gpt.cache import KVCache
from gpt.course import reference
from gpt.course.check import error_message
from gpt.course.process import LearnerProcess
from gpt.course.steps import PROGRAM, solution
from gpt.edits import Edits
from gpt.errors import GPTError, require
from gpt.model import GPT
from gpt.models.loading import LoadedModel
from gpt.trace import Trace

OPEN = """
import my_gpt
my_gpt._opened = copy_weights(GPT(Config(**config)), weights)
result = 0
"""
RECORD = "result = record(_opened, idx, factors, everything)"
SECONDS = 30.0  # time limit for one pass
KEPT_PASSES = 4
TOLERANCE = 1e-3  # for checking that the logits are the head's output
BROKEN = {  # {name: correct code in the solution, wrong code}
    "no-mask": (".masked_fill(future, -math.inf)", ""),
    "no-scaling": ("/ math.sqrt(q.shape[-1])", ""),
    "no-residual": ("x = x + self.", "x = self."),
}
PLACES = {  # {activation of a layer: suffix of a module's name; see `gpt.course.process.record`}
    "resid_pre": ".in",
    "attn_out": ".attn",
    "resid_mid": ".ln_2.in",
    "mlp_pre": ".mlp.c_fc",
    "mlp_post": ".mlp.c_proj.in",
    "mlp_out": ".mlp",
    "resid_post": "",
}


class Pass(dict[str, Tensor]):
    """The result of `gpt.course.process.record`. Raises ValueError if the modules do not provide a tensor."""

    def __missing__(self, name: str) -> Tensor:
        raise GPTError("course.missing", name=name)


class LearnersGPT(GPT):
    """The GPT in a learner's program, with the bundled weights and the interface of `gpt.model.GPT`.

    It takes the same arguments and fills the same traces. It supports only edits that scale heads, attention and
    feed-forward networks. It keeps the bundled model's modules, because analyses read their weights. Raises ValueError
    if the program fails, takes too long, or does not provide a requested result.

    shape: configuration fields that differ from the bundled model.
    """

    def __init__(self, program: Path, **shape: Any) -> None:
        nn.Module.__init__(self)
        self.config = replace(reference.bundled().model.config, **shape)
        for name, part in reference.bundled().model.named_children():
            self.add_module(name, part)
        self.eval()
        self.program = program
        self._process = LearnerProcess()
        finalize(self, self._process.close)
        self._lock = threading.Lock()  # one pass at a time
        self._passes: dict[Any, Pass] = {}  # the latest ones
        self._ask(OPEN, {"config": reference.config_of(reference.bundled().model), "weights": reference.weights()})

    def _ask(self, run: str, inputs: dict[str, Any]) -> Any:
        answer = self._process.ask(self.program, run, inputs, SECONDS)
        if "error" in answer:
            raise GPTError("course.failed", problem=error_message(answer).en)
        return answer["result"]

    def record(self, idx: Tensor, edits: Edits | None = None, *, everything: bool) -> Pass:
        """Run a pass over whole texts, (B, T). everything: whether to record all tensors that traces need."""
        edits = edits or Edits()
        require(replace(edits, head_scale={}, attn_scale={}, mlp_scale={}) == Edits(), "course.edits")
        edits.check(self.config)
        factors: dict[str, Tensor | float] = {f"h.{layer}.attn": x for layer, x in edits.attn_scale.items()}
        factors |= {f"h.{layer}.mlp": x for layer, x in edits.mlp_scale.items()}
        for layer in {layer for layer, _ in edits.head_scale}:
            heads = [edits.head_scale.get((layer, head), 1.0) for head in range(self.config.n_head)]
            factors[f"h.{layer}.attn.c_proj.in"] = torch.tensor(heads).repeat_interleave(self.config.head_size)
        key = (str(idx.tolist()), repr(edits))
        with self._lock:
            for known in ((key, True), (key, everything)):
                if known in self._passes:
                    return self._passes[known]
            inputs = {"idx": idx.cpu().clone(), "factors": factors, "everything": everything}
            found = Pass(self._ask(RECORD, inputs))
            self._passes[key, everything] = found
            if len(self._passes) > KEPT_PASSES:
                self._passes.pop(next(iter(self._passes)))
        logits = self.logits(found["lm_head.in"][:, -1])
        require(torch.allclose(logits, found["logits"], atol=TOLERANCE, rtol=TOLERANCE), "course.head")
        return found

    def new_cache(self, batch_size: int = 1, max_length: int | None = None, **keeps: bool) -> LearnersCache:
        return LearnersCache(self, batch_size, max_length, **keeps)

    def hidden_states(
        self,
        idx: Tensor,
        *,
        attention_mask: Tensor | None = None,
        cache: KVCache | None = None,
        trace: Trace | None = None,
        edits: Edits | None = None,
    ) -> Tensor:
        """Return the input to the learner's head, (B, T, C)."""
        require(attention_mask is None, "course.mask")
        require(trace is None or not trace.gradients, "course.edits")
        start, whole = 0, idx
        if isinstance(cache, LearnersCache):
            start, whole = cache.length, torch.cat((cache.ids(), idx), dim=1)
        found = self.record(whole, edits, everything=trace is not None)
        if trace is not None:
            self._fill(trace, found, start)
            trace.edits = edits
        if isinstance(cache, LearnersCache):
            cache.store(idx, found, edits)
        return found["lm_head.in"][:, start:]

    def hidden_states_in(self, *context: Any) -> Tensor:
        """Raise ValueError, because the learner's modules take no context."""
        raise GPTError("course.context")

    def heads_of(self, found: Pass, layer: int) -> Tensor:
        """Return a layer's queries, keys and values, (B, 3 n_head, T, head_size)."""
        return found[f"h.{layer}.attn.c_attn"].unflatten(-1, (3 * self.config.n_head, -1)).transpose(1, 2)

    def _fill(self, trace: Trace, found: Pass, start: int) -> None:
        """Record a pass in a trace. start: first position to record; keys and values are recorded in full."""
        trace.begin(self.config.n_layer, self.config.score_scale, self.config.attn_softcap)
        trace.record(None, "token_embedding", found["wte"][:, start:])
        trace.record(None, "position_embedding", found["wpe"][..., start:, :])
        for layer in range(self.config.n_layer):
            block, (q, k, v) = f"h.{layer}", self.heads_of(found, layer).chunk(3, dim=1)
            heads = found[f"{block}.attn.c_proj.in"].unflatten(-1, (self.config.n_head, -1)).transpose(1, 2)
            trace.record(layer, "attn_q", q[:, :, start:])
            trace.record(layer, "attn_k", k)
            trace.record(layer, "attn_v", v)
            trace.record(layer, "attn_weights", found[f"{block}.attn.weights"][:, :, start:])
            trace.record(layer, "head_out", heads[:, :, start:])
            for name, place in PLACES.items():
                trace.record(layer, name, found[block + place][:, start:])
        trace.record(None, "final_norm", found["lm_head.in"][:, start:])


class LearnersCache(KVCache):
    """Queries, keys and values of a learner's GPT, which has no cache of its own and reads whole texts.

    An additional layer stores the token ids, so that they are copied, cropped and restored together with the rest.
    """

    def __init__(self, model: LearnersGPT, batch_size: int = 1, max_length: int | None = None, **keeps: Any) -> None:
        config = model.config
        super().__init__(replace(config, n_layer=config.n_layer + 1), batch_size, max_length, **keeps)
        self.config, self.model, self.edits = config, model, Edits()

    def ids(self, length: int | None = None) -> Tensor:
        """Return the token ids of the first `length` positions, by default all: (B, length)."""
        return self.k[-1, :, 0, : self.length if length is None else length, 0].long()

    def store(self, idx: Tensor, found: Pass, edits: Edits | None) -> None:
        """Append the tokens idx (B, T) with their queries, keys and values."""
        start, self.edits = self.length, edits or Edits()
        for layer in range(self.config.n_layer):
            self.update(layer, self.model.heads_of(found, layer)[:, :, start:])
        ids = idx[:, None, :, None].expand(-1, 3 * self.config.n_head, -1, self.config.head_size).float()
        self.update(self.config.n_layer, ids)
        self.advance(idx.shape[1])

    def attn_weights(self, layer: int, *, head: int | None = None, start: int = 0, stop: int | None = None) -> Tensor:
        """Return the weights that the learner's module stores, instead of computing them from queries and keys."""
        found = self.model.record(self.ids(stop), self.edits, everything=True)
        heads = slice(None) if head is None else slice(head, head + 1)
        return found[f"h.{layer}.attn.weights"][:, heads, start:].clone()  # callers scale the result in place


def open_program(name: str, program: Path, **shape: Any) -> LoadedModel:
    """Open the GPT in a learner's program as a model called `name`. Raises the same errors as `LearnersGPT`."""
    model = LearnersGPT(program, **shape)
    model.hidden_states(reference.idx()[:1], trace=Trace())
    return LoadedModel(name, model, reference.bundled().tokenizer, torch.device("cpu"), "fp32")


def open_broken(name: str) -> LoadedModel:
    """Return the solution's GPT with one of the mistakes in BROKEN."""
    with TemporaryDirectory(prefix="glassbox-course-") as folder:
        program = Path(folder) / PROGRAM
        program.write_text(solution().replace(*BROKEN[name]), encoding="utf-8")
        return open_program(name, program, **({"attn_scale": 1.0} if name == "no-scaling" else {}))
