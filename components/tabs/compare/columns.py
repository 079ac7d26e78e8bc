"""Two columns in the Compare tab: two texts written in step, and where and how far their predictions diverge."""

from __future__ import annotations

import math
from collections.abc import Generator, Hashable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from components.api.arguments import checked_text
from components.errors import PageError
from components.figures.bars import divergence_bars
from components.i18n import is_exact, t
from components.kit import Tab, button, caption, column, columns, picture, question, row, says, section, setting, slider
from components.labels import percent, placed, quoted, seed_of, token_text
from components.next_tokens import best, no_bars, token_bars, with_chosen
from components.parts import Action, Lines, Part, select, text_box, valueless
from components.state.admission import admitted
from components.state.adoption import load_with_progress
from components.state.jobs import Job, run_steps, stop
from components.state.session import Session
from components.state.settings import LIMITS, Settings, checked_number, clamped
from components.state.snapshot import Message
from components.tabs.compare.pair import Pair
from components.text_views import count_sentence, model_choices, short_name
from components.widgets.chart import Drawing
from components.widgets.simple import predictions
from components.widgets.tokens import tokens
from gpt import DEFAULT_MODEL, LoadedModel, SamplingParams, list_models
from gpt.analysis.predictions import kl_divergence
from gpt.documents.comparison import Divergence
from gpt.errors import Verbatim
from gpt.models.registry import models_in_memory
from gpt.models.sources import LLAMA_MODEL
from gpt.tokenizer import hold_back, prompt_ids

Side = Literal["left", "right"]
SIDES: tuple[Side, Side] = ("left", "right")
ANSWER = "compare-left-strip"
COLUMN_SETTINGS = ("temperature", "top_k", "top_p")
TOKENS_PER_SECOND = 30  # per column
UPDATE_SECONDS = 0.05  # minimum time between page updates
MAX_LENGTH = 200  # new tokens
MAX_BARS = 10
MAX_STRENGTH, STRENGTH_STEP = 2.0, 0.1  # of an adapter: 0 is its base model, 1 as it was trained

tab = Tab("compare")


@dataclass(frozen=True)
class ColumnSettings:
    """Settings for one column. An empty model name means the page's model. strength: used if it is an adapter."""

    model: str = ""
    temperature: float = LIMITS["temperature"].default
    top_k: int = 0
    top_p: float = 1.0
    seed: str = "1"
    strength: float = 1.0


PRESETS: dict[str, tuple[ColumnSettings, ColumnSettings]] = {
    "seeds": (ColumnSettings(), ColumnSettings(seed="2")),
    "temperatures": (ColumnSettings(temperature=0.3), ColumnSettings(temperature=1.5)),
    "trained": (ColumnSettings(model=DEFAULT_MODEL), ColumnSettings(model="untrained")),
    "shapes": (ColumnSettings(model=DEFAULT_MODEL), ColumnSettings(model=LLAMA_MODEL)),
    "adapter": (ColumnSettings(strength=0), ColumnSettings()),
}


@tab.state
class Compare:
    """What was chosen and written.

    Attributes:
        prompt: Prompt for both parts; None for Write's prompt.
        right_prompt: Prompt for the right column; None if it equals the left one.
        length: Number of new tokens.
        ran: Inputs to the last run.
        pair: The generated texts, which grow in place.
        pair_version: Incremented whenever the pair changes.
        measured: Number of positions compared so far and in total, during the measurement.
    """

    part: str = "sides"
    prompt: str | None = None
    right_prompt: str | None = None
    columns: tuple[ColumnSettings, ColumnSettings] = PRESETS["temperatures"]
    length: int = setting(40, low=1, high=MAX_LENGTH)
    ran: Hashable = None
    pair: Pair | None = None
    pair_version: int = 0
    measured: tuple[int, int] | None = None
    job: Job | None = None
    notice: Message | Exception | None = None

    @property
    def n_bytes(self) -> int:
        return 0 if self.pair is None else sum(document.n_bytes for document in self.pair.documents)


def prompts(s: Any) -> tuple[str, str]:
    """Return both columns' prompts. The beam search uses the left one."""
    state = s.state(Compare)
    left = s.next_prompt if state.prompt is None else state.prompt
    return left, left if state.right_prompt is None else state.right_prompt


def pair_of(s: Any) -> Pair | None:
    """Return the pair; what reads it is drawn again whenever it has grown."""
    _ = s[Compare].pair_version  # counts as read, because the pair grows in place
    return s[Compare].pair


def shown_pair(s: Any) -> Pair | None:
    """Return the pair once both models have read their prompts."""
    pair = pair_of(s)
    return pair if pair is not None and all(document.n_read for document in pair.documents) else None


def type_prompt(session: Session, prompt: object) -> None:
    """Set the prompt. It stays in sync with Write's prompt as long as the two are equal."""
    if isinstance(prompt, str):
        session.change(Compare, prompt=None if prompt == session.next_prompt else prompt)


def type_right_prompt(session: Session, prompt: object) -> None:
    """Set the right column's prompt. It stays in sync with the left prompt as long as the two are equal."""
    if isinstance(prompt, str):
        session.change(Compare, right_prompt=None if prompt == prompts(session)[0] else prompt)


def set_value(side: int, name: str, session: Session, value: object) -> None:
    columns = list(session.state(Compare).columns)
    if name == "model":
        if value not in (*list_models(), *session.own_models):
            return
    elif name == "seed":
        value = value.strip() if isinstance(value, str) else ""
    elif name == "strength":
        value = checked_number("strength", value, 0, MAX_STRENGTH)
    else:
        value = getattr(Settings().with_value(name, clamped(name, value)), name)
    changes: dict[str, Any] = {name: value}
    columns[side] = replace(columns[side], **changes)
    session.change(Compare, columns=(columns[0], columns[1]))


def set_strength(side: int, session: Session, value: object) -> Iterator[None]:
    """Set the strength of a column's adapter and write both texts again."""
    before = session.state(Compare).columns
    set_value(side, "strength", session, value)
    if session.state(Compare).columns != before:
        yield from generate(session)


def run_preset(name: str, session: Session) -> Iterator[None]:
    """Run a preset with a single prompt. Settings that the preset does not compare are reset to defaults."""
    columns = PRESETS[name]
    if name == "adapter":
        columns = (replace(columns[0], model=adapter_of(session)), replace(columns[1], model=adapter_of(session)))
    session.change(Compare, columns=columns, right_prompt=None)
    yield from generate(session)


def is_adapter(name: str) -> bool:
    """Return whether a model in memory is an adapter, merged into its base model."""
    return any(loaded.name == name and loaded.is_adapted for loaded in models_in_memory())


def adapter_of(s: Any) -> str:
    """Return the name of an open adapter, that of the page or of a column, or "" if there is none."""
    models = (s.model, *(column.model for column in s.state(Compare).columns))
    return next((model for model in models if is_adapter(model)), "")


def generate(session: Session) -> Iterator[None]:
    """Generate both columns in lockstep, and compare them up to the last token.

    If nothing has changed since the last run, new seeds are used to avoid repeating the same texts.
    """
    if _made_with(session) == session.state(Compare).ran:
        session.change(Compare, columns=other_seeds(session.state(Compare).columns))
    session.change(Compare, ran=_made_with(session))
    yield from run_steps(session, Compare, partial(_write, session))
    state = session.state(Compare)
    if state.pair is not None and state.job is None:
        state.pair.read()
        state.pair.comparison.measure()
        session.change(Compare, pair_version=state.pair_version + 1)


def _made_with(session: Session) -> Hashable:
    state = session.state(Compare)
    return session.model, prompts(session), state.columns, state.length


def other_seeds(columns: tuple[ColumnSettings, ColumnSettings]) -> tuple[ColumnSettings, ColumnSettings]:
    """Return the settings with the next seeds that neither column has used. Equal seeds stay equal."""
    left, right = (
        replace(column, seed=str(int(column.seed) + len({each.seed for each in columns})))
        if column.seed.isascii() and column.seed.isdecimal()
        else column
        for column in columns
    )
    return left, right


def _write(session: Session, job: Job) -> Generator[None]:
    pair = yield from _prepare(session)
    try:
        with admitted(session, *(document.loaded for document in pair.documents)) as waiting:
            yield from waiting
            pair.read()
            yield from _shown(session)
            for n in pair.measure():
                session.change(Compare, measured=(n, pair.comparison.n_measurable))
                yield
            session.change(Compare, measured=None)
            steps = pair.steps(session.state(Compare).length)
            for _, is_due in waiting.paced(steps, job.rest, lambda: TOKENS_PER_SECOND, lambda: UPDATE_SECONDS):
                if is_due:
                    yield from _shown(session)
    finally:
        pair.finish_reasons = [reason or "stopped" for reason in pair.finish_reasons]
        session.change(Compare, measured=None)


def _prepare(session: Session) -> Generator[None, None, Pair]:
    state, (left, right) = session.state(Compare), prompts(session)
    checked = (checked_text("prompt", left), checked_text("prompt", right))
    params = (_params(state.columns[0]), _params(state.columns[1]))
    loaded = []
    for each in state.columns:
        name = each.model or session.model
        loaded.append((yield from load_with_progress(session, name)))
        if loaded[-1].is_adapted and each.strength != 1:
            loaded[-1] = yield from load_with_progress(session, name, each.strength)
    _check_fits(session, checked, loaded)
    pair = Pair((loaded[0], loaded[1]), checked, params)
    notice = None if all(checked) else Message("prompt.started_empty")
    session.change(Compare, pair=pair, notice=notice, pair_version=0)
    return pair


def _params(column: ColumnSettings) -> SamplingParams:
    """Return one column's validated settings, including a seed."""
    return Settings(column.temperature, column.top_k, column.top_p, seed=column.seed).sampling_with_seed()


def _check_fits(session: Session, texts: tuple[str, str], models: list[LoadedModel]) -> None:
    """Raise PageError, naming the side, if a prompt is too long for its model."""
    for side, prompt, loaded in zip(SIDES, texts, models, strict=True):
        n, limit = (
            len(prompt_ids(loaded.tokenizer, hold_back(loaded.tokenizer, prompt)[0])),
            loaded.model.config.block_size,
        )
        if n > limit:
            problem = Verbatim(count_sentence(n, limit))
            raise PageError(f"compare.{side}.too_long", problem=problem)


def _shown(session: Session) -> Iterator[None]:
    session.change(Compare, pair_version=session.state(Compare).pair_version + 1)
    yield


def select_token(side: int, session: Session, sent: dict[str, Any]) -> None:
    """Select the token clicked in one strip, in both columns if their texts are comparable."""
    _select(session, sent.get("index"), side)


def select_bar(session: Session, sent: dict[str, Any]) -> None:
    _select(session, sent.get("x"), None)


def _select(session: Session, position: object, side: int | None) -> None:
    state = session.state(Compare)
    pair = state.pair
    if pair is not None and all(document.n_read for document in pair.documents) and pair.select(position, side):
        session.change(Compare, pair_version=state.pair_version + 1)


def status(side: int, s: Any) -> str:
    pair = pair_of(s)
    if pair is None:
        return ""
    document, reason = pair.documents[side], pair.finish_reasons[side]
    caption = t(
        "compare.status",
        model=short_name(document.loaded.name),
        n=len(document.ids) - document.n_prompt,
    ) + seed_of(pair.params[side].seed)
    limit = document.loaded.model.config.block_size
    return caption if reason is None else f"{caption} · {t('finish.' + reason, limit=limit)}"


def divergence_sentence(pair: Pair) -> str:
    names = [short_name(document.loaded.name) for document in pair.documents]
    if not pair.comparison.same_vocabulary:
        return t("compare.vocabularies", left=names[0], right=names[1])
    if not pair.comparison.comparable:
        return t("compare.prompts")
    at = pair.comparison.divergence_index
    if at is None:
        lengths = {len(document.ids) for document in pair.documents}
        return t("compare.same" if len(lengths) == 1 else "compare.ended")
    left = pair.documents[0]
    tokenizer = left.loaded.tokenizer
    values = {"here": placed(quoted(tokenizer, left.ids[at - 1]), at - 1)}
    for side, (name, document) in enumerate(zip(SIDES, pair.documents, strict=True)):
        token_id, final = document.ids[at], pair.stages(side, at - 1).final
        values |= {name: quoted(tokenizer, token_id), f"{name}_p": percent(float(final[token_id]))}
    caption = t("compare.parts", **values)
    draws = [document.draw(at) for document in pair.documents]
    if not is_exact() or None in draws or any(params.temperature == 0 for params in pair.params):
        return caption
    if draws[0] == draws[1]:
        return caption + t("compare.parts.draw.same", draw=f"{draws[0]:.3f}")
    return caption + t("compare.parts.draw", left=f"{draws[0]:.3f}", right=f"{draws[1]:.3f}")


def _prompts_sentence(pair: Pair) -> str:
    """Describe how far the predictions after the selected positions diverge, for texts with different prompts."""
    places = [(document, pair.at(side)) for side, document in enumerate(pair.documents)]
    p, q = (document.logits(position).cpu().double().log_softmax(dim=0) for document, position in places)
    left, right = (quoted(document.loaded.tokenizer, document.ids[position]) for document, position in places)
    return t("compare.divergence.prompts", left=left, right=right, bits=bits(kl_divergence(p, q).item()))


def divergence(s: Any) -> Drawing:
    """Plot the divergence at each position up to which the texts agree, or explain why this is impossible."""
    pair = shown_pair(s)
    if pair is None:
        return None
    found = pair.comparison.divergences
    if not pair.comparison.same_vocabulary:
        return None, t("compare.divergence.vocabularies")
    if not pair.comparison.comparable:
        return None, _prompts_sentence(pair)
    if not found:
        return None
    left = pair.documents[0]
    tokenizer = left.loaded.tokenizer
    position = pair.position
    figure = divergence_bars(
        {
            t("compare.divergence.raw"): np.array([each.raw for each in found]),
            t("compare.divergence.final"): np.array([each.final for each in found]),
        },
        [token_text(tokenizer, left.ids[each.position]) for each in found],
        selected=position if position is not None and position < len(found) else None,
        bits_title=t("compare.divergence.axis"),
    )
    return figure, _divergence_says(pair), t("compare.divergence.note")


def _divergence_says(pair: Pair) -> str:
    found = pair.comparison.divergences
    if not any(each.raw or each.final for each in found):
        return t("compare.divergence.none", n=len(found))
    most: Divergence = max(found, key=lambda each: (each.final, each.raw))
    caption = t(
        "compare.divergence.says",
        n=len(found),
        raw=bits(sum(each.raw for each in found) / len(found)),
        final=bits(sum(each.final for each in found) / len(found)),
        most=bits(most.final),
        token=placed(quoted(pair.documents[0].loaded.tokenizer, pair.documents[0].ids[most.position]), most.position),
    )
    return caption + (t("compare.divergence.infinite") if math.isinf(most.final) else "")


def bits(value: float) -> str:
    if value == 0 or math.isinf(value):
        return "0" if value == 0 else "∞"
    return f"{value:.2f}" if value >= 0.01 else "< 0.01"


def bars(side: int, s: Any) -> dict[str, Any]:
    pair, title = shown_pair(s), t(f"compare.bars.{SIDES[side]}")
    if pair is None:
        return no_bars()
    document, position, stages = pair.documents[side], pair.at(side), pair.stages(side, pair.at(side))
    raw, final, chosen = stages.raw.numpy(), stages.final.numpy(), pair.following(side)
    ids = with_chosen(best(final, raw, MAX_BARS).tolist(), chosen)
    where = t("bars.position", token=placed(quoted(document.tokenizer, document.ids[position]), position))
    return token_bars(title, document.tokenizer, ids, raw, final, text=where, chosen=chosen)


def bars_sentence(side: int, s: Any) -> str:
    pair = shown_pair(s)
    if pair is None:
        return ""
    document, position, stages = pair.documents[side], pair.at(side), pair.stages(side, pair.at(side))
    tokenizer, most, chosen = document.tokenizer, int(stages.final.argmax()), pair.following(side)
    text = t(
        "compare.bars.says",
        side=t(f"compare.bars.{SIDES[side]}"),
        token=placed(quoted(tokenizer, document.ids[position]), position),
        best=quoted(tokenizer, most),
        before=percent(stages.raw[most].item()),
        after=percent(stages.final[most].item()),
    )
    if chosen is not None:
        text += t("compare.bars.chosen", chosen=quoted(tokenizer, chosen), p=percent(stages.final[chosen].item()))
    apart = pair.comparison.divergence_index
    return text + (f" {t('compare.bars.apart')}" if apart is not None and position >= apart else "")


def strip(side: int, s: Any) -> dict[str, Any]:
    pair, job = pair_of(s), s[Compare].job
    if pair is None:
        return {"lines": Lines(), "doc": "", "selected": -1, "parted": -1}
    document, index = pair.documents[side], pair.comparison.divergence_index
    return {
        "lines": pair.lines(side),
        "doc": str(document.key),
        "selected": -1 if job is not None or not document.n_read else pair.at(side),
        "parted": -1 if index is None else index,
    }


def first_difference(s: Any) -> str | Message:
    measured, pair = s[Compare].measured, shown_pair(s)
    if s.progress is not None:
        return s.progress
    if measured is not None:
        n, total = measured
        return t("compare.measuring", n=n, total=total)
    return "" if pair is None else divergence_sentence(pair)


def examples() -> Part:
    presets = [
        button(
            f"compare-{name}",
            f"compare.preset.{name}",
            partial(run_preset, name),
            queue="model",
            answer=ANSWER,
            show=(lambda s: bool(adapter_of(s))) if name == "adapter" else None,
        )
        for name in PRESETS
    ]
    return row(caption("compare.preset"), *presets, classes="gb-compare-presets")


def side_by_side() -> Part:
    length = slider(Compare.length, "length", info="length.info")
    run = run_and_stop("compare-generate", "compare.generate", generate, "compare-stop", Compare, answer=ANSWER)
    return column(
        section(run, says("compare-notice", lambda s: s[Compare].notice, kind="notice")),
        row(*map(_text, range(len(SIDES))), classes="gb-compare-columns"),
        row(*map(_settings, range(len(SIDES))), classes="gb-compare-columns"),
        row(length),
        section(
            question("compare.parting.question"),
            says("compare-parting", first_difference),
            question("compare.divergence.question"),
            picture("compare-divergence", divergence, clickable=True, on=select_bar),
            question("compare.bars.question"),
            columns(*map(_bars, range(len(SIDES)))),
        ),
    )


def _bars(side: int) -> Part:
    name = f"compare-{SIDES[side]}-bars"
    listed = predictions(name, selectable=False, draw=partial(bars, side))
    return column(listed, says(f"{name}-says", partial(bars_sentence, side)), classes="gb-compare-side")


def _value(side: int, name: str) -> Any:
    return lambda s: getattr(s[Compare].columns[side], name)


def _model(side: int) -> Any:
    return lambda s: s[Compare].columns[side].model or s.model


def _text(side: int) -> Part:
    name = f"compare-{SIDES[side]}"
    model = select(
        f"{name}-model",
        choices=lambda s: model_choices(s.own_models),
        label=f"compare.{SIDES[side]}",
        value=_model(side),
        on=partial(set_value, side, "model"),
    )
    return section(
        model,
        tokens(
            f"{name}-strip", of=SIDES[side], empty="pair", draw=partial(strip, side), on=partial(select_token, side)
        ),
        says(f"{name}-status", partial(status, side), kind="status"),
        grow=1,
    )


def _settings(side: int) -> Part:
    """Return a column's settings, below both texts, so that on a phone both are near the button."""
    name = f"compare-{SIDES[side]}"
    sliders = [
        slider(
            f"{name}-{setting.replace('_', '-')}",
            low=LIMITS[setting].low,
            high=LIMITS[setting].high,
            step=LIMITS[setting].step,
            label=setting,
            value=_value(side, setting),
            on=partial(set_value, side, setting),
        )
        for setting in COLUMN_SETTINGS
    ]
    seed = text_box(
        f"{name}-seed",
        label="seed",
        placeholder="seed.placeholder",
        max_length=18,
        value=_value(side, "seed"),
        on=partial(set_value, side, "seed"),
        on_enter=Action(valueless(generate), "model"),
    )
    strength = slider(
        f"{name}-strength",
        low=0,
        high=MAX_STRENGTH,
        step=STRENGTH_STEP,
        label="compare.strength",
        info="compare.strength.info",
        value=_value(side, "strength"),
        on=partial(set_strength, side),
        queue="model",
        show=lambda s: is_adapter(_model(side)(s)),
    )
    return section(
        caption(f"compare.{SIDES[side]}"),
        strength,
        row(*sliders, seed, classes="gb-compare-settings"),
        classes="gb-compare-side",
        grow=1,
    )


def run_and_stop(name: str, label: str, start: Any, stop_name: str, state: type, *, answer: str) -> Part:
    """Return the Start and Stop buttons of a state's job. A stopped run still shows its last results before it ends."""
    return row(
        button(name, label, start, queue="model", enabled=lambda s: s[state].job is None, primary=True, answer=answer),
        button(stop_name, "stop", partial(stop, state), enabled=lambda s: s[state].job is not None),
        classes="gb-buttons gb-short",
    )
