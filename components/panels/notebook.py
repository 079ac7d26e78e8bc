"""The notebook panel: the textbook experiment from seed to text, compared with the original's printed values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from components.i18n import t
from components.kit import Panel, experiment_buttons
from components.labels import marked
from components.state.jobs import Job
from components.widgets.simple import table
from gpt.experiments.notebook import PRINTED, PROMPT, SEED, PrintedValue, run_notebook
from gpt.tokenizer import gpt2_tokenizer

Values = tuple[PrintedValue, ...]

panel = Panel("notebook")


@panel.state
class Notebook:
    latest: Values | None = None
    job: Job | None = None
    notice: ValueError | None = None


def steps(s: Any) -> Iterator[Values]:
    values: Values = ()
    for value in run_notebook():
        values += (value,)
        yield values


def answer(s: Any) -> str:
    values = s[Notebook].latest
    if not values:
        return t("notebook.says", seed=SEED, prompt=PROMPT)
    n = sum(value.is_equal for value in values)
    text = t("notebook.equal", n=n, done=len(values), total=len(PRINTED))
    if values[-1].name == "tokens":
        tokens = [int(token_id) for token_id in values[-1].computed]
        text += t("notebook.text", text=marked(PROMPT + gpt2_tokenizer().decode(tokens)))
    return text


def rows(s: Any) -> dict[str, Any]:
    computed = {value.name: value for value in s[Notebook].latest or ()}
    found = [[t(f"notebook.{column}") for column in ("value", "printed", "computed")]]
    for name, printed in PRINTED.items():
        value = computed.get(name)
        mark = "" if value is None else f"{'✓' if value.is_equal else '✗'} {numbers(value.computed)}"
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
