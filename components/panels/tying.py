"""The weight tying panel: parameter counts, effects of tying, and nearest rows in the embedding."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from components.i18n import t
from components.labels import decimal, percent, quoted, token_text, visible
from components.panels.panel import (
    Panel,
    Result,
    Settings,
    computed,
    one_of,
    panel_section,
    problem_sentence,
    text_of,
    value_of,
)
from components.panels.parameter_bars import parameter_bars
from components.parts import column, columns, question, row
from components.render import View
from components.state.snapshot import Snapshot
from components.widgets.chart import chart
from components.widgets.sentence import sentence
from components.widgets.table import table
from gpt import PRESETS, GPTConfig, LoadedModel
from gpt.analysis.embeddings import nearest_tokens
from gpt.experiments.shapes import UNTIED_124M, EmbeddingEffects, embedding_effects, tied_and_untied

PICKED, UNTIED = "picked", "untied"
NAMED = {"gpt2-medium": "GPT-2 medium", "gpt2-large": "GPT-2 large", "gpt2-xl": "GPT-2 XL"}
SHAPES = {UNTIED: UNTIED_124M, **{name: PRESETS[name] for name in NAMED}}
SMALL = GPTConfig(vocab_size=512, block_size=32, n_layer=2, n_head=4, n_embd=64)
TEXT = list(range(0, 264, 8))  # for the small model's single update: 32 inputs with their targets
N_NEIGHBOURS = 8


class TyingInputs(NamedTuple):
    """Whether to tie the small model's weights, and the token whose neighbours to find (None if there is no text)."""

    tied: bool
    loaded: LoadedModel | None
    token_id: int | None


class Tying(NamedTuple):
    """The panel's results.

    effects: effects on the small model. neighbours: ids and cosine similarities of the rows nearest to the token's row.
    """

    request: TyingInputs
    effects: EmbeddingEffects
    neighbours: list[tuple[int, float]]


@dataclass(frozen=True)
class TyingState:
    """The chosen configuration. shape: a key of SHAPES, or PICKED for the visitor's model."""

    shape: str = UNTIED
    tied: bool = True
    result: Result[Tying] | None = None


def request_of(s: Snapshot) -> TyingInputs:
    text, tied = text_of(s), s.state(TyingState).tied
    return (
        TyingInputs(tied, None, None)
        if text is None
        else TyingInputs(tied, text.loaded, text.ids[text.at(s.selection)])
    )


def compute(request: TyingInputs) -> Tying:
    effects = embedding_effects(replace(SMALL, tie_weights=request.tied), TEXT)
    if request.loaded is None or request.token_id is None:
        return Tying(request, effects, [])
    near = nearest_tokens(request.loaded.model, request.token_id, N_NEIGHBOURS)
    return Tying(request, effects, list(zip(near.token.tolist(), near.cosine.tolist(), strict=True)))


def result_of(s: Snapshot) -> Tying | None:
    return value_of(s, s.state(TyingState).result)


def config_of(s: Snapshot) -> GPTConfig:
    """Return the configuration whose parameters are counted."""
    state = s.state(TyingState)
    config = SHAPES.get(state.shape) or (UNTIED_124M if s.loaded is None else s.loaded.model.config)
    return replace(config, tie_weights=state.tied)


def answer(s: Snapshot) -> dict[str, Any]:
    """Return the parameter counts with and without tying, starting with the current state."""
    config = config_of(s)
    counts = tied_and_untied(config)
    sides = [(t(f"tying.state.{state}"), f"{getattr(counts, state):,}") for state in ("tied", "untied")]
    (state, now), (other_state, other) = sides if config.tie_weights else sides[::-1]
    caption = t(
        "tying.says",
        now=now,
        state=state,
        other=other,
        other_state=other_state,
        saved=f"{counts.saved:,}",
        vocabulary=f"{config.vocab_size:,}",
        width=f"{config.n_embd:,}",
        share=percent(counts.saved / counts.untied),
    )
    return {"text": caption}


def taught(s: Snapshot) -> dict[str, Any]:
    """Return the effects of tying on the small model."""
    tying = result_of(s)
    if tying is None:
        return {"text": t("panel.busy")}
    caption = t(
        "tying.taught",
        state=t(f"tying.state.{'tied' if tying.request.tied else 'untied'}"),
        own=percent(tying.effects.own_token_best),
        rows=percent(tying.effects.rows_with_gradient),
        tokens=len(TEXT) - 1,
    )
    return {"text": caption}


def near(s: Snapshot) -> dict[str, Any]:
    tying = result_of(s)
    if tying is None or tying.request.loaded is None or tying.request.token_id is None:
        return {"text": ""}
    token = quoted(tying.request.loaded.tokenizer, tying.request.token_id)
    return {"text": t("tying.near", token=token)}


def neighbours(s: Snapshot) -> dict[str, Any]:
    """Return the nearest rows as a table."""
    tying = result_of(s)
    if tying is None or tying.request.loaded is None:
        return {"rows": []}
    tokenizer = tying.request.loaded.tokenizer
    head = [t(f"tying.near.{key}") for key in ("token", "similarity")]
    rows = [[visible(token_text(tokenizer, token_id)), decimal(cosine, 3)] for token_id, cosine in tying.neighbours]
    return {"rows": [head, *rows]}


VIEWS = (
    View("tying-answer", answer),
    View("tying-parts", lambda s: parameter_bars(config_of(s), False)),
    View("tying-notice", lambda s: problem_sentence(s, s.state(TyingState).result)),
    View("tying-taught", taught),
    View("tying-near", near),
    View("tying-neighbours", neighbours),
)
ANALYSIS = computed(TyingState, request_of, compute)
CHECKS = {"shape": one_of(PICKED, *SHAPES), "tied": one_of(True, False)}
SETTINGS = Settings(TyingState, CHECKS)


def build_tying() -> Panel:
    """Build the panel that compares the size of tied and untied embeddings, and what they learn."""
    part = panel_section(
        "tying",
        row(
            SETTINGS.select("tying.shape", lambda s: shape_choices()),
            SETTINGS.check_box("tying.tied"),
            classes="gb-panel-controls",
        ),
        chart("tying-parts"),
        columns(
            column(
                question("tying.taught.question"),
                sentence("tying-taught", kind="lead"),
            ),
            column(
                question("tying.near.question"),
                sentence("tying-near", kind="caption"),
                table("tying-neighbours"),
            ),
        ),
    )
    return Panel(part, VIEWS, ANALYSIS)


def shape_choices() -> list[tuple[str, str]]:
    """Return (label, key) for each configuration."""
    own = [(t(f"tying.shape.{name}"), name) for name in (UNTIED, PICKED)]
    return [*own, *((title, name) for name, title in NAMED.items())]
