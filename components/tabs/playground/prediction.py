"""The next token: its bars, what it depends on, the prediction without attention, and the selected head."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from torch import Tensor

from components.causes import Fall, causes_sentence, chosen_token, main_word, reason, reason_falls
from components.concepts import continuation_settings, risen_sentence, unsteered_probabilities
from components.i18n import t
from components.kit import Tab, no_text
from components.labels import listed, marked, percent, quoted
from components.next_tokens import best, held_sentence, no_bars, token_bars
from components.state.hidden import hide, show_all
from components.state.reads import Reads
from components.state.session import Session
from components.state.text import NEWEST
from components.state.typed_text import word_name, words_of
from components.text_views import AVERAGE, attention_heatmap, head_name, heatmap_window, place_after
from components.widgets.simple import growth_data
from gpt import Edits, Generation, Stages
from gpt.background import threads_for
from gpt.inference.packed_weights import multiplications_per_token
from gpt.tokenizer import start_ids
from gpt.training.snapshots import bundled_recording

MAX_BARS = 20  # with all controls
VISIBLE_BARS = 5  # visible without scrolling
MAX_ARCS = 8
N_SPOKEN = 3  # tokens that a screen reader reads aloud
MIN_ARC_WEIGHT = 0.02  # minimum attention weight of an arc
MIN_ARC_SHARE = 0.04  # minimum share of the probability for an arc
GOES_ON_TOKENS = 12

tab = Tab("playground")


@tab.computed
def without_attention(s: Any) -> tuple[Tensor, str, str]:
    """Return the next-token logits without attention, (vocab_size,), and the text's end with and without it."""
    loaded, edits, ids = s.text_read().loaded, s.text.document.edits, s.text.ids[: s.position + 1]
    held, settings = s.text.document.held_after(s.position), continuation_settings(s)
    layers = range(loaded.model.config.n_layer)
    off = replace((edits or Edits()).for_any_text(), attn_scale=dict.fromkeys(layers, 0.0))
    with threads_for(len(ids) * multiplications_per_token(loaded.model)):
        documents = [Generation(loaded, ids, edits=each, held=held) for each in (edits, off)]
        texts = ["".join(step.text for step in each.steps(settings, GOES_ON_TOKENS)) for each in documents]
    return documents[1].logits(len(ids) - 1), texts[0], texts[1]


def stages_of(s: Any) -> Stages | None:
    """Return the distribution after the selected position, or None if the model has not read any tokens."""
    if s.text is None or s.text.n_read == 0:
        return None
    return s.stages(s.text.document.logits(s.position), s.text.ids[: s.position + 1])


def asked(s: Any) -> str:
    stages = s.cached(stages_of)
    return "" if stages is None else t("hero.question", token=quoted(s.text.tokenizer, int(stages.final.argmax())))


def learned(s: Any) -> dict[str, Any]:
    figures = bundled_recording().figures.values()
    return growth_data(t("hero.learned"), [(each.step, each.prompt + each.sample, each.loss) for each in figures])


def stages_as_written(s: Any) -> Stages | None:
    """Return the distribution after the selected position with no words hidden; None if this changes nothing."""
    if not s.cached(hidden_words):
        return None
    position = s.written.at(s.selection)
    return s.stages(s.written.document.logits(position), s.written.ids[: position + 1])


def hidden_words(s: Any) -> frozenset[int]:
    """Return the hidden positions up to and including the selected one, in the text as written."""
    if s.text is None or s.written.n_read == 0:
        return frozenset()
    position = s.written.at(s.selection)
    return frozenset(each for each in s.hidden if each <= position)


def bars(s: Any) -> dict[str, Any]:
    """Show the most probable tokens after the selected one.

    A second bar behind each bar shows the probability with all words (if some are hidden), without the turned-up
    concepts (if there are any) or before applying the sampling settings (if exact numbers are shown).
    """
    stages, chosen = s.cached(stages_of), chosen_token(s)
    title = t("bars.question" if chosen is None else "bars.question.chosen")
    if stages is None:
        return no_bars(title)
    document, tokenizer, position = s.text.document, s.text.tokenizer, s.position
    whole, plain = s.cached(stages_as_written), unsteered_probabilities(s)
    final = stages.final.numpy()
    behind, before = "settings", stages.raw.numpy() if s.numbers else final
    if whole is not None:
        behind, before = "hidden", whole.final.numpy()
    elif plain is not None:
        behind, before = "steered", plain.numpy()
    ids = _listed(s, before, final, (chosen, int((whole or stages).final.argmax())))
    token = s.text.ids[position]
    text = t("bars.position", token=quoted(tokenizer, token)) if [token] != start_ids(tokenizer) else ""
    if chosen is not None:
        text += t("bars.says.chosen", chosen=quoted(tokenizer, chosen), p=percent(final[chosen]))
    if whole is None:
        text += s.cached(steered_sentence)
    text += held_sentence(document, position)
    total = len(tokenizer.ids_after(document.held_after(position))) or len(final)
    if removed := total - int(stages.kept.sum()):
        text += t("bars.says.removed", removed=f"{removed:,}", total=f"{total:,}")
    says = "bars.row.one"
    if before is not final and not np.array_equal(before, final):
        says, text = f"bars.row.{behind}", text + t(f"bars.thick.{behind}")
    place = place_after(s.written.document, s.written.at(s.selection))
    n, share = len(final) - VISIBLE_BARS, 1 - float(final[ids[:VISIBLE_BARS]].sum())
    others = t("bars.others", n=f"{n:,}", share=percent(share)) if n > 0 else ""
    return token_bars(title, tokenizer, ids, before, final, says, text=text, chosen=chosen, others=others, sends=place)


def _listed(s: Any, before: np.ndarray, final: np.ndarray, also: Sequence[int | None] = ()) -> list[int]:
    """Return the ids of the likeliest tokens and those in `also`, the first of which is among the visible bars."""
    count = MAX_BARS if s.more_controls else VISIBLE_BARS
    ids = best(final, before, count).tolist()
    missing = [each for each in dict.fromkeys(also) if each is not None and each not in ids]
    ids = sorted([*ids[: count - len(missing)], *missing], key=lambda i: -final[i])
    if also and also[0] in ids[VISIBLE_BARS:]:  # the token that follows in the text must be visible
        ids.insert(VISIBLE_BARS - 1, ids.pop(ids.index(also[0])))
    return ids


def bars_off(s: Any) -> dict[str, Any]:
    title = t("attention.off.title")
    if no_text(s):
        return no_bars(title)
    final = s.stages(s[without_attention][0], s.text.ids[: s.position + 1]).final.numpy()
    ids = _listed(s, final, final)
    return token_bars(title, s.text.tokenizer, ids, final, final, "bars.row.one", text=t("attention.off.says"))


def goes_on(s: Any, *, is_off: bool = False) -> str:
    """Show how the text would continue with or without attention, if the prediction without it is shown too."""
    if not s.attention_off:
        return ""
    return t("goes_on.says", text=marked(s[without_attention][1 + is_off]).strip())


def switch_attention(session: Session) -> None:
    session.attention_off = not session.attention_off


def arcs(s: Any) -> list[tuple[int, float]]:
    """Return (position in the text as written, share) of the words that the prediction depends on, if attention is on.

    The share is the fraction of the probability that is lost without the word. Until it is measured, and while the text
    grows, it is the selected head's attention weight.
    """
    if s.text is None or s.attention_off:
        return []
    falls = s.cached(reason_falls)
    if falls is None:
        shares = s.cached(attended)
    else:
        words = falls.words[:MAX_ARCS]
        shares = [(fall.place[0], 1 - fall.probability / falls.probability) for fall in words]
        shares = [(position, share) for position, share in shares if share >= MIN_ARC_SHARE]
    return [(s.text.as_written(position), share) for position, share in shares]


def effects(s: Any) -> list[tuple[int, float, float]]:
    """Return the position in the text as written, the probability and that without the word, for each measured word."""
    falls = None if s.text is None or s.attention_off else s.cached(reason_falls)
    if falls is None:
        return []
    return [(s.text.as_written(fall.place[0]), falls.probability, fall.probability) for fall in falls.all_words]


def attended(s: Any) -> list[tuple[int, float]]:
    """Return the positions that the selected head attends to most from the selected position, with their weights."""
    if s.text is None or s.text.n_read == 0:
        return []
    row = s.text.document.attn_weights(s.selection.layer, s.selection.head, start=s.position, stop=s.position + 1)
    weights = row[0].cpu().numpy()
    most = np.argsort(-weights, kind="stable")[:MAX_ARCS]
    return [(int(i), float(weights[i])) for i in most if weights[i] >= MIN_ARC_WEIGHT]


def why(s: Any) -> str:
    """Name what the prediction depends on; before this is measured, what the selected head attends to."""
    s.text_read()
    if measured := s.cached(hidden_sentence) or s.cached(measured_reason):
        return str(measured)
    if not (attention := s.cached(attended)):
        return ""
    tokenizer = s.text.tokenizer
    targets = t("list.and").join(f"{quoted(tokenizer, s.text.ids[i])} ({percent(w)})" for i, w in attention[:2])
    return t("reason.attention", layer=s.selection.layer, head=head_name(s.selection.head), targets=targets)


def measured_reason(s: Any) -> str:
    """Name the word that the prediction depends on most; "" if it is not measured yet."""
    found, falls = s.ready(reason), s.cached(reason_falls)
    return "" if falls is None else causes_sentence(falls, found.token, found.ids, s.text.tokenizer)


def named_word(s: Any) -> Fall | None:
    """Return the word that the prediction depends on most, as in `measured_reason`, or None."""
    falls = s.cached(reason_falls)
    return None if falls is None else main_word(falls, s.ready(reason).ids, s.text.tokenizer)


def hide_label(s: Any) -> str:
    if hidden := s.cached(hidden_words):
        return t("hide.none", n=sum(word.start in hidden for word in words_of(s.written.tokenizer, s.written.ids)))
    if (word := s.cached(named_word)) is None:
        return t("hide.main.none")
    return t("hide.main", word=word_name(s.text.tokenizer, s.ready(reason).ids, word.place))


def can_hide(s: Any) -> bool:
    """Return whether the button has a word to hide or to show."""
    return bool(s.cached(hidden_words)) or s.cached(named_word) is not None


def hide_main(session: Session) -> None:
    """Hide the word that the prediction depends on most. If any words are hidden, show all words instead."""
    s = Reads(session.snapshot())
    if s.hidden:
        show_all(session)
    elif (word := named_word(s)) is not None:
        hide(session, word.place)


def hidden_sentence(s: Any) -> str:
    """Describe what has changed for the next token without the hidden words; "" if no word is hidden."""
    whole, now = s.cached(stages_as_written), s.cached(stages_of)
    if whole is None or now is None:
        return ""
    tokenizer, ids, chosen = s.written.tokenizer, s.written.ids, chosen_token(s)
    token = int(whole.final.argmax()) if chosen is None else chosen
    words = [word for word in words_of(tokenizer, ids) if word.start in s.cached(hidden_words)]
    name = word_name(tokenizer, ids, words[0]) if len(words) == 1 else t("hidden.words", n=len(words))
    before, after = percent(whole.final[token].item()), percent(now.final[token].item())
    has_risen = now.final[token] > whole.final[token]
    key = "hidden.says.same" if before == after else "hidden.says.more" if has_risen else "hidden.says"
    sentence = t(key, word=name, token=quoted(tokenizer, token), before=before, after=after)
    likeliest = int(now.final.argmax())
    if likeliest != token:
        p = percent(now.final[likeliest].item())
        sentence += t("hidden.best", best=quoted(tokenizer, likeliest), p=p)
    return sentence


def steered_sentence(s: Any) -> str:
    """Name what the turned-up concepts make likelier; "" if no concepts are turned up or nothing is measured yet."""
    stages = s.cached(stages_of)
    return "" if stages is None else risen_sentence(s, stages.final)


def spoken(s: Any) -> str:
    """Return the text that screen readers announce once the visitor stops editing or selecting."""
    stages = s.cached(stages_of)
    depends = s.cached(hidden_sentence) or s.cached(steered_sentence) or s.cached(measured_reason)
    is_first = s.last_action is None and s.throughput is None and s.selection.position == NEWEST
    if stages is None or not depends or is_first or s.generating or s.unwritten is not None:
        return ""
    tokenizer, ids = s.text.tokenizer, stages.final.topk(N_SPOKEN).indices.tolist()
    likeliest = listed(f"{quoted(tokenizer, i)} {percent(float(stages.final[i]))}" for i in ids)
    return t("bars.spoken", token=quoted(tokenizer, s.text.ids[s.position]), likeliest=likeliest) + depends


def heatmap(s: Any) -> dict[str, Any]:
    return attention_heatmap(s.text_read(), s.selection)


def select_row(session: Session, sent: dict[str, Any]) -> None:
    row, text = sent.get("y"), session.snapshot().text
    if text is not None and type(row) is int:
        session.select(position=heatmap_window(text.n_read, text.at(session.selection))[0] + row)


def choose_head(session: Session, head: object) -> None:
    """Select a head on all tabs, or the average of all. head: from the browser, unchecked."""
    if head == AVERAGE:
        session.selection = replace(session.selection, head=None)
    else:
        session.select(head=head)
