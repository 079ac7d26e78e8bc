"""What is changed in the model, and the effect on a text: switches, bars before and after, and divergence."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, get_args

import numpy as np

from components import kit
from components.errors import PageError
from components.figures.bars import divergence_bars
from components.i18n import t
from components.labels import ACTIVATIONS, percent, placed, quoted, token_text, visible_token
from components.next_tokens import no_bars, token_bars, with_chosen
from components.parts import Lines, Part
from components.render import compute
from components.state.jobs import Job, in_thread, started, stop
from components.state.session import Session
from components.state.snapshot import Message
from components.state.text import NEWEST
from components.tabs.change import effect as effects
from components.text_views import heatmap_window
from components.widgets.chart import Drawing
from components.widgets.simple import predictions, switches
from gpt import Edits, SamplingParams
from gpt.background import Cancelled
from gpt.config import Activation
from gpt.documents.comparison import divergence_index
from gpt.documents.edit_text import format_edits, parse_edits

MAX_BARS = 8

tab = kit.Tab("change")


@dataclass(frozen=True, eq=False)
class WrittenPair:
    """The texts that the unedited and the edited model generate from the same prompt with the same seed.

    version: version of Write's text when the pair was begun. keys, ids, lines: of both texts. read: the unedited
    model's text with its states, once both texts are complete.
    """

    version: tuple[int, int]
    params: SamplingParams
    length: int
    edits: Edits
    keys: tuple[str, ...] = ()
    ids: tuple[tuple[int, ...], ...] = ((), ())
    lines: tuple[Lines, ...] = ()
    read: effects.ReadText | None = None

    @property
    def divergence_index(self) -> int | None:
        return divergence_index(*self.ids)


@tab.state
class Editing:
    """n_switched: number of switch clicks handled so far. costs: each head's effect; job: the measurement of `costs`.

    place: the selected position in a text that differs from Write's, preceded by the text's source.
    """

    n_switched: int = 0
    costs: effects.HeadCosts | None = None
    job: Job | None = None
    place: tuple[Hashable, int] = (None, NEWEST)


@tab.state
class Writing:
    growing: WrittenPair | None = None
    written: WrittenPair | None = None
    job: Job | None = None


def written_pair(s: Any) -> WrittenPair | None:
    """Return both texts if they are complete and Write's text is still the same."""
    pair: WrittenPair | None = s[Writing].written
    return pair if pair is not None and s.text is not None and pair.version == s.text.version else None


def source_of(s: Any) -> Hashable:
    """Return a key for the text on which the edits are measured, or None if there is no text.

    In order of preference: the unedited model's generated text, the prompt in `Session.edits_on`, the text in Write.
    """
    pair = written_pair(s)
    if s.text is None or s.text.n_read == 0:
        return None
    if pair is not None and pair.read is not None:
        return pair.read.source
    return ("prompt", s.edits_on, s.text.document.key) if s.edits_on else (s.text.version, s.text.n_read)


@tab.computed
def text(s: Any) -> effects.ReadText:
    document, source, pair = s.text_read().document, source_of(s), written_pair(s)
    if pair is not None and pair.read is not None:
        return pair.read
    if not s.edits_on:
        return effects.read_document(document, source)
    loaded, ids, turned = s.text.loaded, s.edits_on, effects.turned_in(document)
    states = effects.read(loaded, ids, turned)
    return effects.ReadText(source, loaded, ids, len(ids), states, own=True, turned=turned)


@tab.computed(while_writing=True)
def split(s: Any) -> tuple[Edits, Edits]:
    return effects.fitting_edits(s.edits, s.text.loaded)


def kept_and_dropped(s: Any) -> tuple[Edits, Edits]:
    """Return `split`, which has to be computed only for patches."""
    return s[split] if s.edits.patches else effects.fitting_edits(s.edits, s.text.loaded)


@tab.computed
def effect(s: Any) -> effects.Effect:
    return effects.measure(s[text], kept_and_dropped(s)[0])


def selected_position(s: Any, read: effects.ReadText) -> int:
    """Return the selected position in the measured text, clamped to the last position that the model has read."""
    if not read.own:
        return min(s.text.at(s.selection), read.n_read - 1)
    source, position = s[Editing].place
    return read.n_read - 1 if source != read.source or position == NEWEST else min(position, read.n_read - 1)


def current(s: Any) -> str:
    if s.text is None:
        return t("error.no_text")
    changes = effects.summary(kept_and_dropped(s)[0], s.text.config)
    return t("change.now", changes=changes) if changes else t("change.nothing")


def dropped(s: Any) -> str:
    if s.text is None:
        return ""
    _, rest = kept_and_dropped(s)
    return "" if rest == Edits() else t("change.dropped", changes=effects.summary(rest, None))


def status(s: Any) -> str | Message | None:
    if s[Editing].job is not None:
        return s[Editing].job.progress
    if s[Writing].job is not None and s.progress is not None:
        return s.progress
    if s.generating:
        return t("change.waits")
    for name, make in effects.EXPERIMENTS.items():
        if s.text is not None and make(s.text.config) == s.edits:
            return t(f"change.try.{name}.says")
    return None


def kept_edits(session: Session) -> Edits:
    """Return the edits that the model supports. The next change drops the others."""
    return Edits() if session.document is None else effects.fitting_edits(session.edits, session.document.loaded)[0]


def set_switches(session: Session, sent: dict[str, Any]) -> None:
    session.select(layer=sent.get("layer"), head=sent.get("head"))
    document, count = session.document, sent.get("n")
    if document is None:
        return
    session.change(Editing, n_switched=count if type(count) is int else 0)
    factors = parse_edits(str(sent.get("edits")))
    factors.check(document.loaded.model.config)
    scales = {name: getattr(factors, name) for name in ("head_scale", "attn_scale", "mlp_scale")}
    session.edits = replace(kept_edits(session), **scales)


def choose_activation(session: Session, name: object) -> None:
    """Replace the activation function in all layers; choosing the model's own removes the edit."""
    if session.document is not None and name in get_args(Activation):
        own = name == session.document.loaded.model.config.activation
        session.edits = replace(kept_edits(session), activation=None if own else name)  # type: ignore[arg-type]


def drop_positions(session: Session, dropped: object) -> None:
    session.edits = replace(kept_edits(session), drop_positions=dropped is True)


def try_experiment(name: str, session: Session) -> None:
    if session.document is not None:
        session.edits = effects.EXPERIMENTS[name](session.document.loaded.model.config)


def switch_off_costliest(session: Session) -> Iterator[None]:
    yield from compute(session, text)
    read: effects.ReadText | None = session.snapshot()[text]
    if read is None:
        raise PageError("error.no_text")
    costs = session.state(Editing).costs
    if costs is None or costs.source != read.source:
        try:
            with started(session, Editing) as job:
                yield
                measured = partial(effects.head_costs, read)
                costs = yield from in_thread(session, Editing, job, "change.costs.doing", measured)
        except Cancelled:
            return
        if source_of(session.snapshot()) != read.source:
            return
    layer, head = divmod(int(costs.bits.argmax()), read.config.n_head)
    session.edits = Edits(head_scale={(layer, head): 0.0})
    session.change(Editing, costs=costs)


def reset(session: Session) -> None:
    session.edits, session.edits_on = Edits(), ()
    session.change(Writing, written=None)


def draw_switches(s: Any) -> dict[str, Any]:
    config, costs = s.text_read().config, s[Editing].costs
    edits = s.edits.fitting(config)
    is_measured = costs is not None and costs.source == source_of(s)
    return {
        "n_layer": config.n_layer,
        "n_head": config.n_head,
        "edits": format_edits(Edits(edits.head_scale, edits.attn_scale, edits.mlp_scale)),
        "answered": s[Editing].n_switched,
        "costs": [float(f"{cost:.3g}") for cost in costs.bits.ravel()] if is_measured else None,
        "measured": costs.n_tokens if is_measured else 0,
        "selected": None if s.selection.head is None else (s.selection.layer, s.selection.head),
    }


def edits_section() -> Part:
    experiments = [
        kit.button(f"change-try-{name.replace('_', '-')}", f"change.try.{name}", partial(try_experiment, name))
        for name in effects.EXPERIMENTS
    ]

    def measures(s: Any) -> bool:
        return s[Editing].job is not None

    costliest = partial(kit.button, "change-try-costliest", "change.try.costliest", switch_off_costliest)
    others = kit.column(
        kit.choice(
            "change-activation",
            "change.activation",
            choices=[(title, name) for name, title in ACTIVATIONS.items()],
            labelled=True,
            value=lambda s: s.edits.activation or ("gelu_tanh" if s.text is None else s.text.config.activation),
            on=choose_activation,
        ),
        kit.check_box(
            "change-positions",
            "change.positions",
            info="change.positions.info",
            value=lambda s: s.edits.drop_positions,
            on=drop_positions,
        ),
        kit.caption("change.try"),
        kit.row(
            costliest(queue="model", enabled=lambda s: not measures(s)),
            *experiments,
            kit.button("change-costs-stop", "stop", partial(stop, Editing), show=measures),
            classes="gb-small",
        ),
        kit.says("change-status", status, kind="status"),
        grow=2,
    )
    grid = kit.column(switches("change-switches", on=set_switches, draw=draw_switches), grow=3, min_width=320)
    return kit.section(
        kit.title_row(kit.question("change.question"), kit.button("change-reset", "change.reset", reset)),
        kit.says("change-lead", current),
        kit.says("change-notice", dropped, kind="notice"),
        kit.columns(grid, others),
    )


def select_position(session: Session, position: object) -> None:
    read: effects.ReadText | None = session.snapshot()[text]
    if read is None or session.state(Writing).job is not None:
        return
    if type(position) is int and 0 <= position < read.n_read:
        if read.own:
            session.change(Editing, place=(read.source, position))
        else:
            session.select(position=position)


def select_bar(session: Session, sent: dict[str, Any]) -> None:
    """Select the clicked bar's token. For a long text, the chart shows only a window of tokens."""
    x, s = sent.get("x"), session.snapshot()
    read: effects.ReadText | None = s[text]
    if read is not None and s.text is not None and type(x) is int:
        with session.lock.reading():
            start, _ = heatmap_window(read.n_read, selected_position(s, read))
        select_position(session, start + x)


def predictions_at(s: Any) -> tuple[effects.Effect, int, np.ndarray, np.ndarray]:
    """Return the effect, the selected position, and both models' next-token probabilities there, (vocab_size,) each."""
    found = s[effect]
    position = selected_position(s, found.text)
    ids = found.text.ids[: position + 1]
    before, after = (s.stages(logits, ids).final.numpy() for logits in found.logits(position))
    return found, position, before, after


def bars(s: Any) -> dict[str, Any]:
    title = t("change.bars.question")
    if kit.no_text(s):
        return no_bars(title)
    found, position, before, after = predictions_at(s)
    tokenizer, ids = found.text.loaded.tokenizer, found.text.ids
    chosen = ids[position + 1] if position + 1 < len(ids) else None
    most = np.argsort(-np.maximum(before, after), kind="stable")[:MAX_BARS].tolist()
    order = sorted(with_chosen(most, chosen), key=lambda i: -after[i])
    where = t("bars.position", token=quoted(tokenizer, ids[position]))
    return token_bars(
        title, tokenizer, order, before, after, "change.bar", text=where, chosen=chosen, label=visible_token
    )


def next_token_change(s: Any) -> str:
    found, position, before, after = predictions_at(s)
    tokenizer, changes = found.text.loaded.tokenizer, effects.summary(found.edits, found.text.config)
    token, best, now = quoted(tokenizer, found.text.ids[position]), int(before.argmax()), int(after.argmax())
    if not changes:
        return t("change.bars.same", token=token, best=quoted(tokenizer, best), p=percent(before[best]))
    most = int(np.abs(after - before).argmax())
    was, becomes = percent(before[most]), percent(after[most])
    sentence = t(
        "change.bars.says" if was != becomes else "change.bars.still",
        changes=changes,
        token=token,
        most=quoted(tokenizer, most),
        before=was,
        after=becomes,
        bits=_bits(found.bits[position]),
    )
    if best != now:
        sentence += t("change.bars.best", old=quoted(tokenizer, best), new=quoted(tokenizer, now))
    return sentence


def divergence(s: Any) -> Drawing:
    """Plot the divergence at each position; for a long text, only in a window around the selected position."""
    found = s[effect]
    read, position = found.text, selected_position(s, found.text)
    tokenizer, n = read.loaded.tokenizer, read.n_read
    if not effects.summary(found.edits, read.config):
        return None, t("change.divergence.nothing")
    first, end = heatmap_window(n, position)
    figure = divergence_bars(
        {"": found.bits[first:end]},
        [token_text(tokenizer, i) for i in read.ids[first:end]],
        selected=position - first,
        first=first,
    )
    note = previous(s)
    if found.bits.max() <= 0:
        return figure, t("change.divergence.none"), note
    most = int(found.bits.argmax())
    sentence = t(
        "change.divergence.says",
        mean=_bits(found.bits.mean()),
        most=_bits(found.bits[most]),
        token=placed(quoted(tokenizer, read.ids[most]), most),
    )
    if not np.isnan(found.before):
        sentence += t("change.divergence.cost", before=f"{found.before:.2f}", after=f"{found.after:.2f}")
    if first > 0 or end < n:
        sentence += t("why.lens.window", start=first, end=end - 1, n=f"{n:,}")
    return figure, sentence, note or t("change.divergence.note")


def previous(s: Any) -> str:
    """Point out that the charts still show the previous text while new texts are generated."""
    return t("change.before") if s[Writing].job is not None else ""


def _bits(value: float) -> str:
    value = float(value)
    if 0 < value < 0.001:
        return "< 0.001"
    return f"{value:.1f}" if value >= 9.95 else f"{value:.2f}" if value >= 0.0995 else f"{value:.3f}"


def legend(s: Any) -> str:
    """Explain the pairs of bars, of which there are none without a change."""
    return "" if s[effect].edits == Edits() else t("change.bars.legend")


def effect_sections() -> tuple[Part, Part]:
    chart = kit.picture("change-divergence", divergence, clickable=True, on=select_bar)
    return kit.section(kit.question("change.divergence.question"), chart), kit.section(
        predictions("change-bars", selectable=False, draw=bars),
        kit.says("change-legend", legend, kind="caption"),
        kit.says("change-says", next_token_change),
        kit.says("change-bars-note", previous, kind="caption"),
        classes="gb-change-effect",
    )
