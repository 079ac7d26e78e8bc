"""The film: a stage over the whole window, on which the model reads the visitor's text, with its true numbers.

It changes nothing: not the text, not the selection, not the settings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from components.cards.card import Card, add_cards
from components.causes import main_word, reason, reason_falls
from components.errors import PageError
from components.events import Events
from components.i18n import t
from components.kit import card
from components.labels import alone, percent, quoted, token_text
from components.next_tokens import best
from components.state.example import language_of_model
from components.state.reads import Pending
from components.state.session import Session
from components.state.snapshot import Snapshot
from components.state.typed_text import shown_tokens, word_name, words_of
from components.tabs.inside.machine import strip, strips_of
from components.tabs.inside.scene import Chosen, Scene, model_of, scene_of, tab, traced
from components.widgets.flow import packed
from components.widgets.widget import widget
from gpt import Generation, LoadedModel, Trace
from gpt.analysis.lens import lens_logits
from gpt.sampling import cumulative_draw, uniform_draw
from gpt.tokenizer import Vocabulary

_TEMPLATE = """<dialog class="gb-film dark" tabindex="-1">
<header><h2></h2><button type="button" class="gb-film-close">✕</button></header>
<canvas aria-hidden="true"></canvas>
<p class="gb-film-says" aria-live="polite"></p>
<section class="gb-film-end" hidden><h2></h2>
<button type="button" data-next="hide"></button><button type="button" data-next="layer"></button>
<button type="button" data-next="challenge"></button><button type="button" class="gb-film-again"></button></section>
<div class="gb-film-bar">
<button type="button" class="gb-film-back">‹</button>
<button type="button" class="gb-film-play">▶</button>
<button type="button" class="gb-film-forward">›</button>
<div class="gb-film-time"><ol></ol><input type="range" min="0" step="0.05" value="0"></div>
<button type="button" class="gb-film-screen"><svg viewBox="0 0 16 16" width="16" height="16" \
aria-hidden="true"><path d="M2 6V2h4M10 2h4v4M14 10v4h-4M6 14H2v-4"/></svg></button>
</div></dialog>"""

ASKED = 4  # tokens that the query visits
N_GUESSES = 6  # layers whose prediction is shown
PIECES = 6  # candidates on the line from which a token is drawn
N_NEXT = 3  # next tokens shown after a text
CHARACTERS = 160  # maximum length of the visible end of the text
BEATS = {
    1: {"yours": 7, "cause": 7},
    2: {"ending": 5, "differ": 7, "blind": 7},
    3: {"rows": 7, "ask": 6, "answer": 8, "mix": 6, "add": 6},
    4: {"neurons": 6, "layers": 7, "next": 5, "draw": 6, "written": 5},
}  # duration in s of the beats of each chapter; their texts are "film.<name>" and "film.<name>.title"
NAMES = tuple(name for beats in BEATS.values() for name in beats)
TEXTS = {
    "en": (("Tom got a cat.", "Tom got a bike."), "He loves his", ("cat", "bike")),
    "zh": (("江路落残阳。", "江路落残花。"), "戍楼望归客，夜夜梦还", ("阳", "花")),  # rhyme decides the next token
}  # two beginnings, their shared ending, and the words in which they differ, for each model language
Data = dict[str, Any]
Stories = list[tuple[tuple[int, ...], Tensor]]


@torch.inference_mode()
def read_stories(loaded: LoadedModel) -> Stories:
    """Read two sentences with the same ending, and the ending alone; [] if the model cannot read them.

    Returns the ids of the three texts and the logits after each, (vocab_size,).
    """
    language = language_of_model(loaded.name)
    starts, ending, _ = TEXTS[language]
    between = " " if language == "en" else "\n"
    read = []
    for text in (*(f"{start}{between}{ending}" for start in starts), ending):
        try:
            document = Generation(loaded, text)
            document.read()
        except ValueError:  # unknown characters, or the context is too short
            return []
        read.append((tuple(document.ids), document.logits(len(document.ids) - 1)))
    return read


@tab.computed(while_writing=True)
def stories(s: Any) -> Stories:
    return read_stories(model_of(s))


def draw_film(s: Any) -> Data:
    """Draw the film if it is open; until its numbers are ready, only which beat is open."""
    if s.film is None or s.text is None:
        return {"beat": None, "film": None}
    chosen = s[Chosen]
    beat = s.film if s.film in NAMES else NAMES[0]
    opened = {"beat": beat, "played": chosen.film_played, "clicks": chosen.film_clicks, "film": None}
    try:
        return opened | {"plays": chosen.film_plays, "film": film(s, s.cached(scene_of))}
    except Pending:
        return opened


def film(s: Any, scene: Scene) -> Data:
    (cause, said), falls = main_cause(s), s.cached(reason_falls)
    recording, config, layer, position = scene.recording, scene.config, scene.layer, scene.position
    guesses, drawn, told = _guesses(scene, s[traced]), _draw(s, scene), _stories(s)
    weights = recording.attn_weights(layer, position, position + 1)[:, 0].float().numpy()
    asked, target = asked_positions(weights[scene.head]), int(weights[scene.head, : position + 1].argmax())
    values = {
        "target": scene.quoted(target),
        "share": percent(float(weights[scene.head, target])),
        "before": str(layer - 1),
        "token": scene.quoted(position),
        "layer": layer,
        "n_layer": config.n_layer,
        "deepest": config.n_layer - 1,
        "n_head": config.n_head,
        "width": f"{config.n_embd:,}",
        "n_ff": f"{config.ff_size:,}",
        "active": f"{recording.neurons(layer, position)['active']:,.0f}",
        "vocabulary": f"{scene.tokenizer.n_vocab:,}",
        "first": f"“{guesses[0]['token'].strip()}”",
        "last": f"“{guesses[-1]['token'].strip()}”",
        **drawn.pop("values"),
        **said,
    }
    for name, [(token, p), *_] in zip(("one", "other", "alone"), told["next"], strict=False):
        values |= {name: f"“{token.strip()}”", f"{name}_p": percent(p)}
    variants = {
        "yours": "hidden" if s.hidden else "",
        "cause": "" if cause else "none" if falls is None or falls.all_words else "alone",
        "rows": {0: "first", 1: "second"}.get(layer, ""),
        "layers": "one" if config.n_layer == 1 else "",
        "draw": "greedy" if drawn["number"] is None else "",
    }
    if not told["next"]:
        variants |= dict.fromkeys(("ending", "differ", "blind"), "unreadable")
    elif told["next"][0][0][0] == told["next"][1][0][0]:
        variants |= dict.fromkeys(("differ", "blind"), "unsuited")
    words = {}
    for beat in NAMES:
        key = f"film.{beat}.{variants[beat]}" if variants.get(beat) else f"film.{beat}"
        words[beat] = {"title": t(f"film.{beat}.title", **values), "says": t(key, **values)}
    final = scene.stages(scene.document.logits(position)).final
    neurons = s[traced].layers[layer].mlp_post[0, 0].float().numpy()
    return {
        "beats": [
            {"name": name, "chapter": n, "seconds": x} for n, beats in BEATS.items() for name, x in beats.items()
        ],
        "chapters": [t(f"film.act.{n}") for n in BEATS],
        "words": words,
        "layer": layer,
        "text": _written(s, position, asked, cause),
        "asked": [alone(token_text(scene.tokenizer, recording.ids[i])) for i in asked],
        "weights": np.round(weights[:, asked], 6).tolist(),
        "head": scene.head,
        "strips": _strips(scene, asked, [guess["layer"] for guess in guesses]),
        "neurons": packed(neurons, float(np.percentile(np.abs(neurons), 99)), signed=False),
        "next": _likeliest(scene.tokenizer, final, 5),
        "stories": told,
        "guesses": guesses,
        "draw": drawn,
    }


def main_cause(s: Any) -> tuple[Sequence[int], dict[str, str]]:
    """Return the word that the prediction depends on most, in the text as the model reads it, and what is said of it.

    Both are empty if no word stands out or nothing has been measured yet.
    """
    found, falls = s.ready(reason), s.cached(reason_falls)
    if found is None or falls is None or (word := main_word(falls, found.ids, s.text.tokenizer)) is None:
        return (), {}
    tokenizer = s.text.tokenizer
    names = {"word": word_name(tokenizer, found.ids, word.place), "guess": quoted(tokenizer, found.token)}
    return word.place, names | {"guess_p": percent(falls.probability), "without": percent(word.probability)}


def asked_positions(weights: np.ndarray) -> list[int]:
    """Return the last position and those with the largest weights (position + 1,), in text order."""
    position = len(weights) - 1
    return sorted([*sorted(range(position), key=lambda i: -weights[i])[: ASKED - 1], position])


def _strips(scene: Scene, asked: list[int], layers: list[int]) -> dict[str, Data]:
    """Return the vectors of the asked positions and, as "stack", the last position's after some layers."""
    recording = scene.recording
    strips = strips_of(scene, recording.head(scene.layer, scene.head), asked)
    if scene.config.parallel:
        strips["mid"] = strips["post"]
    stack = [recording.pooled(layer, "resid_post").values[scene.position] for layer in layers]
    return strips | {"stack": strip(np.stack(stack), scene.config.n_embd)}


def _written(s: Any, position: int, asked: list[int], cause: Sequence[int]) -> list[Data]:
    """Return the end of the text as written, up to the followed token: each token with its place in the film."""
    written = s.written
    read = [i for i in range(len(written.ids)) if i not in s.hidden]
    end = read[position]
    texts = shown_tokens(written.tokenizer, written.ids[: end + 1])
    begin = end
    for word in reversed(words_of(written.tokenizer, written.ids[: end + 1])):
        if sum(map(len, texts[word.start :])) > CHARACTERS:
            break
        begin = word.start
    while 0 < begin < end and not any(map(str.isalnum, texts[begin])):  # punctuation of what is left out
        begin += 1
    places = {at: i for i, at in enumerate(read)}
    return [
        {
            "text": texts[at],
            "hidden": at in s.hidden,
            "asked": asked.index(places[at]) if places.get(at) in asked else -1,
            "cause": places.get(at) in cause,
        }
        for at in range(begin, end + 1)
    ]


def _stories(s: Any) -> Data:
    """Return the sentences of the second act; "next" lists the top tokens after each, and after the ending alone."""
    loaded = model_of(s)
    starts, ending, apart = TEXTS[language_of_model(loaded.name)]
    tops = [_likeliest(loaded.tokenizer, s.stages(logits, ids).final, N_NEXT) for ids, logits in s[stories]]
    return {"starts": starts, "ending": ending, "apart": apart, "next": tops}


def _likeliest(tokenizer: Vocabulary, final: Tensor, n: int) -> list[tuple[str, float]]:
    top = final.topk(n)
    return [
        (token_text(tokenizer, i), round(p, 6)) for i, p in zip(top.indices.tolist(), top.values.tolist(), strict=True)
    ]


def _guesses(scene: Scene, trace: Trace) -> list[Data]:
    """Return the output head's predictions after a few layers, including the first and the last."""
    model, n = scene.document.loaded.model, scene.config.n_layer
    guesses = []
    for layer in sorted({round(i) for i in np.linspace(0, n - 1, min(n, N_GUESSES))}):
        final = scene.stages(lens_logits(model, trace, layer, "resid_post", 0)).final
        [(token, p)] = _likeliest(scene.tokenizer, final, 1)
        guesses.append({"layer": layer, "token": token, "p": p})
    return guesses


def _draw(s: Snapshot, scene: Scene) -> Data:
    """Return the data for the beat that samples the next token.

    The seed is the one with which it was sampled or, failing that, the last run's or the previous token's.
    """
    document, tokenizer, after = scene.document, scene.tokenizer, scene.position + 1
    sources: list[Any] = [document.origin(after).params] if after < len(document.ids) else []
    sources += [s.throughput, document.origin(scene.position).params]
    seed = next((each.seed for each in sources if each is not None and each.seed is not None), 0)
    number = uniform_draw(seed, len(document.dropped) + after)
    stages = scene.stages(document.logits(scene.position))
    final = stages.final.numpy()
    drawn = cumulative_draw(stages.final, number)
    chosen = int(drawn.ids[drawn.index])
    ends = dict(zip(drawn.ids.tolist(), drawn.ends.tolist(), strict=True))
    ids = [i for i in best(final, stages.raw.numpy(), PIECES).tolist() if i in ends]
    if chosen not in ids:
        ids[-1] = chosen
    top = int(final.argmax())
    values = {"best": quoted(tokenizer, top), "best_p": percent(float(final[top]))}
    return {
        "pieces": [
            [token_text(tokenizer, i), round(ends[i] - float(final[i]), 6), round(float(final[i]), 6)] for i in ids
        ],
        "chosen": ids.index(chosen),
        "number": None if scene.settings.temperature == 0 else round(number, 4),
        "values": values | {"chosen": quoted(tokenizer, chosen)},
    }


def open_film(session: Session, beat: str = NAMES[0]) -> None:
    if session.document is None:
        raise PageError("error.no_text")
    session.change(Chosen, film_plays=True, film_clicks=session.state(Chosen).film_clicks + 1)
    session.film = beat


def play_film(after: Mapping[str, Callable[[Session], object]], session: Session, sent: dict[str, Any]) -> None:
    """Go to the beat of the film that the browser sends; null closes it, and "next" may name one of the steps after."""
    beat, step = sent.get("beat"), sent.get("next")
    if session.film is not None and (beat is None or beat in NAMES):
        session.film = beat
        session.change(Chosen, film_played=beat or "")
        if beat is None and isinstance(step, str) and step in after:
            after[step](session)
    if beat is None:
        session.change(Chosen, film_plays=False)


def look_inside(session: Session) -> None:
    session.tab = tab.name
    session.change(Chosen, step="numbers")


def film_card(after: Mapping[str, Callable[[Session], object]]) -> Callable[[], Card]:
    """Return the card with the film, for every tab. after: the steps that the film's last card offers, by name.

    Space plays and pauses; the arrow keys, PageUp and PageDown move between beats, Home and End to the first and the
    last; Escape closes the film.
    """
    return card(
        "film", widget("film", "film", template=_TEMPLATE, draw=draw_film, on=partial(play_film, after)), classes=""
    )


def build_film(events: Events, after: Mapping[str, Callable[[Session], object]]) -> None:
    add_cards(events, {"": [film_card(after)()]})
