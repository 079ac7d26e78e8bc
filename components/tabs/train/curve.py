"""A run's learning curve, with the displayed step marked."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from components.cards.card import Card
from components.figures.lines import Share, learning_curve
from components.i18n import t
from components.kit import card, picture, question, section
from components.labels import percent
from components.state.session import Session
from components.tabs.train.film import Film, Shown, is_number, shares_of_next
from components.widgets.chart import Drawing
from gpt.analysis.heads import HeadScore
from gpt.training.snapshots import RecordedRun
from gpt.training.tasks import N_TEST_EXAMPLES

GOAL = 0.99


def curve_chart(shown: Shown) -> Drawing:
    run, progress, copy_losses = shown.run, shown.progress, None
    if isinstance(run, RecordedRun):
        copy_losses = np.array([run.figures[each.step].copy_loss for each in progress.evaluations])
    figure = learning_curve(
        np.array([point.loss for point in progress.losses]),
        np.array([point.rate for point in progress.losses]),
        np.array([each.step for each in progress.evaluations]),
        np.array([each.val_loss for each in progress.evaluations]),
        _shares(shown),
        copy_losses=copy_losses,
        steps=progress.steps,
        n_vocab=run.dataset.vocabulary.n_vocab,
        shown=shown.evaluation.step,
    )
    text, note = _recorded_sentence(shown, run) if isinstance(run, RecordedRun) else _sentence(shown)
    return figure, text, note


def _shares(shown: Shown) -> list[Share]:
    """Return the curves to plot below the losses; a run on a text has none."""
    run, progress, layer, head = shown.run, shown.progress, shown.layer, shown.head
    if isinstance(run, RecordedRun):
        rows = [run.figures[each.step] for each in progress.evaluations]
        before = earlier_head(run, layer)
        return [
            (
                t("train.curve.induction", layer=layer, head=head),
                np.array([row.induction[layer][head] for row in rows]),
                "attention",
            ),
            (
                t("train.curve.previous", layer=before.layer, head=before.head),
                np.array([row.previous_token[before.layer][before.head] for row in rows]),
                "muted",
            ),
        ]
    if progress.evaluations[-1].accuracy is None:
        return []
    return [
        (t("train.curve.accuracy"), np.array([each.accuracy for each in progress.evaluations]), "after"),
        (
            t("train.curve.pinned", layer=layer, head=head),
            np.array([shares_of_next(each, run)[layer, head] for each in progress.evaluations]),
            "attention",
        ),
    ]


def earlier_head(run: RecordedRun, layer: int) -> HeadScore:
    """Return the head with the highest final previous-token score before `layer`, or in layer 0 if `layer` is 0."""
    scores = np.array(run.figures[run.progress.steps].previous_token)[: max(1, layer)]
    found, head = (int(i) for i in np.unravel_index(int(scores.argmax()), scores.shape))
    return HeadScore(found, head, float(scores[found, head]))


def _sentence(shown: Shown) -> tuple[str, str]:
    run, evaluation = shown.run, shown.evaluation
    text = t(
        "train.curve.says",
        step=f"{evaluation.step:,}",
        loss=f"{evaluation.val_loss:.3f}",
        guessing=f"{math.log(run.dataset.vocabulary.n_vocab):.2f}",
    )
    if evaluation.accuracy is not None:
        text += t("train.curve.says.accuracy", accuracy=percent(evaluation.accuracy), n=N_TEST_EXAMPLES)
        reached = next((each.step for each in shown.progress.evaluations if (each.accuracy or 0) >= GOAL), None)
        if reached is not None:
            text += t("train.curve.says.goal", step=f"{reached:,}")
    return text, t("train.curve.note")


def _recorded_sentence(shown: Shown, run: RecordedRun) -> tuple[str, str]:
    """State the loss at the displayed step, how well the selected head copies, and when it began to copy."""
    layer, head = shown.layer, shown.head
    figures = run.figures[shown.evaluation.step]
    text = t(
        "train.curve.says.recorded",
        step=f"{shown.evaluation.step:,}",
        loss=f"{figures.loss:.2f}",
        copy=f"{figures.copy_loss:.2f}",
        layer=layer,
        head=head,
        share=percent(figures.induction[layer][head]),
    )
    appeared = run.appearance(layer, head)
    if appeared is None:
        return text, t("train.curve.never", layer=layer, head=head)
    before, after = (f"{step:,}" for step in appeared)
    return text, t("train.curve.appeared", layer=layer, head=head, before=before, after=after)


def choose_step(film: Film, session: Session, sent: dict[str, Any]) -> None:
    step, shown = sent.get("x"), film.shown(session.snapshot())
    if shown is None or not is_number(step) or not 0 <= step <= shown.progress.steps:
        return
    is_newest = step >= shown.progress.evaluations[-1].step
    film.change(session, step=None if is_newest else int(step))


def curve_card(film: Film, advances: Callable[[Any], Any] = lambda s: None) -> Callable[[], Card]:
    """Return the card with the learning curve. advances: reads what changes with every step of a run."""

    def curve(s: Any) -> Drawing:
        advances(s)
        shown = film.shown(s)
        return None if shown is None else curve_chart(shown)

    name = film.name
    chart = picture(f"{name}-curve", curve, clickable=True, on=partial(choose_step, film))
    parts = section(question("train.curve.question"), chart, name=f"{name}-loss", show=film.is_shown)
    return card(f"{name}-loss", parts, classes="")
