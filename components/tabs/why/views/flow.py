"""The answer: what the prediction depends on, as a sentence and as a flow from tokens over heads to the token."""

from __future__ import annotations

from typing import Any

from components.causes import causes_sentence, layer_head_name, token_name
from components.i18n import Language, t
from components.labels import percent, quoted
from components.render import View
from components.state.snapshot import Snapshot
from components.tabs.why.predictions import CauseFlow, Prediction, TracedText, cause_flow, predict
from components.tabs.why.state import Explanation, WhyState, why_inputs
from components.tabs.why.views.tokens import short
from gpt.analysis.causes import Ablation, Causes

MIN_WEIGHT = 0.005  # attention that is drawn
MAX_NAMED = 3  # parts in a sentence


def because(traced: TracedText, prediction: Prediction, causes: Causes, language: Language) -> str:
    """The token and the head without which the probability falls furthest, and how that was measured."""
    sentence = causes_sentence(causes, prediction.token, traced.text.ids, traced.loaded.tokenizer, language)
    return sentence + (t("why.because.method", language) if causes.tokens or causes.heads else "")


def answer(s: Snapshot) -> dict[str, Any]:
    shown = s.state(WhyState).shown
    if shown is None or shown.causes is None:
        return {"text": _known(s)}
    return {"text": because(shown.traced, shown.prediction, shown.causes, s.language)}


def _known(s: Snapshot) -> str:
    """The probability, while its causes are being measured."""
    if not is_pending(s) or s.text is None or s.position is None:
        return ""
    prediction, config = predict(s.text, s.position), s.text.config
    name, p = quoted(s.text.tokenizer, prediction.token), percent(prediction.probability)
    n_heads = config.n_layer * config.n_head
    return t("why.because.busy", s.language, token=name, p=p, heads=n_heads)


def is_pending(s: Snapshot) -> bool:
    """Whether the causes are on their way and nothing else is shown."""
    shown = s.state(WhyState).shown
    return s.text is not None and s.text.n_read > 0 and not s.generating and (shown is None or shown.causes is None)


def _inputs(s: Snapshot) -> Any:
    return why_inputs(s), (s.text, s.position) if is_pending(s) else None


def flow(s: Snapshot) -> dict[str, Any]:
    """The data of the widget `ribbons`; no heads before the causes are known, and without any."""
    shown = s.state(WhyState).shown
    found = None
    if shown is not None and shown.causes is not None:
        found = cause_flow(shown.traced, shown.prediction, shown.causes)
    if shown is None or found is None or shown.causes is None:
        return {"heads": [], "is_pending": is_pending(s)}
    tokenizer, language = shown.traced.loaded.tokenizer, s.language
    return {
        "tokens": [[i, short(tokenizer, shown.traced.ids[i])] for i in found.tokens],
        "heads": [[*head, round(float(fall), 4)] for head, fall in zip(found.heads, found.falls, strict=True)],
        "weights": [[round(float(w), 4) if w >= MIN_WEIGHT else 0 for w in row] for row in found.weights],
        "n_head": shown.traced.model.config.n_head,
        "target": short(tokenizer, shown.prediction.token),
        "before": round(shown.causes.probability, 4),
        "after": None if shown.without is None else round(shown.without.probability, 4),
        "off": {
            "tokens": [[i] for i in sorted(shown.off.tokens)],
            "heads": [list(each) for each in sorted(shown.off.heads)],
            "reads": [list(each) for each in sorted(shown.off.reads)],
        },
        "says": says(shown, language),
        "labels": flow_labels(shown, found, language),
    }


def says(shown: Explanation, language: Language) -> str:
    """What is predicted without the parts that are off."""
    if shown.off == Ablation():
        return t("why.flow.hint", language)
    if shown.without is None or shown.causes is None:
        return t("why.flow.busy", language)
    tokenizer, prediction = shown.traced.loaded.tokenizer, shown.prediction
    before, after = percent(shown.causes.probability), percent(shown.without.probability)
    text = t(
        "why.flow.without" if before != after else "why.flow.same",
        language,
        parts=parts_off(shown, language),
        token=quoted(tokenizer, prediction.token),
        before=before,
        after=after,
    )
    if shown.without.best != prediction.token:
        best, p = quoted(tokenizer, shown.without.best), percent(shown.without.best_probability)
        text += t("why.flow.best", language, best=best, p=p)
    return text


def parts_off(shown: Explanation, language: Language) -> str:
    """Names of what is off; of many parts, their number."""
    names = [
        token_name(shown.traced.loaded.tokenizer, shown.traced.text.ids, i, language) for i in sorted(shown.off.tokens)
    ]
    names += [layer_head_name(head, language) for head in sorted(shown.off.heads)]
    names += [
        t(
            "why.flow.read",
            language,
            head=layer_head_name((layer, head), language),
            token=token_name(shown.traced.loaded.tokenizer, shown.traced.text.ids, i, language),
        )
        for layer, head, i in sorted(shown.off.reads)
    ]
    if len(names) > MAX_NAMED:
        return t("why.flow.parts", language, n=len(names))
    return t("why.flow.and", language).join(names)


def flow_labels(shown: Explanation, found: CauseFlow, language: Language) -> dict[str, str]:
    """The words of the picture; {place} is filled by the widget."""
    labels = {
        name: t(f"why.flow.{name}", language)
        for name in (
            "name",
            "tokens",
            "heads",
            "head",
            "head.short",
            "others",
            "token.off",
            "head.off",
            "read.off",
            "all",
        )
    }
    return labels | {"target": quoted(shown.traced.loaded.tokenizer, shown.prediction.token)}


VIEWS = (View("why-because", _inputs, answer), View("why-flow", _inputs, flow))
