"""The film, which follows one token through the machine picture in three acts, with numbers from the current text."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from components.errors import PageError
from components.i18n import t
from components.labels import alone, percent, quoted, token_text
from components.next_tokens import best
from components.state.admission import admitted
from components.state.example import language_of_model
from components.state.reads import Pending
from components.state.session import Session
from components.state.snapshot import Snapshot
from components.tabs.inside import machine
from components.tabs.inside.scene import FLOW_ROWS, Chosen, Scene, model_of, scene_of, select, tab, traced
from gpt import Generation, LoadedModel, SamplingParams, Trace
from gpt.analysis.lens import lens_logits
from gpt.analysis.sampling_stages import cumulative_draw
from gpt.sampling import uniform_draw
from gpt.tokenizer import plain_text

ASKED = 4  # tokens in the second act
N_GUESSES = 6  # layers whose prediction is shown
PIECES = 6  # candidates on the line from which a token is drawn
N_NEXT = 3  # next tokens shown after each text of the first act
CHARACTERS = 40  # characters shown from the end of the text, before the new token
Data = dict[str, Any]
Guesses = list[tuple[int, float]]  # ids and probabilities


@dataclass(frozen=True)
class Beat:
    """One beat of the film.

    Attributes:
        name: Key of its texts, "film.<name>" and "film.<name>.title".
        act: 1-based number of its act.
        seconds: Duration in seconds.
        view: Parts of the picture that the camera shows; not every model has all of them.
        more: Parts whose texts explain the details.
    """

    name: str
    act: int
    seconds: float
    view: tuple[str, ...]
    more: tuple[str, ...] = ()


BEATS = (
    Beat("ending", 1, 6, ("front",)),
    Beat("differ", 1, 8, ("front",)),
    Beat("blind", 1, 8, ("front",)),
    Beat("rows", 2, 7, ("tokens", "pre"), ("tok", "pos", "pre")),
    Beat("ask", 2, 7, ("tokens", "pre", "q", "k"), ("norm1", "q", "k")),
    Beat("answer", 2, 9, ("q", "k", "weights"), ("weights",)),
    Beat("mix", 2, 7, ("k", "weights", "v", "z"), ("mix", "z")),
    Beat("add", 2, 6, ("z", "att", "plus1", "mid"), ("att", "after1", "plus1")),
    Beat("neurons", 3, 6, ("mid", "gate", "ff", "out", "post"), ("norm2", "gate", "ff", "after2", "plus2")),
    Beat("layers", 3, 9, ("machine",), ("post",)),
    Beat("next", 3, 6, ("fin", "next"), ("fin", "next")),
    Beat("draw", 3, 6, ("next", "line")),
    Beat("written", 3, 5, ("text",)),
)
NAMES = tuple(beat.name for beat in BEATS)


def beat_named(name: str) -> str:
    """Return a beat's name, or the first beat's for an unknown name."""
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


def draw_flow(s: Any) -> Data:
    """Draw the model, with the film if it is open, and the number of rows to offer for a long text."""
    scene, chosen = s.cached(scene_of), s[Chosen]
    length = scene.recording.length
    rows = machine.window(length, scene.position, chosen.flow_rows)
    offered = next(n for n in FLOW_ROWS if n != chosen.flow_rows) if length > FLOW_ROWS[0] else None
    return machine.flow(scene, rows) | {
        "offered_rows": offered,
        "film": None if s.film is None else film(s, scene, rows),
        "beat": None if s.film is None else beat_named(s.film),
        "played": chosen.film_played,
    }


def film(s: Any, scene: Scene, rows: slice) -> Data:
    """Return the beats, their texts, and the numbers that are not in the picture itself.

    rows: the positions in the picture.
    """
    read = s[stories]
    guesses, drawn, predicted = _guesses(scene, s[traced]), _draw(s, scene), _predicted(s, read)
    weights = scene.recording.head(scene.layer, scene.head).weights[scene.position, : scene.position + 1]
    target = int(weights.argmax())
    values = {
        **_stories_values(read, predicted),
        "target": scene.quoted(target),
        "share": percent(float(weights[target])),
        "before": str(scene.layer - 1),
        "token": scene.quoted(scene.position),
        "layer": scene.layer,
        "head": scene.head,
        "n_layer": scene.config.n_layer,
        "deepest": scene.config.n_layer - 1,
        "n_head": scene.config.n_head,
        "width": f"{scene.config.n_embd:,}",
        "n_ff": f"{scene.config.ff_size:,}",
        "active": f"{int(scene.recording.neurons(scene.layer).active[scene.position]):,}",
        "vocabulary": f"{scene.document.loaded.tokenizer.n_vocab:,}",
        "first": f"“{guesses[0]['token']}”",
        "last": f"“{guesses[-1]['token']}”",
        **drawn.pop("values"),
    }
    before = plain_text(scene.document.loaded.tokenizer, scene.recording.ids[: scene.position + 1])
    return {
        "beats": [{"name": b.name, "act": b.act, "seconds": b.seconds, "view": b.view, "more": b.more} for b in BEATS],
        "words": _words(s, scene, predicted, drawn, values, is_shown=target >= rows.start),
        "plays": s[Chosen].film_plays,
        "clicks": s[Chosen].film_clicks,
        "stories": _stories(read, predicted),
        "asked": asked_rows(weights, rows.start),
        "guesses": guesses,
        "draw": drawn,
        "text": " ".join(before.split())[-CHARACTERS:],
    }


def asked_rows(weights: np.ndarray, start: int) -> list[int]:
    """Return the last position and those with the largest weights (position + 1,), in text order.

    `start` is the first position in the picture.
    """
    position = len(weights) - 1
    return sorted([*sorted(range(start, position), key=lambda i: -weights[i])[: ASKED - 1], position])


def _words(
    s: Snapshot, scene: Scene, stories: list[Guesses], drawn: Data, values: dict[str, Any], *, is_shown: bool
) -> dict[str, Data]:
    """Return each beat's title, sentence and details, and the title of its act.

    `is_shown` tells whether the picture shows the token with the largest weight.
    """
    is_suited = bool(stories) and stories[0][0][0] != stories[1][0][0]
    variants = {
        **dict.fromkeys(("differ", "blind"), "" if is_suited else "unsuited"),
        "answer": "" if is_shown else "outside",
        "rows": {0: "first", 1: "second"}.get(scene.layer, ""),
        "layers": "one" if scene.config.n_layer == 1 else "",
        "draw": "greedy" if drawn["number"] is None else "",
        "written": drawn["ending"],
    }
    if not stories:
        variants |= dict.fromkeys(("ending", "differ", "blind"), "unreadable")
    words = {}
    for beat in BEATS:
        variant = variants.get(beat.name)
        key = f"film.{beat.name}.{variant}" if variant else f"film.{beat.name}"
        says, title = t(key, **values), t(f"film.{beat.name}.title", **values)
        words[beat.name] = {"title": title, "says": says, "act": t(f"film.act.{beat.act}")}
    words["draw"]["more"] = t("film.draw.more", **values)
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
        "next": [[[alone(token_text(tokenizer, i)), round(p, 4)] for i, p in tokens] for tokens in predicted],
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
        best = int(final.argmax())
        found.append({"layer": layer, "token": alone(token_text(tokenizer, best)), "p": percent(final[best].item())})
    return found


def _draw(s: Snapshot, scene: Scene) -> Data:
    """Return the data for the beat that samples the next token.

    "pieces" are (token, start, width), and "chosen" is the index of the drawn piece. "number" is the
    random number in [0, 1), or None at temperature 0. "writes" tells whether the token can still be appended to the
    text, and "ending" selects the variant of the last beat.
    """
    document, tokenizer, after = scene.document, scene.document.loaded.tokenizer, scene.position + 1
    params, number = draw_at(s, scene)
    stages = scene.stages(document.logits(scene.position))
    raw, final = stages.raw.numpy(), stages.final.numpy()
    drawn = cumulative_draw(stages.final, number)
    ends = dict(zip(drawn.ids.tolist(), drawn.ends.tolist(), strict=True))
    ids = [i for i in best(final, raw, PIECES).tolist() if i in ends]
    if drawn.token_id not in ids:
        ids[-1] = drawn.token_id
    names = {i: alone(token_text(tokenizer, i)) for i in ids}
    is_last = after >= len(document.ids)
    is_whole = document.full or bool(s.hidden)  # nothing is written
    follower = None if is_last else document.ids[after]
    ending = "" if is_last or follower == drawn.token_id else "there"
    if is_last and is_whole:
        ending = "hidden" if s.hidden else "full"
    top = int(final.argmax())
    return {
        "pieces": [[names[i], round(ends[i] - float(final[i]), 6), round(float(final[i]), 6)] for i in ids],
        "chosen": ids.index(drawn.token_id),
        "number": None if params.temperature == 0 else round(number, 4),
        "written": token_text(tokenizer, drawn.token_id if follower is None else follower),
        "writes": is_last and not is_whole,
        "ending": ending,
        "values": {
            "best": quoted(tokenizer, top),
            "best_p": percent(float(final[top])),
            "chosen": quoted(tokenizer, drawn.token_id),
            "follower": "" if follower is None else quoted(tokenizer, follower),
            "chosen_raw": percent(float(raw[drawn.token_id])),
            "chosen_final": percent(float(final[drawn.token_id])),
            "number": f"{number:.2f}",
            "start": f"{drawn.bounds[0]:.2f}",
            "end": f"{drawn.bounds[1]:.2f}",
            "temperature": f"{params.temperature:g}",
            "seed": params.seed,
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
    """Open the film in the machine picture, at the named beat."""
    if session.document is None:
        raise PageError("error.no_text")
    clicks = session.state(Chosen).film_clicks + 1
    session.change(Chosen, film_plays=True, film_clicks=clicks)
    session.tab, session.film = "inside", beat_named(beat)


def play_film(session: Session, sent: dict[str, Any]) -> None:
    """Go to the beat of the film that the browser sends, or close the film if "beat" is null."""
    beat = sent.get("beat")
    if session.film is not None and (beat is None or beat in NAMES):
        session.film = beat
        session.change(Chosen, film_played=beat or "")
    if beat is None:
        session.change(Chosen, film_plays=False)


def write_next(session: Session, sent: dict[str, Any]) -> Iterator[None]:
    """Append the token sampled in the film to the text, keeping the followed token selected."""
    document = session.document
    if document is None or session.lock.streaming:
        return
    with admitted(session, document.loaded) as waiting:
        yield from waiting
        with session.changing():
            s = session.snapshot()
            with suppress(Pending):
                scene = scene_of(s)
                if scene.document is not document or scene.position + 1 != len(document.ids):
                    return
                params, _ = draw_at(s, scene)
                session.redo_stack.clear()
                for _ in document.steps(params, 1):
                    document.read()
                session.selection = replace(session.selection, position=scene.position)


def select_in_flow(session: Session, sent: dict[str, Any]) -> None:
    """Handle a click in the flow: select, change the number of tokens shown, or go to another beat of the film."""
    if "beat" in sent:
        play_film(session, sent)
    if sent.get("rows") in FLOW_ROWS:
        session.change(Chosen, flow_rows=sent["rows"])
    select(session, sent)
