"""The path of one prediction: from the words that it depends on, through a head and a feed-forward network."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import torch

from components.causes import Fall, causes_sentence, is_seen, main_word, reason, reason_falls
from components.errors import NothingToShow
from components.i18n import t
from components.labels import bar_label, percent, quoted
from components.next_tokens import best
from components.state.reads import Pending
from components.state.typed_text import word_name, words_of
from components.tabs.inside.scene import scene_of, tab, traced
from gpt.analysis.attribution import contribution_to_logit

MAX_WORDS = 10  # rows
MAX_CAUSES = 3  # words from which the path starts
MIN_CAUSE = 0.04  # minimum share of the probability that is lost without a word
MIN_LOOK = 0.05  # minimum attention of the head to a word on its path
N_NEXT = 3


@tab.computed
def added(s: Any) -> list[float]:
    """Return what each feed-forward network adds to the score of the predicted token, (n_layer,)."""
    found = s[reason]
    if found is None:
        raise NothingToShow
    trace, model = s[traced], s.text.loaded.model
    contribution = contribution_to_logit(model, trace, 0, found.token)
    return torch.stack([contribution(layer.mlp_out[0, 0].float()) for layer in trace.layers]).tolist()


class Path(NamedTuple):
    """The parts of a path.

    token: the predicted token. causes: share of the probability that is lost without a word, by its index. main: the
    word that matters most, or None if no single word matters; then every word is a cause, with the share by which the
    probability changes without it. head: the head that matters most, or None if no single head matters. looks: share of
    the head's attention to each word, (words,). writer: the layer, from the head's on, whose feed-forward network adds
    most to the token's score; None if none adds to it, or until this is known.
    """

    ids: Sequence[int]
    token: int
    words: Sequence[range]
    causes: dict[int, float]
    main: Fall | None
    head: Fall | None
    looks: Sequence[float]
    writer: int | None


def path(s: Any) -> Path:
    """Return the path of the next token: the one in the text or, at its end, the likeliest."""
    scene, found, falls = s.cached(scene_of), s[reason], s.cached(reason_falls)
    if found is None or falls is None:
        raise NothingToShow
    if found.ids != scene.recording.ids[: scene.position + 1]:
        raise Pending
    words = words_of(scene.tokenizer, found.ids)
    index = {word.start: i for i, word in enumerate(words)}
    head = next((fall for fall in falls.heads if is_seen(falls, fall)), None)
    looks = [0.0] * len(words)
    if head is not None:
        layer, number = head.place
        weights = scene.recording.attn_weights(layer, scene.position, scene.position + 1)[number, 0]
        looks = [float(weights[word.start : word.stop].sum()) for word in words]
    main = main_word(falls, found.ids, scene.tokenizer)
    if main is None:  # every word counts a little, for or against
        first, least = falls.all_words, 0.0
    else:
        first, least = sorted(falls.words, key=lambda fall: fall is not main)[:MAX_CAUSES], MIN_CAUSE
    shares = [(fall, abs(1 - fall.probability / falls.probability)) for fall in first]
    causes = {index[fall.place[0]]: share for fall, share in shares if fall is main or share >= least}
    scores = s.ready(added) or [0.0]
    writer = max(range(0 if head is None else head.place[0], len(scores)), key=scores.__getitem__, default=0)
    return Path(found.ids, found.token, words, causes, main, head, looks, writer if scores[writer] > 0 else None)


def draw(s: Any) -> dict[str, Any]:
    found = s.cached(path)
    scene = s.cached(scene_of)
    ids, final = found.ids, scene.stages(scene.document.logits(scene.position)).final
    looked = max(range(len(found.looks)), key=lambda i: found.looks[i], default=0)
    causes = found.causes
    on_path = [i for i in causes if found.looks[i] >= MIN_LOOK] or ([looked] if found.head else [])
    rows = shown_rows(len(found.words), {*sorted(causes, key=lambda i: -causes[i])[: MAX_WORDS // 2], *on_path})
    likeliest = best(final.numpy(), final.numpy(), N_NEXT).tolist()
    next_ids = [found.token, *(i for i in likeliest if i != found.token)][:N_NEXT]
    main = None if found.main is None else found.main.place[0]
    return {
        "words": [
            {
                "text": scene.tokenizer.decode([ids[k] for k in found.words[i]]).strip() or "·",
                "skipped": i - (rows[row - 1] + 1 if row else 0),
                "share": causes.get(i, 0.0),
                "look": found.looks[i] if i in on_path else 0.0,
                "without": found.main.probability if found.words[i].start == main else None,
            }
            for row, i in enumerate(rows)
        ],
        "n_layer": scene.config.n_layer,
        "together": found.main is None,
        "head": None if found.head is None else [*found.head.place, found.head.probability],
        "writer": found.writer,
        "next": [[bar_label(scene.tokenizer, i), float(f"{final[i]:.4g}")] for i in next_ids],
        "name": says(s),
    }


def shown_rows(count: int, kept: Collection[int]) -> list[int]:
    """Return the words that are shown, in text order: those in `kept`, the last ones, and as many others as fit."""
    order = dict.fromkeys((count - 1, *sorted(kept), *reversed(range(count))))
    return sorted(list(order)[:MAX_WORDS])


def says(s: Any) -> str:
    found = s.cached(path)
    falls, tokenizer, ids = s.cached(reason_falls), s.cached(scene_of).tokenizer, found.ids
    token = quoted(tokenizer, found.token)
    text = causes_sentence(falls, found.token, ids, tokenizer)
    if found.head is None:
        return text + t("path.many", token=token)
    looked = max(range(len(found.words)), key=lambda i: found.looks[i])
    layer, head = found.head.place
    text += t(
        "path.head.itself" if looked == len(found.words) - 1 else "path.head",
        layer=layer,
        head=head,
        last=word_name(tokenizer, ids, found.words[-1]),
        looked=word_name(tokenizer, ids, found.words[looked]),
        share=percent(found.looks[looked]),
        token=token,
        without=percent(found.head.probability),
    )
    return text if found.writer is None else text + t("path.writer", layer=found.writer)
