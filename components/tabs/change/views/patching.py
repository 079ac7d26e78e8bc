"""Views for activation patching: the map, the selected cell, and the answers to choose from."""

from __future__ import annotations

from typing import Any

from components.figures.maps import recovery_heatmap
from components.i18n import t
from components.labels import decimal, percent, placed, quoted, signed, token_text, visible
from components.render import View
from components.state.snapshot import Snapshot
from components.tabs.change.state import ChangeState, Sweeps
from components.widgets.chart import chart_data
from components.widgets.sentence import sentence_data
from gpt.analysis.patching import PatchSweep


def sweeps_of(s: Snapshot) -> Sweeps | None:
    """Return the results if they belong to the text's model, else None."""
    sweeps = s.state(ChangeState).sweeps
    return sweeps if sweeps is not None and s.text is not None and sweeps.loaded is s.text.loaded else None


def shown_sweep(s: Snapshot) -> tuple[Sweeps, PatchSweep] | None:
    """Return the result to show in the map, or None if it is missing or cannot be measured."""
    state, sweeps = s.state(ChangeState), sweeps_of(s)
    if state.trouble is not None or sweeps is None or state.patched not in sweeps.by_name:
        return None
    return sweeps, sweeps.by_name[state.patched]


def status(s: Snapshot) -> dict[str, Any]:
    """Show the progress of the measurement."""
    task = s.state(ChangeState).sweeping
    return sentence_data(None if task is None else task.progress)


def trouble(s: Snapshot) -> dict[str, Any]:
    """Explain why the prompts or answers cannot be compared."""
    return sentence_data(s.state(ChangeState).trouble)


def recovery_map(s: Snapshot) -> dict[str, Any]:
    """Plot the recovered fraction of the logit difference by layer and position."""
    shown = shown_sweep(s)
    if shown is None:
        return chart_data(None, "")
    (sweeps, sweep), state = shown, s.state(ChangeState)
    tokenizer, pair, recovered = sweeps.loaded.tokenizer, sweeps.pair, sweep.recovered.float().cpu().numpy()
    figure = recovery_heatmap(
        recovered,
        [token_text(tokenizer, i) for i in pair.clean],
        [token_text(tokenizer, i) for i in pair.corrupted],
        cell=state.cell,
        layer_title=t("attention.layer"),
        value_title=t("change.patch.scale"),
    )
    layer, position = divmod(int(recovered.argmax()), recovered.shape[1])
    caption = t(
        "change.patch.map",
        answer=quoted(tokenizer, pair.answer),
        other=quoted(tokenizer, pair.other),
        clean=signed(sweep.clean),
        corrupted=signed(sweep.corrupted),
        name=t(f"change.patch.{state.patched}"),
        layer=layer,
        token=placed(quoted(tokenizer, pair.corrupted[position]), position),
        share=_share(recovered[layer, position]),
    )
    return chart_data(figure, caption, t("change.patch.note"))


def cell(s: Snapshot) -> dict[str, Any]:
    """Describe the result in the selected cell."""
    shown, state = shown_sweep(s), s.state(ChangeState)
    if shown is None or state.cell is None:
        return {"text": ""}
    (sweeps, sweep), (layer, position) = shown, state.cell
    share = float(sweep.recovered[layer, position])
    caption = t(
        "change.patch.cell",
        layer=layer,
        token=placed(quoted(sweeps.loaded.tokenizer, sweeps.pair.corrupted[position]), position),
        name=t(f"change.patch.{state.patched}"),
        corrupted=signed(sweep.corrupted),
        value=signed(sweep.corrupted + share * (sweep.clean - sweep.corrupted)),
        share=_share(share),
        clean=signed(sweep.clean),
    )
    return {"text": caption}


def choices(s: Snapshot) -> list[tuple[str, int]]:
    """List the answers to choose from, with each token's probability after prompts A and B."""
    sweeps = sweeps_of(s)
    if sweeps is None:
        return []
    prompts = zip(sweeps.logits, (sweeps.pair.clean, sweeps.pair.corrupted), strict=True)
    p, q = (s.stages(logits, ids).final for logits, ids in prompts)

    def label(token: int) -> str:
        name = visible(token_text(sweeps.loaded.tokenizer, token))
        return f"{name}  A {percent(p[token].item())} · B {percent(q[token].item())}"

    return [(label(token), token) for token in sweeps.listed]


def chosen(name: str, s: Snapshot) -> list[Any]:
    """Return the chosen "answer" or "other" token. Ids from another model's vocabulary are not shown."""
    state = s.state(ChangeState)
    value = None if sweeps_of(s) is None and state.sweeps is not None else getattr(state, name)
    return [] if value is None or value == "" else [value]


def _share(value: float) -> str:
    return f"{decimal(100 * value, 0)}%"


VIEWS = (
    View("change-patch-status", status),
    View("change-trouble", trouble),
    View("change-map", recovery_map),
    View("change-cell", cell),
)
