"""Configuration of a GPT model, and those of published models."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Literal, get_args

from gpt.errors import GPTError, check_above, check_choice, check_integer, check_number, is_number, require

Activation = Literal["gelu_tanh", "gelu", "relu", "silu", "relu2"]
Norm = Literal["layer", "rms"]
Position = Literal["learned", "rotary"]
QKNorm = bool | Literal["full"]
ScalingKind = Literal["linear", "dynamic", "llama3", "yarn", "longrope"]
CHOICES = {"activation": get_args(Activation), "position": get_args(Position), "norm": get_args(Norm)}
CHOICES["qk_norm"] = (False, True, "full")
MAX_WIDTH = 2**31 - 1  # limit on the total width of all heads
MAX_FACTOR = 1e12  # limit on norm_eps, scales, caps and bases
CONTEXT = 4096  # longest text of the page by default, also for models trained on longer texts


@dataclass(frozen=True)
class RotaryScaling:
    """Scaling of the rotary angles for longer texts. `gpt.rotary.rotary_frequencies` describes the kinds."""

    kind: ScalingKind
    factor: float  # ratio of the new context length to the original one
    low_freq_factor: float = 1.0  # rotations with fewer turns within original_context are fully scaled
    high_freq_factor: float = 4.0  # rotations with more turns within original_context are not scaled
    original_context: int = 8192  # context length before scaling, in tokens
    attention_factor: float = 1.0  # factor of all rotated queries and keys
    factors: tuple[float, ...] = ()  # one divisor for each rotated pair; "longrope" only
    truncate: bool = True  # whether the range between the two numbers of turns is widened to whole pairs; "yarn" only
    long_factors: tuple[float, ...] = ()  # the divisors in texts beyond original_context; by default, `factors`

    def __post_init__(self) -> None:
        check_choice("kind", self.kind, get_args(ScalingKind))
        check_number("factor", self.factor, 1.0)
        for name in ("low_freq_factor", "high_freq_factor", "attention_factor"):
            check_number(name, getattr(self, name), 0.0)
        check_above("high_freq_factor", self.high_freq_factor, self.low_freq_factor)
        check_integer("original_context", self.original_context, 1)
        for name in ("factors", "long_factors"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
            for each in getattr(self, name):
                check_number(name, each, 0.0)
        if self.long_factors == self.factors:
            object.__setattr__(self, "long_factors", ())

    def angles_key(self, length: int) -> int:
        """Return what the angles in a text of `length` tokens depend on; texts with equal keys have equal angles.

        For "dynamic", the length from which the base is computed; otherwise 1 if `long_factors` apply, else 0.
        """
        if self.kind == "dynamic":
            return max(length, self.original_context)
        return int(len(self.long_factors) > 0 and length > self.original_context)


@dataclass(frozen=True)
class GPTConfig:
    """Hyperparameters of a decoder-only model, named as in nanoGPT. The defaults are GPT-2 small without dropout.

    Attributes:
        vocab_size: Number of rows in the token embedding.
        block_size: Maximum text length, in tokens.
        n_layer: Number of blocks.
        n_head: Attention heads per block.
        n_embd: Width of the residual stream.
        n_ff: Hidden width of the feed-forward network; defaults to 4 x n_embd.
        dropout: Dropout probability, used in training mode only.
        bias: Whether linear layers and LayerNorm have biases.
        qkv_bias: Overrides bias for the query, key and value projections.
        head_bias: Whether the output head has a bias; GPT-2 has none.
        tie_weights: Whether the output head shares the token embedding's matrix.
        activation: Activation function between the two feed-forward layers; "gelu_tanh" in GPT-2.
        position: "learned" for one vector per position, as in GPT-2, or "rotary" (see `gpt.rotary`).
        norm: "layer" for LayerNorm, or "rms" for RMSNorm, which does not subtract the mean and has no bias.
        norm_eps: Small constant added to the variance or the mean square.
        proj_bias: Overrides bias for attention's output projection.
        mlp_bias: Overrides bias for the feed-forward layers.
        n_kv_head: Number of key and value heads, each shared by n_head / n_kv_head query heads; defaults to n_head.
        head_dim: Width of one head; defaults to n_embd / n_head.
        qk_norm: Whether RMSNorm is applied to queries and keys before the rotation. True normalises each head
            separately; "full" normalises all heads together.
        attn_scale: Factor that multiplies q k^T; defaults to 1 / sqrt(head width).
        gated: Whether the neurons are multiplied by the activation of another linear layer (GLU, arXiv 2002.05202).
        parallel: Whether attention and feed-forward read the same input instead of running one after the other.
        post_norm: Whether the outputs of attention and feed-forward are normalised before they are added.
        embedding_scale: Factor that multiplies the token embeddings.
        rotary_base: Base of the rotary angles.
        rotary_share: Fraction of each head that is rotated.
        rotary_scaling: Scaling of the angles for longer texts.
        window: Number of most recent tokens that a token attends to, including itself; defaults to all.
        full_layers: Layers to which the window does not apply.
        window_rotary_base: Base of the unscaled rotary angles in layers with a window; by default, as in other layers.
        attn_softcap: Cap on the scaled attention scores, cap * tanh(x / cap), before the mask; off by default.
        logit_softcap: Cap on the logits, with the same formula; off by default.
        pre_norm: Whether the inputs to attention and feed-forward are normalised.
        unrotated_layers: Layers without rotary positions.

    Raises:
        ValueError: If a value or a combination of values is invalid. The message names the value and the limit.
    """

    vocab_size: int = 50257
    block_size: int = 1024
    n_layer: int = 12
    n_head: int = 12
    n_embd: int = 768
    n_ff: int | None = None
    dropout: float = 0.0
    bias: bool = True
    qkv_bias: bool | None = None
    head_bias: bool = False
    tie_weights: bool = True
    activation: Activation = "gelu_tanh"
    position: Position = "learned"
    norm: Norm = "layer"
    norm_eps: float = 1e-5
    proj_bias: bool | None = None
    mlp_bias: bool | None = None
    n_kv_head: int | None = None
    head_dim: int | None = None
    qk_norm: QKNorm = False
    attn_scale: float | None = None
    gated: bool = False
    parallel: bool = False
    post_norm: bool = False
    embedding_scale: float = 1.0
    rotary_base: float = 10000.0
    rotary_share: float = 1.0
    rotary_scaling: RotaryScaling | None = None
    window: int | None = None
    full_layers: tuple[int, ...] = ()
    window_rotary_base: float | None = None
    attn_softcap: float | None = None
    logit_softcap: float | None = None
    pre_norm: bool = True
    unrotated_layers: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for field in fields(self):
            name, kind, value = field.name, str(field.type), getattr(self, field.name)
            if value is None and kind.endswith("None"):
                continue
            if name in CHOICES:
                check_choice(name, value, CHOICES[name])
            elif kind.startswith("int"):
                check_integer(name, value, 1)
            elif kind.startswith("bool"):
                require(isinstance(value, bool), "argument.switch", name=name, value=value)
            elif name == "dropout":
                require(is_number(value) and 0 <= value < 1, "argument.below_one", name=name, value=value)
            elif kind.startswith("float"):
                check_number(name, value, 0.0, 1.0 if name == "rotary_share" else MAX_FACTOR)
                if name.endswith("softcap"):
                    check_above(name, value, 0)
            elif name.endswith("layers"):
                require(isinstance(value, tuple | list), "config.layers", name=name, value=value)
                for layer in value:
                    check_integer(name, layer, 0, self.n_layer - 1)
                object.__setattr__(self, name, tuple(value))
        if self.head_dim is None:
            require(self.n_embd % self.n_head == 0, "config.head_width", n_embd=self.n_embd, n_head=self.n_head)
        check_integer("n_head x head_dim", self.n_head * self.head_size, 1, MAX_WIDTH)
        require(self.n_head % self.kv_heads == 0, "config.kv_heads", n_head=self.n_head, n_kv_head=self.kv_heads)
        if self.position == "rotary" and (self.rotary_size < 2 or self.rotary_size % 2):
            raise GPTError("config.rotary_head_width", width=self.rotary_size)
        scaling = self.rotary_scaling
        names = {field.name for field in fields(RotaryScaling)}
        if isinstance(scaling, dict) and {"kind", "factor"} <= set(scaling) <= names:  # read from a file
            scaling = RotaryScaling(**scaling)
            object.__setattr__(self, "rotary_scaling", scaling)
        require(scaling is None or isinstance(scaling, RotaryScaling), "config.rotary_scaling", value=scaling)
        if scaling is not None and scaling.kind == "longrope":
            for factors in (scaling.factors, scaling.long_factors or scaling.factors):
                if 2 * len(factors) != self.rotary_size:
                    raise GPTError("config.rotary_factors", n=len(factors), expected=self.rotary_size // 2)
        defaults: dict[str, float] = dict.fromkeys(("qkv_bias", "proj_bias", "mlp_bias"), self.bias)
        defaults |= {"n_ff": 4 * self.n_embd, "n_kv_head": self.n_head, "head_dim": self.n_embd / self.n_head}
        defaults["attn_scale"] = self.head_size**-0.5
        for name, value in defaults.items():
            if getattr(self, name) == value:
                object.__setattr__(self, name, None)  # so that equal models have equal configurations

    @property
    def head_size(self) -> int:
        """Width of one head."""
        return self.n_embd // self.n_head if self.head_dim is None else self.head_dim

    @property
    def kv_heads(self) -> int:
        """Number of key and value heads."""
        return self.n_head if self.n_kv_head is None else self.n_kv_head

    def has_bias(self, part: str) -> bool:
        """Return whether the linear layers of a part, "qkv", "proj" or "mlp", have biases."""
        own = {"qkv": self.qkv_bias, "proj": self.proj_bias, "mlp": self.mlp_bias}[part]
        return self.bias if own is None else own

    @property
    def score_scale(self) -> float:
        """Factor that multiplies q k^T."""
        return self.head_size**-0.5 if self.attn_scale is None else self.attn_scale

    @property
    def rotary_size(self) -> int:
        """Number of rotated dimensions per head."""
        return int(self.head_size * self.rotary_share)

    @property
    def ff_size(self) -> int:
        """Hidden width of the feed-forward network."""
        return 4 * self.n_embd if self.n_ff is None else self.n_ff

    def window_of(self, layer: int) -> int | None:
        """Return a layer's window in tokens, or None if the layer attends to all tokens."""
        return None if layer in self.full_layers else self.window

    def is_rotated(self, layer: int) -> bool:
        """Return whether a layer uses rotary positions."""
        return self.position == "rotary" and layer not in self.unrotated_layers

    def with_layers(self, n_layer: int) -> GPTConfig:
        """Return the configuration with n_layer layers, dropping later ones from full_layers and unrotated_layers."""
        lists = (self.full_layers, self.unrotated_layers)
        full, unrotated = (tuple(layer for layer in layers if layer < n_layer) for layers in lists)
        return replace(self, n_layer=n_layer, full_layers=full, unrotated_layers=unrotated)


# Further arguments: layers, heads and width. Pythia: Biderman et al., arXiv 2304.01373.
_pythia = partial(
    GPTConfig, 50304, 2048, activation="gelu", tie_weights=False, parallel=True, position="rotary", rotary_share=0.25
)
# What Llama, SmolLM2, Qwen and Gemma share.
_llama = partial(GPTConfig, bias=False, norm="rms", gated=True, activation="silu", position="rotary")
_qwen = partial(_llama, norm_eps=1e-6, rotary_base=1_000_000)  # also Gemma

PRESETS: dict[str, GPTConfig] = {
    "gpt2": GPTConfig(dropout=0.1),
    "gpt2-medium": GPTConfig(n_layer=24, n_head=16, n_embd=1024, dropout=0.1),
    "gpt2-large": GPTConfig(n_layer=36, n_head=20, n_embd=1280, dropout=0.1),
    "gpt2-xl": GPTConfig(n_layer=48, n_head=25, n_embd=1600, dropout=0.1),
    "distilgpt2": GPTConfig(n_layer=6, dropout=0.1),
    "pythia-14m": _pythia(6, 4, 128),
    "pythia-31m": _pythia(6, 8, 256),
    "pythia-70m": _pythia(6, 8, 512),
    "pythia-160m": _pythia(12, 12, 768),
    "pythia-410m": _pythia(24, 16, 1024),
    "SmolLM2-135M": _llama(49152, CONTEXT, 30, 9, 576, 1536, n_kv_head=3, rotary_base=100_000),
    "SmolLM2-360M": _llama(49152, CONTEXT, 32, 15, 960, 2560, n_kv_head=5, rotary_base=100_000),
    "Qwen2.5-0.5B": _qwen(151936, CONTEXT, 24, 14, 896, 4864, n_kv_head=2, qkv_bias=True),
    "Qwen3-0.6B": _qwen(151936, CONTEXT, 28, 16, 1024, 3072, n_kv_head=8, head_dim=128, qk_norm=True),
    "Llama-3.2-1B": _llama(
        *(128256, CONTEXT, 16, 32, 2048), n_kv_head=8, rotary_base=500_000, rotary_scaling=RotaryScaling("llama3", 32.0)
    ),
    "gemma-3-270m": _qwen(
        *(262144, CONTEXT, 18, 4, 640, 2048),
        n_kv_head=1,
        head_dim=256,
        qk_norm=True,
        post_norm=True,
        activation="gelu_tanh",
        embedding_scale=640**0.5,
        window=512,
        full_layers=(5, 11, 17),
        window_rotary_base=10_000,
    ),
}
