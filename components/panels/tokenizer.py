"""The panel on tokenizers: how byte-pair encoding builds a token, and what texts cost in two vocabularies."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import gradio as gr
import numpy as np

from components import legacy
from components import text_views as views
from components.errors import PageError
from components.frame import Frame
from components.i18n import Language, t
from components.legacy import Playground
from components.localized import Words
from components.panels import token_views
from components.panels.panel import Panel, Values, make_panel
from components.panels.panel_figures import pair_bars
from components.widgets.chart import chart, chart_value
from components.widgets.sentence import sentence
from components.widgets.table import table, table_value
from components.widgets.tokens import tokens
from gpt import DEFAULT_MODEL, Tokenizer, get_model
from gpt.experiments.tokens import cached_gpt2_tokenizer, language_costs, merge_steps, split_words

WORD = "grandmother"
TEXT = "Hello, I am 小狗 🐶"
MAX_BYTES = 24  # of a word: one row each
MAX_CHARACTERS = 200  # of the text
SIDES = ("own", "gpt2")
GPT2_SIZE = 50257


@dataclass(frozen=True)
class TokenizerPanel:
    """The components of the panel. Those of GPT-2's side are hidden where there is no copy of its vocabulary."""

    frame: Frame
    playground: Playground
    word: gr.Textbox
    answer: gr.HTML
    notice: gr.HTML
    missing: gr.HTML
    name_own: gr.HTML
    name_gpt2: gr.HTML
    ladder_own: gr.HTML
    ladder_gpt2: gr.HTML
    text: gr.Textbox
    cost: gr.HTML
    strip_own: gr.HTML
    strip_gpt2: gr.HTML
    bytes: gr.HTML
    languages: gr.HTML


def build_tokenizer(words: Words, frame: Frame, playground: Playground) -> Panel:
    """Lay the panel out: a word merge by merge, a text with its bytes, and one sentence in many languages."""
    parts: dict[str, Any] = {"frame": frame, "playground": playground}
    with gr.Column(elem_classes="gb-card gb-panel"):
        words.build(sentence, {"value": "bpe.question"}, kind="question")
        parts["answer"] = sentence(kind="lead", elem_id="bpe-answer")
        parts["notice"] = sentence(kind="notice", elem_id="bpe-notice")
        parts["word"] = words.build(
            gr.Textbox, {"label": "bpe.word", "info": "bpe.word.info"}, value=WORD, max_length=80, elem_id="bpe-word"
        )
        parts["missing"] = sentence(kind="caption", elem_id="bpe-missing")
        with gr.Row(elem_classes="gb-columns"):
            for side in SIDES:
                with gr.Column(min_width=280):
                    parts[f"name_{side}"] = sentence(kind="question", elem_id=f"bpe-name-{side}")
                    parts[f"ladder_{side}"] = chart(elem_id=f"bpe-ladder-{side}")
        words.build(sentence, {"value": "bpe.text.question"}, kind="question")
        parts["text"] = words.build(
            gr.Textbox, {"label": "bpe.text"}, value=TEXT, max_length=MAX_CHARACTERS, elem_id="bpe-text"
        )
        parts["cost"] = sentence(kind="lead", elem_id="bpe-cost")
        with gr.Row(elem_classes="gb-columns"):
            for side in SIDES:
                with gr.Column(min_width=280):
                    parts[f"strip_{side}"] = tokens(elem_id=f"bpe-strip-{side}", ids=True, selectable=False)
        parts["bytes"] = table(elem_id="bpe-bytes")
        words.build(sentence, {"value": "bpe.language.question"}, kind="question")
        parts["languages"] = chart(elem_id="bpe-languages")
    ui = TokenizerPanel(**{field.name: parts[field.name] for field in fields(TokenizerPanel)})
    sides = [getattr(ui, f"{part}_{side}") for part in ("name", "ladder", "strip") for side in SIDES]
    return make_panel(
        frame,
        playground,
        partial(draw, ui),
        controls=[ui.word, ui.text],
        outputs=[ui.answer, ui.missing, ui.cost, ui.bytes, ui.languages, *sides],
        notice=ui.notice,
    )


def vocabularies(values: Values, playground: Playground) -> dict[str, Tokenizer | None]:
    """The bundled one, and GPT-2's: that of the visitor's model if it is one, else a copy on this computer, or None."""
    document = values[playground.session].document
    current = None if document is None else document.loaded.tokenizer
    is_gpt2 = isinstance(current, Tokenizer) and current.n_vocab == GPT2_SIZE
    return {"own": get_model(DEFAULT_MODEL).tokenizer, "gpt2": current if is_gpt2 else cached_gpt2_tokenizer()}


def draw(ui: TokenizerPanel, values: Values, entering: bool) -> Values:
    """Everything again, after every letter."""
    language: Language = values[ui.frame.language]
    known = vocabularies(values, ui.playground)
    word, text = checked_word(values[ui.word], known["own"]), (values[ui.text] or "")[:MAX_CHARACTERS]
    names = {"own": t("bpe.own", language, n=f"{known['own'].n_vocab:,}"), "gpt2": t("bpe.gpt2", language)}
    update: Values = {
        ui.answer: token_views.says(merge_steps(known["own"], word), word, language),
        ui.missing: "" if known["gpt2"] else t("bpe.gpt2.none", language),
        ui.cost: token_views.cost(known["own"], known["gpt2"], text, language),
        ui.bytes: table_value(token_views.characters(text, language)),
        ui.languages: languages(known, names, language),
    }
    for side in SIDES:
        tokenizer = known[side]
        ladder, strip, name = (getattr(ui, f"{part}_{side}") for part in ("ladder", "strip", "name"))
        if tokenizer is None:
            update |= {ladder: "", strip: strip_update("", language), name: ""}
            continue
        steps = merge_steps(tokenizer, word)
        told = t("bpe.picture", language) if side == "own" else token_views.says(steps, word, language)
        update |= {
            name: names[side],
            strip: strip_update(legacy.prompt_strip(tokenizer, tokenizer.encode(text)), language),
            ladder: token_views.ladder(steps, told, language),
        }
    return update


def strip_update(value: str, language: Language) -> Any:
    """A strip with every property: of one that no page has drawn yet, the browser keeps only those of an update."""
    fixed = {"labels": views.strip_words(language), "marks": False, "selected": "-1", "shade": ""}
    return gr.update(value=value, ids=True, selectable=False, **fixed)


def checked_word(value: object, tokenizer: Tokenizer) -> str:
    """The word as typed. Raises ValueError with a sentence for none, for several, and for a long one."""
    word = value if isinstance(value, str) else ""
    if not word:
        raise PageError("bpe.error.none")
    if (n := len(word.encode("utf-8", "replace"))) > MAX_BYTES:
        raise PageError("bpe.error.long", word=token_views.shown(word), n=n, limit=MAX_BYTES)
    if (n := len(split_words(tokenizer, word))) > 1:
        raise PageError("bpe.error.several", word=token_views.shown(word), n=n)
    return word


def languages(known: dict[str, Tokenizer | None], names: dict[str, str], language: Language) -> str:
    """Tokens per character of one sentence in each language."""
    costs = {side: language_costs(tokenizer) for side, tokenizer in known.items() if tokenizer is not None}
    own = costs["own"]
    figure = pair_bars(
        [t(f"bpe.language.{key}", language) for key in own],
        {
            names[side]: np.array([cost.tokens_per_character for cost in found.values()])
            for side, found in costs.items()
        },
        value_title=t("bpe.per_character", language),
        tip=".3f",
    )
    rates = {key: f"{own[key].tokens_per_character:.2f}" for key in ("en", "zh")}
    return chart_value(figure, t("bpe.language.says", language, **rates))
