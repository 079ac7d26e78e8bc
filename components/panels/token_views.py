"""Texts and chart data for the tokenizer panel."""

from __future__ import annotations

from collections.abc import Sequence

from components.figures.bars import Cell, merge_ladder
from components.i18n import t
from components.labels import visible
from components.widgets.chart import Drawing
from gpt.experiments.tokens import MergeStep, text_cost
from gpt.tokenizer import Vocabulary

MAX_LISTED_CHARS = 8


def merge_summary(steps: list[MergeStep], word: str) -> str:
    """Summarise a word: its tokens, and the number of bytes, merges and tokens."""
    parts = steps[-1].parts
    return t(
        "bpe.says",
        word=shown(word),
        bytes=counted("bytes", len(b"".join(parts))),
        merges=counted("merges", len(steps) - 1),
        parts=counted("parts", len(parts)),
        tokens=" | ".join(encodable_text(part) for part in parts),
    )


def counted(what: str, n: int) -> str:
    """Return a number followed by its singular or plural noun."""
    return t(f"bpe.{what}", n=n)


def shown(word: str) -> str:
    """Return a word in quotation marks, with visible spaces."""
    return f"“{visible(word)}”"


def encodable_text(data: bytes) -> str:
    """Return bytes as text with visible spaces, or in hexadecimal if they are not valid UTF-8."""
    try:
        return visible(data.decode())
    except UnicodeDecodeError:
        return data.hex(" ").upper()


def ladder(steps: Sequence[MergeStep], text: str) -> Drawing:
    """Draw a word's merges, one per row. text: the caption."""
    rows: list[list[Cell]] = []
    for step, before in zip(steps, [None, *steps], strict=False):
        new = None if before is None else before.at
        ranks = "" if before is None or before.rank is None else t("bpe.rank", rank=f"{before.rank:,}")
        rows.append(
            [
                Cell(encodable_text(part), len(part), at == new, ranks if at == new else "")
                for at, part in enumerate(step.parts)
            ]
        )
    return merge_ladder(rows), text


def cost(own: Vocabulary, gpt2: Vocabulary, text: str) -> str:
    """Return a sentence with a text's token counts in both vocabularies; "" for an empty text."""
    if not text:
        return ""
    found = text_cost(own, text)
    counts = {"own": found.tokens, "gpt2": text_cost(gpt2, text).tokens}
    return t("bpe.text.says", characters=found.characters, bytes=found.n_bytes, **counts)


def characters(text: str) -> list[list[str]]:
    """Return the code point and UTF-8 bytes of each multi-byte character in a text."""
    wide = list(dict.fromkeys(c for c in text if ord(c) > 127))[:MAX_LISTED_CHARS]
    if not wide:
        return []
    heads = [t(f"bpe.{key}") for key in ("character", "code_point", "utf8")]
    return [
        heads,
        *([visible(c), f"U+{ord(c):04X}", c.encode("utf-8", "replace_surrogate").hex(" ").upper()] for c in wide),
    ]
