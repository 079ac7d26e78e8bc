"""The answer: what the prediction depends on, as a sentence and as a flow from words through heads to the token."""

from __future__ import annotations

from typing import Any

from components.causes import causes_sentence, head_sentence, layer_head_name
from components.i18n import t
from components.labels import percent, quoted
from components.render import View
from components.state.snapshot import Snapshot
from components.tabs.why.predictions import CauseFlow, cause_flow, predict
from components.tabs.why.state import Explanation, WhyState, falls
from components.tabs.why.views.tokens import short
from components.words import word_name, words_of
from gpt.analysis.causes import Ablation

MIN_WEIGHT = 0.005  # smallest attention weight that is drawn
MAX_NAMED = 3  # parts named in a sentence


def answer(s: Snapshot) -> dict[str, Any]:
    """Name the word and the head whose removal lowers the probability the most."""
    shown, found = s.state(WhyState).shown, s.cached(falls)
    if shown is None or found is None:
        return {"text": _known(s)}
    tokenizer, token = shown.traced.loaded.tokenizer, shown.prediction.token
    sentence = causes_sentence(found, token, shown.prediction.previous, tokenizer)
    return {"text": sentence + head_sentence(found, token, tokenizer)}


def _known(s: Snapshot) -> str:
    """State the probability while its causes are being measured."""
    if not is_pending(s) or s.text is None or s.position is None:
        return ""
    prediction, config = predict(s.text, s.position), s.text.config
    p = percent(prediction.probabilities(s.settings.sampling())[prediction.token].item())
    name = quoted(s.text.tokenizer, prediction.token)
    n_heads = config.n_layer * config.n_head
    return t("why.because.busy", token=name, p=p, heads=n_heads)


def is_pending(s: Snapshot) -> bool:
    """Return whether the causes are still being computed and nothing else is shown."""
    shown = s.state(WhyState).shown
    return s.text is not None and s.text.n_read > 0 and not s.generating and (shown is None or shown.causes is None)


def flow(s: Snapshot) -> dict[str, Any]:
    """Return the data for the `ribbons` widget, without heads if the causes are not known yet or there are none."""
    shown, known = s.state(WhyState).shown, s.cached(falls)
    if s.state(WhyState).by == "concepts":
        return {"heads": [], "is_pending": False}
    found = None if shown is None or known is None else cause_flow(shown.traced, shown.prediction, known)
    if shown is None or known is None or found is None:
        return {"heads": [], "is_pending": is_pending(s)}
    tokenizer = shown.traced.loaded.tokenizer
    after = None
    if shown.without is not None:
        after = four_digits(_probabilities(s, shown)[shown.prediction.token].item())
    off = shown.off
    return {
        "tokens": [[word.start, _word(shown, word), four_digits(p)] for word, p in found.words],
        "heads": [[*head, four_digits(p)] for head, p in found.heads],
        "weights": [[round(float(w), 4) if w >= MIN_WEIGHT else 0 for w in row] for row in found.weights],
        "n_head": shown.traced.model.config.n_head,
        "target": short(tokenizer, shown.prediction.token),
        "before": four_digits(known.probability),
        "after": after,
        "off": {
            "tokens": [[word.start] for word, _ in found.words if word.start in off.tokens],
            "heads": [list(head) for head, _ in found.heads if head in off.heads],
            "reads": [
                [*head, word.start]
                for head, _ in found.heads
                for word, _ in found.words
                if (*head, word.start) in off.reads
            ],
        },
        "says": says(s, shown, known.probability),
        "labels": flow_labels(shown, found),
    }


def _probabilities(s: Snapshot, shown: Explanation) -> Any:
    """Return the probability of each token without the parts that are off, (vocab_size,)."""
    assert shown.without is not None
    kept = [token for i, token in enumerate(shown.prediction.previous) if i not in shown.off.tokens]
    return s.stages(shown.without, kept).final


def _word(shown: Explanation, word: range) -> str:
    ids, tokenizer = shown.prediction.previous, shown.traced.loaded.tokenizer
    return tokenizer.decode([ids[position] for position in word]).strip() or short(tokenizer, ids[word.start])


def says(s: Snapshot, shown: Explanation, whole: float) -> str:
    """Describe the prediction without the parts that are off. `whole` is the probability with everything on."""
    if shown.off == Ablation():
        return t("why.flow.hint")
    if shown.without is None:
        return t("why.flow.busy")
    tokenizer, prediction, p = shown.traced.loaded.tokenizer, shown.prediction, _probabilities(s, shown)
    before, after = percent(whole), percent(p[prediction.token].item())
    text = t(
        "why.flow.without" if before != after else "why.flow.same",
        parts=parts_off(shown),
        token=quoted(tokenizer, prediction.token),
        before=before,
        after=after,
    )
    best = int(p.argmax())
    if best != prediction.token:
        text += t("why.flow.best", best=quoted(tokenizer, best), p=percent(p[best].item()))
    return text


def parts_off(shown: Explanation) -> str:
    """Name the parts that are off, or state their number if there are many."""
    tokenizer, ids = shown.traced.loaded.tokenizer, shown.prediction.previous
    words = words_of(tokenizer, ids)
    names = [word_name(tokenizer, ids, word) for word in words if word.start in shown.off.tokens]
    names += [layer_head_name(head) for head in sorted(shown.off.heads)]
    names += [
        t(
            "why.flow.read",
            head=layer_head_name(place[:2]),
            token=word_name(tokenizer, ids, word),
        )
        for place in sorted(shown.off.reads)
        for word in words
        if word.start == place[2]
    ]
    if len(names) > MAX_NAMED:
        return t("why.flow.parts", n=len(names))
    return t("why.flow.and").join(names)


def flow_labels(shown: Explanation, found: CauseFlow) -> dict[str, str]:
    """Return the labels for the picture. The widget fills in {place}."""
    labels = {
        name: t(f"why.flow.{name}")
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


VIEWS = (View("why-because", answer), View("why-flow", flow))


def four_digits(p: float) -> float:
    """Round a probability to four significant digits, so that small probabilities do not become 0."""
    return float(f"{p:.4g}")
