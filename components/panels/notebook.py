"""The notebook panel: the textbook experiment from seed to text, compared with the original's printed values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from components.i18n import t
from components.kit import Panel, experiment_buttons
from components.labels import marked
from components.state.jobs import Job
from components.widgets.simple import table
from gpt.experiments.notebook import PRINTED, PROMPT, SEED, agrees, run_notebook
from gpt.tokenizer import gpt2_tokenizer

Values = dict[str, tuple[float, ...]]  # by name, those computed so far

panel = Panel("notebook")


@panel.state
class Notebook:
    latest: Values | None = None
    job: Job | None = None
    notice: ValueError | None = None


def steps(s: Any) -> Iterator[Values]:
    values: Values = {}
    for name, numbers in run_notebook():
        values = values | {name: numbers}
        yield values


def answer(s: Any) -> str:
    values = s[Notebook].latest
    if not values:
        return t("notebook.says", seed=SEED, prompt=PROMPT)
    n = sum(agrees(*value) for value in values.items())
    text = t("notebook.equal", n=n, done=len(values), total=len(PRINTED))
    if "tokens" in values:
        tokens = [int(token_id) for token_id in values["tokens"]]
        text += t("notebook.text", text=marked(PROMPT + gpt2_tokenizer().decode(tokens)))
    return text


def rows(s: Any) -> dict[str, Any]:
    computed = s[Notebook].latest or {}
    found = [[t(f"notebook.{column}") for column in ("value", "printed", "computed")]]
    for name, printed in PRINTED.items():
        value = computed.get(name)
        mark = "" if value is None else f"{'✓' if agrees(name, value) else '✗'} {numbers(value)}"
        found.append([t(f"notebook.{name}"), numbers(printed), mark])
    return {"rows": found}


def numbers(values: tuple[float, ...]) -> str:
    """Format integers exactly, with commas from a million up, and other numbers to at most five significant digits."""
    shown = (
        f"{value:,}" if value >= 1e6 else f"{value:d}" if isinstance(value, int) else f"{value:.5g}" for value in values
    )
    return "  ".join(shown).replace("-", "−")


SECTION = panel.section(
    answer,
    experiment_buttons("notebook", "notebook.run", Notebook, steps, small=False),
    table("notebook-values", draw=rows),
    notice=lambda s: s[Notebook].notice,
)
