"""The Write tab."""

from __future__ import annotations

from functools import partial
from itertools import starmap
from typing import Any, get_args

import gradio as gr

from components.cards.card import Card, add_cards
from components.concepts import has_desk, steer_data, turn
from components.events import Events
from components.frame import Frame, strip
from components.i18n import t
from components.kit import button, caption, case, column, columns, fold, layer_select, picture, question, row, says
from components.limits import MAX_LENGTH
from components.parts import Action, Handler, Part, check_box, choice, section, select, slider, text_box, title_row
from components.share.handlers import files_menu
from components.state.example import EXAMPLES, language_of_model
from components.state.session import Session
from components.state.settings import LIMITS, PACES
from components.state.text import Shading
from components.tabs.playground import box, editing, generation, prediction
from components.tabs.playground.prediction import tab
from components.tabs.playground.stages import pipeline
from components.tabs.playground.upload import build_upload
from components.text_views import AVERAGE, head_choices, shading_legend, short_name, surprisal_chart, text_strip
from components.widgets.composer import composer
from components.widgets.simple import choices, draw, growth, predictions, steer, tree


def build_playground(events: Events, frame: Frame, open_film: Handler, *, uploads: bool = False) -> None:
    """Build and wire the tab, together with the frame."""
    with gr.Column(elem_classes="gb-playground"):
        write = Card("write", *_write(open_film), classes="gb-card gb-prompt")
        learning = Card("learning", growth("hero-growth", draw=prediction.learned), classes="")
        controls = Card("controls", _controls(), classes="")
        ideas = steer("concepts", draw=steer_data, on=turn)
        desk = Card("desk", column(ideas, classes="gb-card", name="desk", show=has_desk), classes="")
        more = build_upload(events) if uploads else ()
    add_cards(events, {"": frame.cards, tab.name: [write, learning, controls, desk, *more]})


def _write(open_film: Handler) -> tuple[Part, ...]:
    typing = {
        "input": Action(box.type_text, "typing", latest=True, early=box.take_typed),
        "select": Action(box.select, latest=True),
        "submit": Action(box.hide_words, latest=True),
        "undo": Action(editing.retrace, "model"),
    }

    def switch_more(session: Session) -> None:
        session.more_controls = not session.more_controls

    return (
        says("hero-question", prediction.asked),
        says("reason", prediction.why),
        composer("prompt", leads=True, draw=box.box, actions=typing),
        says("status", generation.status, kind="status"),
        columns(
            column(
                predictions("bars", draw=prediction.bars, on=editing.choose, queue="model"),
                says("goes-on", prediction.goes_on),
                classes="gb-live",
            ),
            column(
                column(
                    predictions("bars-off", draw=prediction.bars_off, selectable=False),
                    says("goes-on-off", partial(prediction.goes_on, is_off=True)),
                    name="next-off",
                    show=lambda s: s.attention_off,
                    classes="gb-live",
                ),
                *_notices(),
            ),
            classes="gb-next",
        ),
        says("spoken", prediction.spoken, kind="spoken"),
        row(
            button("hide-main", prediction.hide_label, prediction.hide_main, enabled=prediction.can_hide),
            classes="gb-hide gb-live",
        ),
        row(
            row(
                _run("generate", generation.go_on, enabled=lambda s: not s.generating, primary=True),
                button("stop", "stop", generation.stop, queue="stop", enabled=lambda s: s.generating, primary=True),
                button(
                    "full-speed",
                    "full_speed",
                    generation.full_speed,
                    enabled=lambda s: s.generating and s.settings.pace > 0,
                ),
                classes="gb-run",
            ),
            check_box(
                "chat",
                label="chat",
                value=lambda s: s.is_chat,
                on=box.switch_chat,
                queue="model",
                show=lambda s: s.loaded is not None and s.loaded.tokenizer.is_chat,
            ),
            _slider("temperature"),
            button("more-controls", lambda s: t("controls.less" if s.more_controls else "controls.more"), switch_more),
            row(
                button("open-film", "film.open", open_film),
                button("write-own", "hero.write"),  # selects the text, see page.js
                classes="gb-start",
            ),
            classes="gb-buttons",
        ),
    )


def _controls() -> Part:
    return column(
        row(
            section(*_attention(), classes="gb-live"),
            section(*_settings()),
            section(*_text(), classes="gb-text"),
            classes="gb-cards",
        ),
        name="controls",
        show=lambda s: s.more_controls,
    )


def _notices() -> tuple[Part, ...]:
    """Return what there is to say about the text, each with what can be done. There is room: nothing else moves."""

    def offer(s: Any) -> str:
        model = s.cached(generation.offered_model)
        return "" if model is None else t("knows.switch", model=short_name(model))

    return (
        says("notice", generation.notice, kind="notice"),
        row(
            says("knows", lambda s: s.cached(generation.knows), kind="notice"),
            button("use-model", offer, generation.write_fitting, queue="model", show=lambda s: bool(s.cached(offer))),
        ),
        row(
            says("literal", lambda s: s.cached(generation.literal), kind="caption"),
            check_box(
                "special",
                label="special",
                value=lambda s: s.special,
                on=generation.switch_special,
                queue="model",
                show=lambda s: s.special or bool(s.cached(generation.literal)),
            ),
        ),
        row(
            button(
                "use-tail",
                lambda s: t("prompt.use_tail", n=generation.tail_length(s.loaded)),
                generation.write_tail,
                queue="model",
                show=lambda s: s.too_long > 0 and s.loaded is not None,
            )
        ),
    )


def _run(name: str, handler: Handler, **options: Any) -> Part:
    return button(name, name, handler, queue="model", **options)


def _attention() -> tuple[Part, ...]:
    head = select(
        "head",
        choices=lambda s: head_choices(0 if s.text is None else s.text.config.n_head),
        label="attention.head",
        value=lambda s: AVERAGE if s.selection.head is None else s.selection.head,
        on=prediction.choose_head,
        beside=True,
    )
    return (
        title_row(
            question("attention.question"),
            row(
                layer_select("layer", beside=True),
                head,
                button(
                    "attention-off",
                    lambda s: t("attention.on" if s.attention_off else "attention.off"),
                    prediction.switch_attention,
                ),
            ),
        ),
        picture("heatmap", prediction.heatmap, clickable=True, on=prediction.select_row),
    )


def _settings() -> tuple[Part, ...]:
    return (
        question("pipeline"),
        choice(
            "preset",
            choices=lambda s: [(t(f"preset.{name}"), name) for name in generation.presets(s)],
            label="preset",
            value=generation.preset_of,
            on=generation.choose_preset,
        ),
        row(
            *(_slider(name) for name in ("top_k", "top_p", "min_p", "repetition_penalty")),
            slider("length", low=1, high=MAX_LENGTH, step=1, info="length.info", **_setting("length")),
            text_box("seed", max_length=18, one_line=True, placeholder="seed.placeholder", **_setting("seed")),
            select(
                "pace",
                choices=lambda s: [(str(pace) if pace else t("pace.full"), pace) for pace in PACES],
                **_setting("pace"),
            ),
            classes="gb-settings",
        ),
        pipeline(
            _slider("repetition_window"),
            check_box("temperature-last", **_setting("temperature_last")),
        ),
    )


def _slider(name: str) -> Part:
    limit = LIMITS[name]
    typed_step = min(limit.step, 0.01) if limit.step < 1 else None
    return slider(
        name.replace("_", "-"),
        low=limit.low,
        high=limit.high,
        step=limit.step,
        info=f"{name}.info",
        typed_step=typed_step,
        **_setting(name),
    )


def _setting(name: str) -> dict[str, Any]:
    return {"label": name, "value": lambda s: getattr(s.settings, name), "on": partial(generation.set_value, name)}


def _text() -> tuple[Part, ...]:
    shading = choice(
        "shading",
        choices=lambda s: [(t(f"strip.shading.{kind}"), kind) for kind in get_args(Shading)],
        label="strip.shading",
        value=lambda s: s.selection.shading,
        on=editing.choose_shading,
    )
    typed = text_box(
        "box",
        max_length=editing.MAX_TYPED_CHARS,
        label="box",
        placeholder="box.placeholder",
        info="box.info",
        value=lambda s: s.query,
        on=editing.search,
        on_enter=Action(editing.type_text, "model"),
    )
    examples = {
        language: row(caption("examples"), *starmap(_example, prompts.items()), classes="gb-small")
        for language, prompts in EXAMPLES.items()
    }

    def can_go_on(s: Any) -> bool:
        return s.text is not None and not s.generating

    return (
        question("branches.question"),
        case("examples", lambda s: language_of_model(s.model), examples),
        says("dropped", editing.dropped, kind="caption"),
        row(
            _run("step", generation.step, enabled=lambda s: not s.generating),
            _run("undo", editing.undo, enabled=lambda s: s.can_undo),
            _run("redo", editing.redo, enabled=lambda s: s.can_redo and not s.generating),
            _run("again", generation.write_again, enabled=can_go_on),
            _run("clear", generation.clear),
            classes="gb-small",
        ),
        tree("tree", draw=editing.tree, on=editing.switch_branch, queue="model", classes=("gb-live",)),
        files_menu(),
        fold(
            "token-by-token",
            "strip.question",
            text_strip("strip", draw=strip, empty="page", on=editing.select_token),
            column(
                picture("surprisal", surprisal_chart, clickable=True, on=editing.select_point),
                name="surprisal-along",
                show=lambda s: s.selection.shading in ("entropy", "surprisal"),
            ),
            row(says("hint", shading_legend, kind="caption"), shading, classes="gb-strip-tools"),
            draw("draw", draw=editing.draw),
            row(
                _run("back", editing.go_back, enabled=editing.is_earlier),
                _run("go_on", generation.go_on_here, enabled=can_go_on),
                classes="gb-small",
            ),
            typed,
            choices("hits", draw=editing.hits, on=editing.choose, queue="model"),
            says("prompt-count", editing.prompt_count, kind="caption"),
            classes="gb-live",
        ),
    )


def _example(key: str, prompt: str) -> Part:
    return button(key.replace(".", "-"), key, partial(generation.write_example, prompt), queue="model")
