"""The token to explain, and the influence of the text's tokens on it."""

from __future__ import annotations

from typing import Any

import numpy as np

from components.causes import Falls
from components.figures.bars import signed_bars
from components.i18n import is_exact, t
from components.labels import decimals, percent, quoted, shortened, signed, token_text
from components.render import View
from components.state.snapshot import Snapshot
from components.tabs.why.predictions import Influence, Method, Prediction, TracedText, longest_gradient
from components.tabs.why.state import WhyState, falls
from components.text_views import strip_labels, token_lines
from components.widgets.chart import chart_data
from components.widgets.sentence import sentence_data
from components.widgets.tokens import shade_value
from gpt import SamplingParams
from gpt.tokenizer import Vocabulary

MAX_NAME_CHARS = 12  # maximum length of a token's name
MAX_BARS = 10  # tokens in the text that get a bar


def short(tokenizer: Vocabulary, token_id: int) -> str:
    """Return a short name for a token, truncated and with visible spaces."""
    return shortened(token_text(tokenizer, token_id), MAX_NAME_CHARS)


def lead_sentence(traced: TracedText, prediction: Prediction, settings: SamplingParams) -> str:
    """State the probability and rank of the token to explain."""
    tokenizer, p = traced.loaded.tokenizer, prediction.probabilities(settings)
    caption = t(
        "why.lead.exact" if is_exact() else "why.lead",
        here=quoted(tokenizer, traced.text.ids[prediction.position]),
        position=prediction.position,
        token=quoted(tokenizer, prediction.token),
        p=percent(p[prediction.token].item()),
        rank=f"{prediction.rank:,}",
        total=f"{traced.loaded.model.config.vocab_size:,}",
    )
    if prediction.follows:
        caption += t("why.lead.follows")
    if prediction.rank > 1:
        best = prediction.best[0]
        caption += t("why.lead.best", best=quoted(tokenizer, best), p=percent(p[best].item()))
    return caption


def token_choices(traced: TracedText, prediction: Prediction, settings: SamplingParams) -> list[tuple[str, int]]:
    """Return (label, id) pairs for the likeliest tokens, the next one in the text, and the one to explain."""
    tokenizer, position, p = traced.loaded.tokenizer, prediction.position, prediction.probabilities(settings)
    others = [prediction.token, *traced.text.ids[position + 1 : position + 2]]
    named = [(f"{short(tokenizer, i)}  {percent(p[i].item())}", i) for i in prediction.best]
    return [*named, *((short(tokenizer, i), i) for i in dict.fromkeys(others) if i not in prediction.best)]


def influence_labels() -> dict[str, str]:
    """Return the labels for the token strip, which is shaded by influence."""
    return strip_labels(t("strip.empty")) | {"attention": t("why.influence")}


def method_says(traced: TracedText, prediction: Prediction, method: Method) -> str:
    """Explain the shading."""
    return t(f"why.method.{method}.says", token=quoted(traced.loaded.tokenizer, prediction.token))


def shade(sizes: np.ndarray | None) -> str:
    """Encode each token's share of the sum of absolute influences, (N,)."""
    if sizes is None:
        return shade_value(np.zeros(1))
    return shade_value(np.abs(sizes) / max(np.abs(sizes).sum(), 1e-12))


def fall_sizes(falls: Falls) -> np.ndarray:
    """Return how far the probability falls without each token's word, (N,)."""
    sizes = np.zeros(1 + max((fall.place[-1] for fall in falls.all_words), default=0))
    for fall in falls.all_words:
        sizes[[*fall.place]] = max(0.0, falls.probability - fall.probability)
    return sizes


def fall_bars(traced: TracedText, prediction: Prediction, falls: Falls) -> dict[str, Any]:
    """Plot the probability without each word, for the words with the largest effects."""
    tokenizer, ids = traced.loaded.tokenizer, prediction.previous
    order = sorted(falls.all_words, key=lambda fall: -abs(fall.probability - falls.probability))[:MAX_BARS]
    order.sort(key=lambda fall: fall.probability)
    names = [shortened(tokenizer.decode([ids[i] for i in fall.place]).strip(" "), MAX_NAME_CHARS) for fall in order]
    values = np.array([fall.probability for fall in order])
    figure = signed_bars(names, values, [percent(value) for value in values])
    caption = t("why.hidden.says", token=quoted(tokenizer, prediction.token), p=percent(falls.probability))
    n = sum(len(fall.place) for fall in falls.all_words)
    if falls.all_words and falls.all_words[0].place[0] > 0:
        caption += t("why.influence.window", n=n)
    return chart_data(figure, caption)


def influence_bars(traced: TracedText, prediction: Prediction, influence: Influence) -> dict[str, Any]:
    """Plot the tokens with the largest gradient influence, positive or negative, largest first."""
    tokenizer, values = traced.loaded.tokenizer, influence.values
    order, digits = np.argsort(-np.abs(values), kind="stable")[:MAX_BARS], decimals(values)
    figure = signed_bars(
        [f"{short(tokenizer, traced.ids[i])} {i}" for i in order],
        values[order],
        [signed(values[i], digits) for i in order],
    )

    def name(i: int) -> str:
        value = t("why.nats", value=signed(values[i], digits))
        return f"{quoted(tokenizer, traced.ids[i])} ({value})"

    upward, downward = int(values.argmax()), int(values.argmin())
    caption, token = "", quoted(tokenizer, prediction.token)
    if round(float(values[upward]), digits) > 0:
        caption += t("why.influence.says", token=token, most=name(upward))
    if round(float(values[downward]), digits) < 0:
        caption += t("why.influence.against", token=token, least=name(downward))
    return chart_data(figure, caption)


def no_influence(traced: TracedText, prediction: Prediction, method: Method) -> str:
    """Explain why there is no influence to show."""
    if method == "hidden":
        return t("why.influence.one")
    limit = longest_gradient(traced.model.config)
    return t("why.influence.long", limit=f"{limit:,}", n=f"{prediction.position + 1:,}")


def lead(s: Snapshot) -> dict[str, Any]:
    if s.text is None or s.text.n_read == 0:
        return {"text": t("error.no_text")}
    shown = s.state(WhyState).shown
    if shown is None:
        return {"text": ""}
    return {"text": lead_sentence(shown.traced, shown.prediction, s.settings.sampling())}


def status(s: Snapshot) -> dict[str, Any]:
    """Show the progress of the computation."""
    state = s.state(WhyState)
    if state.progress is not None:
        return sentence_data(state.progress)
    waits = s.generating and s.text is not None and (state.shown is None or state.shown.traced.text != s.text)
    return {"text": t("why.waits") if waits else ""}


def strip(s: Snapshot) -> dict[str, Any]:
    """Show the text, shaded by each token's share of the influence."""
    shown, words = s.state(WhyState).shown, influence_labels()
    if shown is None:
        return {"lines": token_lines_of(None), "doc": "", "selected": -1, "shade": "", "labels": words}
    return {
        "lines": token_lines_of(shown.traced),
        "doc": str(shown.traced.text.version[0]),
        "selected": shown.prediction.position,
        "shade": shade(_sizes(s)),
        "labels": words,
    }


def token_lines_of(traced: TracedText | None) -> Any:
    """Return the text as tokens without probabilities, since the shading shows influence."""
    if traced is None:
        return []
    ids = traced.text.ids
    return token_lines(traced.loaded.tokenizer, ids, [(None, None)] * len(ids), traced.text.document.n_prompt)


def method(s: Snapshot) -> dict[str, Any]:
    shown, chosen = s.state(WhyState).shown, s.state(WhyState).method
    return {"text": "" if shown is None else method_says(shown.traced, shown.prediction, chosen)}


def _sizes(s: Snapshot) -> np.ndarray | None:
    """Return each token's influence by the chosen method, or None if it is not known yet."""
    state = s.state(WhyState)
    if state.method == "hidden":
        found = s.cached(falls)
        return None if found is None else fall_sizes(found)
    return None if state.shown is None or state.shown.influence is None else state.shown.influence.values


def influence(s: Snapshot) -> dict[str, Any]:
    state, found = s.state(WhyState), s.cached(falls)
    shown = state.shown
    if shown is not None and state.method == "hidden" and found is not None and found.all_words:
        return fall_bars(shown.traced, shown.prediction, found)
    if shown is None or state.method == "hidden" or shown.influence is None:
        return chart_data(None, "")
    return influence_bars(shown.traced, shown.prediction, shown.influence)


def trouble(s: Snapshot) -> dict[str, Any]:
    """Explain why there is no influence to show."""
    state, found = s.state(WhyState), s.cached(falls)
    shown = state.shown
    is_missing = (
        found is not None and not found.all_words
        if state.method == "hidden"
        else shown is not None and shown.influence_known and shown.influence is None
    )
    if shown is None or not is_missing:
        return {"text": ""}
    return {"text": no_influence(shown.traced, shown.prediction, state.method)}


VIEWS = (
    View("why-lead", lead),
    View("why-status", status),
    View("why-strip", strip),
    View("why-method-says", method),
    View("why-influence", influence),
    View("why-trouble", trouble),
)
