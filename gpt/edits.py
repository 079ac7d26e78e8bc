"""Interventions for one forward pass, passed as an argument; the model is not changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, get_args

from torch import Tensor

from gpt.checks import check_choice, check_head, check_layer, is_integer, is_number
from gpt.config import Activation, GPTConfig
from gpt.errors import GPTError

PATCHABLE = ("resid_pre", "attn_out", "resid_mid", "mlp_out", "resid_post")


@dataclass(frozen=True)
class Patch:
    """Replaces the named activation of one layer at one absolute position.

    name: one of PATCHABLE, as in `LayerTrace`. value: (C,) for all texts of the batch, or (B, C).
    ids: the text whose pass has this value at the same place; None for another source.
    """

    name: str
    layer: int
    position: int
    value: Tensor
    ids: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        check_patchable(self.name)
        if not isinstance(self.value, Tensor):
            raise GPTError("patch.not_a_tensor", type=type(self.value))


def check_patchable(name: str) -> None:
    """Raise ValueError for a name that is not one of PATCHABLE."""
    if name not in PATCHABLE:
        raise GPTError("patch.part", choices=", ".join(PATCHABLE), name=name)


@dataclass(frozen=True)
class Edits:
    """All interventions of one pass; Edits() changes nothing.

    head_scale: {(layer, head): factor} of a head's output before c_proj; 0 disables the head.
    attn_scale, mlp_scale: {layer: factor} of what attention or feed-forward adds to the residual stream.
    activation: replaces the feed-forward activation of every layer.
    drop_positions: omits the position embedding or the rotary rotation.
    patches: activations to replace.

    Raises ValueError for an unknown activation, a factor that is not a finite number, and keys of another type.
    """

    head_scale: Mapping[tuple[int, int], float] = field(default_factory=dict)
    attn_scale: Mapping[int, float] = field(default_factory=dict)
    mlp_scale: Mapping[int, float] = field(default_factory=dict)
    activation: Activation | None = None
    drop_positions: bool = False
    patches: tuple[Patch, ...] = ()

    def __post_init__(self) -> None:
        if self.activation is not None:
            check_choice("activation", self.activation, get_args(Activation))
        if not isinstance(self.drop_positions, bool):
            raise GPTError("edits.drop_positions", value=self.drop_positions)
        for head in self.head_scale:
            if not (isinstance(head, tuple) and len(head) == 2 and all(map(is_integer, head))):
                raise GPTError("edits.head", value=head)
        for layer in (*self.attn_scale, *self.mlp_scale):
            if not is_integer(layer):
                raise GPTError("edits.layer", value=layer)
        for factor in (*self.head_scale.values(), *self.attn_scale.values(), *self.mlp_scale.values()):
            if not is_number(factor):
                raise GPTError("edits.factor", value=factor)

    def check(self, config: GPTConfig) -> None:
        """Raise ValueError for a layer, head or position that the model does not have, and a patch of another width."""
        heads = list(self.head_scale)
        layers = [*self.attn_scale, *self.mlp_scale, *(h[0] for h in heads), *(p.layer for p in self.patches)]
        for layer in layers:
            check_layer(layer, config.n_layer)
        for _, head in heads:
            check_head(head, config.n_head)
        for patch in self.patches:
            if not 0 <= patch.position < config.block_size:
                last = config.block_size - 1
                raise GPTError("patch.position", position=patch.position, last=last)
            if patch.value.dim() not in (1, 2) or patch.value.shape[-1] != config.n_embd:
                shape = tuple(patch.value.shape)
                raise GPTError("patch.shape", shape=shape, n=config.n_embd)

    def fitting(self, config: GPTConfig) -> Edits:
        """The edits without those that `check` refuses for this model."""

        def fits(**edit: Any) -> bool:
            try:
                Edits(**edit).check(config)
            except ValueError:
                return False
            return True

        return replace(
            self,
            head_scale={head: x for head, x in self.head_scale.items() if fits(head_scale={head: x})},
            attn_scale={layer: x for layer, x in self.attn_scale.items() if fits(attn_scale={layer: x})},
            mlp_scale={layer: x for layer, x in self.mlp_scale.items() if fits(mlp_scale={layer: x})},
            patches=tuple(patch for patch in self.patches if fits(patches=(patch,))),
        )

    def scale_heads(self, layer: int, y: Tensor) -> Tensor:
        """Scale the outputs y (B, nh, T, hs) of the heads of one layer."""
        scales = {head: factor for (where, head), factor in self.head_scale.items() if where == layer}
        if scales:
            y = y.clone()
            for head, factor in scales.items():
                y[:, head] *= factor
        return y

    def apply(self, layer: int | None, name: str, value: Tensor, start: int) -> Tensor:
        """Scale and patch a named activation (B, T, C) of one layer. start: absolute position of its first row."""
        scales = {"attn_out": self.attn_scale, "mlp_out": self.mlp_scale}.get(name, {})
        scale = 1.0 if layer is None else scales.get(layer, 1.0)
        if scale != 1.0:
            value = value * scale
        patches = [patch for patch in self.patches if (patch.layer, patch.name) == (layer, name)]
        if patches:
            value = value.clone()
            for patch in patches:
                if patch.value.dim() == 2 and len(patch.value) != len(value):
                    raise GPTError("patch.batch_size", n=len(patch.value), batch_size=len(value))
                if 0 <= patch.position - start < value.shape[1]:
                    value[:, patch.position - start] = patch.value.to(value)
        return value
