"""The views of the Train tab."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from components.errors import localize_error
from components.figures.charts import attention_heatmap
from components.i18n import Language, t
from components.labels import percent, quoted, token_text, visible
from components.render import View
from components.state.snapshot import Message, Snapshot
from components.tabs.train import choices
from components.tabs.train.components import TrainState
from components.tabs.train.figures import CurveNames, learning_curve
from components.widgets.chart import chart_data
from components.widgets.heads import heads_data, max_pooled, thumbnail_side
from gpt.training.live_run import Evaluation, LiveRun, RunSnapshot
from gpt.training.tasks import N_TEST_EXAMPLES

GOAL = 0.99


def selected_head(state: TrainState, evaluation: Evaluation, ids: list[int], first: int) -> tuple[int, int]:
    """(layer, head): the chosen one, or the strongest one."""
    n_layer, n_head = evaluation.attn_weights.shape[:2]
    if state.layer is None or state.head is None or state.layer >= n_layer or state.head >= n_head:
        return strongest_head(evaluation, ids, first)[0]
    return state.layer, state.head


def strongest_head(evaluation: Evaluation, ids: list[int], first: int) -> tuple[tuple[int, int], float]:
    """(layer, head) with the most attention on the tokens that come next, and that share of its weight, 0..1.

    ids: (T,), the example. first: the position of the first prediction of the answer.
    """
    tokens = np.array(ids)
    same = tokens[None, :] == tokens[1:, None]  # (T - 1, T): whether token j is the one after token i
    weights = evaluation.attn_weights[:, :, first:-1].astype(np.float32)
    found = (weights * same[first:]).sum(axis=-1).mean(axis=-1)  # (n_layer, n_head)
    layer, head = np.unravel_index(int(found.argmax()), found.shape)
    return (int(layer), int(head)), float(found.max())


def status_sentence(run: LiveRun, progress: RunSnapshot, language: Language) -> str:
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


def curve_chart(run: LiveRun, progress: RunSnapshot, state: TrainState, language: Language) -> dict[str, Any]:
    """Loss and accuracy over the steps, with the displayed step."""
    evaluation, newest = state.shown(progress), progress.evaluations[-1] if progress.evaluations else None
    if evaluation is None or newest is None:
        return chart_data(None, "")
    n_vocab = run.dataset.vocabulary.n_vocab
    accuracies = None if newest.accuracy is None else np.array([each.accuracy for each in progress.evaluations])
    keys = ("step", "loss", "training", "held_back", "accuracy", "rate")
    figure = learning_curve(
        np.array([point.loss for point in progress.losses]),
        np.array([point.rate for point in progress.losses]),
        np.array([each.step for each in progress.evaluations]),
        np.array([each.val_loss for each in progress.evaluations]),
        accuracies,
        steps=progress.steps,
        guessing=math.log(n_vocab),
        shown=None if state.step is None else evaluation.step,
        names=CurveNames(
            **{key: t(f"train.curve.{key}", language) for key in keys},
            guessing=t("train.curve.guessing", language, n=n_vocab),
        ),
    )
    text = t(
        "train.curve.says",
        language,
        step=evaluation.step,
        loss=f"{evaluation.val_loss:.3f}",
        guessing=f"{math.log(n_vocab):.2f}",
    )
    if evaluation.accuracy is not None:
        text += t("train.curve.says.accuracy", language, accuracy=percent(evaluation.accuracy), n=N_TEST_EXAMPLES)
        reached = next((each.step for each in progress.evaluations if (each.accuracy or 0) >= GOAL), None)
        if reached is not None:
            text += t("train.curve.says.goal", language, step=reached)
    return chart_data(figure, text, t("train.curve.note", language))


def samples_sentence(evaluation: Evaluation, language: Language) -> str:
    """The sentence above the samples."""
    if evaluation.accuracy is None:
        return t("train.samples.says.text", language, step=evaluation.step)
    right = sum(bool(sample.correct) for sample in evaluation.samples)
    return t("train.samples.says", language, step=evaluation.step, right=right, n=len(evaluation.samples))


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
    return "" if evaluation.accuracy is not None else "".join(each.prompt + each.text for each in evaluation.samples)


def labels(run: LiveRun) -> list[str]:
    """The tokens of the example for the attention."""
    return [token_text(run.dataset.vocabulary, token_id) for token_id in run.dataset.example]


def heads_labels(language: Language) -> dict[str, str]:
    """Labels of the overview, sent with each value, since a widget that is not on the page yet keeps no others."""
    shared = {key: t(f"heads.{key}", language) for key in ("name", "title", "share", "axis")}
    return shared | {key: t(f"train.attention.{key}", language) for key in ("hint", "keys")}


def overview(run: LiveRun, evaluation: Evaluation, state: TrainState, language: Language) -> dict[str, Any]:
    """All heads on the example at that step."""
    n_layer, n_head, T, _ = evaluation.attn_weights.shape
    weights = evaluation.attn_weights.astype(np.float32)
    pictures = max_pooled(weights, thumbnail_side(n_layer, n_head, T))
    diagonals = [np.trace(weights, offset=-k, axis1=2, axis2=3) / (T - k) for k in (1, 0)]
    shares = np.stack([weights[:, :, 1:, 0].mean(axis=-1), *diagonals], axis=-1)
    (layer, head), share = strongest_head(evaluation, run.dataset.example, run.dataset.query)
    text = t("train.attention.heads", language, step=evaluation.step, layer=layer, head=head, share=percent(share))
    layer, head = selected_head(state, evaluation, run.dataset.example, run.dataset.query)
    levels = np.round(255 * pictures).astype(np.uint8)
    rows = [levels[..., row, : row + 1] for row in range(levels.shape[-1])]
    content = {"layer": layer, "head": head, "text": text, "tokens": len(rows)}
    return heads_data(rows, shares, content) | {"labels": heads_labels(language)}


def heatmap(run: LiveRun, evaluation: Evaluation, state: TrainState, language: Language) -> dict[str, Any]:
    """One head on the example at that step, with the row that predicts the answer framed."""
    layer, head = selected_head(state, evaluation, run.dataset.example, run.dataset.query)
    names, ids, vocabulary = labels(run), run.dataset.example, run.dataset.vocabulary
    weights = evaluation.attn_weights[layer, head].astype(np.float32)
    row = run.dataset.query
    figure = attention_heatmap(
        weights,
        names,
        names,
        selected=row,
        query_title=t("attention.query", language),
        key_title=t("attention.key", language),
        weight_title=t("attention.weight", language),
    )
    most = np.argsort(-weights[row, : row + 1], kind="stable")[:2]
    text = t(
        "train.attention.says",
        language,
        step=evaluation.step,
        layer=layer,
        head=head,
        next=quoted(vocabulary, ids[row + 1]),
        targets=", ".join(f"{quoted(vocabulary, ids[i])} ({percent(float(weights[row, i]))})" for i in most),
    )
    return chart_data(figure, text)


def progress_of(s: Snapshot) -> RunSnapshot | None:
    """The progress of the newest run, the same for all views of a frame."""
    return s.cached(_progress)


def _progress(s: Snapshot) -> RunSnapshot | None:
    return s.state(TrainState).progress()


def evaluation_of(s: Snapshot) -> Evaluation | None:
    progress = progress_of(s)
    return None if progress is None else s.state(TrainState).shown(progress)


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
    state, progress = s.state(TrainState), progress_of(s)
    if state.run is None or progress is None:
        return chart_data(None, "")
    return curve_chart(state.run, progress, state, s.language)


def samples_says(s: Snapshot) -> dict[str, Any]:
    evaluation = evaluation_of(s)
    return {"text": "" if evaluation is None else samples_sentence(evaluation, s.language)}


def samples(s: Snapshot) -> dict[str, Any]:
    evaluation = evaluation_of(s)
    return {"rows": [] if evaluation is None else samples_rows(evaluation, s.language)}


def sample(s: Snapshot) -> dict[str, Any]:
    evaluation = evaluation_of(s)
    return {"text": "" if evaluation is None else sample_text(evaluation)}


def heads(s: Snapshot) -> dict[str, Any]:
    state, evaluation = s.state(TrainState), evaluation_of(s)
    if state.run is None or evaluation is None:
        return {"labels": heads_labels(s.language)}
    return overview(state.run, evaluation, state, s.language)


def head(s: Snapshot) -> dict[str, Any]:
    state, evaluation = s.state(TrainState), evaluation_of(s)
    if state.run is None or evaluation is None:
        return chart_data(None, "")
    return heatmap(state.run, evaluation, state, s.language)


def chosen(s: Snapshot) -> tuple[Any, ...]:
    return s.state(TrainState), s.language


def running(s: Snapshot) -> tuple[Any, ...]:
    """Inputs that change with every update of the run."""
    progress = progress_of(s)
    if progress is None:
        return *chosen(s), None
    return *chosen(s), progress.state, progress.step, progress.queue_position, int(progress.seconds)


def evaluated(s: Snapshot) -> tuple[Any, ...]:
    """Inputs that change with every displayed evaluation."""
    evaluation = evaluation_of(s)
    return *chosen(s), None if evaluation is None else evaluation.step


VIEWS = (
    View("train-about", chosen, about),
    View("train-source", chosen, source),
    View("train-notice", chosen, notice),
    View("train-status", running, status),
    View("train-curve", running, curve),
    View("train-samples-says", evaluated, samples_says),
    View("train-samples", evaluated, samples),
    View("train-sample", evaluated, sample),
    View("train-heads", evaluated, heads),
    View("train-heatmap", evaluated, head),
)
