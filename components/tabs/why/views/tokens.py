"""The token to explain, and the influence of the tokens of the text."""

from __future__ import annotations

from typing import Any

import numpy as np

from components.figures.bars import signed_bars
from components.i18n import Language, t
from components.labels import decimals, percent, quoted, shortened, signed, token_text
from components.render import View
from components.state.snapshot import Snapshot
from components.tabs.why.predictions import Influence, Method, Prediction, TracedText, longest_gradient
from components.tabs.why.state import WhyState, why_inputs
from components.text_views import strip_labels, token_lines
from components.widgets.chart import chart_data
from components.widgets.tokens import shade_value
from gpt.tokenizer import Vocabulary

MAX_NAME_CHARS = 12  # characters of a token in a name
MAX_BARS = 10  # tokens of the text with a bar


def short(tokenizer: Vocabulary, token_id: int) -> str:
    """A token as a name: visible spaces, truncated."""
    return shortened(token_text(tokenizer, token_id), MAX_NAME_CHARS)


def lead_sentence(traced: TracedText, prediction: Prediction, language: Language) -> str:
    """The probability and rank of the token to explain."""
    tokenizer = traced.loaded.tokenizer
    caption = t(
        "why.lead",
        language,
        here=quoted(tokenizer, traced.text.ids[prediction.position]),
        position=prediction.position,
        token=quoted(tokenizer, prediction.token),
        p=percent(prediction.probability),
        rank=f"{prediction.rank:,}",
        total=f"{traced.loaded.model.config.vocab_size:,}",
    )
    if prediction.follows:
        caption += t("why.lead.follows", language)
    if prediction.rank > 1:
        best = quoted(tokenizer, prediction.best[0])
        caption += t("why.lead.best", language, best=best, p=percent(prediction.probabilities[0]))
    return caption


def token_choices(traced: TracedText, prediction: Prediction) -> list[tuple[str, int]]:
    """(label, id) of the best tokens, of the one that follows, and of the one to explain."""
    tokenizer, position = traced.loaded.tokenizer, prediction.position
    best = dict(zip(prediction.best, prediction.probabilities, strict=True))
    others = [prediction.token, *traced.text.ids[position + 1 : position + 2]]
    named = [(f"{short(tokenizer, i)}  {percent(p)}", i) for i, p in best.items()]
    return [*named, *((short(tokenizer, i), i) for i in dict.fromkeys(others) if i not in best)]


def influence_labels(language: Language) -> dict[str, str]:
    """Labels of the strip, which is shaded by influence."""
    return strip_labels(language, t("strip.empty", language)) | {"attention": t("why.influence", language)}


def method_says(traced: TracedText, prediction: Prediction, method: Method, language: Language) -> str:
    """The meaning of the shading."""
    return t(f"why.method.{method}.says", language, token=quoted(traced.loaded.tokenizer, prediction.token))


def shade(influence: Influence | None) -> str:
    """The share of each token in the sum of absolute influences."""
    if influence is None:
        return shade_value(np.zeros(1))
    size = np.abs(influence.values)
    return shade_value(np.concatenate([np.zeros(influence.first), size / max(size.sum(), 1e-12)]))


def influence_bars(
    traced: TracedText, prediction: Prediction, influence: Influence, language: Language
) -> dict[str, Any]:
    """The tokens with the largest influence, positive or negative, largest first."""
    tokenizer, values = traced.loaded.tokenizer, influence.values
    order, digits = np.argsort(-np.abs(values), kind="stable")[:MAX_BARS], decimals(values)
    figure = signed_bars(
        [f"{short(tokenizer, traced.ids[influence.first + i])} {influence.first + i}" for i in order],
        values[order],
        [signed(values[i], digits) for i in order],
    )

    def name(i: int) -> str:
        value = t("why.nats", language, value=signed(values[i], digits))
        return f"{quoted(tokenizer, traced.ids[influence.first + i])} ({value})"

    upward, downward = int(values.argmax()), int(values.argmin())
    caption, token = "", quoted(tokenizer, prediction.token)
    if round(float(values[upward]), digits) > 0:
        caption += t("why.influence.says", language, token=token, most=name(upward))
    if round(float(values[downward]), digits) < 0:
        caption += t("why.influence.against", language, token=token, least=name(downward))
    if influence.first:
        caption += t("why.influence.window", language, n=len(values))
    return chart_data(figure, caption)


def no_influence(traced: TracedText, prediction: Prediction, method: Method, language: Language) -> str:
    """Why there is no influence to show."""
    if method == "left_out":
        return t("why.influence.one", language)
    limit = longest_gradient(traced.model.config)
    return t("why.influence.long", language, limit=f"{limit:,}", n=f"{prediction.position + 1:,}")


def lead(s: Snapshot) -> dict[str, Any]:
    if s.text is None or s.text.n_read == 0:
        return {"text": t("error.no_text", s.language)}
    shown = s.state(WhyState).shown
    return {"text": "" if shown is None else lead_sentence(shown.traced, shown.prediction, s.language)}


def status(s: Snapshot) -> dict[str, Any]:
    """The progress of the computation."""
    state = s.state(WhyState)
    if state.progress is not None:
        return {"text": t(state.progress.key, s.language, **state.progress.values)}
    waits = s.generating and s.text is not None and (state.shown is None or state.shown.traced.text != s.text)
    return {"text": t("why.waits", s.language) if waits else ""}


def strip(s: Snapshot) -> dict[str, Any]:
    """The text, shaded by each token's share of the influence."""
    shown, words = s.state(WhyState).shown, influence_labels(s.language)
    if shown is None:
        return {"lines": token_lines_of(None), "doc": "", "selected": -1, "shade": "", "labels": words}
    return {
        "lines": token_lines_of(shown.traced),
        "doc": str(shown.traced.text.version[0]),
        "selected": shown.prediction.position,
        "shade": shade(shown.influence) if shown.influence_known else "",
        "labels": words,
    }


def token_lines_of(traced: TracedText | None) -> Any:
    """The text as tokens without probabilities, since influence shades it."""
    if traced is None:
        return []
    ids = traced.text.ids
    return token_lines(traced.loaded.tokenizer, ids, [(None, None)] * len(ids), traced.text.document.n_prompt)


def method(s: Snapshot) -> dict[str, Any]:
    shown, chosen = s.state(WhyState).shown, s.state(WhyState).method
    return {"text": "" if shown is None else method_says(shown.traced, shown.prediction, chosen, s.language)}


def influence(s: Snapshot) -> dict[str, Any]:
    shown = s.state(WhyState).shown
    if shown is None or shown.influence is None:
        return chart_data(None, "")
    return influence_bars(shown.traced, shown.prediction, shown.influence, s.language)


def trouble(s: Snapshot) -> dict[str, Any]:
    """Why there is no influence to show."""
    state, shown = s.state(WhyState), s.state(WhyState).shown
    if shown is None or not shown.influence_known or shown.influence is not None:
        return {"text": ""}
    return {"text": no_influence(shown.traced, shown.prediction, state.method, s.language)}


VIEWS = (
    View("why-lead", why_inputs, lead),
    View("why-status", lambda s: (s.generating, why_inputs(s)), status),
    View("why-strip", why_inputs, strip),
    View("why-method-says", why_inputs, method),
    View("why-influence", why_inputs, influence),
    View("why-trouble", why_inputs, trouble),
)
