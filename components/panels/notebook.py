"""The notebook panel: the textbook experiment from seed to text, compared with the original's printed values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from components.i18n import t
from components.labels import marked
from components.panels.experiment import Experiment, experiment_buttons
from components.panels.panel import Panel, panel_section, problem_sentence
from components.render import View
from components.state.snapshot import Snapshot
from components.widgets.table import table
from gpt.experiments.notebook import PRINTED, PROMPT, SEED, PrintedValue, run_notebook
from gpt.tokenizer import gpt2_tokenizer

Values = tuple[PrintedValue, ...]


@dataclass(frozen=True)
class NotebookState:
    """The panel's state. run: the values computed so far."""

    run: Experiment[Values] = field(default_factory=Experiment)


def steps(s: Snapshot) -> Iterator[Values]:
    """Yield all values computed so far, after each new value."""
    values: Values = ()
    for value in run_notebook():
        values += (value,)
        yield values


def answer(s: Snapshot) -> dict[str, Any]:
    """Return the number of values that agree, and the six tokens as text."""
    values = s.state(NotebookState).run.latest or ()
    if not values:
        return {"text": t("notebook.says", seed=SEED, prompt=PROMPT)}
    n = sum(value.is_equal for value in values)
    text = t("notebook.equal", n=n, done=len(values), total=len(PRINTED))
    if values[-1].name == "tokens":
        tokens = [int(token_id) for token_id in values[-1].computed]
        text += t("notebook.text", text=marked(PROMPT + gpt2_tokenizer().decode(tokens)))
    return {"text": text}


def rows(s: Snapshot) -> dict[str, Any]:
    """Return one row per value: the original's printed value and the computed one."""
    computed = {value.name: value for value in s.state(NotebookState).run.latest or ()}
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


VIEWS = (
    View("notebook-answer", answer),
    View("notebook-notice", lambda s: problem_sentence(s, s.state(NotebookState).run.problem)),
    View("notebook-values", rows),
)


def build_notebook() -> Panel:
    """Build the panel that creates the model on request."""
    part = panel_section(
        "notebook",
        experiment_buttons("notebook", "notebook.run", NotebookState, steps, small=False),
        table("notebook-values"),
    )
    return Panel(part, VIEWS)
