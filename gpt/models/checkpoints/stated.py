"""Settings that do not follow from the weights: read from the checkpoint under various names, or given by the user."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from gpt.checks import is_integer, is_number
from gpt.config import Activation, RotaryScaling
from gpt.errors import GPTError
from gpt.models.checkpoints.torch_file import Record

AttnScale = float | Literal["head_size", "n_embd"]
Options = dict[str, Any]  # under GPTConfig's names
UNKNOWN_SIZE = -1  # vocab_size in Meta's params.json
LLAMA_32_WIDTH = 3072  # width of Llama 3.2 3B; larger models with scaled angles are Llama 3.1
INFER = "infer"  # passed instead of the name of a layout file

# {transformers' name: our name} for activation functions.
ACTIVATIONS = {
    **dict.fromkeys(("gelu_new", "gelu_pytorch_tanh", "gelu_fast", "gelu_accurate"), "gelu_tanh"),
    **dict.fromkeys(("gelu", "gelu_python"), "gelu"),
    **dict.fromkeys(("silu", "swish"), "silu"),
    "relu": "relu",
    **dict.fromkeys(("relu2", "relu_squared"), "relu2"),
}

# Names that other training programs use for our options.
SYNONYMS: dict[str, tuple[str, ...]] = {
    "n_head": ("n_head", "n_heads", "num_heads", "num_attention_heads", "nhead", "heads"),
    "n_layer": ("n_layer", "n_layers", "num_layers", "num_hidden_layers", "n_blocks", "num_blocks"),
    "n_embd": (
        "n_embd",
        "n_embed",
        "d_model",
        "dim_embedding",
        "dim",
        "emb_dim",
        "embed_dim",
        "embedding_dim",
        "hidden_size",
    ),
    "n_ff": ("n_ff", "n_inner", "d_ff", "ffn_dim", "dim_feedforward", "intermediate_size"),
    "block_size": (
        *("block_size", "context_length", "context_size", "ctx", "n_ctx", "n_positions", "seq_length", "seq_len"),
        *("max_seq_len", "max_len", "max_position_embeddings"),
    ),
    "vocab_size": ("vocab_size", "n_vocab"),
    "n_kv_head": ("n_kv_head", "n_kv_heads", "num_key_value_heads", "n_query_groups"),
    "head_dim": ("head_dim",),
    "window": ("sliding_window",),
    "norm_eps": ("norm_eps", "layer_norm_epsilon", "layer_norm_eps", "layernorm_eps", "ln_eps", "rms_norm_eps"),
    "activation": ("activation", "activation_function", "hidden_act"),
    "attn_scale": ("attn_scale",),
    "rotary_base": ("rotary_base", "rope_theta", "rope_base"),
    "tie_weights": ("tie_weights", "tie_word_embeddings", "weight_tying"),
}
EXPECTED = {
    "attn_scale": "a number, head_size or n_embd",
    "norm_eps": "a number",
    "rotary_base": "a number",
    "activation": "text",
    "tie_weights": "true / false",
}
# Checkpoint entries that contain such options. Those that describe the model itself come first.
MODEL_ARGS = "model_args"
PLACES = (
    MODEL_ARGS,
    "model_config",
    "config",
    "hparams",
    "hyper_parameters",
    "hyperparameters",
    "params",
    "args",
    "cfg",
)


class Beside(NamedTuple):
    """The contents of a file next to the weights that states options."""

    file: str
    options: Mapping[str, Any]


@dataclass(frozen=True)
class Hints:
    """Settings that the user provides because the checkpoint does not contain them.

    n_head: Number of heads.
    activation: Activation function. Defaults to the layout's.
    attn_scale: Factor that multiplies q k^T. "head_size" divides by the square root of a head's width, "n_embd" by the
        square root of the model's width. Defaults to "head_size" unless that is ambiguous.
    names: A layout file (`gpt.models.checkpoints.layouts.read_layout`), or "infer" to accept the roles inferred from
        the names and shapes of the weights. Defaults to names.json next to the weights, if it exists.
    weights: Entry to read from a file that contains several models, such as "ema".
    base: Base model of an adapter. Defaults to the one in the same folder, then to the name in its configuration.
    """

    n_head: int | None = None
    activation: Activation | None = None
    attn_scale: AttnScale | None = None
    names: Path | str | None = None
    weights: str | None = None
    base: Path | str | None = None

    def __post_init__(self) -> None:
        check_attn_scale(self.attn_scale)

    def given(self) -> dict[str, Any]:
        """Return the hints that were given, as arguments for `gpt.load_model`. Paths become strings."""
        values = {item.name: getattr(self, item.name) for item in fields(self)}
        return {
            name: str(value) if isinstance(value, Path) else value
            for name, value in values.items()
            if value is not None
        }


def check_attn_scale(value: object) -> None:
    """Raise ValueError unless value is None, a positive number, "head_size" or "n_embd"."""
    if value is not None and value not in ("head_size", "n_embd") and not (is_number(value) and value > 0):
        raise GPTError("argument.attn_scale", value=value)


def read_attn_scale(text: str) -> AttnScale:
    """Parse the scale in a command-line option. Raises ValueError if it is invalid."""
    return text if text in ("head_size", "n_embd") else float(text)  # type: ignore[return-value]


def score_factor(value: AttnScale | None, n_embd: int, head_size: int) -> float | None:
    """Convert `Hints.attn_scale` to `GPTConfig.attn_scale`."""
    width = {"n_embd": n_embd, "head_size": head_size}.get(str(value))
    factor = width**-0.5 if width else value
    return None if factor == head_size**-0.5 else factor  # type: ignore[return-value]


def options_beside(beside: Beside) -> Options:
    """Return the options in a file of unknown format.

    Raises ValueError for a value of the wrong type or an activation function that is not implemented.
    """
    found: Options = {}
    for _, place in places(beside.options):
        for ours, theirs, value in synonyms_in(place):
            if not is_of_type(ours, value):
                raise wrong_type(theirs, value, EXPECTED.get(ours, "an integer > 0"), beside.file)
            found.setdefault(ours, value)
    if beside.options.get("use_scaled_rope"):
        found["rotary_scaling"] = llama_scaling(beside.options)
    return found


def llama_scaling(params: Mapping[str, Any]) -> RotaryScaling:
    """Return the scaling of a Llama from Meta's params.json. The factor is not stated, but fixed for each model."""
    is_small = params.get("dim", 0) <= LLAMA_32_WIDTH
    return RotaryScaling("llama3", params.get("rope_scaling_factor") or (32.0 if is_small else 8.0))


def options_inside(extras: Mapping[str, object], determined: Collection[str]) -> Options:
    """Return the options in a checkpoint's other entries. If several contain the same option, the first one wins.

    determined: Options that the weights determine. They are read only from "model_args", because other entries may
    describe another model, such as nanoGPT's defaults.
    Raises ValueError for an activation function that is not implemented.
    """
    found: Options = {}
    for name, place in places(extras):
        for ours, _, value in synonyms_in(place):
            if is_of_type(ours, value) and (name == MODEL_ARGS or ours not in determined):
                found.setdefault(ours, value)
    return found


def places(extras: Mapping[str, object]) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Yield (name, options) for the entries that contain options: those in PLACES, the file itself, other objects."""
    objects = [name for name, value in extras.items() if isinstance(value, Record) and name not in PLACES]
    for name in (*PLACES, *objects):
        if isinstance(place := extras.get(name), Mapping):
            yield name, place
            inside = (*PLACES, "model")
            yield from ((inner, place[inner]) for inner in inside if isinstance(place.get(inner), Mapping))
        if name == PLACES[-1]:
            yield "", extras


def synonyms_in(values: Mapping[str, object]) -> Iterator[tuple[str, str, Any]]:
    """Yield (our name, their name, value) for each option among these values."""
    for ours, names in SYNONYMS.items():
        for theirs in names:
            if (value := values.get(theirs)) not in (None, UNKNOWN_SIZE):
                yield ours, theirs, read_activation(theirs, value) if ours == "activation" else value


def read_activation(option: str, value: object) -> object:
    """Return our name for an activation function. Raises ValueError if it is not implemented."""
    if not isinstance(value, str) or value in get_args(Activation):
        return value
    if value.lower() not in ACTIVATIONS:
        raise unknown_activation(option, value)
    return ACTIVATIONS[value.lower()]


def unknown_activation(option: str, value: object) -> GPTError:
    """Return the error for an activation function that is not implemented."""
    return GPTError("layout.activation", option=option, value=value, choices=", ".join(ACTIVATIONS))


def wrong_type(option: str, value: object, expected: str, file: str = "config.json") -> GPTError:
    """Return the error for an option of the wrong type."""
    return GPTError("layout.option_type", option=option, value=value, file=file, expected=expected)


def is_of_type(ours: str, value: object) -> bool:
    """Return whether a value has the right type for one of our options."""
    if ours == "activation":
        return isinstance(value, str)
    if ours == "attn_scale":
        return value in ("head_size", "n_embd") or is_number(value)
    if ours == "tie_weights":
        return isinstance(value, bool)
    return is_number(value) if ours in EXPECTED else is_integer(value) and value > 0


NO_HINTS = Hints()
