"""The views of the Train tab: the choices, the state of the run, samples and attention."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from components.errors import localize_error
from components.figures.charts import attention_heatmap
from components.i18n import Language, t
from components.labels import marked, percent, quoted, token_text, visible
from components.render import View
from components.state.snapshot import Message, Snapshot
from components.tabs.train import choices
from components.tabs.train.components import TrainState
from components.tabs.train.curve import curve_chart
from components.tabs.train.pinned import pinned_head, pinned_position, shares_of_next
from components.widgets.chart import chart_data
from components.widgets.heads import heads_data, max_pooled, thumbnail_side
from gpt.training.live_run import Evaluation, LiveRun, RunProgress
from gpt.training.recorded_run import RecordedRun


def status_sentence(run: LiveRun, progress: RunProgress, language: Language) -> str:
    """The progress of a run, or how it ended."""
    state, early = progress.state, progress.state == "finished" and progress.step < progress.steps
    key = "early" if early else {"diverged": "infinite", "crashed": "broke"}.get(state, state)
    training = progress.seconds - progress.paused_seconds
    return t(
        f"train.{key}",
        language,
        place=progress.queue_position,
        step=f"{progress.step:,}",
        steps=f"{progress.steps:,}",
        seconds=f"{progress.seconds:.0f}",
        limit=f"{run.time_limit_seconds:g}",
        rate=f"{progress.step / training:.0f}" if training > 0 else "0",
        parameters=f"{run.n_parameters:,}",
        lr=f"{progress.losses[-1].rate:.2g}" if progress.losses else "0",
    )


def samples_sentence(evaluation: Evaluation, language: Language) -> str:
    """The sentence above the samples."""
    if evaluation.accuracy is None:
        return t("train.samples.says.text", language, step=f"{evaluation.step:,}")
    right = sum(bool(sample.correct) for sample in evaluation.samples)
    return t("train.samples.says", language, step=f"{evaluation.step:,}", right=right, n=len(evaluation.samples))


def samples_rows(evaluation: Evaluation, language: Language) -> list[list[str]]:
    """The answers of the model beside the correct ones; empty for a text."""
    if evaluation.accuracy is None:
        return []
    head = [t(f"train.samples.{key}", language) for key in ("given", "written", "expected")]
    rows = [
        [
            visible(sample.prompt),
            visible(sample.text.removesuffix("\n")),
            visible((sample.expected or "").removesuffix("\n")),
            t("train.samples.right" if sample.correct else "train.samples.wrong", language),
        ]
        for sample in evaluation.samples
    ]
    return [[*head, ""], *rows]


def sample_text(evaluation: Evaluation) -> str:
    """A sample of the model trained on a text; empty for a task."""
    if evaluation.accuracy is not None:
        return ""
    text = "".join(each.prompt + each.text for each in evaluation.samples)
    return "\n".join(map(marked, text.split("\n")))


def labels(run: LiveRun | RecordedRun) -> list[str]:
    """The tokens of the example for the attention."""
    return [token_text(run.dataset.vocabulary, token_id) for token_id in run.dataset.example]


def heads_labels(language: Language) -> dict[str, str]:
    """Labels of the overview, sent with each value, since a widget that is not on the page yet keeps no others."""
    shared = {key: t(f"heads.{key}", language) for key in ("name", "title", "share", "axis")}
    return shared | {key: t(f"train.attention.{key}", language) for key in ("hint", "keys")}


def overview(
    run: LiveRun | RecordedRun, progress: RunProgress, evaluation: Evaluation, state: TrainState, language: Language
) -> dict[str, Any]:
    """All heads on the example at that step."""
    n_layer, n_head, T, _ = evaluation.attn_weights.shape
    weights = evaluation.attn_weights.astype(np.float32)
    pictures = max_pooled(weights, thumbnail_side(n_layer, n_head, T))
    diagonals = [np.trace(weights, offset=-k, axis1=2, axis2=3) / (T - k) for k in (1, 0)]
    shares = np.stack([weights[:, :, 1:, 0].mean(axis=-1), *diagonals], axis=-1)
    layer, head = pinned_head(state, run, progress)
    share = shares_of_next(evaluation, run)[layer, head]
    text = t(
        "train.attention.heads", language, step=f"{evaluation.step:,}", layer=layer, head=head, share=percent(share)
    )
    levels = np.round(255 * pictures).astype(np.uint8)
    rows = [levels[..., row, : row + 1] for row in range(levels.shape[-1])]
    content = {"layer": layer, "head": head, "text": text, "tokens": len(rows)}
    return heads_data(rows, shares, content) | {"labels": heads_labels(language)}


def heatmap(
    run: LiveRun | RecordedRun, progress: RunProgress, evaluation: Evaluation, state: TrainState, language: Language
) -> dict[str, Any]:
    """One head on the example at that step, with the selected row framed."""
    layer, head = pinned_head(state, run, progress)
    names, ids, vocabulary = labels(run), run.dataset.example, run.dataset.vocabulary
    weights = evaluation.attn_weights[layer, head].astype(np.float32)
    row = pinned_position(state, run)
    figure = attention_heatmap(
        weights,
        names,
        names,
        selected=row,
        full=1.0,
        query_title=t("attention.query", language),
        key_title=t("attention.key", language),
        weight_title=t("attention.weight", language),
    )
    most = np.argsort(-weights[row, : row + 1], kind="stable")[:2]
    text = t(
        "train.attention.says",
        language,
        step=f"{evaluation.step:,}",
        layer=layer,
        head=head,
        next=quoted(vocabulary, ids[row + 1]) if row + 1 < len(ids) else "…",
        targets=", ".join(f"{quoted(vocabulary, ids[i])} ({percent(float(weights[row, i]))})" for i in most),
    )
    return chart_data(figure, text)


@dataclass(frozen=True)
class Shown:
    """What is shown of a run: its progress, and one of its evaluations."""

    run: LiveRun | RecordedRun
    progress: RunProgress
    evaluation: Evaluation


def progress_of(s: Snapshot) -> RunProgress | None:
    """The progress of the visitor's newest run, the same for all views of a frame."""
    return s.cached(_progress)


def _progress(s: Snapshot) -> RunProgress | None:
    return s.state(TrainState).progress()


def shown_of(s: Snapshot) -> Shown | None:
    """The shown run at the displayed step; None before its first evaluation."""
    return s.cached(_shown)


def _shown(s: Snapshot) -> Shown | None:
    state = s.state(TrainState)
    run, own = state.shown_run, progress_of(s)
    progress = run.progress if isinstance(run, RecordedRun) else own
    evaluation = None if progress is None else state.shown(progress)
    if run is None or progress is None or evaluation is None:
        return None
    return Shown(run, progress, evaluation)


def about(s: Snapshot) -> dict[str, Any]:
    return {"text": choices.about(s.state(TrainState).task, s.language)}


def source(s: Snapshot) -> dict[str, Any]:
    uploaded = s.state(TrainState).uploaded
    return {"text": "" if uploaded is None else choices.source(uploaded, s.language)}


def notice(s: Snapshot) -> dict[str, Any]:
    caption = s.state(TrainState).notice
    if isinstance(caption, Message):
        return {"text": t(caption.key, s.language, **caption.values)}
    return {"text": "" if caption is None else localize_error(caption, s.language)}


def status(s: Snapshot) -> dict[str, Any]:
    state, progress = s.state(TrainState), progress_of(s)
    if state.run is None or progress is None:
        return {"text": t("train.idle", s.language)}
    return {"text": status_sentence(state.run, progress, s.language)}


def curve(s: Snapshot) -> dict[str, Any]:
    shown = shown_of(s)
    if shown is None:
        return chart_data(None, "")
    return curve_chart(shown.run, shown.progress, shown.evaluation, s.state(TrainState), s.language)


def samples_says(s: Snapshot) -> dict[str, Any]:
    shown = shown_of(s)
    return {"text": "" if shown is None else samples_sentence(shown.evaluation, s.language)}


def samples(s: Snapshot) -> dict[str, Any]:
    shown = shown_of(s)
    return {"rows": [] if shown is None else samples_rows(shown.evaluation, s.language)}


def sample(s: Snapshot) -> dict[str, Any]:
    shown = shown_of(s)
    return {"text": "" if shown is None else sample_text(shown.evaluation)}


def heads(s: Snapshot) -> dict[str, Any]:
    shown = shown_of(s)
    if shown is None:
        return {"labels": heads_labels(s.language)}
    return overview(shown.run, shown.progress, shown.evaluation, s.state(TrainState), s.language)


def head(s: Snapshot) -> dict[str, Any]:
    shown = shown_of(s)
    if shown is None:
        return chart_data(None, "")
    return heatmap(shown.run, shown.progress, shown.evaluation, s.state(TrainState), s.language)


def lead(s: Snapshot) -> dict[str, Any]:
    """Whose training is shown."""
    shown = shown_of(s)
    if shown is None or not isinstance(shown.run, RecordedRun):
        return {"text": "" if shown is None else t("train.film.own", s.language)}
    config = shown.run.config
    values = {"parameters": f"{shown.run.n_parameters:,}", "n_layer": config.n_layer, "n_head": config.n_head}
    return {"text": t("train.film.recorded", s.language, steps=f"{shown.progress.steps:,}", **values)}


def player(s: Snapshot) -> dict[str, Any]:
    """The moments of the film, and the displayed one."""
    shown = shown_of(s)
    if shown is None:
        return {"moments": 0}
    evaluations = shown.progress.evaluations
    texts = {key: t(f"train.film.{key}", s.language) for key in ("name", "play", "pause", "back", "forward")}
    step = t("train.film.step", s.language, step=f"{shown.evaluation.step:,}", steps=f"{shown.progress.steps:,}")
    return {"moments": len(evaluations), "moment": evaluations.index(shown.evaluation), "text": step, "labels": texts}


def machine(s: Snapshot) -> dict[str, Any]:
    """The whole model on the example; {} while the forward pass of the displayed step is missing."""
    shown, state = shown_of(s), s.state(TrainState)
    if shown is None:
        return {"tokens": None, "text": ""}
    if not state.is_passed(shown.run, shown.evaluation.step):
        return {}
    layer, head = pinned_head(state, shown.run, shown.progress)
    return state.shown_pass.machine.draw(pinned_position(state, shown.run), layer, head, s.language)


def chosen(s: Snapshot) -> tuple[Any, ...]:
    return s.state(TrainState), s.language


def running(s: Snapshot) -> tuple[Any, ...]:
    """Inputs that change with every update of the run."""
    progress, shown = progress_of(s), shown_of(s)
    step = None if shown is None else shown.evaluation.step
    if progress is None:
        return *chosen(s), step, None
    return *chosen(s), step, progress.state, progress.step, progress.queue_position, int(progress.seconds)


def evaluated(s: Snapshot) -> tuple[Any, ...]:
    """Inputs that change with every displayed evaluation."""
    shown = shown_of(s)
    return *chosen(s), None if shown is None else (len(shown.progress.evaluations), shown.evaluation.step)


VIEWS = (
    View("train-about", chosen, about),
    View("train-source", chosen, source),
    View("train-notice", chosen, notice),
    View("train-status", running, status),
    View("train-film", evaluated, lead),
    View("train-player", evaluated, player),
    View("train-curve", running, curve),
    View("train-samples-says", evaluated, samples_says),
    View("train-samples", evaluated, samples),
    View("train-sample", evaluated, sample),
    View("train-heads", evaluated, heads),
    View("train-heatmap", evaluated, head),
    View("train-flow", evaluated, machine),
)
