"""Types of what the endpoints return. A token's text has bytes that are no character as \\xNN."""

from __future__ import annotations

from typing import TypedDict


class ListedModel(TypedDict):
    """A model of the page's list. title: for people; is_default: whether "" stands for it; is_loaded: in memory."""

    name: str
    title: str
    is_default: bool
    is_loaded: bool


class HiddenState(TypedDict):
    """An activation of the residual stream at one position, n_embd numbers."""

    token: str
    values: list[float]


class PatchedLogits(TypedDict):
    """recovered[layer][position]: share of the logit difference, answer minus other, that one clean activation brings
    back to the corrupted text; 0 as corrupted, 1 as clean. clean, corrupted: the differences."""

    clean_tokens: list[str]
    corrupted_tokens: list[str]
    answer: str
    other: str
    clean: float
    corrupted: float
    recovered: list[list[float]]


class Tokens(TypedDict):
    """A text as token ids, and the text of each."""

    ids: list[int]
    tokens: list[str]


class NextToken(TypedDict):
    """A token with its probability after the settings and before them, and the natural logarithm of the latter."""

    token_id: int
    token: str
    probability: float
    raw_probability: float
    log_probability: float


class HeadWeights(TypedDict):
    """weights[query][key] of a head over these tokens."""

    tokens: list[str]
    weights: list[list[float]]


class LensRow(TypedDict):
    """The most probable token where a layer is left, at resid_mid (after its attention) or resid_post (after its
    feed-forward part). entropy: bits. chosen_rank: 1 is the best."""

    layer: int
    point: str
    token_id: int
    token: str
    probability: float
    entropy: float
    chosen_probability: float
    chosen_rank: int


class LogitLens(TypedDict):
    """The chosen token, and two rows for each layer, from the first to the last."""

    chosen_id: int
    chosen: str
    rows: list[LensRow]


class Contributions(TypedDict):
    """Parts of a logit, which sum to it: heads[layer][head], attn_bias[layer], mlp[layer], and the others."""

    token_id: int
    token: str
    logit: float
    token_embedding: float
    position_embedding: float
    heads: list[list[float]]
    attn_bias: list[float]
    mlp: list[float]
    norm_bias: float


class AblatedToken(TypedDict):
    """A token with its probability before and after parts of the model are switched off."""

    token_id: int
    token: str
    before: float
    after: float


class Ablation(TypedDict):
    """The next tokens, and the Kullback-Leibler divergence of the prediction after from the one before, in bits."""

    tokens: list[AblatedToken]
    kl_bits: float


class Steered(TypedDict):
    """A feature after a layer that is turned up: the next tokens before and after, and continuations without and with
    it."""

    layer: int
    feature: int
    name: str
    strength: float
    tokens: list[AblatedToken]
    without: str
    steered: str


class ScoredToken(TypedDict):
    """A token of a text by the prediction before it. rank: 1 is the best; surprisal, entropy: bits; log_probability:
    nats."""

    token_id: int
    token: str
    probability: float
    log_probability: float
    rank: int
    surprisal: float
    entropy: float


class TextLoss(TypedDict):
    """loss: mean cross-entropy in nats per token; perplexity: its exponential; tokens: all but the first."""

    loss: float
    perplexity: float
    bits_per_byte: float
    tokens: list[ScoredToken]
