"""The weight tying panel: parameter counts and effects of tying."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from components.i18n import t
from components.kit import Panel, check_box, picture, question, row, says, select, setting
from components.labels import percent
from components.panels.shape_settings import parameter_bars
from gpt import PRESETS, GPTConfig
from gpt.experiments.shapes import UNTIED_124M, count_parameters, embedding_effects

PICKED, UNTIED = "picked", "untied"
NAMED = {"gpt2-medium": "GPT-2 medium", "gpt2-large": "GPT-2 large", "gpt2-xl": "GPT-2 XL"}
SHAPES = {UNTIED: UNTIED_124M, **{name: PRESETS[name] for name in NAMED}}
SMALL = GPTConfig(vocab_size=512, block_size=32, n_layer=2, n_head=4, n_embd=64)
TEXT = list(range(0, 264, 8))  # for the small model's single update: 32 inputs with their targets

panel = Panel("tying")


@panel.state
class Chosen:
    """shape: a key of SHAPES, or PICKED for the visitor's model."""

    shape: str = setting(UNTIED, lambda s: {name: t(f"tying.shape.{name}") for name in (UNTIED, PICKED)} | NAMED)
    tied: bool = setting(True)


@panel.computed
def effects(s: Any) -> tuple[float, float]:
    return embedding_effects(replace(SMALL, tie_weights=s[Chosen].tied), TEXT)


def config_of(s: Any) -> GPTConfig:
    config = SHAPES.get(s[Chosen].shape) or (UNTIED_124M if s.loaded is None else s.loaded.model.config)
    return replace(config, tie_weights=s[Chosen].tied)


def answer(s: Any) -> str:
    config = config_of(s)
    tied, untied = (count_parameters(replace(config, tie_weights=tied)) for tied in (True, False))
    sides = [(t("tying.state.tied"), f"{tied:,}"), (t("tying.state.untied"), f"{untied:,}")]
    (state, now), (other_state, other) = sides if config.tie_weights else sides[::-1]
    both = {"now": now, "state": state, "other": other, "other_state": other_state}
    saved = {"saved": f"{untied - tied:,}", "share": percent((untied - tied) / untied)}
    return t("tying.says", vocabulary=f"{config.vocab_size:,}", width=f"{config.n_embd:,}", **both, **saved)


def taught(s: Any) -> str:
    own_token_best, rows_with_gradient = s[effects]
    return t(
        "tying.taught",
        state=t(f"tying.state.{'tied' if s[Chosen].tied else 'untied'}"),
        own=percent(own_token_best),
        rows=percent(rows_with_gradient),
        tokens=len(TEXT) - 1,
    )


SECTION = panel.section(
    answer,
    row(select(Chosen.shape, "tying.shape"), check_box(Chosen.tied, "tying.tied")),
    picture("tying-parts", lambda s: parameter_bars(config_of(s), False)),
    question("tying.taught.question"),
    says("tying-taught", taught),
)
