"""Result types of the endpoints. In a token's text, bytes that do not form a character are written as \\xNN."""

from __future__ import annotations

from typing import Any, TypedDict


def float32_digits(value: Any) -> Any:
    """Return a result with each number rounded to the nine significant digits that tell float32 numbers apart."""
    if isinstance(value, float):
        return float(f"{value:.9g}")
    if isinstance(value, dict):
        return {name: float32_digits(each) for name, each in value.items()}
    return [float32_digits(each) for each in value] if isinstance(value, list) else value


class ListedModel(TypedDict):
    """is_default: whether "" selects it; is_loaded: whether it is in memory."""

    name: str
    title: str
    is_default: bool
    is_loaded: bool


class HiddenState(TypedDict):
    """values: n_embd numbers."""

    token: str
    values: list[float]


class PatchedLogits(TypedDict):
    """The result of activation patching.

    recovered[layer][position]: share of the logit difference (answer minus other) that one clean activation restores in
    the corrupted text: 0 matches the corrupted run, 1 the clean run. clean, corrupted: the logit differences.
    """

    clean_tokens: list[str]
    corrupted_tokens: list[str]
    answer: str
    other: str
    clean: float
    corrupted: float
    recovered: list[list[float]]


class Tokens(TypedDict):
    ids: list[int]
    tokens: list[str]


class NextToken(TypedDict):
    """A next token.

    probability: with the settings. raw_probability: at temperature 1, without them. log_probability: natural logarithm
    of raw_probability.
    """

    token_id: int
    token: str
    probability: float
    raw_probability: float
    log_probability: float


class HeadWeights(TypedDict):
    """weights[query][key], for the keys up to the query."""

    tokens: list[str]
    weights: list[list[float]]


class LensRow(TypedDict):
    """The most probable token at one point of a layer.

    point: resid_mid (after attention) or resid_post (after the feed-forward network). Probabilities are at temperature
    1. entropy: in bits. chosen_rank: 1 is best.
    """

    layer: int
    point: str
    token_id: int
    token: str
    probability: float
    entropy: float
    chosen_probability: float
    chosen_rank: int


class LogitLens(TypedDict):
    """rows: two per layer, from the first layer to the last."""

    chosen_id: int
    chosen: str
    rows: list[LensRow]


class Contributions(TypedDict):
    """The parts that sum to a logit: heads[layer][head], attn_bias[layer], mlp[layer], and the rest."""

    token_id: int
    token: str
    logit: float
    token_embedding: float
    position_embedding: float
    heads: list[list[float]]
    attn_bias: list[float]
    mlp: list[float]
    norm_bias: float
    rounding: float


class AblatedToken(TypedDict):
    """Probabilities at temperature 1."""

    token_id: int
    token: str
    before: float
    after: float


class Ablation(TypedDict):
    """kl_bits: Kullback-Leibler divergence of the new prediction from the original one."""

    tokens: list[AblatedToken]
    kl_bits: float


class Steered(TypedDict):
    """layer: the feature is turned up after it."""

    layer: int
    feature: int
    name: str
    strength: float
    tokens: list[AblatedToken]
    without: str
    steered: str


class ScoredToken(TypedDict):
    """A token in a text, scored by the prediction at the position before it.

    probability: at temperature 1. rank: 1 is best. surprisal, entropy: in bits. log_probability: in nats.
    """

    token_id: int
    token: str
    probability: float
    log_probability: float
    rank: int
    surprisal: float
    entropy: float


class TextLoss(TypedDict):
    """The loss on a text.

    loss: mean cross-entropy in nats per token; perplexity: its exponential; tokens: all but the first.
    """

    loss: float
    perplexity: float
    bits_per_byte: float
    tokens: list[ScoredToken]
