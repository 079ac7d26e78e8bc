"""The tokenizer panel: a word's merges, and token counts in two vocabularies."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from components.errors import PageError
from components.figures.bars import Cell, grouped_bars, merge_ladder
from components.i18n import t
from components.kit import Panel, column, columns, picture, question, says, setting, text_box
from components.labels import visible
from components.parts import Part
from components.state.session import Session
from components.text_views import prompt_lines
from components.widgets.chart import Drawing
from components.widgets.simple import table
from components.widgets.tokens import tokens
from gpt import DEFAULT_MODEL, Tokenizer, get_model, gpt2_tokenizer
from gpt.experiments.tokens import MergeStep, merge_steps, split_words, tokens_per_character
from gpt.tokenizer import valid_text

MAX_WORD_BYTES = 24  # each byte takes a row
MAX_TEXT_CHARS = 200
MAX_LISTED_CHARS = 8
SIDES = ("own", "gpt2")

panel = Panel("bpe")


@panel.state
class Typed:
    """word: the last valid word; problem: the error for a later one. text: the text to tokenize."""

    word: str = setting("grandmother", most=80)
    text: str = setting("Hello, I am 小狗 🐶", most=MAX_TEXT_CHARS)
    problem: ValueError | None = None


@panel.computed
def vocabularies(s: Any) -> dict[str, Tokenizer]:
    return {"own": own_tokenizer(), "gpt2": gpt2_tokenizer()}


def own_tokenizer() -> Tokenizer:
    tokenizer = get_model(DEFAULT_MODEL).tokenizer
    assert isinstance(tokenizer, Tokenizer)
    return tokenizer


def type_word(session: Session, typed: object) -> None:
    """Set the word, or report an invalid one and keep the previous word."""
    word = typed if isinstance(typed, str) else ""
    problem = problem_of(word)
    session.change(Typed, problem=problem, **({} if problem else {"word": word}))


def problem_of(word: str) -> PageError | None:
    if not word:
        return PageError("bpe.error.none")
    if (n := len(word.encode("utf-8", "replace"))) > MAX_WORD_BYTES:
        return PageError("bpe.error.long", word=quoted_word(word), n=n, limit=MAX_WORD_BYTES)
    if (n := len(split_words(own_tokenizer(), word))) > 1:
        return PageError("bpe.error.several", word=quoted_word(word), n=n)
    return None


def merge_summary(steps: list[MergeStep], word: str) -> str:
    parts = steps[-1].parts
    sizes = {"bytes": len(b"".join(parts)), "merges": len(steps) - 1, "parts": len(parts)}
    counted = {what: t(f"bpe.{what}", n=n) for what, n in sizes.items()}
    return t("bpe.says", word=quoted_word(word), tokens=" | ".join(map(encodable_text, parts)), **counted)


def quoted_word(word: str) -> str:
    return f"“{visible(word)}”"


def encodable_text(data: bytes) -> str:
    """Return bytes as text with visible spaces, or in hexadecimal if they are not valid UTF-8."""
    try:
        return visible(data.decode())
    except UnicodeDecodeError:
        return data.hex(" ").upper()


def answer(s: Any) -> str:
    return merge_summary(merge_steps(s[vocabularies]["own"], s[Typed].word), s[Typed].word)


def side_name(side: str, s: Any) -> str:
    return t("bpe.gpt2") if side == "gpt2" else t("bpe.own", n=f"{s[vocabularies]['own'].n_vocab:,}")


def ladder(side: str, s: Any) -> Drawing:
    word = s[Typed].word
    steps = merge_steps(s[vocabularies][side], word)
    rows: list[list[Cell]] = []
    for step, before in zip(steps, [None, *steps], strict=False):
        new = None if before is None else before.at
        rank = "" if before is None or before.rank is None else t("bpe.rank", rank=f"{before.rank:,}")
        cells = [(encodable_text(part), len(part), at == new) for at, part in enumerate(step.parts)]
        rows.append([Cell(text, size, is_new, rank if is_new else "") for text, size, is_new in cells])
    return merge_ladder(rows), t("bpe.picture") if side == "own" else merge_summary(steps, word)


def strip(side: str, s: Any) -> dict[str, Any]:
    tokenizer = s[vocabularies][side]
    return {"lines": prompt_lines(tokenizer, tokenizer.encode(s[Typed].text)), "doc": "prompt"}


def cost(s: Any) -> str:
    """Return a sentence with the text's token counts in both vocabularies; "" for an empty text."""
    text = s[Typed].text
    if not text:
        return ""
    counts = {side: len(vocabulary.encode(text)) for side, vocabulary in s[vocabularies].items()}
    return t("bpe.text.says", characters=len(text), bytes=len(valid_text(text).encode()), **counts)


def characters(s: Any) -> dict[str, Any]:
    wide = list(dict.fromkeys(c for c in s[Typed].text if ord(c) > 127))[:MAX_LISTED_CHARS]
    if not wide:
        return {"rows": []}
    heads = [t(f"bpe.{key}") for key in ("character", "code_point", "utf8")]
    rows = ([visible(c), f"U+{ord(c):04X}", valid_text(c).encode().hex(" ").upper()] for c in wide)
    return {"rows": [heads, *rows]}


def languages(s: Any) -> Drawing:
    costs = {side_name(side, s): tokens_per_character(s[vocabularies][side]) for side in SIDES}
    own = next(iter(costs.values()))
    figure = grouped_bars(
        [t(f"bpe.language.{key}") for key in own],
        {title: np.array([*side.values()]) for title, side in costs.items()},
        y_title=t("bpe.per_character"),
        digits=".2g",
    )
    rates = {key: f"{own[key]:.2f}" for key in ("en", "zh")}
    return figure, t("bpe.language.says", **rates)


def ladder_of(side: str) -> Part:
    name = says(f"bpe-name-{side}", partial(side_name, side), kind="question")
    return column(name, picture(f"bpe-ladder-{side}", partial(ladder, side)))


SECTION = panel.section(
    answer,
    text_box(Typed.word, "bpe.word", one_line=True, info="bpe.word.info", on=type_word),
    columns(*map(ladder_of, SIDES)),
    question("bpe.text.question"),
    text_box(Typed.text, "bpe.text"),
    says("bpe-cost", cost),
    columns(
        *(column(tokens(f"bpe-strip-{side}", ids=True, selectable=False, draw=partial(strip, side))) for side in SIDES)
    ),
    table("bpe-bytes", draw=characters),
    question("bpe.language.question"),
    picture("bpe-languages", languages),
    notice=lambda s: s[Typed].problem,
)
