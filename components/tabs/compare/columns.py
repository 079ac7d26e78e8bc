"""Two columns in the Compare tab: two texts written in step, and where and how far their predictions diverge."""

from __future__ import annotations

import math
from collections.abc import Generator, Hashable, Iterator
from functools import partial
from typing import Any, Literal

import numpy as np

from components import kit
from components.api.arguments import checked_text
from components.errors import NothingToShow, PageError
from components.figures.bars import divergence_bars
from components.i18n import is_exact, t
from components.labels import percent, placed, quoted, seed_of, token_text
from components.limits import MAX_CHARACTERS
from components.next_tokens import best, no_bars, token_bars, with_chosen
from components.parts import Action, Part, valueless
from components.state.admission import admitted
from components.state.adoption import load_with_progress
from components.state.jobs import Job, run_steps
from components.state.session import Session
from components.state.settings import LIMITS, Settings
from components.state.snapshot import Message
from components.tabs.compare.pair import CHUNK, Pair
from components.text_views import count_sentence, model_choices, short_name
from components.widgets.chart import Drawing
from components.widgets.simple import predictions
from components.widgets.tokens import tokens
from gpt import DEFAULT_MODEL
from gpt.analysis.predictions import kl_divergence
from gpt.errors import Verbatim
from gpt.models.registry import models_in_memory
from gpt.models.sources import LLAMA_MODEL
from gpt.tokenizer import hold_back, prompt_ids

Side = Literal["left", "right"]
SIDES: tuple[Side, Side] = ("left", "right")
ANSWER = "compare-left-strip"
TOKENS_PER_SECOND = 30  # per column
MAX_BARS = 10
PRESETS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {  # what each column's settings change from the defaults
    "seeds": ({}, {"seed": "2"}),
    "temperatures": ({"temperature": 0.3}, {"temperature": 1.5}),
    "trained": ({"model": DEFAULT_MODEL}, {"model": "untrained"}),
    "shapes": ({"model": DEFAULT_MODEL}, {"model": LLAMA_MODEL}),
    "adapter": ({"strength": 0.0}, {}),
}

tab = kit.Tab("compare")


@tab.state
class Compare:
    """prompt: prompt for both parts; None for Write's prompt. right_prompt: prompt for the right column; None if it
    equals the left one. ran: inputs to the last run. pair: the generated texts, which grow in place. pair_version:
    incremented whenever the pair changes.
    """

    part: str = kit.setting("sides", lambda s: {each: t(f"compare.{each}") for each in ("sides", "beams")})
    prompt: str | None = kit.setting(None, most=MAX_CHARACTERS)
    right_prompt: str | None = kit.setting(None, most=MAX_CHARACTERS)
    length: int = kit.setting(40, low=1, high=200)
    ran: Hashable = None
    pair: Pair | None = None
    pair_version: int = 0
    job: Job | None = None
    notice: Message | Exception | None = None

    @property
    def n_bytes(self) -> int:
        return 0 if self.pair is None else sum(document.n_bytes for document in self.pair.documents)


def settings_of(side: Side, usual_temperature: float) -> Any:
    """An empty model name means the page's model. strength: of an adapter; 0 is its base model, 1 as it was trained."""

    def limited(name: str, default: float) -> Any:
        limit = LIMITS[name]
        return kit.setting(default, low=limit.low, high=limit.high, step=limit.step)

    @kit.Panel(f"compare-{side}").state
    class Column:
        model: str = kit.setting("", lambda s: {name: label for label, name in model_choices(s.own_models)})
        temperature: float = limited("temperature", usual_temperature)
        top_k: int = limited("top_k", 0)
        top_p: float = limited("top_p", 1.0)
        seed: str = kit.setting("1", most=18)
        strength: float = kit.setting(1.0, low=0, high=2, step=0.1)

    return Column


COLUMNS = (settings_of("left", 0.3), settings_of("right", 1.5))


def prompts(s: Any) -> tuple[str, str]:
    """Return both columns' prompts. The beam search uses the left one."""
    state = s.state(Compare)
    left = s.next_prompt if state.prompt is None else state.prompt
    return left, left if state.right_prompt is None else state.right_prompt


def pair_of(s: Any) -> Pair | None:
    """Return the pair; what reads it is drawn again whenever it has grown."""
    _ = s[Compare].pair_version  # counts as read, because the pair grows in place
    return s[Compare].pair


def shown_pair(s: Any) -> Pair:
    """Return the pair once both models have read their prompts. Raises NothingToShow before."""
    pair = pair_of(s)
    if pair is None or not all(document.n_read for document in pair.documents):
        raise NothingToShow
    return pair


def type_prompt(name: str, session: Session, prompt: object) -> None:
    """Set a prompt. It stays in sync with Write's, and the right one with the left, as long as the two are equal."""
    if isinstance(prompt, str):
        usual = session.next_prompt if name == "prompt" else prompts(session)[0]
        session.change(Compare, **{name: None if prompt == usual else prompt})


def set_strength(column: Any, session: Session, value: object) -> Iterator[None]:
    before = session.state(column).strength
    column.strength.set(session, value)
    if session.state(column).strength != before:
        yield from generate(session)


def run_preset(name: str, session: Session) -> Iterator[None]:
    """Run a preset with a single prompt. Settings that the preset does not compare are reset to defaults."""
    model = adapter_of(session) if name == "adapter" else ""
    for column, changes in zip(COLUMNS, PRESETS[name], strict=True):
        usual = {"model": model, "temperature": LIMITS["temperature"].default, "top_k": 0, "top_p": 1.0}
        session.change(column, **{**usual, "seed": "1", "strength": 1.0, **changes})
    session.change(Compare, right_prompt=None)
    yield from generate(session)


def is_adapter(name: str) -> bool:
    """Return whether a model in memory is an adapter, merged into its base model."""
    return any(loaded.name == name and loaded.is_adapted for loaded in models_in_memory())


def adapter_of(s: Any) -> str:
    """Return the name of an open adapter, that of the page or of a column, or "" if there is none."""
    models = (s.model, *(s.state(column).model for column in COLUMNS))
    return next((model for model in models if is_adapter(model)), "")


def generate(session: Session) -> Iterator[None]:
    """Generate both columns in lockstep. If nothing has changed since the last run, new seeds avoid the same texts."""
    if _inputs(session) == session.state(Compare).ran:
        _take_other_seeds(session)
    session.change(Compare, ran=_inputs(session))
    yield from run_steps(session, Compare, partial(_write, session))
    state = session.state(Compare)
    if state.pair is not None and state.job is None:
        state.pair.read()
        state.pair.comparison.measure()
        grew(session)


def _inputs(session: Session) -> Hashable:
    chosen = [tuple(vars(session.state(column)).values()) for column in COLUMNS]
    return session.model, prompts(session), session.state(Compare).length, *chosen


def _take_other_seeds(session: Session) -> None:
    """Set the next seeds that neither column has used. Equal seeds stay equal."""
    seeds = [session.state(column).seed for column in COLUMNS]
    for column, seed in zip(COLUMNS, seeds, strict=True):
        if seed.isascii() and seed.isdecimal():
            session.change(column, seed=str(int(seed) + len({*seeds})))


def _write(session: Session, job: Job) -> Generator[None]:
    pair = yield from _prepare(session)
    try:
        with admitted(session, *(document.loaded for document in pair.documents)) as waiting:
            yield from waiting
            pair.read()
            while pair.comparison.measure(CHUNK):
                n, total = len(pair.comparison.divergences), pair.comparison.n_measurable
                session.progress = Message("compare.measuring", {"n": n, "total": total})
                grew(session)
                yield
            session.progress = None
            steps = pair.steps(session.state(Compare).length)
            yield from pair.write(waiting, job, steps, partial(grew, session), TOKENS_PER_SECOND)
    finally:
        pair.finish_reasons = [reason or "stopped" for reason in pair.finish_reasons]
        session.progress = None


def _prepare(session: Session) -> Generator[None, None, Pair]:
    """Load both models. Raises ValueError if one is missing, or can't read its prompt."""
    models, params, texts = [], [], prompts(session)
    columns = [session.state(column) for column in COLUMNS]
    for chosen, prompt in zip(columns, texts, strict=True):
        checked_text("prompt", prompt)
        numbers = Settings(chosen.temperature, chosen.top_k, chosen.top_p, seed=chosen.seed.strip())
        params.append(numbers.sampling_with_seed())
    for side, chosen, prompt in zip(SIDES, columns, texts, strict=True):
        name = chosen.model or session.model
        loaded = yield from load_with_progress(session, name)
        if loaded.is_adapted and chosen.strength != 1:
            loaded = yield from load_with_progress(session, name, chosen.strength)
        read, _ = hold_back(loaded.tokenizer, prompt)
        n, limit = len(prompt_ids(loaded.tokenizer, read)), loaded.model.config.block_size
        if n > limit:
            raise PageError(f"compare.{side}.too_long", problem=Verbatim(count_sentence(n, limit)))
        models.append(loaded)
    pair = Pair((models[0], models[1]), texts, (params[0], params[1]))
    notice = None if all(texts) else Message("prompt.started_empty")
    session.change(Compare, pair=pair, notice=notice, pair_version=0)
    return pair


def grew(session: Session) -> None:
    session.change(Compare, pair_version=session.state(Compare).pair_version + 1)


def select_position(side: int | None, name: str, session: Session, sent: dict[str, Any]) -> None:
    """Select the clicked position, in both columns if their texts are comparable. name: its name in the payload."""
    pair = session.state(Compare).pair
    if pair is not None and all(document.n_read for document in pair.documents) and pair.select(sent.get(name), side):
        grew(session)


def status(side: int, s: Any) -> str:
    pair = pair_of(s)
    if pair is None:
        return ""
    document, reason = pair.documents[side], pair.finish_reasons[side]
    n, limit = len(document.ids) - document.n_prompt, document.loaded.model.config.block_size
    sentence = t("compare.status", model=short_name(document.loaded.name), n=n) + seed_of(pair.params[side].seed)
    return sentence if reason is None else f"{sentence} · {t('finish.' + reason, limit=limit)}"


def first_difference(s: Any) -> str | Message:
    return s.progress or divergence_sentence(shown_pair(s))


def divergence_sentence(pair: Pair) -> str:
    left, right = pair.documents
    if not pair.comparison.same_vocabulary:
        return t("compare.vocabularies", left=short_name(left.loaded.name), right=short_name(right.loaded.name))
    if not pair.comparison.comparable:
        return t("compare.prompts")
    at = pair.comparison.divergence_index
    if at is None:
        return t("compare.same" if len(left.ids) == len(right.ids) else "compare.ended")
    tokenizer = left.loaded.tokenizer
    values = {"here": placed(quoted(tokenizer, left.ids[at - 1]), at - 1)}
    for side, (name, document) in enumerate(zip(SIDES, pair.documents, strict=True)):
        token_id, final = document.ids[at], pair.stages(side, at - 1).final
        values |= {name: quoted(tokenizer, token_id), f"{name}_p": percent(float(final[token_id]))}
    sentence = t("compare.parts", **values)
    draws = [document.draw(at) for document in pair.documents]
    if not is_exact() or None in draws or any(params.temperature == 0 for params in pair.params):
        return sentence
    if draws[0] == draws[1]:
        return sentence + t("compare.parts.draw.same", draw=f"{draws[0]:.3f}")
    return sentence + t("compare.parts.draw", left=f"{draws[0]:.3f}", right=f"{draws[1]:.3f}")


def divergence(s: Any) -> Drawing:
    """Plot the divergence at each position up to which the texts agree, or explain why this is impossible."""
    pair = shown_pair(s)
    found, left = pair.comparison.divergences, pair.documents[0]
    if not pair.comparison.same_vocabulary:
        return None, t("compare.divergence.vocabularies")
    if not pair.comparison.comparable:
        return None, prompts_sentence(pair)
    if not found:
        return None
    position, tokenizer = pair.position, left.loaded.tokenizer
    raw, final = np.array([each.raw for each in found]), np.array([each.final for each in found])
    figure = divergence_bars(
        {t("compare.divergence.raw"): raw, t("compare.divergence.final"): final},
        [token_text(tokenizer, token_id) for token_id in left.ids[: len(found)]],
        selected=position if position is not None and position < len(found) else None,
    )
    if not raw.any() and not final.any():
        return figure, t("compare.divergence.none", n=len(found)), t("compare.divergence.note")
    place, most = max(enumerate(found), key=lambda each: (each[1].final, each[1].raw))
    sentence = t(
        "compare.divergence.says",
        n=len(found),
        raw=bits(raw.mean()),
        final=bits(final.mean()),
        most=bits(most.final),
        token=placed(quoted(tokenizer, left.ids[place]), place),
    )
    if math.isinf(most.final):
        sentence += t("compare.divergence.infinite")
    return figure, sentence, t("compare.divergence.note")


def prompts_sentence(pair: Pair) -> str:
    """Describe how far the predictions after the selected positions diverge, for texts with different prompts."""
    places = [(document, pair.at(side)) for side, document in enumerate(pair.documents)]
    p, q = (document.logits(position).cpu().double().log_softmax(dim=0) for document, position in places)
    left, right = (quoted(document.tokenizer, document.ids[position]) for document, position in places)
    return t("compare.divergence.prompts", left=left, right=right, bits=bits(kl_divergence(p, q).item()))


def bits(value: float) -> str:
    if value == 0 or math.isinf(value):
        return "0" if value == 0 else "∞"
    return f"{value:.2f}" if value >= 0.01 else "< 0.01"


def bars(side: int, s: Any) -> dict[str, Any]:
    title = t(f"compare.{SIDES[side]}")
    pair = shown_pair(s)
    document, position, chosen = pair.documents[side], pair.at(side), pair.following(side)
    stages = pair.stages(side, position)
    raw, final = stages.raw.numpy(), stages.final.numpy()
    ids = with_chosen(best(final, raw, MAX_BARS).tolist(), chosen)
    where = t("bars.position", token=placed(quoted(document.tokenizer, document.ids[position]), position))
    return token_bars(title, document.tokenizer, ids, raw, final, text=where, chosen=chosen)


def bars_sentence(side: int, s: Any) -> str:
    pair = shown_pair(s)
    document, position, chosen = pair.documents[side], pair.at(side), pair.following(side)
    stages, tokenizer = pair.stages(side, position), document.tokenizer
    most = int(stages.final.argmax())
    sentence = t(
        "compare.bars.says",
        side=t(f"compare.{SIDES[side]}"),
        token=placed(quoted(tokenizer, document.ids[position]), position),
        best=quoted(tokenizer, most),
        before=percent(stages.raw[most].item()),
        after=percent(stages.final[most].item()),
    )
    if chosen is not None:
        sentence += t("compare.bars.chosen", chosen=quoted(tokenizer, chosen), p=percent(stages.final[chosen].item()))
    apart = pair.comparison.divergence_index
    return sentence + (f" {t('compare.bars.apart')}" if apart is not None and position >= apart else "")


def strip(side: int, s: Any) -> dict[str, Any]:
    pair = pair_of(s)
    if pair is None:
        raise NothingToShow
    document, index = pair.documents[side], pair.comparison.divergence_index
    return {
        "lines": pair.lines(side),
        "doc": str(document.key),
        "selected": -1 if s[Compare].job is not None or not document.n_read else pair.at(side),
        "parted": -1 if index is None else index,
    }


def examples() -> Part:
    presets = [
        kit.button(
            f"compare-{name}",
            f"compare.preset.{name}",
            partial(run_preset, name),
            queue="model",
            answer=ANSWER,
            show=(lambda s: bool(adapter_of(s))) if name == "adapter" else None,
        )
        for name in PRESETS
    ]
    return kit.row(kit.caption("compare.preset"), *presets, classes="gb-small")


def side_by_side() -> Part:
    buttons = kit.job_buttons("compare", "compare.generate", generate, Compare, answer=ANSWER, ends=True)
    sides = range(len(SIDES))
    return kit.column(
        kit.section(buttons, kit.says("compare-notice", lambda s: s[Compare].notice, kind="notice")),
        kit.row(*map(_text, sides), classes="gb-compare-columns"),
        kit.row(*map(_settings, sides), classes="gb-compare-columns"),
        kit.row(kit.slider(Compare.length, "length", info="length.info")),
        kit.section(
            kit.question("compare.parting.question"),
            kit.says("compare-parting", first_difference),
            kit.question("compare.divergence.question"),
            kit.picture("compare-divergence", divergence, clickable=True, on=partial(select_position, None, "x")),
            kit.question("compare.bars.question"),
            kit.columns(*map(_bars, sides)),
        ),
    )


def _bars(side: int) -> Part:
    name = f"compare-{SIDES[side]}-bars"
    listed = predictions(name, selectable=False, draw=partial(bars, side), empty=no_bars())
    return kit.column(listed, kit.says(f"{name}-says", partial(bars_sentence, side)), classes="gb-compare-side")


def _text(side: int) -> Part:
    name, chosen = SIDES[side], COLUMNS[side]
    click = partial(select_position, side, "index")
    return kit.section(
        kit.select(chosen.model, f"compare.{name}", value=partial(model_of, chosen)),
        tokens(f"compare-{name}-strip", of=name, empty="pair", draw=partial(strip, side), on=click),
        kit.says(f"compare-{name}-status", partial(status, side), kind="status"),
        grow=1,
    )


def model_of(column: Any, s: Any) -> str:
    return str(s[column].model or s.model)


def _settings(side: int) -> Part:
    """Return a column's settings, below both texts, so that on a phone both are near the button."""
    chosen = COLUMNS[side]
    strength = kit.slider(
        chosen.strength,
        "compare.strength",
        info="compare.strength.info",
        on=partial(set_strength, chosen),
        queue="model",
        show=lambda s: is_adapter(model_of(chosen, s)),
    )
    sampling = [kit.slider(getattr(chosen, name), name) for name in ("temperature", "top_k", "top_p")]
    run = Action(valueless(generate), "model")
    seed = kit.text_box(chosen.seed, "seed", placeholder="seed.placeholder", on_enter=run)
    return kit.section(
        kit.caption(f"compare.{SIDES[side]}"),
        strength,
        kit.row(*sampling, seed, classes="gb-settings"),
        classes="gb-compare-side",
        grow=1,
    )
