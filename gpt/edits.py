"""Interventions in a single forward pass, passed as an argument. The model itself does not change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, get_args

import torch
from torch import Tensor

from gpt.config import Activation, GPTConfig
from gpt.errors import GPTError, check_choice, check_head, check_layer, check_position, is_number, require

PATCHABLE = ("resid_pre", "attn_out", "resid_mid", "mlp_out", "resid_post")
ATTENTION = ("attn_q", "attn_k", "attn_v", "attn_scores", "attn_weights", "head_out")
HOOKABLE = (*PATCHABLE, "ln_1", *ATTENTION, "ln_2", "mlp_pre", "mlp_up", "mlp_post")
HOOKABLE_OUTSIDE = ("token_embedding", "position_embedding", "final_norm", "logits")  # outside the layers


class _ByValue:
    """Compares edits by their fields and by the dtype, shape and numbers of their tensor, regardless of its device."""

    value: Tensor

    def _key(self) -> tuple[object, ...]:
        compared = (getattr(self, each.name) for each in fields(self) if each.compare)  # type: ignore[arg-type]
        return self.value.dtype, *compared

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _ByValue):
            return NotImplemented
        return self._key() == other._key() and torch.equal(self.value, other.value.to(self.value.device))

    def __hash__(self) -> int:
        return hash(self._key())


@dataclass(frozen=True, eq=False)
class Patch(_ByValue):
    """A replacement for one layer's activation at one absolute position.

    name: one of PATCHABLE, as in `LayerTrace`, or "head_out". value: (C,) for all texts in the batch, or (B, C).
    ids: token ids of the text whose pass produced the value at this position; None if the value comes from elsewhere.
    head: with "head_out", the head whose output, (hs,) or (B, hs), is replaced.
    """

    name: str
    layer: int
    position: int
    value: Tensor = field(compare=False)
    ids: tuple[int, ...] | None = None
    head: int | None = None

    def __post_init__(self) -> None:
        check_patchable(self.name, self.head)

    def apply(self, value: Tensor, start: int) -> Tensor:
        """Return the activation (B, ..., T, width) with its row replaced. start: absolute position of its first row."""
        n = len(self.value) if self.value.dim() == 2 else len(value)
        require(n == len(value), "patch.batch_size", n=n, batch_size=len(value))
        value = value.clone()
        rows = value if self.head is None else value[:, self.head]  # (B, T, width)
        if 0 <= self.position - start < rows.shape[1]:
            rows[:, self.position - start] = self.value.to(value)
        return value


@dataclass(frozen=True, eq=False)
class Steering(_ByValue):
    """A vector to add to the residual stream after one layer, at every position.

    value: (C,). concept: the feature and strength behind the vector (see `gpt.analysis.concepts`); None if the vector
    comes from elsewhere. activity: computes the feature's activity from the stream, (..., C) -> (...), which scales the
    vector at each position, but is set to 0 at the first; None to add the vector unscaled. Ignored when Steering
    objects are compared.
    """

    layer: int
    value: Tensor = field(compare=False)
    concept: tuple[int, float] | None = None
    activity: Callable[[Tensor], Tensor] | None = field(default=None, compare=False)
    name = "resid_post"

    def apply(self, x: Tensor, start: int) -> Tensor:
        """Return the stream x (..., T, C) with the vector added. start: absolute position of its first row."""
        if self.activity is None:
            return x + self.value.to(x)
        activity = self.activity(x).to(x, copy=True)  # (..., T)
        if start == 0:
            activity[..., 0] = 0
        return x + activity[..., None] * self.value.to(x)


def check_patchable(name: str, head: int | None = None) -> None:
    choices = (*PATCHABLE, "head_out")
    require(name in choices, "patch.part", choices=", ".join(choices), name=name)
    require((name == "head_out") == (head is not None), "patch.head")


@dataclass(frozen=True)
class Hook:
    """A function whose result replaces an activation.

    For example, add a vector to the residual stream after layer 5, and switch off neuron 300 in layer 2:

        Hook("resid_post", 5, lambda x: x + vector)
        Hook("mlp_post", 2, lambda x: x.index_fill(-1, torch.tensor(300), 0.0))

    name, layer: one of HOOKABLE, as in `LayerTrace`, and the layer's number; or one of HOOKABLE_OUTSIDE, as in `Trace`,
        and None.
    function: receives a copy of the activation, which it may modify, and returns a tensor of the same shape. The copy
        contains all tokens in the pass, in the shape documented in `LayerTrace`. With a KV cache, these are only the
        new tokens; a function that treats each token independently has the same effect either way.
    position: absolute position in the text, or None for all. If given, the function receives only the activation of
        that token, without the token dimension: (B, C), (B, nh, hs) or (B, nh, S).

    Queries, keys and values are hooked after the rotation and before they are cached, so attn_k and attn_v hold only
    the new tokens, (B, kv, T, hs), and changes to them stay in the cache. A hook on attn_scores (the scores of all
    pairs, before the mask) or attn_weights makes its layer compute attention step by step instead of in one kernel; its
    `position` is that of the query. A hook on the logits works in `model(idx)` and in traces; in generated texts the
    logits belong to `SamplingParams`. Raises ValueError if the name is unknown or the layer does not match the name.
    """

    name: str
    layer: int | None
    function: Callable[[Tensor], Tensor]
    position: int | None = None

    def __post_init__(self) -> None:
        names = HOOKABLE + HOOKABLE_OUTSIDE
        require(self.name in names, "hook.name", choices=", ".join(names), name=self.name)
        require((self.name in HOOKABLE_OUTSIDE) == (self.layer is None), "hook.layer", name=self.name, layer=self.layer)

    def apply(self, value: Tensor, start: int) -> Tensor:
        """Apply the function to an activation (..., T, width), or only to the token at the hook's position.

        start: absolute position of the first of the T tokens. Raises ValueError if the result is not a tensor of the
        same shape as the argument.
        """
        at = None if self.position is None else self.position - start
        if at is not None and not 0 <= at < value.shape[-2]:
            return value
        given = value if at is None else value.select(-2, at)
        result = self.function(given.clone())
        if not isinstance(result, Tensor) or result.shape != given.shape:
            found = tuple(result.shape) if isinstance(result, Tensor) else type(result).__name__
            raise GPTError("hook.result", name=self.name, expected=tuple(given.shape), found=found)
        if at is None:
            return result.to(value)
        return value.select_scatter(result.to(value), -2, at)


@dataclass(frozen=True)
class Edits:
    """All interventions in one forward pass; Edits() changes nothing.

    head_scale: {(layer, head): factor}; scales a head's output before c_proj. 0 disables the head.
    attn_scale, mlp_scale: {layer: factor}; scales the output of attention or of the feed-forward network.
    activation: replaces the activation function in every feed-forward network.
    drop_positions: whether to omit the position embedding or the rotary rotation.
    patches: activations to replace.
    steering: vectors to add to the residual stream, after factors and patches. Vectors with an activity come last.
    hooks: functions to apply to activations (see `Hook`), in this order and after all other edits. They work only in
        this process and cannot be saved, included in links, or sent to another process.

    Raises ValueError for an unknown activation function or a factor that is not a finite number.
    """

    head_scale: Mapping[tuple[int, int], float] = field(default_factory=dict)
    attn_scale: Mapping[int, float] = field(default_factory=dict)
    mlp_scale: Mapping[int, float] = field(default_factory=dict)
    activation: Activation | None = None
    drop_positions: bool = False
    patches: tuple[Patch, ...] = ()
    hooks: tuple[Hook, ...] = ()
    steering: tuple[Steering, ...] = ()

    def __post_init__(self) -> None:
        if self.activation is not None:
            check_choice("activation", self.activation, get_args(Activation))
        for factor in (*self.head_scale.values(), *self.attn_scale.values(), *self.mlp_scale.values()):
            require(is_number(factor), "edits.factor", value=factor)

    def check(self, config: GPTConfig) -> None:
        """Raise ValueError if a layer, head, position, activation or vector does not fit the model."""
        heads = [*self.head_scale, *((patch.layer, patch.head) for patch in self.patches if patch.head is not None)]
        for layer, head in heads:
            check_layer(layer, config.n_layer)
            check_head(head, config.n_head)
        placed: tuple[Patch | Steering | Hook, ...] = (*self.patches, *self.steering, *self.hooks)
        for layer in (*self.attn_scale, *self.mlp_scale, *(each.layer for each in placed if each.layer is not None)):
            check_layer(layer, config.n_layer)
        for hook in self.hooks:
            lacks = {"mlp_up": not config.gated, "position_embedding": config.position != "learned"}
            require(not lacks.get(hook.name, False), "hook.lacks", name=hook.name)
        self.check_text(config.block_size)
        for patch in self.patches:
            width = config.n_embd if patch.head is None else config.head_size
            shape = tuple(patch.value.shape)
            require(len(shape) in (1, 2) and shape[-1] == width, "patch.shape", shape=shape, n=width)
        for each in self.steering:
            shape = tuple(each.value.shape)
            require(shape == (config.n_embd,), "steering.shape", shape=shape, n=config.n_embd)

    def check_text(self, n: int) -> None:
        """Raise ValueError if a patch or hook lies beyond the end of an n-token text."""
        for position in (*(patch.position for patch in self.patches), *(hook.position for hook in self.hooks)):
            if position is not None:
                check_position(position, n)

    def fitting(self, config: GPTConfig) -> Edits:
        """Return only the edits that `check` accepts for this configuration."""

        def fits(**edit: Any) -> bool:
            try:
                Edits(**edit).check(config)
            except ValueError:
                return False
            return True

        kept: dict[str, Any] = {}
        for name in ("head_scale", "attn_scale", "mlp_scale"):
            kept[name] = {key: x for key, x in getattr(self, name).items() if fits(**{name: {key: x}})}
        for name in ("patches", "hooks", "steering"):
            kept[name] = tuple(each for each in getattr(self, name) if fits(**{name: (each,)}))
        return replace(self, **kept)

    def for_any_text(self) -> Edits:
        """Return the edits that apply to any text, omitting patches and hooks at a specific position."""
        return replace(self, patches=(), hooks=tuple(hook for hook in self.hooks if hook.position is None))

    def scale_heads(self, layer: int, y: Tensor) -> Tensor:
        """Scale one layer's head outputs y (B, nh, T, hs)."""
        scales = {head: factor for (where, head), factor in self.head_scale.items() if where == layer}
        if scales:
            y = y.clone()
            for head, factor in scales.items():
                y[:, head] *= factor
        return y

    def apply(self, layer: int | None, name: str, value: Tensor, start: int) -> Tensor:
        """Apply the edits to an activation (..., T, width) in one layer, or outside the layers if `layer` is None.

        start: absolute position of the activation's first row.
        """
        scales = {"attn_out": self.attn_scale, "mlp_out": self.mlp_scale}.get(name, {})
        if layer is not None and layer in scales:
            value = value * scales[layer]
        steering = sorted(self.steering, key=lambda each: each.activity is not None)
        edits: tuple[Patch | Steering | Hook, ...] = (*self.patches, *steering, *self.hooks)
        for edit in edits:
            if (edit.layer, edit.name) == (layer, name):
                value = edit.apply(value, start)
        return value
