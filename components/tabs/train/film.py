"""The film of a training run: one displayed step, with a head and a token that stay selected across steps.

The How it learned tab plays a recorded run; the Train tab plays the visitor's own run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeGuard, TypeVar

import gradio as gr
import numpy as np

from components import kit
from components.cards.card import Card, add_cards
from components.events import Events
from components.figures.lines import Share, learning_curve
from components.i18n import t
from components.labels import percent, quoted, visible
from components.state.reads import Computed
from components.state.session import Session
from components.state.snapshot import Snapshot
from components.text_views import attention_map, most_attended
from components.widgets.chart import Drawing
from components.widgets.flow import flow
from components.widgets.heads import heads, heads_data, largest_side, max_pooled
from components.widgets.simple import growth, growth_data, table
from gpt import LoadedModel
from gpt.training.data import N_TEST_EXAMPLES
from gpt.training.live_run import LiveRun
from gpt.training.snapshots import Evaluation, RecordedRun, RunProgress, bundled_recording

T = TypeVar("T")
Run = LiveRun | RecordedRun
# Runs a forward pass over an example. Its `draw(position, layer, head, settings)` returns the data of the flow widget.
Machine = Callable[[LoadedModel, Sequence[int]], Any]
GOAL = 0.99


@dataclass(frozen=True, eq=False)
class FilmState:
    """step: None for the newest. layer, head, position: selected in the example; None until chosen."""

    step: int | None = None
    layer: int | None = None
    head: int | None = None
    position: int | None = None


@dataclass(frozen=True, eq=False)
class Shown:
    """A training run at the evaluation for the displayed step.

    layer, head: the chosen head, or the one with the highest `shares_of_next` in the newest evaluation. position: the
    chosen position in the example, or the first one that predicts a token in the answer.
    """

    run: Run
    progress: RunProgress
    evaluation: Evaluation
    layer: int
    head: int
    position: int


def shown_at(state: FilmState, run: Run, progress: RunProgress) -> Shown | None:
    """Return the run at the last evaluation up to the state's step, or None if there are no evaluations yet."""
    evaluations = progress.evaluations
    if not evaluations:
        return None
    until = [each for each in evaluations if state.step is None or each.step <= state.step] or evaluations
    n_layer, n_head = evaluations[-1].attn_weights.shape[:2]
    layer, head, position = state.layer, state.head, state.position
    if layer is None or head is None or layer >= n_layer or head >= n_head:
        layer, head = divmod(int(shares_of_next(evaluations[-1], run).argmax()), n_head)
    if position is None or position >= len(run.dataset.example):
        position = run.dataset.query
    return Shown(run, progress, until[-1], layer, head, position)


def shares_of_next(evaluation: Evaluation, run: Run) -> np.ndarray:
    """Average heads' attention to earlier occurrences of the next token over the answer: (n_layer, n_head), in 0..1."""
    tokens, first = np.array(run.dataset.example), run.dataset.query
    same = tokens[None, :] == tokens[1:, None]  # (T - 1, T): whether token j equals the one after token i
    weights = evaluation.attn_weights[:, :, first:-1].astype(np.float32)
    return (weights * same[first:]).sum(axis=-1).mean(axis=-1)


@dataclass(frozen=True, eq=False)
class Film:
    """A training run whose steps can be replayed.

    name: its tab, and the beginning of its parts' names. state: the class of its state. find: returns the run at the
    displayed step, or None before its first evaluation. needs: results that `find` reads.
    """

    name: Literal["train", "learned"]
    state: type[FilmState]
    find: Callable[[Snapshot], Shown | None]
    needs: tuple[Computed[Any], ...] = ()

    def shown(self, s: Any) -> Shown | None:
        """Return the run at the displayed step. What reads it is drawn again when another evaluation is displayed."""
        if isinstance(s, Snapshot):
            return s.cached(self.find)
        for each in self.needs:
            s[each]
        s.watch(self._evaluated)
        return self.shown(s.snapshot)

    def _evaluated(self, s: Snapshot) -> tuple[Any, ...]:
        shown, state = self.shown(s), s.state(self.state)
        return (state,) if shown is None else (state, shown.run, shown.evaluation.step, len(shown.progress.evaluations))

    def is_shown(self, s: Any) -> bool:
        return self.shown(s) is not None

    def of(self, draw: Callable[[Shown], T]) -> Callable[[Any], T]:
        """Return a function of a snapshot that draws the displayed step; it is on the page only if there is one."""
        return lambda s: draw(self.shown(s))  # type: ignore[arg-type]


def choose_step(film: Film, session: Session, sent: dict[str, Any]) -> None:
    """Show the evaluation at index "moment", or the last until step "x", unchecked. The last one follows new ones."""
    moment, x, shown = sent.get("moment"), sent.get("x"), film.shown(session.snapshot())
    if shown is None:
        return
    steps = [each.step for each in shown.progress.evaluations]
    if type(moment) is int and moment >= 0:
        x = steps[min(moment, len(steps) - 1)]
    if is_number(x) and 0 <= x <= shown.progress.steps:
        session.change(film.state, step=None if x >= steps[-1] else int(x))


def is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def select(film: Film, session: Session, sent: dict[str, Any]) -> None:
    """Select a layer, a head or a position of the example, unchecked, and keep the others."""
    shown = film.shown(session.snapshot())
    if shown is None:
        return
    config, n = shown.run.config, len(shown.run.dataset.example)
    limits = {"layer": config.n_layer, "head": config.n_head, "position": n}
    chosen = {name: at for name, limit in limits.items() if type(at := sent.get(name)) is int and 0 <= at < limit}
    if chosen:
        session.change(film.state, **{"layer": shown.layer, "head": shown.head} | chosen)


def is_task(shown: Shown) -> bool:
    """Return whether the model has learned a task, whose answers are right or wrong."""
    return shown.evaluation.accuracy is not None


def samples_sentence(shown: Shown) -> str:
    samples = shown.evaluation.samples
    right = sum(bool(sample.correct) for sample in samples)
    return t("train.samples.says", step=f"{shown.evaluation.step:,}", right=right, n=len(samples))


def samples_rows(shown: Shown) -> dict[str, Any]:
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


def overview(shown: Shown) -> dict[str, Any]:
    evaluation, layer, head = shown.evaluation, shown.layer, shown.head
    n_layer, n_head, T, _ = evaluation.attn_weights.shape
    weights = evaluation.attn_weights.astype(np.float32)
    pictures = max_pooled(weights, min(T, largest_side(n_layer, n_head)))
    diagonals = [np.trace(weights, offset=-k, axis1=2, axis2=3) / (T - k) for k in (1, 0)]
    shares = np.stack([weights[:, :, 1:, 0].mean(axis=-1), *diagonals], axis=-1)
    share = shares_of_next(evaluation, shown.run)[layer, head]
    text = t("train.attention.heads", step=f"{evaluation.step:,}", layer=layer, head=head, share=percent(share))
    levels = np.round(255 * pictures).astype(np.uint8)
    rows = [levels[..., row, : row + 1] for row in range(levels.shape[-1])]
    content = {"layer": layer, "head": head, "text": text, "tokens": len(rows)}
    return heads_data(rows, shares, content)


def heatmap(shown: Shown) -> Drawing:
    evaluation, layer, head, row = shown.evaluation, shown.layer, shown.head, shown.position
    ids, vocabulary = shown.run.dataset.example, shown.run.dataset.vocabulary
    weights = evaluation.attn_weights[layer, head].astype(np.float32)
    figure = attention_map(vocabulary, ids, weights, selected=row, full=1.0)
    text = t(
        "train.attention.says",
        step=f"{evaluation.step:,}",
        layer=layer,
        head=head,
        next=quoted(vocabulary, ids[row + 1]) if row + 1 < len(ids) else "…",
        targets=most_attended(vocabulary, ids, weights[row, : row + 1]),
    )
    return figure, text


def curve_chart(shown: Shown) -> Drawing:
    run, progress, copy_losses = shown.run, shown.progress, None
    if isinstance(run, RecordedRun):
        copy_losses = np.array([run.figures[each.step].copy_loss for each in progress.evaluations])
    figure = learning_curve(
        np.array(progress.losses),
        np.array(progress.rates),
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
    run, evaluations, layer, head = shown.run, shown.progress.evaluations, shown.layer, shown.head
    if isinstance(run, RecordedRun):
        rows = [run.figures[each.step] for each in evaluations]
        other, before = earlier_head(run, layer)
        copying = np.array([row.induction[layer][head] for row in rows])
        previous = np.array([row.previous_token[other][before] for row in rows])
        return [
            (t("train.curve.induction", layer=layer, head=head), copying, "attention"),
            (t("train.curve.previous", layer=other, head=before), previous, "muted"),
        ]
    if evaluations[-1].accuracy is None:
        return []
    pinned = np.array([shares_of_next(each, run)[layer, head] for each in evaluations])
    return [
        (t("train.curve.accuracy"), np.array([each.accuracy for each in evaluations]), "text"),
        (t("train.curve.pinned", layer=layer, head=head), pinned, "attention"),
    ]


def earlier_head(run: RecordedRun, layer: int) -> tuple[int, int]:
    """Return the head with the highest final previous-token score before `layer`, or in layer 0 if `layer` is 0."""
    scores = np.array(run.figures[run.progress.steps].previous_token)[: max(1, layer)]
    return divmod(int(scores.argmax()), scores.shape[1])


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


def curve_card(film: Film, advances: Callable[[Any], Any] = lambda s: None) -> Callable[[], Card]:
    """Return the card with the learning curve. advances: reads what changes with every step of a run."""

    def curve(s: Any) -> Drawing:
        advances(s)
        shown = film.shown(s)
        return None if shown is None else curve_chart(shown)

    name = film.name
    chart = kit.picture(f"{name}-curve", curve, clickable=True, on=partial(choose_step, film))
    parts = kit.section(kit.question("train.curve.question"), chart, name=f"{name}-loss", show=film.is_shown)
    return kit.card(f"{name}-loss", parts, classes="")


def player_card(film: Film) -> Callable[[], Card]:
    def draw(shown: Shown) -> dict[str, Any]:
        evaluations = shown.progress.evaluations
        texts = ["" if is_task(shown) else "".join(x.prompt + x.text for x in each.samples) for each in evaluations]
        moments = ((each.step, text, each.val_loss) for each, text in zip(evaluations, texts, strict=True))
        title = t("hero.learned" if film.name == "learned" else "train.film.name")
        return growth_data(title, moments, steps=shown.progress.steps, moment=evaluations.index(shown.evaluation))

    player = growth(f"{film.name}-player", draw=film.of(draw), on_input=partial(choose_step, film))
    shown = kit.case(f"{film.name}-moments", film.is_shown, {True: player})
    return kit.card(f"{film.name}-scrubber", shown, classes="")


def film_card(film: Film, machine: Machine) -> Callable[[], Card]:

    @Computed
    def passed(s: Any) -> Any:
        shown = film.shown(s)
        return None if shown is None else machine(shown.run.loaded_at(shown.evaluation), shown.run.dataset.example)

    def whole_model(s: Any) -> dict[str, Any]:
        shown, settings, made = film.shown(s), s.settings.sampling(), s[passed]
        assert shown is not None
        return made.draw(shown.position, shown.layer, shown.head, settings)

    name, of = film.name, film.of
    grid = heads(f"{name}-heads", hint="steps", draw=of(overview), on=partial(select, film))
    pictures = kit.column(
        kit.row(
            kit.section(
                kit.question("train.samples.question"),
                kit.says(f"{name}-samples-says", of(samples_sentence), kind="caption"),
                table(f"{name}-samples", draw=of(samples_rows)),
                grow=1,
                name=f"{name}-answers",
                show=of(is_task),
            ),
            kit.section(
                kit.question("train.attention.question"),
                kit.columns(kit.column(grid), kit.column(kit.picture(f"{name}-heatmap", of(heatmap)))),
                grow=2,
            ),
            classes="gb-train-pictures",
        ),
        kit.section(
            kit.question("train.machine.question"),
            kit.lead("train.machine.lead"),
            flow(f"{name}-flow", draw=whole_model, on=partial(select, film)),
        ),
        classes="gb-train-film",
    )
    return kit.card(f"{name}-results", kit.case(f"{name}-pictures", film.is_shown, {True: pictures}), classes="")


learned = kit.Tab("learned")


@learned.state
class Learned(FilmState):
    """What is selected in the recorded run. It begins with noise."""

    step: int | None = 0


@learned.computed
def recorded(s: Any) -> RecordedRun:
    run = bundled_recording()
    _ = run.progress  # computed here, off the page's thread
    return run


def _find(s: Snapshot) -> Shown | None:
    run = recorded.latest(s)
    return None if run is None else shown_at(s.state(Learned), run, run.progress)


RECORDED = Film("learned", Learned, _find, needs=(recorded,))


def about(s: Any) -> str:
    run = s[recorded]
    config = run.config
    return t(
        "train.film.recorded",
        steps=f"{run.progress.steps:,}",
        parameters=f"{run.n_parameters:,}",
        n_layer=config.n_layer,
        n_head=config.n_head,
    )


def show_copying(session: Session) -> None:
    """Show the run at the step where the displayed head begins to copy."""
    shown = RECORDED.shown(session.snapshot())
    if shown is not None and isinstance(shown.run, RecordedRun):
        appeared = shown.run.appearance(shown.layer, shown.head)
        if appeared is not None:
            session.change(Learned, step=appeared[1])


def build_learned(events: Events, machine: Machine) -> None:
    copying = kit.button(
        "learned-copying", "learned.copying", show_copying, show=RECORDED.is_shown, answer="learned-player"
    )
    whose = kit.section(kit.question("learned.question"), kit.says("learned-film", about), copying)
    hero = player_card(RECORDED)()
    with gr.Column(elem_classes="gb-cards gb-train"):
        shown, loss = kit.card("learned-shown", whose, classes="")(), curve_card(RECORDED)()
    add_cards(events, {learned.name: [hero, shown, loss, film_card(RECORDED, machine)()]})
