"""transformers' GPT-2: the options of its config.json, and the orientation of its weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

from torch import Tensor

from gpt.errors import GPTError
from gpt.model import GPT

# Matrices that transformers stores as (in, out), as OpenAI's release does.
TRANSPOSED = ("attn.c_attn.weight", "attn.c_proj.weight", "mlp.c_fc.weight", "mlp.c_proj.weight")

# transformers' names of our activations.
ACTIVATIONS = {
    **dict.fromkeys(("gelu_new", "gelu_pytorch_tanh", "gelu_fast", "gelu_accurate"), "gelu_tanh"),
    **dict.fromkeys(("gelu", "gelu_python"), "gelu"),
    **dict.fromkeys(("silu", "swish"), "silu"),
    "relu": "relu",
}
# Options of its GPT2Config that change the mathematics, with the one value that is implemented.
REQUIRED = {
    "scale_attn_weights": True,
    "scale_attn_by_inverse_layer_idx": False,
    "add_cross_attention": False,
    "is_encoder_decoder": False,
    "pruned_heads": {},
}

# Names of its options, and ours.
NAMES = {
    "vocab_size": "vocab_size",
    "n_positions": "block_size",
    "n_embd": "n_embd",
    "n_layer": "n_layer",
    "n_head": "n_head",
    "n_inner": "n_ff",
    "resid_pdrop": "dropout",
    "layer_norm_epsilon": "norm_eps",
}
# Our options that it can express; biases that are absent are zeros.
EXPRESSED = {*NAMES.values(), "bias", "qkv_bias", "proj_bias", "mlp_bias", "tie_weights", "activation"}


def transposed(name: str, tensor: Tensor) -> Tensor:
    """A view of a weight in our orientation, given transformers', or the other way round."""
    return tensor.t() if name.endswith(TRANSPOSED) and tensor.dim() == 2 else tensor


def read_options(config: Mapping[str, object]) -> dict[str, object]:
    """The options of a GPT2Config by our names. Raises ValueError for one that is not implemented."""
    for option, value in REQUIRED.items():
        if config.get(option, value) not in (value, None):
            raise GPTError("layout.option_value", option=option, value=config[option], implemented=value)
    activation = config.get("activation_function", "gelu_new")
    if not isinstance(activation, str) or activation not in ACTIVATIONS:
        raise GPTError(
            "layout.activation", option="activation_function", value=activation, choices=", ".join(ACTIVATIONS)
        )
    options = {ours: config[theirs] for theirs, ours in NAMES.items() if config.get(theirs) is not None}
    if "n_head" not in config:
        options["n_head"] = 12  # its default
    return {"activation": ACTIVATIONS[activation], **options}


def to_hugging_face(model: GPT) -> tuple[dict[str, Tensor], dict[str, object]]:
    """The weights and the config.json of transformers' GPT2LMHeadModel; biases that a model lacks are zeros.

    Raises ValueError for a model with options that GPT-2 does not have.
    """
    config = model.config
    values = {field.name: (getattr(config, field.name), field.default) for field in fields(config)}
    if unknown := [
        f"{name}={value!r}" for name, (value, gpt2) in values.items() if name not in EXPRESSED and value != gpt2
    ]:
        raise GPTError("layout.not_gpt2", options=", ".join(unknown))
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
        "model_type": "gpt2",
        "activation_function": "gelu_new" if config.activation == "gelu_tanh" else config.activation,
        "tie_word_embeddings": config.tie_weights,
        "embd_pdrop": config.dropout,
        "attn_pdrop": config.dropout,
        **{name: getattr(config, ours) for name, ours in NAMES.items()},
    }
