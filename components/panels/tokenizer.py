"""The tokenizer panel: a word's merges, and token counts in two vocabularies."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from components.errors import PageError
from components.figures.bars import grouped_bars
from components.i18n import t
from components.panels import token_views
from components.panels.panel import (
    Panel,
    Result,
    computed,
    of_state,
    panel_section,
    problem_sentence,
    value_of,
    waiting_sentence,
)
from components.parts import column, columns, question, text_box
from components.render import Lines, View
from components.state.session import Session
from components.state.snapshot import Snapshot
from components.text_views import prompt_lines, strip_labels
from components.widgets.chart import chart, chart_data
from components.widgets.sentence import sentence
from components.widgets.table import table
from components.widgets.tokens import tokens
from gpt import DEFAULT_MODEL, Tokenizer, get_model, gpt2_tokenizer
from gpt.experiments.tokens import language_costs, merge_steps, split_words

MAX_WORD_BYTES = 24  # each byte takes a row
MAX_TEXT_CHARS = 200
Side = Literal["own", "gpt2"]


class Vocabularies(NamedTuple):
    """The vocabularies of the bundled model and of GPT-2."""

    own: Tokenizer
    gpt2: Tokenizer


@dataclass(frozen=True)
class TokenizerState:
    """The panel's input.

    word: the last valid word; problem: the error for a later one. text: the text to tokenize.
    """

    word: str = "grandmother"
    text: str = "Hello, I am 小狗 🐶"
    problem: ValueError | None = None
    result: Result[Vocabularies] | None = None


def own_tokenizer() -> Tokenizer:
    """Return the bundled model's tokenizer."""
    tokenizer = get_model(DEFAULT_MODEL).tokenizer
    assert isinstance(tokenizer, Tokenizer)
    return tokenizer


def vocabularies(request: tuple[()]) -> Vocabularies:
    """Return both vocabularies, loading them if necessary."""
    return Vocabularies(own_tokenizer(), gpt2_tokenizer())


def type_word(session: Session, typed: object) -> None:
    """Set the word, or report an invalid one and keep the previous word."""
    try:
        word = checked_word(typed, own_tokenizer())
    except ValueError as problem:
        session.change(TokenizerState, problem=problem)
    else:
        session.change(TokenizerState, word=word, problem=None)


def type_text(session: Session, typed: object) -> None:
    """Set the text, truncated to MAX_TEXT_CHARS."""
    session.change(TokenizerState, text=typed[:MAX_TEXT_CHARS] if isinstance(typed, str) else "")


def checked_word(typed: object, tokenizer: Tokenizer) -> str:
    """Return the checked word. Raises ValueError if it is empty, too long, or more than one word."""
    word = typed if isinstance(typed, str) else ""
    if not word:
        raise PageError("bpe.error.none")
    if (n := len(word.encode("utf-8", "replace"))) > MAX_WORD_BYTES:
        raise PageError("bpe.error.long", word=token_views.shown(word), n=n, limit=MAX_WORD_BYTES)
    if (n := len(split_words(tokenizer, word))) > 1:
        raise PageError("bpe.error.several", word=token_views.shown(word), n=n)
    return word


def result_of(s: Snapshot) -> Vocabularies | None:
    return value_of(s, s.state(TokenizerState).result)


def answer(s: Snapshot) -> dict[str, Any]:
    both, word = result_of(s), s.state(TokenizerState).word
    if both is None:
        return {"text": waiting_sentence(s)}
    return {"text": token_views.merge_summary(merge_steps(both.own, word), word)}


def notice(s: Snapshot) -> dict[str, Any]:
    state = s.state(TokenizerState)
    return problem_sentence(s, state.problem, state.result)


def name(side: Side, s: Snapshot) -> dict[str, Any]:
    """Return one side's title."""
    both = result_of(s)
    return {"text": "" if both is None else side_name(both, side, s)}


def side_name(both: Vocabularies, side: Side, s: Snapshot) -> str:
    return t("bpe.gpt2") if side == "gpt2" else t("bpe.own", n=f"{both.own.n_vocab:,}")


def ladder(side: Side, s: Snapshot) -> dict[str, Any]:
    """Draw the word's merges from bytes to tokens."""
    both, word = result_of(s), s.state(TokenizerState).word
    if both is None:
        return chart_data(None, "")
    steps = merge_steps(getattr(both, side), word)
    caption = t("bpe.picture") if side == "own" else token_views.merge_summary(steps, word)
    return token_views.ladder(steps, caption)


def strip(side: Side, s: Snapshot) -> dict[str, Any]:
    """Return the text's tokens as a strip."""
    both = result_of(s)
    tokenizer = None if both is None else getattr(both, side)
    lines = Lines() if tokenizer is None else prompt_lines(tokenizer, tokenizer.encode(s.state(TokenizerState).text))
    return {"lines": lines, "doc": "prompt", "labels": strip_labels()}


def cost(s: Snapshot) -> dict[str, Any]:
    both = result_of(s)
    return {"text": "" if both is None else token_views.cost(*both, s.state(TokenizerState).text)}


def languages(s: Snapshot) -> dict[str, Any]:
    """Draw how many tokens per character the same sentence takes in several languages."""
    both = result_of(s)
    if both is None:
        return chart_data(None, "")
    costs = {side_name(both, side, s): language_costs(getattr(both, side)) for side in get_args(Side)}
    own = next(iter(costs.values()))
    figure = grouped_bars(
        [t(f"bpe.language.{key}") for key in own],
        {title: np.array([each.tokens_per_character for each in side.values()]) for title, side in costs.items()},
        y_title=t("bpe.per_character"),
        digits=".2g",
        tip=".3f",
        height=340,
    )
    rates = {key: f"{own[key].tokens_per_character:.2f}" for key in ("en", "zh")}
    return chart_data(figure, t("bpe.language.says", **rates))


VIEWS = (
    View("bpe-answer", answer),
    View("bpe-notice", notice),
    View("bpe-cost", cost),
    View("bpe-bytes", lambda s: {"rows": token_views.characters(s.state(TokenizerState).text)}),
    View("bpe-languages", languages),
    *(View(f"bpe-name-{side}", partial(name, side)) for side in get_args(Side)),
    *(View(f"bpe-ladder-{side}", partial(ladder, side)) for side in get_args(Side)),
    *(View(f"bpe-strip-{side}", partial(strip, side)) for side in get_args(Side)),
)
ANALYSIS = computed(TokenizerState, lambda s: (), vocabularies)


def build_tokenizer() -> Panel:
    """Build the panel with a word's merges, a text with its bytes, and a sentence in several languages."""
    ladders = (
        column(
            sentence(f"bpe-name-{side}", kind="question"),
            chart(f"bpe-ladder-{side}"),
        )
        for side in get_args(Side)
    )
    strips = (column(tokens(f"bpe-strip-{side}", ids=True, selectable=False)) for side in get_args(Side))
    part = panel_section(
        "bpe",
        text_box(
            "bpe-word",
            label="bpe.word",
            info="bpe.word.info",
            max_length=80,
            value=of_state(TokenizerState, "word"),
            on=type_word,
        ),
        columns(*ladders),
        question("bpe.text.question"),
        text_box(
            "bpe-text",
            label="bpe.text",
            max_length=MAX_TEXT_CHARS,
            value=of_state(TokenizerState, "text"),
            on=type_text,
        ),
        sentence("bpe-cost", kind="lead"),
        columns(*strips),
        table("bpe-bytes"),
        question("bpe.language.question"),
        chart("bpe-languages"),
    )
    return Panel(part, VIEWS, ANALYSIS)
