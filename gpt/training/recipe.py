"""Hyperparameters of a training run."""

import math
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, Self, get_args

import torch

from gpt.config import GPTConfig, Position
from gpt.errors import GPTError, check_choice, check_number, require
from gpt.model import GPT

SHAPE = ("block_size", "n_layer", "n_head", "n_embd", "bias")
LLAMA: dict[str, Any] = {"position": "rotary", "norm": "rms", "activation": "silu", "gated": True}


def setting(default: Any, help: str, *, low: float = 0, high: float = math.inf) -> Any:
    """Create a field of Recipe with a description and limits: low <= value <= high if it is a number."""
    return field(default=default, metadata={"help": help, "low": low, "high": high})


@dataclass(frozen=True)
class Recipe:
    """All hyperparameters of a training run. The defaults are those of the bundled model.

    Each field's description is in its metadata, for the command line and the model card.
    Raises ValueError, with the value and the limit, for a value out of range or an invalid model configuration.
    """

    vocabulary: Literal["bpe", "characters"] = setting(
        "bpe", "bpe: byte-level BPE; characters: the most frequent characters of the stories"
    )
    vocab_size: int = setting(4096, "tokens in the vocabulary, including end-of-text", low=257)
    block_size: int = setting(256, "context length in tokens", low=2)
    n_layer: int = setting(8, "blocks", low=1)
    n_head: int = setting(6, "attention heads per block", low=1)
    n_embd: int = setting(192, "width of the residual stream", low=1)
    bias: bool = setting(True, "whether linear layers and norms have biases")
    architecture: Literal["gpt2", "llama"] = setting(
        "gpt2", "gpt2, or llama: RMSNorm, SwiGLU, rotary positions, shared key and value heads"
    )
    n_kv_head: int = setting(2, "key and value heads, for llama only", low=1)
    dropout: float = setting(0.0, "share of activations dropped during training", high=1)
    steps: int = setting(5000, "updates of the weights", low=1)
    batch_size: int = setting(16, "rows of one context per update, in all processes together", low=1)
    optimizer: Literal["muon", "adamw"] = setting(
        "muon", "muon for the matrices of the blocks (AdamW for the rest), or adamw for all"
    )
    muon_lr: float = setting(0.006, "highest learning rate of Muon, matched to AdamW's step size")
    adamw_lr: float = setting(0.004, "highest learning rate of AdamW")
    muon_weight_decay: float = setting(0.2, "weight decay of Muon")
    adamw_weight_decay: float = setting(0.05, "weight decay of AdamW; norms and biases have none")
    adamw_beta2: float = setting(0.95, "decay of AdamW's mean squared gradient", high=1)
    warmup: int = setting(100, "updates until the full learning rate")
    decay_from: float = setting(0.5, "share of the updates after which the rates decrease linearly to zero", high=1)
    clip: float = setting(1.0, "maximum norm of the gradient")
    repeats_first: float = setting(0.0, "share of repeated random sequences among the rows of the first update", high=1)
    repeats_last: float = setting(0.0, "the same for the last update; in between, it changes linearly", high=1)
    held_back: float = setting(0.02, "share of the text that is kept for validation", high=1)
    seed: int = setting(1337, "determines the split, the initial weights, the order and the dropout")
    precision: Literal["auto", "fp32", "bf16"] = setting(
        "auto", "precision of matrix products; auto: bf16 if the device supports it"
    )

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if choices := get_args(each.type):
                check_choice(each.name, value, choices)
            elif isinstance(each.default, bool):
                require(isinstance(value, bool), "argument.switch", name=each.name, value=value)
            else:
                check_number(each.name, value, each.metadata["low"], each.metadata["high"])
        self.model_config(self.vocab_size)

    def model_config(self, n_vocab: int, position: Position = "learned") -> GPTConfig:
        """Return the model's configuration for a trained vocabulary of n_vocab tokens. position: used only by gpt2."""
        shape = {name: getattr(self, name) for name in (*SHAPE, "dropout")}
        if self.architecture == "gpt2":
            return GPTConfig(vocab_size=n_vocab, position=position, **shape)
        n_ff = 3 * self.n_embd  # three matrices with about as many weights as GPT-2's two
        return GPTConfig(vocab_size=n_vocab, n_kv_head=self.n_kv_head, n_ff=n_ff, **shape, **LLAMA)

    def new_model(self, n_vocab: int, position: Position = "learned") -> GPT:
        """Create a model with the configuration from `model_config`. The seed determines the initial weights."""
        return GPT(self.model_config(n_vocab, position), generator=torch.Generator().manual_seed(self.seed))

    def shaped_like(self, config: GPTConfig, *, characters: bool = False) -> Self:
        """Return the recipe for a model with this configuration. Raises ValueError if no recipe can create the model.

        characters: Whether each token is a character; the recipe then ignores the vocabulary size.
        """
        shape = {name: getattr(config, name) for name in SHAPE}
        if not characters:
            shape["vocab_size"] = config.vocab_size
        if config.gated:
            shape |= {"architecture": "llama", "n_kv_head": config.kv_heads}
        recipe = replace(self, **shape)
        made = replace(recipe.model_config(config.vocab_size), dropout=config.dropout)
        for each in fields(config):
            if getattr(made, each.name) != getattr(config, each.name):
                raise GPTError("training.other_shape", name=each.name, value=getattr(config, each.name))
        return recipe

    @property
    def learning_rate(self) -> float:
        """Highest learning rate: Muon's if Muon is used, else AdamW's."""
        return self.muon_lr if self.optimizer == "muon" else self.adamw_lr

    def with_learning_rate(self, rate: float) -> Self:
        """Return the recipe with a different `learning_rate`. Scales the rates for both optimizers."""
        factor = rate / self.learning_rate
        return replace(self, muon_lr=self.muon_lr * factor, adamw_lr=self.adamw_lr * factor)

    def lr_factor(self, step: int) -> float:
        """Return the learning-rate factor at update `step`: linear warm-up, constant, linear decay to zero."""
        warm = min(1.0, (step + 1) / max(1, self.warmup))
        left = (self.steps - step) / max(1.0, self.steps * (1 - self.decay_from))
        return min(warm, 1.0, left)

    def repeats(self, step: int) -> float:
        """Return the fraction of the rows in update `step` (0-based) that are repeated random sequences."""
        done = step / max(1, self.steps - 1)
        return self.repeats_first + (self.repeats_last - self.repeats_first) * done


# nanoGPT's character-level experiment: config/train_shakespeare_char.py, and the smaller CPU settings in its
# README. Here the learning rate decays linearly to zero; in nanoGPT it decays to a tenth along a cosine.
_SHAKESPEARE = Recipe(
    n_layer=6,
    n_head=6,
    n_embd=384,
    bias=False,
    dropout=0.2,
    batch_size=64,
    held_back=0.1,
    optimizer="adamw",
    adamw_lr=0.001,
    adamw_weight_decay=0.1,
    adamw_beta2=0.99,
    decay_from=0.02,
)
_SHAKESPEARE_CPU = replace(
    _SHAKESPEARE,
    block_size=64,
    n_layer=4,
    n_head=4,
    n_embd=128,
    dropout=0.0,
    batch_size=12,
    steps=2000,
    decay_from=0.05,
)
RECIPE_PRESETS: dict[str, Recipe] = {
    "stories": Recipe(),
    "stories-llama": Recipe(bias=False, architecture="llama"),
    "poems": Recipe(vocabulary="characters", vocab_size=5000, block_size=128, held_back=0.016),
    "shakespeare": _SHAKESPEARE,
    "shakespeare-cpu": _SHAKESPEARE_CPU,
}
_LIVE = Recipe(
    n_layer=2,
    n_head=4,
    n_embd=64,
    batch_size=64,
    muon_lr=0.01,
    adamw_lr=0.005,
    muon_weight_decay=0.1,
    warmup=20,
    decay_from=0.0,
)
LIVE_RECIPES: dict[str, Recipe] = {  # for live runs: tasks, Shakespeare's text and other texts
    "sort": replace(_LIVE, steps=1000),
    "reverse": replace(_LIVE, steps=400),
    "add": replace(_LIVE, steps=1000),
    "copy": replace(_LIVE, steps=800),
    "shakespeare": _SHAKESPEARE_CPU,
    "text": replace(_LIVE, block_size=64, batch_size=16, steps=1500),
}
