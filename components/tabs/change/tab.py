"""The "Change it" tab in Why?, which measures the edits' effect while it is open and nothing is being generated."""

from __future__ import annotations

from functools import partial
from itertools import starmap

from components.cards.card import Card, add_cards
from components.events import Events
from components.i18n import t
from components.labels import ACTIVATIONS
from components.limits import MAX_CHARACTERS
from components.parts import (
    Part,
    button,
    caption,
    case,
    check_box,
    choice,
    code_text,
    column,
    columns,
    fold,
    pick_list,
    question,
    row,
    section,
    text_box,
    title_row,
)
from components.state.example import language_of_model
from components.state.jobs import stop
from components.state.snapshot import Snapshot
from components.tabs.change.experiments import EXPERIMENTS
from components.tabs.change.handlers import editing, generation, patching
from components.tabs.change.handlers.measurement import ANALYSIS
from components.tabs.change.state import PATCHED, PROMPT_PAIRS, ChangeState, is_stale
from components.tabs.change.views import VIEWS
from components.tabs.change.views.patching import choices, chosen, shown_sweep
from components.tabs.change.views.texts import code
from components.widgets.chart import chart
from components.widgets.predictions import predictions
from components.widgets.sentence import sentence
from components.widgets.switches import switches
from components.widgets.tokens import tokens

NAME = "change"


def build_change(events: Events) -> None:
    """Build and wire the tab."""
    edits = column(_switches(), _texts(), _divergence(), grow=3, min_width=300)
    card = Card("change", columns(edits, _effect(), classes="gb-change"), _patching(), classes="")
    add_cards(events, NAME, [card], VIEWS, ANALYSIS)


def _switches() -> Part:
    """Build the head switches and the controls for other edits."""
    experiments = [
        button(f"change-try-{name.replace('_', '-')}", f"change.try.{name}", partial(editing.try_experiment, name))
        for name in EXPERIMENTS
    ]
    others = column(
        choice(
            "change-activation",
            [(title, name) for name, title in ACTIVATIONS.items()],
            label="change.activation",
            labelled=True,
            value=_activation,
            on=editing.choose_activation,
        ),
        check_box(
            "change-positions",
            label="change.positions",
            info="change.positions.info",
            value=lambda s: s.edits.drop_positions,
            on=editing.drop_positions,
        ),
        caption("change.try"),
        row(
            button(
                "change-try-costliest",
                "change.try.costliest",
                editing.switch_off_costliest,
                queue="model",
                enabled=lambda s: s.state(ChangeState).costing is None,
            ),
            *experiments,
            button(
                "change-costs-stop",
                "stop",
                partial(stop, ChangeState, name="costing"),
                show=lambda s: s.state(ChangeState).costing is not None,
            ),
            classes="gb-small",
        ),
        sentence("change-status", kind="status"),
        grow=2,
    )
    return section(
        title_row(question("change.question"), button("change-reset", "change.reset", editing.reset)),
        sentence("change-lead", kind="lead"),
        sentence("change-notice", kind="notice"),
        columns(
            column(
                switches("change-switches", on=editing.set_switches),
                grow=3,
                min_width=320,
            ),
            others,
        ),
    )


def _texts() -> Part:
    """Build both texts side by side, and the program that reproduces them."""
    sides = {"original": editing.select_token, "edited": None}
    return section(
        title_row(
            question("change.texts.question"),
            button("change-both", "change.both", generation.generate_both, queue="model", enabled=_rests, primary=True),
            button("change-stop", "stop", partial(stop, ChangeState, name="writing"), enabled=lambda s: not _rests(s)),
        ),
        row(
            sentence("change-stale", kind="caption"),
            button("change-again", "change.again", generation.generate_both, queue="model", show=is_stale),
            classes="gb-change-stale",
        ),
        columns(
            *(
                column(
                    caption(f"change.{side}"),
                    tokens(f"change-{side}", selectable=on is not None, on=on),
                    min_width=300,
                )
                for side, on in sides.items()
            )
        ),
        sentence("change-parted", kind="lead"),
        sentence("change-own", kind="caption"),
        caption("change.hint"),
        fold("change-python", "change.python", code_text("change-code", "change.python.label", code)),
    )


def _divergence() -> Part:
    """Build the chart of how far predictions diverge at each token."""
    picture = chart("change-divergence", clickable=True, on=editing.select_bar)
    return section(question("change.divergence.question"), picture)


def _effect() -> Part:
    """Build the chart of next-token probabilities before and after the edits, pinned beside the switches."""
    return section(
        predictions("change-bars", selectable=False),
        caption("change.bars.legend"),
        sentence("change-says", kind="lead"),
        sentence("change-bars-note", kind="caption"),
        grow=2,
        classes="gb-change-effect",
    )


def _patching() -> Part:
    """Build the controls for activation patching and the recovery map."""
    examples = case(
        "change-patch-examples",
        lambda s: language_of_model(s.model),
        {language: row(*starmap(_pair, pairs.items()), classes="gb-small") for language, pairs in PROMPT_PAIRS.items()},
    )
    prompts = [
        text_box(
            f"change-{name}",
            max_length=MAX_CHARACTERS,
            label=f"change.patch.{name}",
            value=partial(_prompt, i),
            on=partial(patching.set_prompt, name),
        )
        for i, name in enumerate(("clean", "corrupted"))
    ]
    answers = [
        pick_list(
            f"change-{name}",
            choices,
            most=1,
            label=f"change.patch.{name}",
            info="change.patch.found",
            value=partial(chosen, name),
            on=partial(patching.choose_answer, name),
            queue="model",
        )
        for name in ("answer", "other")
    ]
    return section(
        question("change.patch.question"),
        caption("change.patch.says"),
        examples,
        columns(*(column(prompt) for prompt in prompts)),
        columns(*(column(answer) for answer in answers)),
        row(
            choice(
                "change-name",
                lambda s: [(t(f"change.patch.{name}"), name) for name in PATCHED],
                label="change.patch.name",
                value=partial(_control, "patched"),
                on=patching.choose_activation,
                queue="model",
            ),
            button(
                "change-measure",
                "change.patch.measure",
                patching.sweep,
                queue="model",
                enabled=lambda s: not _measures(s),
                primary=True,
            ),
            button("change-patch-stop", "stop", partial(stop, ChangeState, name="sweeping"), enabled=_measures),
        ),
        sentence("change-patch-status", kind="status"),
        sentence("change-trouble", kind="notice"),
        chart("change-map", clickable=True, on=patching.choose_cell),
        sentence("change-cell", kind="lead"),
        row(button("change-keep", "change.patch.keep", patching.keep, show=_has_cell)),
    )


def _activation(s: Snapshot) -> str:
    return s.edits.activation or ("gelu_tanh" if s.text is None else s.text.config.activation)


def _rests(s: Snapshot) -> bool:
    """Return whether no texts are being generated."""
    return s.state(ChangeState).writing is None


def _measures(s: Snapshot) -> bool:
    return s.state(ChangeState).sweeping is not None


def _control(name: str, s: Snapshot) -> str:
    return getattr(s.state(ChangeState), name)


def _prompt(i: int, s: Snapshot) -> str:
    return s.state(ChangeState).prompts(s.model)[i]


def _pair(name: str, pair: tuple[str, str]) -> Part:
    """Build the button that loads a pair of prompts."""
    take = partial(patching.take_example, pair)
    return button(f"change-patch-{name}", f"change.patch.example.{name}", take, queue="model")


def _has_cell(s: Snapshot) -> bool:
    return s.state(ChangeState).cell is not None and shown_sweep(s) is not None
