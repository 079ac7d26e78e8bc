"""Writes a model as transformers' GPT-2: its config.json and the orientation of its weights."""

from __future__ import annotations

from dataclasses import fields

from torch import Tensor

from gpt.errors import GPTError
from gpt.model import GPT
from gpt.models.checkpoints.families import FAMILIES, GPT2, SIZES

# Matrices that transformers stores as (in, out), as OpenAI's release does.
TRANSPOSED = ("attn.c_attn.weight", "attn.c_proj.weight", "mlp.c_fc.weight", "mlp.c_proj.weight")

# Names of its options by ours, without that of the activation, whose values have other names.
OPTIONS = {ours: name for ours, name in {**SIZES, **FAMILIES[GPT2].options}.items() if ours != "activation"}
# Our options that it can express; biases that are absent are zeros.
EXPRESSED = {*OPTIONS, "activation", "bias", "qkv_bias", "proj_bias", "mlp_bias"}


def transposed(name: str, tensor: Tensor) -> Tensor:
    """A view of a weight in our orientation, given transformers', or the other way round."""
    return tensor.t() if name.endswith(TRANSPOSED) and tensor.dim() == 2 else tensor


def to_hugging_face(model: GPT) -> tuple[dict[str, Tensor], dict[str, object]]:
    """The weights and the config.json of transformers' GPT2LMHeadModel; biases that a model lacks are zeros.

    Raises ValueError for a model with options that GPT-2 does not have.
    """
    config = model.config
    values = {field.name: (getattr(config, field.name), field.default) for field in fields(config)}
    if unknown := [
        f"{name}={value!r}" for name, (value, gpt2) in values.items() if name not in EXPRESSED and value != gpt2
    ]:
        raise GPTError(
            "layout.not_gpt2",
            "transformers' GPT-2 cannot express {options}: save this model in our own format",
            options=", ".join(unknown),
        )
    state = {name: value.detach().cpu() for name, value in model.state_dict().items()}
    if config.tie_weights:
        del state["lm_head.weight"]
    for name, value in list(state.items()):
        if name.startswith(("h.", "ln_f.")) and name.endswith(".weight"):
            state.setdefault(name.removesuffix("weight") + "bias", value.new_zeros(len(value)))
    theirs = {
        name if name == "lm_head.weight" else f"transformer.{name}": transposed(name, value).contiguous()
        for name, value in state.items()
    }
    return theirs, {
        "architectures": ["GPT2LMHeadModel"],
        "model_type": GPT2,
        "activation_function": "gelu_new" if config.activation == "gelu_tanh" else config.activation,
        "embd_pdrop": config.dropout,
        "attn_pdrop": config.dropout,
        **{name: getattr(config, ours) for ours, name in OPTIONS.items()},
    }
