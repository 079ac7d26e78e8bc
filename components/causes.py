"""Causes of a prediction: how far its probability falls when a word is hidden or a head is switched off."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from torch import Tensor

from components.i18n import t
from components.labels import layer_head_name, percent, quoted
from components.state.reads import Computed
from components.state.typed_text import word_name, words_of
from gpt import GPT, Edits, SamplingParams, distribution
from gpt.analysis.saliency import Causes, measure_causes
from gpt.background import threads_for
from gpt.inference.packed_weights import multiplications_per_token
from gpt.tokenizer import Vocabulary

LEAVE_OUT_MULTIPLICATIONS = 1e11  # takes about a second
PAUSE_MULTIPLICATIONS = 4e9  # about 0.1 to 0.2 s, spent whenever the visitor pauses
MIN_LEFT_OUT_TOKENS = 8
MIN_FALL = 0.001  # relative; a smaller drop may be a rounding error
_OF_GRAMMAR = re.compile(  # punctuation, and words that mean little by themselves
    r"\W*|a|an|the|this|that|these|those|and|or|but|so|if|because|as|when|then|than|not|no|of|to|in|on|at|for|from|with"
    r"|by|up|out|it|its|is|are|was|were|be|been|am|do|did|does|had|has|have|can|could|will|would|i|he|she|they|we|you"
    r"|his|her|him|them|their|there|my|your|our|me|us|who|what|which|all|very|too",
    re.IGNORECASE,
)


def causes_of(
    model: GPT,
    tokenizer: Vocabulary,
    ids: Sequence[int],
    token: int,
    edits: Edits | None,
    limit: float = LEAVE_OUT_MULTIPLICATIONS,
    *,
    held: str = "",
) -> Causes:
    """Measure what the prediction of `token` after `ids`, (T,), depends on. The last word is never left out.

    limit: multiplications, which may leave only the last words. held: white space with which the token begins.
    """
    # Each removal requires reading the tokens after it again, half of them on average.
    affordable = int((2 * limit / multiplications_per_token(model)) ** 0.5)
    first = len(ids) - max(MIN_LEFT_OUT_TOKENS, affordable)
    words = [word for word in words_of(tokenizer, ids) if word.start >= first and word.stop < len(ids)]
    with threads_for(12 * model.config.n_layer * model.config.n_embd**2):  # parameters of all blocks
        return measure_causes(model, ids, token, words, edits, tokenizer.ids_after(held))


class Fall(NamedTuple):
    """The predicted token's probability without one word, given by its positions, or one head, (layer, head)."""

    place: tuple[int, ...]
    probability: float


class Falls(NamedTuple):
    """A prediction's probability under the sampling settings, and the words and heads whose removal lowers it, largest
    drop first. all_words: every measured word, in text order.
    """

    probability: float
    words: tuple[Fall, ...]
    heads: tuple[Fall, ...]
    all_words: tuple[Fall, ...]


def falls_of(causes: Causes, ids: Sequence[int], settings: SamplingParams) -> Falls:
    """Convert causes to probabilities under the sampling settings, as the bars show them. ids: the text's tokens."""

    def of(place: tuple[int, ...], logits: Tensor, hidden: Sequence[int] = ()) -> Fall:
        kept = [token for position, token in enumerate(ids) if position not in hidden]
        return Fall(place, distribution(logits, settings, previous_ids=kept).final[causes.token].item())

    whole = of((), causes.logits).probability

    def lower(falls: Sequence[Fall]) -> tuple[Fall, ...]:
        found = [fall for fall in falls if fall.probability < (1 - MIN_FALL) * whole]
        return tuple(sorted(found, key=lambda fall: fall.probability))

    words = tuple(of(word, logits, word) for word, logits in causes.words.items())
    return Falls(whole, lower(words), lower([of(*head) for head in causes.heads.items()]), words)


class Reason(NamedTuple):
    """What the prediction of `token` after these ids depends on."""

    ids: tuple[int, ...]
    token: int
    causes: Causes


@Computed
def reason(s: Any) -> Reason | None:
    """Measure what the token after the selected one, or at the end the likeliest, depends on; None if none is read."""
    if s.text is None or s.text.n_read == 0:
        return None
    loaded, document, ids = s.text.loaded, s.text.document, s.text.ids[: s.position + 1]
    chosen = chosen_token(s)
    token = int(document.logits(s.position).argmax()) if chosen is None else chosen
    held = document.held_after(s.position)
    causes = causes_of(loaded.model, loaded.tokenizer, ids, token, document.edits, PAUSE_MULTIPLICATIONS, held=held)
    return Reason(ids, token, causes)


def chosen_token(s: Any) -> int | None:
    if s.text is None or s.text.n_read == 0:
        return None
    after = s.position + 1
    return s.text.ids[after] if after < len(s.text.ids) else None


def reason_falls(s: Any) -> Falls | None:
    """Return how far the next token's probability falls without each word and head, or None if not measured yet."""
    found = s.ready(reason)
    return None if found is None else falls_of(found.causes, found.ids, s.settings.sampling())


def main_word(falls: Falls, ids: Sequence[int], tokenizer: Vocabulary) -> Fall | None:
    """Return the word whose removal lowers the probability most, or None if no reader would notice the difference.

    A word with letters goes before a punctuation mark unless its removal matters less than half as much.
    """
    seen = [fall for fall in falls.words if is_seen(falls, fall)]
    if not seen:
        return None
    middle = (falls.probability + seen[0].probability) / 2
    close = (fall for fall in seen if fall.probability <= middle)
    return next((fall for fall in close if re.search(r"\w", tokenizer.decode([ids[i] for i in fall.place]))), seen[0])


def is_seen(falls: Falls, without: Fall) -> bool:
    """Return whether a reader would notice the drop: at least two percentage points, or over half the probability."""
    p, q = falls.probability, without.probability
    return percent(p) != percent(q) and (p - q >= 0.02 or q < p / 2)


def causes_sentence(falls: Falls, token: int, ids: Sequence[int], tokenizer: Vocabulary) -> str:
    """Return a sentence naming the word whose removal lowers the probability of `token` most. ids: the text's ids.

    If others leave the same probability, as it is shown, the sentence says that several words decide.
    If that is a punctuation mark or a word of grammar, name the strongest word with a meaning of its own as well.
    """
    name, p, best = quoted(tokenizer, token), percent(falls.probability), main_word(falls, ids, tokenizer)
    if best is None:
        key = "why.because.none" if falls.all_words else "why.because.alone"
        return t(key, token=name, p=p)

    def means(fall: Fall) -> bool:
        return _OF_GRAMMAR.fullmatch(tokenizer.decode([ids[i] for i in fall.place]).strip()) is None

    def values(fall: Fall) -> dict[str, str]:
        return {"word": word_name(tokenizer, ids, fall.place), "without": percent(fall.probability)}

    left = [percent(fall.probability) for fall in falls.words if is_seen(falls, fall)]
    is_tied = left.count(percent(best.probability)) > 1
    sentence = t("why.because.several" if is_tied else "why.because", token=name, p=p, **values(best))
    second = None if means(best) else next((fall for fall in falls.words if means(fall) and is_seen(falls, fall)), None)
    return sentence if second is None else sentence + t("why.because.meaning", **values(second))


def head_sentence(falls: Falls, token: int, tokenizer: Vocabulary) -> str:
    """Return a sentence naming the head whose removal lowers `token`'s probability most, or "" if it barely falls."""
    best = next(iter(falls.heads), None)
    if best is None or not is_seen(falls, best):
        return ""
    return t(
        "why.because.head",
        head=layer_head_name(best.place),
        token=quoted(tokenizer, token),
        p=percent(falls.probability),
        without=percent(best.probability),
    )
