"""The first screen: the text in the box, the next token and its reason, and the selected head's attention."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from components.causes import Falls, causes_sentence, falls_of, main_word
from components.concepts import (
    risen_sentence,
    steer_data,
    unsteered_probabilities,
)
from components.i18n import t
from components.labels import listed, marked, percent, quoted
from components.next_tokens import best, held_sentence, token_bars
from components.render import Lines, View
from components.state.hidden import CLICKS, HiddenState, WithoutAttention
from components.state.selection import NEWEST
from components.state.snapshot import Snapshot
from components.state.typed_text import offered_text, shown_tokens
from components.tabs.playground.state import ReasonState
from components.text_views import attention_heatmap, head_name, place_after
from components.widgets.chart import chart_data
from components.widgets.composer import box_line, composer_data
from components.widgets.predictions import Bar, predictions_data
from components.words import word_name, words_of
from gpt import Stages
from gpt.models.checkpoints.token_table import Characters
from gpt.tokenizer import Vocabulary, start_ids

MAX_BARS = 20
VISIBLE_BARS = 5  # visible without scrolling
MAX_ARCS = 8
N_SPOKEN = 3  # tokens that a screen reader reads aloud
MIN_ARC_WEIGHT = 0.02  # minimum attention weight of an arc
MIN_ARC_SHARE = 0.04  # minimum share of the probability for an arc


def box(s: Snapshot) -> dict[str, Any]:
    """Show the text in the box, the likely next token, and the words that the prediction depends on."""
    lines, n = Lines(), s.handled.get(CLICKS, 0)
    if s.text is None or s.written is None:
        return composer_data(lines, chat=s.chat, unwritten=s.unwritten, generating=s.generating, edited=s.answered, n=n)
    document, statistics = s.written.document, s.token_statistics.of(s.written.document)
    tokenizer, ids = s.written.tokenizer, s.written.ids
    shown, special = shown_tokens(tokenizer, ids, names=s.special and bool(s.prompt)), tokenizer.special_ids
    pieces = as_typed(shown, s)
    for position, (token_id, piece) in enumerate(zip(ids, pieces, strict=True)):
        measured = statistics[position] if document.origin(position).kind == "sampled" else None
        lines.append(box_line(piece, None if measured is None else measured.probability, control=token_id in special))
    typed = s.typed and s.typed.at(s.written)
    stages = s.cached(stages_of)
    is_last = s.position == len(s.text.ids) - 1
    best_id = None if stages is None or not is_last else int(stages.final.argmax())
    return composer_data(
        lines,
        chat=s.chat,
        words=[word.start for word in words_of(tokenizer, ids)],
        hidden=sorted(s.hidden),
        unwritten=s.unwritten,
        selected=s.written.framed(s.selection),
        ghost="" if best_id is None else offered_text(tokenizer, s.text.ids, best_id, document.held),
        arcs=s.cached(arcs),
        generating=s.generating,
        held=document.held,
        typed=typed.text if typed is not None and typed.text != "".join(pieces) + document.held else None,
        n_after=0 if typed is None else typed.n_after,
        edited=s.answered,
        n=n,
    )


def as_typed(pieces: list[str], s: Snapshot) -> list[str]:
    """Return the pieces of the text, restoring characters of the prompt that the model reads as <unk>."""
    assert s.written is not None
    tokenizer = s.written.tokenizer
    if not isinstance(tokenizer, Characters):
        return pieces
    unknown = [i for i, token in enumerate(s.written.ids[: len(s.prompt)]) if token == tokenizer.unknown_id]
    return [s.prompt[i] if i in unknown else piece for i, piece in enumerate(pieces)] if unknown else pieces


def stages_of(s: Snapshot) -> Stages | None:
    """Return the distribution after the selected position, or None if the model has not read any tokens."""
    if s.text is None or s.text.n_read == 0:
        return None
    position = s.text.at(s.selection)
    return s.stages(s.text.document.logits(position), s.text.ids[: position + 1])


def likeliest(s: Snapshot) -> int | None:
    """Return the likeliest token after the selected position, or None if the model has not read any tokens."""
    stages = s.cached(stages_of)
    return None if stages is None else int(stages.final.argmax())


def asked(s: Snapshot) -> str:
    """Return the question over a new visitor's first text."""
    token = s.cached(likeliest)
    return "" if token is None or s.text is None else t("hero.question", token=quoted(s.text.tokenizer, token))


def stages_as_written(s: Snapshot) -> Stages | None:
    """Return the distribution after the selected position with no words hidden; None if this changes nothing."""
    if s.text is None or s.written is None or not s.cached(hidden_words):
        return None
    position = s.written.at(s.selection)
    return s.stages(s.written.document.logits(position), s.written.ids[: position + 1])


def hidden_words(s: Snapshot) -> frozenset[int]:
    """Return the hidden positions up to and including the selected one, in the text as written."""
    if s.written is None or s.written.n_read == 0:
        return frozenset()
    position = s.written.at(s.selection)
    return frozenset(each for each in s.hidden if each <= position)


def arcs(s: Snapshot) -> list[tuple[int, float]]:
    """Return (position, share) pairs for the words that the prediction depends on, in the text as written.

    The share is the fraction of the probability that is lost without the word. Until it is measured, and while the text
    grows, it is the selected head's attention weight. The list is empty while attention is off.
    """
    if s.text is None or s.state(HiddenState).attention_off:
        return []
    falls = s.cached(reason_falls)
    if falls is None:
        shares = s.cached(attended)
    else:
        words = falls.words[:MAX_ARCS]
        shares = [(fall.place[0], 1 - fall.probability / falls.probability) for fall in words]
        shares = [(position, share) for position, share in shares if share >= MIN_ARC_SHARE]
    return [(s.text.as_written(position), share) for position, share in shares]


def attended(s: Snapshot) -> list[tuple[int, float]]:
    """Return the positions that the selected head attends to most from the selected position, with their weights."""
    if s.text is None or s.text.n_read == 0:
        return []
    position = s.text.at(s.selection)
    row = s.text.document.attn_weights(s.selection.layer, s.selection.head)[position, : position + 1]
    weights = row.float().cpu().numpy()
    most = np.argsort(-weights, kind="stable")[:MAX_ARCS]
    return [(int(i), float(weights[i])) for i in most if weights[i] >= MIN_ARC_WEIGHT]


def bars(s: Snapshot) -> dict[str, Any]:
    """Show the most probable tokens after the selected one.

    A second bar behind each bar shows the probability with all words (if some are hidden), without the turned-up
    concepts (if there are any) or before applying the sampling settings (if exact numbers are shown).
    """
    stages, chosen = s.cached(stages_of), _chosen(s)
    title = t("bars.question" if chosen is None else "bars.question.chosen")
    if s.text is None or s.written is None or stages is None:
        return predictions_data(title, "", [])
    tokenizer, position = s.text.tokenizer, s.text.at(s.selection)
    whole, plain = s.cached(stages_as_written), unsteered_probabilities(s)
    final = before = stages.final.numpy()
    if whole is not None:
        before = whole.final.numpy()
    elif plain is not None:
        before = plain.numpy()
    elif s.numbers:
        before = stages.raw.numpy()
    listed, ids = _bars(tokenizer, before, final, (chosen, int((whole or stages).final.argmax())), s)
    token = s.text.ids[position]
    text = t("bars.position", token=quoted(tokenizer, token)) if [token] != start_ids(tokenizer) else ""
    total = len(tokenizer.ids_after(s.text.document.held_after(position))) or len(final)
    removed = total - int(stages.kept.sum())
    if chosen is not None:
        text += t("bars.says.chosen", chosen=quoted(tokenizer, chosen), p=percent(final[chosen]))
    if not s.cached(hidden_words):
        text += s.cached(steered_sentence)
    text += held_sentence(s.text.document, position)
    if removed:
        text += t("bars.says.removed", removed=f"{removed:,}", total=f"{total:,}")
    if not np.array_equal(before, final):
        text += t(f"bars.pale.{_behind(s)}")
    at = -1 if chosen is None else ids.index(chosen)
    place = place_after(s.written.document, s.written.at(s.selection))
    return predictions_data(title, text, listed, place, chosen=at, others=_others(final, ids))


def _others(final: np.ndarray, ids: Sequence[int]) -> str:
    """Return how many tokens are not among the visible bars, and their probability."""
    n = len(final) - VISIBLE_BARS
    share = 1 - float(final[list(ids[:VISIBLE_BARS])].sum())
    return t("bars.others", n=f"{n:,}", share=percent(share)) if n > 0 else ""


def _bars(
    tokenizer: Vocabulary, before: np.ndarray, final: np.ndarray, also: Sequence[int | None], s: Snapshot
) -> tuple[list[Bar], list[int]]:
    """Return bars for the likeliest tokens and those in `also`, likeliest first, and their ids.

    The first token in `also` is always among the visible bars.
    """
    ids = best(final, before, MAX_BARS).tolist()
    missing = [each for each in dict.fromkeys(also) if each is not None and each not in ids]
    ids = sorted([*ids[: MAX_BARS - len(missing)], *missing], key=lambda i: -final[i])
    if also and also[0] in ids[VISIBLE_BARS:]:  # the token that follows in the text must be visible
        ids.insert(VISIBLE_BARS - 1, ids.pop(ids.index(also[0])))
    has_changed = not np.array_equal(before, final)
    says = f"bars.row.{_behind(s)}" if has_changed else "bars.row.one"
    return token_bars(tokenizer, ids, before, final, says), ids


def _behind(s: Snapshot) -> str:
    """Return the suffix of the keys that describe the bars in the background."""
    if s.cached(hidden_words):
        return "hidden"
    return "settings" if unsteered_probabilities(s) is None else "steered"


def bars_off(s: Snapshot) -> dict[str, Any]:
    """Show the most probable tokens without attention."""
    title, found = t("attention.off.title"), s.cached(_measured)
    if s.text is None or found is None:
        return predictions_data(title, "", [])
    final = s.stages(found.logits, s.text.ids[: found.position + 1]).final.numpy()
    listed, _ = _bars(s.text.tokenizer, final, final, (), s)
    return predictions_data(title, t("attention.off.says"), listed)


def goes_on(s: Snapshot) -> dict[str, Any]:
    """Show how the text would continue with attention and, under "off", without it."""
    found = s.cached(_measured)
    if not s.state(HiddenState).attention_off or found is None:
        return {"text": "", "off": ""}
    texts = {"text": found.goes_on, "off": found.off_goes_on}
    return {key: t("goes_on.says", text=marked(text).strip()) for key, text in texts.items()}


def _measured(s: Snapshot) -> WithoutAttention | None:
    """Return the prediction without attention if it belongs to this position."""
    found = s.state(HiddenState).measured
    is_here = s.text is not None and found is not None and found.belongs_to(s.text, s.text.at(s.selection))
    return found if is_here else None


def why(s: Snapshot) -> dict[str, Any]:
    """Describe what the prediction depends on, or what has changed without the hidden words.

    Until this is measured, describe what the selected head attends to.
    """
    if s.text is None or s.text.n_read == 0:
        return {"text": ""}
    if measured := s.cached(hidden_sentence) or s.cached(measured_reason):
        return {"text": measured}
    if not (attention := s.cached(attended)):
        return {"text": ""}
    tokenizer = s.text.tokenizer
    targets = t("list.and").join(f"{quoted(tokenizer, s.text.ids[i])} ({percent(w)})" for i, w in attention[:2])
    head = head_name(s.selection.head)
    return {"text": t("reason.attention", layer=s.selection.layer, head=head, targets=targets)}


def reason_falls(s: Snapshot) -> Falls | None:
    """Return how far the next token's probability falls without each word and head, or None if not measured yet."""
    reason = s.state(ReasonState).reason
    if s.text is None or s.text.n_read == 0 or reason is None or not reason.belongs_to(s.text, s.text.at(s.selection)):
        return None
    return falls_of(reason.causes, s.text.ids[: reason.position + 1], s.settings.sampling())


def measured_reason(s: Snapshot) -> str:
    """Name the word that the prediction depends on most; "" if it is not measured yet."""
    reason, falls = s.state(ReasonState).reason, s.cached(reason_falls)
    if s.text is None or reason is None or falls is None:
        return ""
    ids = s.text.ids[: reason.position + 1]
    return causes_sentence(falls, reason.token, ids, s.text.tokenizer)


def main_word_name(s: Snapshot) -> str:
    """Name the word that the prediction depends on most, as in `measured_reason`; "" if there is none."""
    reason, falls = s.state(ReasonState).reason, s.cached(reason_falls)
    if s.text is None or reason is None or falls is None or (best := main_word(falls)) is None:
        return ""
    return word_name(s.text.tokenizer, s.text.ids[: reason.position + 1], best.place)


def hide_label(s: Snapshot) -> str:
    """Return the label of the button that hides the word named in the sentence, or shows all words."""
    if s.cached(hidden_words):
        return t("hide.none")
    word = s.cached(main_word_name)
    return t("hide.main", word=word) if word else t("hide.main.none")


def can_hide(s: Snapshot) -> bool:
    """Return whether the button has a word to hide or to show."""
    return bool(s.cached(hidden_words) or s.cached(main_word_name))


def hidden_sentence(s: Snapshot) -> str:
    """Describe how the next token's probability has changed without the hidden words, and what is likeliest now.

    Returns "" if no word is hidden.
    """
    hidden, whole, now = s.cached(hidden_words), s.cached(stages_as_written), s.cached(stages_of)
    if s.written is None or whole is None or now is None:
        return ""
    tokenizer, ids = s.written.tokenizer, s.written.ids
    token = _chosen(s)
    token = int(whole.final.argmax()) if token is None else token
    words = [word for word in words_of(tokenizer, ids) if word.start in hidden]
    name = word_name(tokenizer, ids, words[0]) if len(words) == 1 else t("hidden.words", n=len(words))
    before, after = percent(whole.final[token].item()), percent(now.final[token].item())
    values = {"word": name, "token": quoted(tokenizer, token), "before": before, "after": after}
    has_risen = now.final[token] > whole.final[token]
    key = "hidden.says.same" if before == after else "hidden.says.more" if has_risen else "hidden.says"
    sentence = t(key, **values)
    best = int(now.final.argmax())
    if best != token:
        sentence += t("hidden.best", best=quoted(tokenizer, best), p=percent(now.final[best].item()))
    return sentence


def steered_sentence(s: Snapshot) -> str:
    """Name what the turned-up concepts make likelier; "" if no concepts are turned up or nothing is measured yet."""
    stages = s.cached(stages_of)
    return "" if stages is None else risen_sentence(s, stages.final)


def spoken(s: Snapshot) -> dict[str, Any]:
    """Return the text that screen readers announce once the visitor stops editing or selecting."""
    stages = s.cached(stages_of)
    reason = s.cached(hidden_sentence) or s.cached(steered_sentence) or s.cached(measured_reason)
    is_first = s.last_action is None and s.throughput is None and s.selection.position == NEWEST
    if s.text is None or stages is None or not reason or is_first or s.generating or s.unwritten is not None:
        return {"text": ""}
    tokenizer = s.text.tokenizer
    likeliest = [
        (quoted(tokenizer, int(i)), percent(float(stages.final[i]))) for i in stages.final.topk(N_SPOKEN).indices
    ]
    token = quoted(tokenizer, s.text.ids[s.text.at(s.selection)])
    likeliest_words = listed(f"{name} {p}" for name, p in likeliest)
    return {"text": t("bars.spoken", token=token, likeliest=likeliest_words) + reason}


def concepts(s: Snapshot) -> dict[str, Any]:
    """Show the concepts that can be turned up, and their effect."""
    return steer_data(s)


def heatmap(s: Snapshot) -> dict[str, Any]:
    """Show the selected head's attention weights."""
    if s.text is None or s.text.n_read == 0:
        return chart_data(None, "", cells=Lines())
    return attention_heatmap(s.text, s.selection)


def _chosen(s: Snapshot) -> int | None:
    """Return the token that follows the selected one in the text."""
    if s.text is None or s.text.n_read == 0:
        return None
    after = s.text.at(s.selection) + 1
    return s.text.ids[after] if after < len(s.text.ids) else None


VIEWS = (
    View("box", box),
    View("bars", bars),
    View("bars-off", bars_off),
    View("goes-on", goes_on),
    View("reason", why),
    View("spoken", spoken),
    View("concepts", concepts),
    View("heatmap", heatmap),
)
