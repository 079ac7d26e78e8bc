"""What a prediction depends on: measured, and in a sentence."""

from __future__ import annotations

from collections.abc import Sequence

from components.i18n import Language, t
from components.labels import percent, quoted
from gpt import GPT, Edits
from gpt.analysis.causes import Causes, strongest_causes
from gpt.inference.packed_linear import multiplications_per_token
from gpt.inference.threads import threads_for
from gpt.tokenizer import Vocabulary

LEAVE_OUT_MULTIPLICATIONS = 1e11  # about a second
MIN_LEFT_OUT_TOKENS = 8


def left_out_positions(model: GPT, n: int, limit: float = LEAVE_OUT_MULTIPLICATIONS) -> range:
    """The last positions of n, as many as can be left out one after the other within a number of multiplications."""
    # The tokens after the removed one are read again: n / 2 on average.
    affordable = int((2 * limit / multiplications_per_token(model)) ** 0.5)
    return range(n - min(n, max(MIN_LEFT_OUT_TOKENS, affordable)), n)


def causes_of(
    model: GPT, ids: Sequence[int], token: int, edits: Edits | None, limit: float = LEAVE_OUT_MULTIPLICATIONS
) -> Causes:
    """What `token` after a text (T,) depends on. The last token stays: the prediction is what follows it."""
    positions = [position for position in left_out_positions(model, len(ids), limit) if position < len(ids) - 1]
    with threads_for(12 * model.config.n_layer * model.config.n_embd**2):  # parameters of all blocks
        return strongest_causes(model, ids, token, positions, edits)


def causes_sentence(causes: Causes, token: int, ids: Sequence[int], tokenizer: Vocabulary, language: Language) -> str:
    """The token and the head without which the probability of `token` falls furthest. ids: the text."""
    names = [(token_name(tokenizer, ids, cause.place, language), cause.probability) for cause in causes.tokens[:1]]
    names += [(layer_head_name(cause.place, language), cause.probability) for cause in causes.heads[:1]]
    name, p = quoted(tokenizer, token), percent(causes.probability)
    if not names:
        return t("why.because.none", language, token=name, p=p)
    (cause, without), *others = names
    lines = [t("why.because", language, token=name, cause=cause, without=percent(without), p=p)]
    return "".join([*lines, *(t("why.because.without", language, cause=c, p=percent(low)) for c, low in others)])


def token_name(tokenizer: Vocabulary, ids: Sequence[int], position: object, language: Language) -> str:
    """A token of the text inside a sentence; with its position where the text has it twice."""
    if not isinstance(position, int):
        return ""
    name = quoted(tokenizer, ids[position])
    is_single = ids.count(ids[position]) == 1
    return name if is_single else t("why.flow.token", language, token=name, position=position)


def layer_head_name(place: object, language: Language) -> str:
    """A head inside a sentence. place: (layer, head)."""
    layer, head = place if isinstance(place, tuple) else (0, 0)
    return t("why.part.head", language, layer=layer, head=head)
