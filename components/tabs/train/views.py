"""Views for the Train tab: the choices, the state of the run, samples and attention."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from components.figures.maps import attention_heatmap
from components.i18n import t
from components.labels import listed, marked, percent, quoted, token_text, visible
from components.render import View
from components.state.snapshot import Snapshot
from components.tabs.train import choices
from components.tabs.train.curve import curve_chart
from components.tabs.train.shown import OWN, RECORDED, Film, Shown, progress_of, shares_of_next
from components.tabs.train.state import LearnedState, Run, TrainState
from components.widgets.chart import chart_data
from components.widgets.heads import heads_data, max_pooled, thumbnail_side
from components.widgets.sentence import sentence_data
from gpt.training.live_run import LiveRun, RunProgress
from gpt.training.recorded_run import RecordedRun, recording_command


def status_sentence(run: LiveRun, progress: RunProgress) -> str:
    """Describe the progress of a run, or how it ended."""
    state, early = progress.state, progress.state == "finished" and progress.step < progress.steps
    key = "early" if early else {"diverged": "infinite", "crashed": "broke"}.get(state, state)
    training = progress.seconds - progress.paused_seconds
    return t(
        f"train.{key}",
        place=progress.queue_position,
        step=f"{progress.step:,}",
        steps=f"{progress.steps:,}",
        seconds=f"{progress.seconds:.0f}",
        limit=f"{run.time_limit_seconds:g}",
        rate=f"{progress.step / training:.0f}" if training > 0 else "0",
        parameters=f"{run.n_parameters:,}",
        lr=f"{progress.losses[-1].rate:.2g}" if progress.losses else "0",
    )


def samples_sentence(shown: Shown) -> dict[str, Any]:
    """Return the sentence above the samples."""
    step, samples = f"{shown.evaluation.step:,}", shown.evaluation.samples
    if shown.evaluation.accuracy is None:
        return {"text": t("train.samples.says.text", step=step)}
    right = sum(bool(sample.correct) for sample in samples)
    return {"text": t("train.samples.says", step=step, right=right, n=len(samples))}


def samples_rows(shown: Shown) -> dict[str, Any]:
    """List the model's answers beside the correct ones, or nothing for a text."""
    if shown.evaluation.accuracy is None:
        return {"rows": []}
    head = [t(f"train.samples.{key}") for key in ("given", "written", "expected")]
    rows = [
        [
            visible(sample.prompt),
            visible(sample.text.removesuffix("\n")),
            visible((sample.expected or "").removesuffix("\n")),
            t("train.samples.right" if sample.correct else "train.samples.wrong"),
        ]
        for sample in shown.evaluation.samples
    ]
    return {"rows": [[*head, ""], *rows]}


def sample_text(shown: Shown) -> dict[str, Any]:
    """Show a sample from a model trained on a text, or nothing for a task."""
    if shown.evaluation.accuracy is not None:
        return {"text": ""}
    text = "".join(each.prompt + each.text for each in shown.evaluation.samples)
    return {"text": "\n".join(map(marked, text.split("\n")))}


def labels(run: Run) -> list[str]:
    """Return the example's tokens as labels for the attention map."""
    return [token_text(run.dataset.vocabulary, token_id) for token_id in run.dataset.example]


def overview(shown: Shown) -> dict[str, Any]:
    """Show all heads' attention on the example at the displayed step."""
    evaluation, layer, head = shown.evaluation, shown.layer, shown.head
    n_layer, n_head, T, _ = evaluation.attn_weights.shape
    weights = evaluation.attn_weights.astype(np.float32)
    pictures = max_pooled(weights, thumbnail_side(n_layer, n_head, T))
    diagonals = [np.trace(weights, offset=-k, axis1=2, axis2=3) / (T - k) for k in (1, 0)]
    shares = np.stack([weights[:, :, 1:, 0].mean(axis=-1), *diagonals], axis=-1)
    share = shares_of_next(evaluation, shown.run)[layer, head]
    text = t("train.attention.heads", step=f"{evaluation.step:,}", layer=layer, head=head, share=percent(share))
    levels = np.round(255 * pictures).astype(np.uint8)
    rows = [levels[..., row, : row + 1] for row in range(levels.shape[-1])]
    content = {"layer": layer, "head": head, "text": text, "tokens": len(rows)}
    words = {key: t(f"heads.{key}") for key in ("name", "title", "share", "axis")}
    words |= {key: t(f"train.attention.{key}") for key in ("hint", "keys")}
    return heads_data(rows, shares, content) | {"labels": words}


def heatmap(shown: Shown) -> dict[str, Any]:
    """Show one head's attention on the example at the displayed step, with the selected row framed."""
    evaluation, layer, head, row = shown.evaluation, shown.layer, shown.head, shown.position
    names, ids, vocabulary = labels(shown.run), shown.run.dataset.example, shown.run.dataset.vocabulary
    weights = evaluation.attn_weights[layer, head].astype(np.float32)
    figure = attention_heatmap(
        weights,
        names,
        names,
        selected=row,
        full=1.0,
        query_title=t("attention.query"),
        key_title=t("attention.key"),
        weight_title=t("attention.weight"),
    )
    most = np.argsort(-weights[row, : row + 1], kind="stable")[:2]
    text = t(
        "train.attention.says",
        step=f"{evaluation.step:,}",
        layer=layer,
        head=head,
        next=quoted(vocabulary, ids[row + 1]) if row + 1 < len(ids) else "…",
        targets=listed(f"{quoted(vocabulary, ids[i])} ({percent(float(weights[row, i]))})" for i in most),
    )
    return chart_data(figure, text)


def about(s: Snapshot) -> dict[str, Any]:
    return {"text": choices.about(s.state(TrainState).task)}


def source(s: Snapshot) -> dict[str, Any]:
    state = s.state(TrainState)
    if state.task != choices.TEXT or state.uploaded is None:
        return {"text": ""}
    return {"text": choices.source(state.uploaded)}


def notice(s: Snapshot) -> dict[str, Any]:
    return sentence_data(s.state(TrainState).notice)


def status(s: Snapshot) -> dict[str, Any]:
    state, progress = s.state(TrainState), progress_of(s)
    if state.run is None or progress is None:
        return {"text": t("train.idle")}
    return {"text": status_sentence(state.run, progress)}


def lead(shown: Shown) -> dict[str, Any]:
    """Name the displayed training run."""
    if not isinstance(shown.run, RecordedRun):
        return {"text": t("train.film.own")}
    config = shown.run.config
    values = {"parameters": f"{shown.run.n_parameters:,}", "n_layer": config.n_layer, "n_head": config.n_head}
    return {"text": t("train.film.recorded", steps=f"{shown.progress.steps:,}", **values)}


def player(shown: Shown) -> dict[str, Any]:
    """Return the number of moments in the film and the index of the displayed one."""
    evaluations = shown.progress.evaluations
    texts = {key: t(f"train.film.{key}") for key in ("name", "play", "pause", "back", "forward")}
    step = t("train.film.step", step=f"{shown.evaluation.step:,}", steps=f"{shown.progress.steps:,}")
    return {"moments": len(evaluations), "moment": evaluations.index(shown.evaluation), "text": step, "labels": texts}


def machine(film: Film, s: Snapshot) -> dict[str, Any]:
    """Show the whole model on the example. Returns {} while the displayed step's forward pass is missing."""
    s.watch(partial(evaluated, film))
    shown, state = film.shown(s.snapshot), film.of(s)
    if shown is None:
        return {"tokens": None, "text": ""}
    if state.shown_pass is None or not state.is_passed(shown.run, shown.evaluation.step):
        return {}
    settings = s.settings.sampling()
    return state.shown_pass.machine.draw(shown.position, shown.layer, shown.head, settings)


def chosen(s: Snapshot) -> tuple[Any, ...]:
    return s.state(TrainState), s.language


def running(film: Film, s: Snapshot) -> tuple[Any, ...]:
    """Return values that change with every update of the run."""
    progress, shown = progress_of(s), film.shown(s)
    step = None if shown is None else shown.evaluation.step
    if progress is None or film is RECORDED:
        return film.of(s), step
    return film.of(s), step, progress.state, progress.step, progress.queue_position, int(progress.seconds)


def evaluated(film: Film, s: Snapshot) -> tuple[Any, ...]:
    """Return values that change with every displayed evaluation."""
    shown = film.shown(s)
    return film.of(s), None if shown is None else (len(shown.progress.evaluations), shown.evaluation.step)


def film_views(film: Film) -> tuple[View, ...]:
    """Return the views for a training run that can be replayed."""

    def view(name: str, draw: Callable[..., dict[str, Any]], nothing: dict[str, Any], when: Any = evaluated) -> View:
        """Make a view that shows `nothing` until the first evaluation, and is drawn whenever `when` changes."""

        def drawn(s: Any) -> dict[str, Any]:
            s.watch(partial(when, film))
            shown = film.shown(s.snapshot)
            return nothing if shown is None else draw(shown)

        return View(f"{film.name}-{name}", drawn)

    def film_lead(s: Any) -> dict[str, Any]:
        s.watch(partial(evaluated, film))
        shown = film.shown(s.snapshot)
        if shown is not None:
            return lead(shown)
        missing = film is RECORDED and s.state(LearnedState).looked_for_recorded
        return {"text": t("learned.missing", command=recording_command()) if missing else ""}

    return (
        View(f"{film.name}-film", film_lead),
        view("player", player, {"moments": 0}),
        view("curve", curve_chart, chart_data(None, ""), running),
        view("samples-says", samples_sentence, {"text": ""}),
        view("samples", samples_rows, {"rows": []}),
        view("sample", sample_text, {"text": ""}),
        view("heads", overview, {}),
        view("heatmap", heatmap, chart_data(None, "")),
        View(f"{film.name}-flow", partial(machine, film)),
    )


VIEWS = (
    View("train-about", about),
    View("train-source", source),
    View("train-notice", notice),
    View("train-status", status),
    *film_views(OWN),
)
LEARNED_VIEWS = film_views(RECORDED)
