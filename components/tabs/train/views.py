"""What the Train tab shows of a run: values for its widgets, no components."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from components.figures.charts import attention_heatmap
from components.i18n import Language, t
from components.labels import percent, quoted, token_text, visible
from components.tabs.train.figures import CurveNames, learning_curve
from components.widgets.chart import chart_value
from components.widgets.heads import heads_value, max_pooled, thumbnail_side
from components.widgets.table import table_value
from gpt.training.live_run import Evaluation, LiveRun, RunSnapshot
from gpt.training.tasks import N_TEST_EXAMPLES

GOAL = 0.99


@dataclass
class Moment:
    """What of a run is looked at; changed in place. step: None is the newest; layer and head: None until one is
    chosen. drawn: what is on the screen."""

    step: int | None = None
    layer: int | None = None
    head: int | None = None
    drawn: tuple[object, ...] | None = None

    def __deepcopy__(self, memo: dict[int, object]) -> Moment:
        """Another visitor starts with nothing chosen."""
        return Moment()

    def look(self, progress: RunSnapshot) -> Evaluation | None:
        """The evaluation at the step, or the last before it; None as long as there is none."""
        if not progress.evaluations:
            return None
        if self.step is None:
            return progress.evaluations[-1]
        return next(
            (look for look in reversed(progress.evaluations) if look.step <= self.step), progress.evaluations[0]
        )

    def place(self, look: Evaluation, ids: list[int], first: int) -> tuple[int, int]:
        """(layer, head): the chosen one, or the most telling one."""
        n_layer, n_head = look.attn_weights.shape[:2]
        if self.layer is None or self.head is None or self.layer >= n_layer or self.head >= n_head:
            return telling(look, ids, first)[0]
        return self.layer, self.head


def telling(look: Evaluation, ids: list[int], first: int) -> tuple[tuple[int, int], float]:
    """(layer, head) that looks most at the tokens that come next, and how much of its weight lies on them, 0..1.

    ids: (T,), the example. first: the position from which on the model answers.
    """
    known = np.array(ids)
    same = known[None, :] == known[1:, None]  # (T - 1, T): whether token j is the one after token i
    weights = look.attn_weights[:, :, first:-1].astype(np.float32)
    found = (weights * same[first:]).sum(axis=-1).mean(axis=-1)  # (n_layer, n_head)
    layer, head = np.unravel_index(int(found.argmax()), found.shape)
    return (int(layer), int(head)), float(found.max())


def status(run: LiveRun, progress: RunSnapshot, language: Language) -> str:
    """One line: how far it is, or how it ended."""
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


def curve(run: LiveRun, progress: RunSnapshot, moment: Moment, language: Language) -> str:
    """The loss and the accuracy over the steps, with the moment that is looked at."""
    look, newest = moment.look(progress), progress.evaluations[-1] if progress.evaluations else None
    if look is None or newest is None:
        return ""
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
        shown=None if moment.step is None else look.step,
        names=CurveNames(
            **{key: t(f"train.curve.{key}", language) for key in keys},
            guessing=t("train.curve.guessing", language, n=n_vocab),
        ),
    )
    text = t(
        "train.curve.says", language, step=look.step, loss=f"{look.val_loss:.3f}", guessing=f"{math.log(n_vocab):.2f}"
    )
    if look.accuracy is not None:
        text += t("train.curve.says.accuracy", language, accuracy=percent(look.accuracy), n=N_TEST_EXAMPLES)
        reached = next((each.step for each in progress.evaluations if (each.accuracy or 0) >= GOAL), None)
        if reached is not None:
            text += t("train.curve.says.goal", language, step=reached)
    return chart_value(figure, text, t("train.curve.note", language))


def samples_says(look: Evaluation, language: Language) -> str:
    """The sentence over the samples."""
    if look.accuracy is None:
        return t("train.samples.says.text", language, step=look.step)
    right = sum(bool(sample.right) for sample in look.samples)
    return t("train.samples.says", language, step=look.step, right=right, n=len(look.samples))


def samples_table(look: Evaluation, language: Language) -> str:
    """What it writes beside what it should write; empty where nothing is right or wrong."""
    if look.accuracy is None:
        return ""
    head = [t(f"train.samples.{key}", language) for key in ("given", "written", "expected")]
    rows = [
        [
            visible(sample.prompt),
            visible(sample.text.removesuffix("\n")),
            visible((sample.expected or "").removesuffix("\n")),
            t("train.samples.right" if sample.right else "train.samples.wrong", language),
        ]
        for sample in look.samples
    ]
    return table_value([[*head, ""], *rows])


def sample_text(look: Evaluation) -> str:
    """What it writes when it learns a text; empty for a task."""
    return "" if look.accuracy is not None else "".join(each.prompt + each.text for each in look.samples)


def labels(run: LiveRun) -> list[str]:
    """The tokens of the example whose attention is looked at."""
    return [token_text(run.dataset.vocabulary, token_id) for token_id in run.dataset.example]


def heads_labels(language: Language) -> dict[str, str]:
    """The fixed words of the overview; sent with every value, for what is not on the page yet keeps nothing else."""
    shared = {key: t(f"heads.{key}", language) for key in ("name", "title", "share", "axis")}
    return shared | {"keys": t("train.attention.keys", language)}


def overview(run: LiveRun, look: Evaluation, moment: Moment, language: Language) -> str:
    """Every head on the example, at that step."""
    n_layer, n_head, T, _ = look.attn_weights.shape
    weights = look.attn_weights.astype(np.float32)
    pictures = max_pooled(weights, thumbnail_side(n_layer, n_head, T))
    diagonals = [np.trace(weights, offset=-k, axis1=2, axis2=3) / (T - k) for k in (1, 0)]
    shares = np.stack([weights[:, :, 1:, 0].mean(axis=-1), *diagonals], axis=-1)
    (layer, head), share = telling(look, run.dataset.example, run.dataset.query)
    text = t("train.attention.heads", language, step=look.step, layer=layer, head=head, share=percent(share))
    layer, head = moment.place(look, run.dataset.example, run.dataset.query)
    return heads_value(pictures, shares, {"layer": layer, "head": head, "text": text})


def heatmap(run: LiveRun, look: Evaluation, moment: Moment, language: Language) -> str:
    """One head on the example, at that step, with the row that writes the answer framed."""
    layer, head = moment.place(look, run.dataset.example, run.dataset.query)
    names, ids, vocabulary = labels(run), run.dataset.example, run.dataset.vocabulary
    weights = look.attn_weights[layer, head].astype(np.float32)
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
        step=look.step,
        layer=layer,
        head=head,
        next=quoted(vocabulary, ids[row + 1]),
        targets=", ".join(f"{quoted(vocabulary, ids[i])} ({percent(float(weights[row, i]))})" for i in most),
    )
    return chart_value(figure, text)
