"""transformers' GPT-2: what its config.json says, and how its weights lie."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from gpt.errors import GPTError
from gpt.model import GPT

# Matrices that transformers stores the other way round, (in, out), because OpenAI did.
TRANSPOSED = ("attn.c_attn.weight", "attn.c_proj.weight", "mlp.c_fc.weight", "mlp.c_proj.weight")

# transformers' names of the activations that we have.
ACTIVATIONS = {
    **dict.fromkeys(("gelu_new", "gelu_pytorch_tanh", "gelu_fast", "gelu_accurate"), "gelu_tanh"),
    **dict.fromkeys(("gelu", "gelu_python"), "gelu"),
    **dict.fromkeys(("silu", "swish"), "silu"),
    "relu": "relu",
}
# Options of its GPT2Config that change the mathematics, each with the one value that we compute.
ONLY = {
    "layer_norm_epsilon": 1e-5,
    "scale_attn_weights": True,
    "scale_attn_by_inverse_layer_idx": False,
    "add_cross_attention": False,
    "is_encoder_decoder": False,
    "pruned_heads": {},
    "quantization_config": None,
    "auto_map": None,
}

# Its names of our configuration.
NAMES = {
    "vocab_size": "vocab_size",
    "n_positions": "block_size",
    "n_embd": "n_embd",
    "n_layer": "n_layer",
    "n_head": "n_head",
    "n_inner": "n_ff",
    "resid_pdrop": "dropout",
}


def turned(name: str, tensor: Tensor) -> Tensor:
    """A weight turned from transformers' orientation to ours, or back: a view."""
    return tensor.t() if name.endswith(TRANSPOSED) and tensor.dim() == 2 else tensor


def read_options(config: Mapping[str, object]) -> dict[str, object]:
    """What transformers' GPT2Config says, in our names. Raises ValueError for an option we do not compute."""
    for option, value in ONLY.items():
        if config.get(option, value) not in (value, None):
            raise GPTError("layout.option_value", option=option, value=config[option], implemented=value)
    activation = config.get("activation_function", "gelu_new")
    if not isinstance(activation, str) or activation not in ACTIVATIONS:
        raise GPTError("layout.activation", value=activation, choices=", ".join(ACTIVATIONS))
    said = {ours: config[theirs] for theirs, ours in NAMES.items() if config.get(theirs) is not None}
    if "n_head" not in config:
        said["n_head"] = 12
    return {"activation": ACTIVATIONS[activation], **said}


def to_hugging_face(model: GPT) -> tuple[dict[str, Tensor], dict[str, object]]:
    """The weights and config.json of a model as transformers' GPT2LMHeadModel has them; absent biases as zeros.

    Raises ValueError for rotary positions, which GPT-2 does not have.
    """
    config = model.config
    if config.position != "learned":
        raise GPTError("layout.positions", position=config.position)
    state = {name: value.detach().cpu() for name, value in model.state_dict().items()}
    if config.tie_weights:
        del state["lm_head.weight"]
    for name, value in list(state.items()):
        if name.startswith(("h.", "ln_f.")) and name.endswith(".weight"):
            state.setdefault(name.removesuffix("weight") + "bias", value.new_zeros(len(value)))
    theirs = {
        name if name == "lm_head.weight" else f"transformer.{name}": turned(name, value).contiguous()
        for name, value in state.items()
    }
    return theirs, {
        "architectures": ["GPT2LMHeadModel"],
        "model_type": "gpt2",
        "activation_function": "gelu_new" if config.activation == "gelu_tanh" else config.activation,
        "layer_norm_epsilon": 1e-5,
        "tie_word_embeddings": config.tie_weights,
        "embd_pdrop": config.dropout,
        "attn_pdrop": config.dropout,
        **{name: getattr(config, ours) for name, ours in NAMES.items()},
    }
