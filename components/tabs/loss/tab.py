"""The Loss tab: the surprisal of any text, in total and token by token."""

from __future__ import annotations

from functools import partial

from components.cards.card import Card, add_cards
from components.events import Events
from components.i18n import t
from components.limits import MAX_CHARACTERS, MAX_SCORED_TOKENS
from components.panels.panel import of_state
from components.parts import Part, button, caption, case, question, row, run_buttons, select, text_box
from components.state.example import language_of_model
from components.state.jobs import stop
from components.state.snapshot import Snapshot
from components.tabs.loss import handlers
from components.tabs.loss.state import EXAMPLES, STRIDES, LossState
from components.tabs.loss.views import VIEWS
from components.widgets.sentence import sentence
from components.widgets.tokens import tokens
from gpt import LoadedModel

NAME = "loss"


def build_loss(events: Events, loaded: LoadedModel) -> None:
    """Build and wire the tab. `loaded` is the model that scores the example for all visitors."""
    text = Card(
        "loss",
        question("loss.question"),
        caption("loss.what", limit=f"{MAX_SCORED_TOKENS:,}"),
        text_box(
            "loss-text",
            label="loss.text",
            placeholder="loss.placeholder",
            max_length=MAX_CHARACTERS + 1,
            value=of_state(LossState, "text"),
            on=handlers.type_text,
        ),
        case("loss-examples", lambda s: language_of_model(s.model), {each: _examples(each) for each in EXAMPLES}),
        row(
            run_buttons(
                "loss",
                "loss.measure",
                handlers.measure_box,
                partial(stop, LossState),
                of_state(LossState, "busy"),
                queue="model",
                primary=True,
            ),
            select(
                "loss-stride",
                stride_choices,
                label="loss.stride",
                info="loss.stride.info",
                value=of_state(LossState, "parts"),
                on=handlers.choose_stride,
            ),
            classes="gb-loss-tools",
        ),
        sentence("loss-notice", kind="notice"),
        sentence("loss-status", kind="status"),
    )
    result = Card(
        "loss-result",
        sentence("loss-headline"),
        sentence("loss-says", kind="caption"),
        tokens("loss-strip", on=handlers.select),
        sentence("loss-token"),
    )
    add_cards(events, NAME, [text, result], VIEWS, handlers.analysis(loaded))


def stride_choices(s: Snapshot) -> list[tuple[str, int]]:
    """Return a (label, divisor of the context length) pair for each stride."""
    keys = ("loss.stride.whole", "loss.stride.half", "loss.stride.quarter", "loss.stride.eighth")
    return [(t(key), parts) for key, parts in zip(keys, STRIDES, strict=True)]


def _examples(language: str) -> Part:
    """Build the example buttons for models in one language."""
    suffix = "" if language == "en" else f"-{language}"
    buttons = (
        button(
            f"loss-example-{key}{suffix}",
            f"loss.example.{key}",
            partial(handlers.measure_text, text=text),
            queue="model",
        )
        for key, text in EXAMPLES[language].items()
    )
    return row(*buttons, classes="gb-small")
