"""The Loss tab: the surprisal of any text, in total and token by token."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import starmap
from typing import Any

import numpy as np

from components import kit
from components.api.arguments import check_scored_length
from components.errors import NothingToShow, PageError
from components.i18n import t
from components.labels import listed, percent, quoted
from components.limits import MAX_CHARACTERS, MAX_SCORED_TOKENS
from components.parts import Part
from components.state.adoption import load_with_progress
from components.state.example import encodable_text, language_of_model
from components.state.jobs import Job, in_thread, run_steps
from components.state.session import Session
from components.state.snapshot import Message
from components.text_views import short_name, token_lines
from components.widgets.tokens import shade_value, tokens
from gpt import LoadedModel
from gpt.background import Progress
from gpt.tokenizer import prompt_ids
from gpt.training.evaluation import TextScore, score_text

EXAMPLES = {  # keyed by the model's language
    "en": {
        "turn": "Once upon a time, there was a little girl named Lily. She loved to play with her red ball in the "
        "park. One day, her ball rolled into the central bank and raised the interest rates.",
        "shuffled": "ball red her with play to loved She. Lily named girl little a was there, time a upon Once. park "
        "the in",
        "repeat": "The cat sat. The dog ran. The cat sat. The dog ran. The cat sat. The dog ran.",
    },
    "zh": {
        "turn": "白日依山尽，黄河入海流。\n欲穷千里目，央行又加息。",
        "shuffled": "海依山白尽日流，河入黄。\n目穷千层楼欲，上更一里。",
        "repeat": "春眠不觉晓，处处闻啼鸟。\n春眠不觉晓，处处闻啼鸟。",
    },
}
STRIDES = {1: "whole", 2: "half", 4: "quarter", 8: "eighth"}  # the context length divided by the key
HALF = 2

tab = kit.Tab("loss")


@dataclass(frozen=True, eq=False)
class ScoredText:
    """run: number of the run that scored the text; 0 for the example. divisor: see `stride_of`."""

    loaded: LoadedModel
    result: TextScore
    text: str
    run: int = 0
    divisor: int = HALF


@tab.state
class Loss:
    """text: text in the box; None for the example. picked: a position, and the text in which it was selected."""

    text: str | None = kit.setting(None, most=MAX_CHARACTERS + 1)
    stride: int = kit.setting(HALF, lambda s: {n: t(f"loss.stride.{name}") for n, name in STRIDES.items()})
    measured: ScoredText | None = None
    picked: tuple[ScoredText, int] | None = None
    run: int = 0
    job: Job | None = None
    notice: ValueError | None = None


def text_in_box(s: Any) -> str:
    """Return what was typed, or the part of the example that the model can read."""
    text = s[Loss].text
    if text is not None:
        return str(text)
    example = EXAMPLES[language_of_model(s.model)]["turn"]
    return example if s.loaded is None else encodable_text(s.loaded, example)


@tab.computed
def scored(s: Any) -> ScoredText | ValueError | None:
    """Score the example, or the measured text again if the model has changed since, and return the shown text."""
    measured, loaded = s[Loss].measured, s.loaded
    if loaded is None or (measured is not None and measured.loaded is loaded):
        return measured
    if measured is None:
        return score(loaded, encodable_text(loaded, EXAMPLES[language_of_model(loaded.name)]["turn"]), HALF, 0)
    try:
        return score(loaded, measured.text, measured.divisor, measured.run)
    except ValueError as problem:  # the notice says that this model cannot read the text
        return problem


def shown_text(s: Any) -> ScoredText:
    shown = s[scored]
    if not isinstance(shown, ScoredText):
        raise NothingToShow
    return shown


def notice(s: Any) -> ValueError | None:
    return s[Loss].notice or (s[scored] if isinstance(s[scored], ValueError) else None)


def score(
    loaded: LoadedModel, text: str, divisor: int, run: int, progress: Progress = lambda done, total: None
) -> ScoredText:
    """Score a text window by window. Raises ValueError if it is too short or too long."""
    ids = prompt_ids(loaded.tokenizer, text)
    check_scored_length(len(ids))
    stride = stride_of(divisor, loaded.model.config.block_size)
    result = score_text(loaded, ids, stride=stride, progress=progress)
    return ScoredText(loaded, result, text, run, divisor)


def stride_of(divisor: int, block_size: int) -> int:
    """Return the stride in tokens: a part of the context length, limited so that every token is scored."""
    return max(1, min(block_size // divisor, block_size - 1))


def measure(session: Session) -> Iterator[None]:
    """Score the text in the box. If this fails, show the error and keep the previous result."""
    s = session.snapshot()
    text, divisor, run = text_in_box(s), s[Loss].stride, s[Loss].run + 1
    session.change(Loss, run=run)

    def steps(job: Job) -> Generator[None]:
        if not text:
            raise PageError("loss.error.empty")
        if len(text) > MAX_CHARACTERS:
            raise PageError("loss.error.characters", n=f"{len(text):,}", limit=f"{MAX_CHARACTERS:,}")
        loaded = yield from load_with_progress(session, session.model)
        work = partial(score, loaded, text, divisor, run)
        measured = yield from in_thread(session, Loss, job, "loss.progress", work)
        session.change(Loss, measured=measured)

    yield from run_steps(session, Loss, steps)


def measure_text(session: Session, *, text: str) -> Iterator[None]:
    """Fill the box with the part of a text that the model can read, and score it."""
    if session.loaded is not None and session.loaded.name == session.model:
        text = encodable_text(session.loaded, text)
    session.change(Loss, text=text)
    yield from measure(session)


def status(s: Any) -> Message | None:
    job = s[Loss].job
    return s.progress or (None if job is None else job.progress or Message("loss.loading"))


def headline(s: Any) -> str:
    shown = shown_text(s)
    choices, vocab_size = shown.result.score.perplexity, shown.loaded.model.config.vocab_size
    return t(
        "loss.says" if choices <= vocab_size else "loss.misled",
        model=short_name(shown.loaded.name),
        choices=f"{choices:,.0f}",
        vocab_size=f"{vocab_size:,}",
    )


def explanation(s: Any) -> str:
    shown = shown_text(s)
    result, total, limit = shown.result, shown.result.score, shown.loaded.model.config.block_size
    losses = {"perplexity": f"{total.perplexity:,.2f}", "bits": f"{total.bits_per_byte:.3f}"}
    sentence = t("loss.headline", loss=f"{total.loss:.4f}", **losses)
    sentence += t("loss.counted", n=f"{len(result.ids):,}", bytes=f"{total.n_bytes:,}")
    sizes = {"limit": limit, "n": result.n_windows, "stride": result.stride, "least": max(1, limit - result.stride)}
    windows = "loss.fits" if result.n_windows == 1 else "loss.windows"
    sentence += t(windows, **{name: f"{size:,}" for name, size in sizes.items()})
    has_surrogates = re.search("[\ud800-\udfff]", shown.text) is not None  # read as U+FFFD
    return sentence + (t("loss.repaired") if has_surrogates else "")


def strip(s: Any) -> dict[str, Any]:
    shown = shown_text(s)
    statistics = [(None, None), *((loss.probability, loss.rank) for loss in shown.result.losses)]
    return {
        "lines": token_lines(shown.loaded.tokenizer, shown.result.ids, statistics, n_prompt=1),
        "doc": f"{shown.run} {shown.loaded.name}",
        "selected": selected(s, shown),
        "shade": shade_value(np.array([0.0, *(loss.surprisal for loss in shown.result.losses)])),
    }


def selected(s: Any, shown: ScoredText) -> int:
    """Return the selected position; before a selection, that of the most surprising token."""
    picked, losses = s[Loss].picked, shown.result.losses
    if picked is not None and picked[0] is shown:
        return int(picked[1])
    return 1 + max(range(len(losses)), key=lambda i: losses[i].surprisal)


def pick(session: Session, sent: dict[str, Any]) -> None:
    shown, index = scored.latest(session.snapshot()), sent.get("index")
    if isinstance(shown, ScoredText) and type(index) is int and 0 <= index < len(shown.result.ids):
        session.change(Loss, picked=(shown, index))


def token(s: Any) -> str:
    shown = shown_text(s)
    tokenizer, result, position = shown.loaded.tokenizer, shown.result, selected(s, shown)
    name = quoted(tokenizer, result.ids[position])
    if position == 0:
        return t("loss.token.first", token=name)
    loss = result.losses[position - 1]
    rank = {"rank": f"{loss.rank:,}", "total": f"{shown.loaded.model.config.vocab_size:,}"}
    surprisal = {"p": percent(loss.probability), "bits": f"{loss.surprisal:.2f}", "nats": f"{loss.nats:.2f}"}
    expected = listed(f"{quoted(tokenizer, i)} {percent(p)}" for i, p in loss.top)
    return t("loss.token", token=name, expected=expected, **rank, **surprisal)


def examples(language: str) -> Part:
    def example(key: str, text: str) -> Part:
        name = f"loss-example-{key}" if language == "en" else f"loss-example-{key}-{language}"
        measure = partial(measure_text, text=text)
        return kit.button(name, f"loss.example.{key}", measure, queue="model", answer="loss-strip")

    return kit.row(*starmap(example, EXAMPLES[language].items()), classes="gb-small")


tab.cards(
    kit.card(
        "loss",
        kit.question("loss.question"),
        kit.caption("loss.what", limit=f"{MAX_SCORED_TOKENS:,}"),
        kit.text_box(Loss.text, "loss.text", placeholder="loss.placeholder", value=text_in_box),
        kit.case("loss-examples", lambda s: language_of_model(s.model), {each: examples(each) for each in EXAMPLES}),
        kit.row(
            kit.job_buttons("loss", "loss.measure", measure, Loss, answer="loss-strip"),
            kit.select(Loss.stride, "loss.stride", info="loss.stride.info"),
            classes="gb-loss-tools",
        ),
        kit.says("loss-notice", notice, kind="notice"),
        kit.says("loss-status", status, kind="status"),
    ),
    kit.card(
        "loss-result",
        kit.says("loss-headline", headline),
        kit.says("loss-says", explanation, kind="caption"),
        tokens("loss-strip", empty="page", shade="surprisal", draw=strip, on=pick),
        kit.says("loss-token", token),
    ),
)
