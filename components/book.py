"""The course as a printable book: one HTML file per language, with contents, steps, exercises, answers and glossary."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import cast

from torch import Tensor

from components.i18n import speaking, spoken, t
from components.i18n.catalogue import GLOSSARY, has_text
from components.tabs.lessons.code_view import coloured
from gpt.course.check import expected_of, numbers
from gpt.course.steps import LANGUAGES, STEPS, Language, Step

NAME = "my_gpt.{language}.html"
CSS = Path(__file__).with_suffix(".css")
N_BROKEN = 2  # maximum number of exercises per step in which the reader breaks a line
ROW = 10  # maximum length of a vector whose numbers are listed

# Lesson questions that need no figure, by step.
QUESTIONS: dict[str, tuple[str, ...]] = {
    "1": ("configuration", "configuration.2", "configuration.3"),
    "2": ("embedding.2", "positions.2"),
    "3": ("layer_norm", "layer_norm.2", "layer_norm.3"),
    "4": ("activations.2", "activations.3"),
    "5": ("feed_forward.2",),
    "6a": ("average", "average.2"),
    "6b": ("dot_products",),
    "6c": ("queries", "queries.2", "attention.3"),
    "6d": ("attention.2",),
    "7": ("block.2", "shortcuts", "shortcuts.2"),
    "8": ("model.2",),
    "9": ("parameters.2",),
    "10": ("batches", "batches.2", "batches.3", "loss.2"),
    "11": ("greedy", "greedy.2", "greedy.3"),
    "12": ("sampling.2", "sampling.3"),
    "13": ("layouts", "layouts.2"),
    "14": ("optimizer", "optimizer.2", "training.2"),
}


def write_books(folder: Path) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for language in LANGUAGES:
        paths.append(folder / NAME.format(language=language))
        with speaking(language, exact=False):
            paths[-1].write_text(book(), encoding="utf-8")
    return paths


def _language() -> Language:
    return cast(Language, spoken())


def book() -> str:
    title, answers, glossary = (t(f"book.{name}") for name in ("title", "answers", "glossary"))
    contents = [(f"step-{step.key}", f"{step.key}&ensp;{step.title.of(_language())}") for step in STEPS.values()]
    contents += [("answers", answers), ("glossary", glossary)]
    return f"""<!doctype html>
<html lang="{spoken()}">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>
{CSS.read_text(encoding="utf-8")}</style>
<header>
<h1>{title}</h1>
<p>{escape(t("book.says"))}</p>
<p>{escape(t("book.check"))}</p>
<pre>glassbox course start my-gpt
glassbox course watch my-gpt</pre>
<p>{escape(t("book.shapes"))}</p>
</header>
<nav>
<h2>{t("book.contents")}</h2>
<ol>
{"".join(f'<li><a href="#{name}">{text}</a></li>' for name, text in contents)}
</ol>
</nav>
<main>
{"".join(chapter(step) for step in STEPS.values())}
</main>
<section id="answers" class="part">
<h2>{answers}</h2>
{"".join(answers_of(step) for step in STEPS.values())}
</section>
<section id="glossary" class="part">
<h2>{glossary}</h2>
<dl>
{"".join(f"<dt>{escape(word)}</dt><dd>{escape(says)}</dd>" for word, says in terms())}
</dl>
</section>
</html>
"""


def chapter(step: Step) -> str:
    results = [(test.name.of(_language()), expected_of(test)) for test in step.tests]
    rows = "".join(
        f"<tr><th scope=row>{escape(name)}{cells(result)}"
        for name, result in results
        if isinstance(result, Tensor) or (isinstance(result, (int, float)) and result)
    )
    heads = "".join(f"<th scope=col>{t(f'book.{name}')}" for name in ("test", "shape", "range", "row"))
    exercises = "".join(f"<li>{question}</li>" for question, _ in exercises_of(step))
    return f"""
<article id="step-{step.key}">
<h2>{step.key}&ensp;{escape(step.title.of(_language()))}</h2>
<p>{escape(step.says.of(_language()))}</p>
<pre>{coloured(step.solution(_language()))}</pre>
<h3>{t("book.expected")}</h3>
<table><thead><tr>{heads}</thead><tbody>{rows}</tbody></table>
<h3>{t("book.exercises")}</h3>
<ol>{exercises}</ol>
</article>"""


def answers_of(step: Step) -> str:
    answers = "".join(f"<li>{answer}</li>" for _, answer in exercises_of(step))
    return f"<h3>{step.key}&ensp;{escape(step.title.of(_language()))}</h3><ol>{answers}</ol>"


def exercises_of(step: Step) -> Iterator[tuple[str, str]]:
    """Yield (question, answer) pairs as HTML: first from the lessons, then about lines of code to break."""
    for key in QUESTIONS[step.key]:
        choices = [f"lesson.{key}.choice.{n}" for n in range(1, 4) if has_text(f"lesson.{key}.choice.{n}")]
        listed = "".join(f"<li>{escape(t(choice))}</li>" for choice in choices)
        question = escape(t(f"lesson.{key}.question"))
        yield question + (f'<ol type="a">{listed}</ol>' if choices else ""), escape(t(f"lesson.{key}.answer"))
    code = step.solution(_language())
    broken = [m for m in step.mistakes if m.wrong not in ("", "pass") and "\n" not in m.right + m.wrong]
    for mistake in [mistake for mistake in broken if mistake.right in code][:N_BROKEN]:
        right = next(line for line in code.split("\n") if mistake.right in line)
        wrong = right.replace(mistake.right, mistake.wrong)
        lines = "\n".join(f"{sign} {coloured(line.strip())}" for sign, line in (("−", right), ("+", wrong)))
        yield f"{t('book.broken')}<pre>{lines}</pre>", escape(mistake.hint.of(_language()))


def cells(expected: Tensor | float) -> str:
    """Return table cells: the shape, the smallest and largest number, and the start of the last row."""
    if not isinstance(expected, Tensor):
        return f"<td><td>{expected:,}<td>"
    if not expected.dim():
        return f"<td><td>{numbers(expected)}<td>"
    ends = " … ".join(numbers(end) for end in (expected + 0).aminmax())
    row = expected[(-1,) * (expected.dim() - 1)]
    is_long = expected.dim() == 1 and len(row) > ROW
    return f"<td>{tuple(expected.shape)}<td>{ends}<td>{'' if is_long else numbers(row)}"


def terms() -> list[tuple[str, str]]:
    """Return (word, definition) pairs, sorted by the English word, which the Chinese list adds to its own."""
    pairs = zip(GLOSSARY["en"], GLOSSARY[spoken()], strict=True)
    ordered = sorted(pairs, key=lambda pair: pair[0]["word"].casefold())
    return [
        (
            f"{term['word']} ({english['word']})"
            if term["word"].casefold() != english["word"].casefold()
            else term["word"],
            term["says"],
        )
        for english, term in ordered
    ]
