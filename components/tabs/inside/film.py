"""The film: a stage over the whole window, on which the model reads the visitor's text, with its true numbers.

It changes nothing: not the text, not the selection, not the settings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple

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
from components.parts import Part
from components.state.example import language_of_model
from components.state.reads import Pending
from components.state.session import Session
from components.state.snapshot import Snapshot
from components.state.typed_text import shown_tokens, word_name, words_of
from components.tabs.inside.machine import strip
from components.tabs.inside.recording import BINS, PooledVectors
from components.tabs.inside.scene import Chosen, Scene, model_of, scene_of, tab, traced
from components.widgets.flow import packed
from components.widgets.widget import widget
from gpt import Generation, LoadedModel, SamplingParams, Trace
from gpt.analysis.lens import lens_logits
from gpt.analysis.sampling_stages import cumulative_draw
from gpt.sampling import uniform_draw

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


def film_stage(name: str, **wired: Any) -> Part:
    """Return the film, which is closed if there are no data.

    `.select` has {"beat"}: the new beat's name, or None when the film is closed; then "next" may be "hide", "layer" or
    "challenge". Space plays and pauses; the arrow keys, PageUp and PageDown move between beats, Home and End to the
    first and the last; Escape closes the film.

    View data: as described in `film/film.js` and `film/paint.js`.
    """
    return widget("film", name, template=_TEMPLATE, **wired)


ASKED = 4  # tokens that the query visits
N_GUESSES = 6  # layers whose prediction is shown
PIECES = 6  # candidates on the line from which a token is drawn
N_NEXT = 3  # next tokens shown after a text
CHARACTERS = 160  # maximum length of the visible end of the text
Data = dict[str, Any]
Guesses = list[tuple[int, float]]  # ids and probabilities


class MainCause(NamedTuple):
    """The word that a prediction depends on most.

    positions: in the text as the model reads it. token: the predicted one. probability, without: of the token, with the
    word and without it.
    """

    positions: Sequence[int]
    token: int
    probability: float
    without: float


class Beat(NamedTuple):
    """One beat of the film: its texts' key, "film.<name>" and "film.<name>.title", its chapter and duration in s."""

    name: str
    chapter: int
    seconds: float


BEATS = (
    Beat("yours", 1, 7),
    Beat("cause", 1, 7),
    Beat("ending", 2, 5),
    Beat("differ", 2, 7),
    Beat("blind", 2, 7),
    Beat("rows", 3, 7),
    Beat("ask", 3, 6),
    Beat("answer", 3, 8),
    Beat("mix", 3, 6),
    Beat("add", 3, 6),
    Beat("neurons", 4, 6),
    Beat("layers", 4, 7),
    Beat("next", 4, 5),
    Beat("draw", 4, 6),
    Beat("written", 4, 5),
)
NAMES = tuple(beat.name for beat in BEATS)


def beat_named(name: str) -> str:
    return name if name in NAMES else NAMES[0]


@dataclass(frozen=True, eq=False)
class Stories:
    """The model's predictions after two sentences with the same ending, and after the ending alone.

    Attributes:
        TEXTS: The two prefixes, their shared ending, and the words in which they differ, for each model language.
        texts: The ids of the three texts and the logits after each, (vocab_size,). Empty if the model cannot read them.
    """

    TEXTS: ClassVar = {
        "en": (("Tom got a cat.", "Tom got a bike."), "He loves his", ("cat", "bike")),
        "zh": (("江路落残阳。", "江路落残花。"), "戍楼望归客，夜夜梦还", ("阳", "花")),  # rhyme decides the next token
    }
    loaded: LoadedModel
    texts: tuple[tuple[tuple[int, ...], Tensor], ...]

    @classmethod
    @torch.inference_mode()
    def of(cls, loaded: LoadedModel) -> Stories:
        language = language_of_model(loaded.name)
        starts, ending, _ = cls.TEXTS[language]
        between = " " if language == "en" else "\n"
        texts = [*(f"{start}{between}{ending}" for start in starts), ending]
        try:
            return cls(loaded, tuple(_read(loaded, text) for text in texts))
        except ValueError:  # unknown characters, or the context is too short
            return cls(loaded, ())


def _read(loaded: LoadedModel, text: str) -> tuple[tuple[int, ...], Tensor]:
    document = Generation(loaded, text)
    document.read()
    return tuple(document.ids), document.logits(len(document.ids) - 1)


@tab.computed(while_writing=True)
def stories(s: Any) -> Stories:
    return Stories.of(model_of(s))


def draw_film(s: Any) -> Data:
    """Draw the film if it is open; until its numbers are ready, only which beat is open."""
    if s.film is None or s.text is None:
        return {"beat": None, "film": None}
    chosen = s[Chosen]
    opened = {"beat": beat_named(s.film), "played": chosen.film_played, "clicks": chosen.film_clicks, "film": None}
    try:
        return opened | {"plays": chosen.film_plays, "film": film(s, s.cached(scene_of), main_cause(s))}
    except Pending:
        return opened


def film(s: Any, scene: Scene, cause: MainCause | None) -> Data:
    read = s[stories]
    guesses, drawn, predicted = _guesses(scene, s[traced]), _draw(s, scene), _predicted(s, read)
    weights = scene.recording.attn_weights(scene.layer, scene.position, scene.position + 1)[:, 0].float().numpy()
    asked = asked_positions(weights[scene.head])
    target = int(weights[scene.head, : scene.position + 1].argmax())
    values = {
        **_stories_values(read, predicted),
        **_cause_values(scene, cause),
        "target": scene.quoted(target),
        "share": percent(float(weights[scene.head, target])),
        "before": str(scene.layer - 1),
        "token": scene.quoted(scene.position),
        "layer": scene.layer,
        "n_layer": scene.config.n_layer,
        "deepest": scene.config.n_layer - 1,
        "n_head": scene.config.n_head,
        "width": f"{scene.config.n_embd:,}",
        "n_ff": f"{scene.config.ff_size:,}",
        "active": f"{int(scene.recording.neurons(scene.layer).active[scene.position]):,}",
        "vocabulary": f"{scene.document.loaded.tokenizer.n_vocab:,}",
        "first": f"“{guesses[0]['token'].strip()}”",
        "last": f"“{guesses[-1]['token'].strip()}”",
        **drawn.pop("values"),
    }
    final = scene.stages(scene.document.logits(scene.position)).final
    neurons = s[traced].layers[scene.layer].mlp_post[0, 0].float().numpy()
    after = np.concatenate(
        [scene.recording.pooled(guess["layer"], "resid_post").values[[scene.position]] for guess in guesses]
    )
    return {
        "beats": [beat._asdict() for beat in BEATS],
        "chapters": [t(f"film.act.{n}") for n in sorted({beat.chapter for beat in BEATS})],
        "words": _words(s, read, predicted, drawn, values, cause),
        "layer": scene.layer,
        "text": _written(s, scene, asked, () if cause is None else cause.positions),
        "asked": [alone(token_text(scene.tokenizer, scene.recording.ids[i])) for i in asked],
        "weights": np.round(weights[:, asked], 6).tolist(),
        "head": scene.head,
        "strips": _strips(scene, asked) | {"stack": _strip(after)},
        "neurons": packed(neurons, float(np.percentile(np.abs(neurons), 99)), signed=False),
        "next": [[token_text(scene.tokenizer, i), round(final[i].item(), 6)] for i in final.topk(5).indices.tolist()],
        "stories": _stories(read, predicted),
        "guesses": guesses,
        "draw": drawn,
    }


def main_cause(s: Any) -> MainCause | None:
    """Return what the prediction depends on most; None if no word stands out or nothing has been measured yet."""
    found, falls = s.ready(reason), s.cached(reason_falls)
    if found is None or falls is None or (word := main_word(falls, found.ids, s.text.tokenizer)) is None:
        return None
    return MainCause(word.place, found.token, falls.probability, word.probability)


def asked_positions(weights: np.ndarray) -> list[int]:
    """Return the last position and those with the largest weights (position + 1,), in text order."""
    position = len(weights) - 1
    return sorted([*sorted(range(position), key=lambda i: -weights[i])[: ASKED - 1], position])


def _strip(values: np.ndarray) -> Data:
    return strip(PooledVectors.of(values, BINS), slice(None))


def _strips(scene: Scene, asked: list[int]) -> dict[str, Data]:
    """Return the vectors of the asked positions: the stream before, between and after, and the head's."""
    recording, vectors = scene.recording, scene.recording.head(scene.layer, scene.head)
    names = {"pre": "resid_pre", "mid": "resid_mid", "post": "resid_post"}
    found = {short: recording.find(scene.layer, name) for short, name in names.items()}
    if scene.config.parallel:
        found["mid"] = found["post"]
    streams = {short: _strip(each.values[asked]) for short, each in found.items() if each is not None}
    return streams | {name: _strip(getattr(vectors, name)[asked]) for name in "qkvz"}


def _written(s: Any, scene: Scene, asked: list[int], cause: Sequence[int]) -> list[Data]:
    """Return the end of the text as written, up to the followed token: each token with its place in the film.

    hidden: whether the model doesn't read it. asked: its index among the asked tokens, or -1. cause: whether it belongs
    to the word that the prediction depends on.
    """
    written = s.written
    read = [i for i in range(len(written.ids)) if i not in s.hidden]
    end = read[scene.position]
    texts = shown_tokens(written.tokenizer, written.ids[: end + 1])
    begin = end
    for word in reversed(words_of(written.tokenizer, written.ids[: end + 1])):
        if sum(map(len, texts[word.start :])) > CHARACTERS:
            break
        begin = word.start
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


def _cause_values(scene: Scene, cause: MainCause | None) -> dict[str, str]:
    if cause is None:
        return {}
    return {
        "word": word_name(scene.tokenizer, scene.recording.ids[: scene.position + 1], cause.positions),
        "guess": quoted(scene.tokenizer, cause.token),
        "guess_p": percent(cause.probability),
        "without": percent(cause.without),
    }


def _words(
    s: Snapshot, read: Stories, predicted: list[Guesses], drawn: Data, values: dict[str, Any], cause: MainCause | None
) -> dict[str, Data]:
    is_suited = bool(predicted) and predicted[0][0][0] != predicted[1][0][0]
    layer = values["layer"]
    variants = {
        "yours": "hidden" if s.hidden else "",
        "cause": "none" if cause is None else "",
        **dict.fromkeys(("differ", "blind"), "" if is_suited else "unsuited"),
        "rows": {0: "first", 1: "second"}.get(layer, ""),
        "layers": "one" if values["n_layer"] == 1 else "",
        "draw": "greedy" if drawn["number"] is None else "",
    }
    if not read.texts:
        variants |= dict.fromkeys(("ending", "differ", "blind"), "unreadable")
    words = {}
    for beat in BEATS:
        variant = variants.get(beat.name)
        key = f"film.{beat.name}.{variant}" if variant else f"film.{beat.name}"
        words[beat.name] = {"title": t(f"film.{beat.name}.title", **values), "says": t(key, **values)}
    return words


def _predicted(s: Snapshot, stories: Stories) -> list[Guesses]:
    """Return the likeliest tokens after each of the three texts, best first; [] if the model cannot read the texts."""
    tops = (s.stages(logits, ids).final.topk(N_NEXT) for ids, logits in stories.texts)
    return [list(zip(top.indices.tolist(), top.values.tolist(), strict=True)) for top in tops]


def _stories(stories: Stories, predicted: list[Guesses]) -> Data:
    """Return the two sentences of the first act; "next" lists the top tokens after each, and after the ending alone."""
    tokenizer = stories.loaded.tokenizer
    starts, ending, apart = Stories.TEXTS[language_of_model(stories.loaded.name)]
    return {
        "starts": starts,
        "ending": ending,
        "apart": apart,
        "next": [[[token_text(tokenizer, i), round(p, 6)] for i, p in tokens] for tokens in predicted],
    }


def _stories_values(stories: Stories, predicted: list[Guesses]) -> dict[str, str]:
    values: dict[str, str] = {}
    for name, ((token, p), *_) in zip(("one", "other", "alone"), predicted, strict=False):
        values |= {name: f"“{token_text(stories.loaded.tokenizer, token).strip()}”", f"{name}_p": percent(p)}
    return values


def _guesses(scene: Scene, trace: Trace) -> list[Data]:
    """Return the output head's predictions after a few layers, including the first and the last."""
    model, tokenizer = scene.document.loaded.model, scene.tokenizer
    n = scene.config.n_layer
    found = []
    for layer in sorted({round(i) for i in np.linspace(0, n - 1, min(n, N_GUESSES))}):
        final = scene.stages(lens_logits(model, trace, layer, "resid_post", 0)).final
        top = int(final.argmax())
        found.append({"layer": layer, "token": token_text(tokenizer, top), "p": round(final[top].item(), 6)})
    return found


def _draw(s: Snapshot, scene: Scene) -> Data:
    """Return the data for the beat that samples the next token.

    "pieces" are (token, start, width), and "chosen" is the index of the drawn piece. "number" is the random number in
    [0, 1), or None at temperature 0.
    """
    document, tokenizer = scene.document, scene.document.loaded.tokenizer
    params, number = draw_at(s, scene)
    stages = scene.stages(document.logits(scene.position))
    final = stages.final.numpy()
    drawn = cumulative_draw(stages.final, number)
    ends = dict(zip(drawn.ids.tolist(), drawn.ends.tolist(), strict=True))
    ids = [i for i in best(final, stages.raw.numpy(), PIECES).tolist() if i in ends]
    if drawn.token_id not in ids:
        ids[-1] = drawn.token_id
    top = int(final.argmax())
    return {
        "pieces": [
            [token_text(tokenizer, i), round(ends[i] - float(final[i]), 6), round(float(final[i]), 6)] for i in ids
        ],
        "chosen": ids.index(drawn.token_id),
        "number": None if params.temperature == 0 else round(number, 4),
        "values": {
            "best": quoted(tokenizer, top),
            "best_p": percent(float(final[top])),
            "chosen": quoted(tokenizer, drawn.token_id),
        },
    }


def draw_at(s: Snapshot, scene: Scene) -> tuple[SamplingParams, float]:
    """Return the settings, and the random number that samples the next token.

    The seed is the one with which the next token was sampled or, failing that, the last run's or the previous token's.
    """
    document, after = scene.document, scene.position + 1
    sources: list[Any] = [document.origin(after).params] if after < len(document.ids) else []
    sources += [s.throughput, document.origin(scene.position).params]
    seed = next((each.seed for each in sources if each is not None and each.seed is not None), 0)
    return replace(scene.settings, seed=seed), uniform_draw(seed, len(document.dropped) + after)


def open_film(session: Session, beat: str = NAMES[0]) -> None:
    if session.document is None:
        raise PageError("error.no_text")
    session.change(Chosen, film_plays=True, film_clicks=session.state(Chosen).film_clicks + 1)
    session.film = beat_named(beat)


def play_film(after: Mapping[str, Callable[[Session], object]], session: Session, sent: dict[str, Any]) -> None:
    """Go to the beat of the film that the browser sends, or close the film if "beat" is null.

    sent: may also name one of the steps to take after the film, as "next".
    """
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
    """Return the card with the film, for every tab. after: the steps that the film's last card offers, by name."""
    stage = film_stage("film", draw=draw_film, on=partial(play_film, after))
    return card("film", stage, classes="")


def build_film(events: Events, after: Mapping[str, Callable[[Session], object]]) -> None:
    add_cards(events, {"": [film_card(after)()]})
